"""JSON and CSV values that the tasks of kafka-live and kafka-log decode, compared with Spark's from_json, from_csv."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark.sql.datasource")

from tests.waiting import until

from kwire.broker import Broker
from kwire.client import Client, Producer
from kwire.records import ColumnWriter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from tools.sail import SailEngine

DDL = (
    "id BIGINT, small SMALLINT, ratio DOUBLE, ok BOOLEAN, name STRING, day DATE, at TIMESTAMP, local TIMESTAMP_NTZ, "
    "lines ARRAY<STRUCT<sku: STRING, n: INT>>, tags MAP<STRING, BIGINT>, price DECIMAL(20, 2)"
)
ORDERS: list[bytes | None] = [
    b'{"id": 1, "name": "a", "lines": [{"sku": "x", "n": 2}], "at": "2026-01-31T12:00:00Z"}',
    None,
    b'{"id": "one"}',
    b'{"id": 2, "small": 1, "more": [1]}',
]


def draw(source: random.Random) -> dict[str, Any]:
    """Draw a value of which Spark and kwire say the same."""
    value = {
        "id": source.choice((0, -1, 2**63 - 1, -(2**63), source.randrange(10**9))),
        "small": source.choice((-32768, 32767, 5)),
        "ratio": source.choice((0.5, 1e300, -2.5e-7, 12, source.uniform(-1e6, 1e6))),
        "ok": source.random() < 0.5,
        "name": source.choice(("", "ü", 'a "quoted" \\', "\U0001f600", "line\n", {"a": [1, "b", None]}, [True], 17)),
        "day": f"20{source.randrange(10, 99)}-0{source.randrange(1, 10)}-{source.randrange(10, 29)}",
        "at": f"2026-03-0{source.randrange(1, 10)}T1{source.randrange(10)}:00:0{source.randrange(10)}"
        + source.choice(("", ".5", ".123456"))
        + source.choice(("Z", "+02:00")),
        "local": f"2026-03-0{source.randrange(1, 10)}T10:00:00",
        "lines": [{"sku": str(n), "n": n} for n in range(source.randrange(4))],
        "tags": {f"k{n}": n for n in range(source.randrange(4))},
        "unknown": {"x": 1},
        "price": source.choice((0, 1.005, -2.5, "7.125", "1e3", 10**17, 0.1, source.uniform(-1e9, 1e9))),
    }
    names = [name for name in value if source.random() < 0.8]
    source.shuffle(names)
    return {name: None if source.random() < 0.1 else value[name] for name in names}


CSV_DDL = "id BIGINT, small TINYINT, ratio DOUBLE, ok BOOLEAN, name STRING, day DATE, at TIMESTAMP, price DECIMAL(9, 2)"


def draw_csv(source: random.Random) -> bytes:
    """Draw a record of which Spark and kwire say the same."""
    fields = (
        str(source.choice((0, -1, 2**63 - 1, -(2**63), source.randrange(10**9)))),
        str(source.choice((-128, 127, 5))),
        str(source.choice((0.5, "1e300", "-2.5e-7", 12, "NaN", "-Inf", source.uniform(-1e6, 1e6)))),
        source.choice(("true", "FALSE")),
        source.choice(("a", " ü ", '"a, b"', '"a ""b"" c"', 'a"b', "\U0001f600", '"line\nline"')),
        f"20{source.randrange(10, 99)}-0{source.randrange(1, 10)}-{source.randrange(10, 29)}",
        f"2026-03-0{source.randrange(1, 10)}T1{source.randrange(10)}:00:00"
        + source.choice(("", ".5", ".123456"))
        + "Z",
        str(source.choice(("0", "1.005", "-2.125", "1234567.89", source.randrange(10**6)))),
    )
    return ",".join("" if source.random() < 0.1 else each for each in fields).encode()


class Topics:
    """A broker with topics of JSON."""

    def __init__(self, broker: Broker, log_dir: Path) -> None:
        self.broker, self.log_dir = broker, log_dir
        self.options = {"kafka.bootstrap.servers": broker.bootstrap_servers}

    def write(self, topic: str, values: list[bytes | None], key: bytes = b'{"k": 7}') -> None:
        with Client(self.broker.bootstrap_servers) as client:
            producer = Producer(client)
            for begin in range(0, len(values), 40):
                part = values[begin : begin + 40]  # one batch
                columns = {"key": pa.array([key] * len(part), pa.binary()), "value": pa.array(part, pa.binary())}
                for piece in ColumnWriter(**producer.fields(topic, 0)).write(pa.record_batch(columns)):
                    producer.send(topic, 0, piece, len(part))


@pytest.fixture(scope="module")
def topics(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Topics]:
    log_dir = tmp_path_factory.mktemp("log")
    with Broker(data_dir=log_dir) as broker:
        found = Topics(broker, log_dir)
        source = random.Random(11)
        for name in ("orders", "drawn", "growing", "csv"):
            broker.create_topic(name)
        found.write("orders", ORDERS)
        found.write("drawn", [json.dumps(draw(source)).encode() for _ in range(3000)])
        found.write("csv", [draw_csv(source) for _ in range(2000)])
        yield found


def load(spark: SparkSession, topics: Topics, topic: str, **options: str) -> DataFrame:
    given = {**topics.options, "subscribe": topic, **{key.replace("_", "."): value for key, value in options.items()}}
    return spark.read.format("kafka-live").options(**given).load()


@pytest.mark.sampled
@pytest.mark.parametrize("mode", ["permissive", "failfast"])
def test_values_are_those_of_from_json(spark: SparkSession, topics: Topics, mode: str) -> None:
    from pyspark.sql.functions import from_json

    ours = load(spark, topics, "drawn", value_format="json", value_schema=DDL, value_mode=mode).select(
        "offset", "value"
    )
    raw = load(spark, topics, "drawn")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    parsed = from_json(raw.value.cast("string"), DDL, {"mode": mode.upper()})
    theirs = raw.select("offset", parsed.alias("value"))
    assert ours.schema == theirs.schema
    found = ours.orderBy("offset").collect()
    assert len(found) == 3000
    assert found == theirs.orderBy("offset").collect()


def test_csv_values_are_those_of_from_csv(spark: SparkSession, topics: Topics) -> None:
    from pyspark.sql.functions import from_csv

    ours = load(spark, topics, "csv", value_format="csv", value_schema=CSV_DDL).select("offset", "value")
    raw = load(spark, topics, "csv")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    options = {"mode": "FAILFAST", "escape": '"', "multiLine": "true"}
    theirs = raw.select("offset", from_csv(raw.value.cast("string"), CSV_DDL, options).alias("value"))
    assert ours.schema == theirs.schema
    found = [str(row) for row in ours.orderBy("offset").collect()]  # NaN is not equal to itself
    assert len(found) == 2000
    assert found == [str(row) for row in theirs.orderBy("offset").collect()]


def test_schemas_are_inferred(spark: SparkSession, topics: Topics) -> None:
    frame = load(spark, topics, "orders", value_format="json", value_mode="permissive")
    assert frame.schema["value"].dataType.simpleString() == (
        "struct<id:string,name:string,lines:array<struct<sku:string,n:bigint>>,at:string,small:bigint,more:array<bigint>>"
    )
    assert [row.value and row.value.id for row in frame.orderBy("offset").collect()] == ["1", None, "one", "2"]
    given = {"value.format": "csv", "value.schema": "infer", "columns": "value", "subscribe": "csv"}
    frame = spark.read.format("kafka-log").options(**given).load(str(topics.log_dir))
    kinds = ["bigint", "bigint", "double", "boolean", "string", "string", "string", "double"]
    assert [each.dataType.simpleString() for each in frame.schema["value"].dataType] == kinds
    assert frame.count() == 2000


def test_modes(spark: SparkSession, topics: Topics) -> None:
    given = {"value_format": "json", "value_schema": DDL, "columns": "value,offset"}
    with pytest.raises(Exception, match="orders-0, offset 2: id: expected an integer, got a string"):
        load(spark, topics, "orders", **given).collect()
    rows = load(spark, topics, "orders", **given, value_mode="permissive").orderBy("offset").collect()
    assert [row.value and row.value.id for row in rows] == [1, None, None, 2]
    frame = load(spark, topics, "orders", **given, value_mode="deadletter", value_columns="id")
    assert frame.schema["value"].dataType.simpleString() == "struct<value:struct<id:bigint>,error:string>"
    assert [row.value.error for row in frame.orderBy("offset").collect()] == [
        *(None, None),
        *("id: expected an integer, got a string, at byte 0", None),
    ]


def test_keys_and_log_directories(spark: SparkSession, topics: Topics) -> None:
    given = {"value.format": "json", "value.schema": "id STRING", "key.format": "json", "key.schema": "k INT"}
    frame = spark.read.format("kafka-log").options(**given).option("subscribe", "orders").load(str(topics.log_dir))
    rows = frame.orderBy("offset").collect()
    assert [(row.key.k, row.value and row.value.id) for row in rows] == [(7, "1"), (7, None), (7, "one"), (7, "2")]


@pytest.mark.slow
def test_a_stream(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    rows: list[Any] = []

    def keep(batch: DataFrame, number: int) -> None:
        rows.extend(batch.orderBy("offset").collect())

    topics.write("growing", ORDERS[:2])
    options = {**topics.options, "subscribe": "growing", "startingOffsets": "earliest"}
    options |= {"value.format": "json", "value.schema": DDL}
    frame = spark.readStream.format("kafka-live").options(**options).load()
    writer = frame.writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(processingTime="100 milliseconds").start()
    try:
        until(lambda: len(rows) == 2 or query.exception())
        topics.write("growing", ORDERS[3:])
        until(lambda: len(rows) == 3 or query.exception())
    finally:
        query.stop()
    assert [row.value and row.value.id for row in rows] == [1, None, 2]


def read_on_sail(spark: SparkSession, options: dict[str, str]) -> list[int | None]:
    frame = spark.read.format("kafka-live").options(**options).load()
    return [row.value and row.value.id for row in frame.orderBy("offset").collect()]


def test_sail_gets_the_same_values(sail: SailEngine, topics: Topics) -> None:
    options = {**topics.options, "subscribe": "orders", "columns": "value,offset"}
    options |= {"value.format": "json", "value.schema": DDL, "value.mode": "permissive"}
    assert sail(read_on_sail, options) == [1, None, None, 2]
