"""copy_stream: streams from topics to tables and topics whose rows do not enter the JVM."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.lake.tables import FORMATS, Tables
from tests.lake.test_metrics import samples
from tests.soak.table_query import QuerySettings, TableQuery
from tests.waiting import HANG_S

import kwire
import kwire.spark
from kwire.broker import Broker
from kwire.errors import BrokerError, OptionError, TableError, UnknownSchema
from kwire.schemas.avro import Encoder, parse
from kwire.spark.functions import from_registry

pytest.importorskip("pyspark.sql.datasource")
pytest.importorskip("pyiceberg")
pytest.importorskip("deltalake")
pytest.importorskip("confluent_kafka")

import confluent_kafka
from confluent_kafka.admin import AdminClient
from tests.sampling import mostly_slow
from tests.spark.lake.test_sink import copy as copy_with_spark
from tests.spark.lake.test_sink import forget_the_last_commit, options, state
from tests.spark.live.test_sink import consume

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 300
SCHEMA = json.dumps(
    {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": "string"}]}
)
ALL = [(partition, offset) for partition in (0, 1) for offset in range(ROWS // 2)]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    encoder = Encoder(parse(SCHEMA))
    orders = pa.array([{"id": n, "note": f"n{n}"} for n in range(ROWS)], encoder.type)
    values = encoder.encode(orders, prefix=b"\0\0\0\0\x07").array.to_pylist()
    with Broker(num_partitions=2) as broker:
        for name in ("copies", "many.copy", "changed"):
            broker.create_topic(name, partitions=2)
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})
        for number, value in enumerate(values):
            producer.produce("orders", value, f"k{number % 10}", partition=number % 2)
        assert producer.flush(30) == 0
        yield broker.bootstrap_servers


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("schemas")
    (folder / "orders-value.1.7.avsc").write_text(SCHEMA)
    return str(folder)


def read_options(servers: str, **more: Any) -> dict[str, Any]:
    return {
        "kafka.bootstrap.servers": servers,
        "subscribe": "orders",
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": 100,
        **{name.replace("_", "."): value for name, value in more.items()},
    }


def copy(spark: SparkSession, servers: str, tables: Tables, function: Any = None, **more: Any) -> Any:
    """Copy the topic to a table in micro-batches of 100 offsets until its end."""
    query = kwire.spark.copy_stream(
        spark,
        "kafka-live",
        read_options(servers, **more),
        f"kwire-{tables.format}",
        options(tables),
        checkpoint=str(tables.folder / "checkpoint"),
        function=function,
        trigger={"availableNow": True},
    )
    query.awaitTermination()
    return query


def places(table: pa.Table) -> list[tuple[int, int]]:
    return sorted(zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("format", mostly_slow(FORMATS))
def test_a_driver_that_dies_after_a_commit_writes_each_row_once(
    spark: SparkSession, servers: str, tmp_path: Path, format: str
) -> None:
    tables = Tables(format, tmp_path)
    query = copy(spark, servers, tables)
    assert [progress["numInputRows"] for progress in query.recentProgress] == [2, 2, 2]  # tasks
    assert kwire.spark.lag(query)["orders"]["maxOffsetsBehindLatest"] == 0
    forget_the_last_commit(tables)
    copy(spark, servers, tables)
    found = tables.read()
    assert places(found) == ALL
    assert found.schema.names == ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    assert state(tables).spans == {("orders", partition): ((0, ROWS // 2),) for partition in (0, 1)}
    assert list(state(tables).batches.values()) == [2]
    assert tables.open().find_orphans(0) == []


@pytest.mark.slow
def test_a_usual_stream_is_continued_and_the_other_way_round(spark: SparkSession, servers: str, tmp_path: Path) -> None:
    tables = Tables("delta", tmp_path)
    producer = confluent_kafka.Producer({"bootstrap.servers": servers})
    for number in range(3):
        producer.produce("moving", f"{number}", partition=0)
        assert producer.flush(30) == 0
        if number == 1:
            copy(spark, servers, tables, subscribe="moving")
        else:
            copy_with_spark(spark, servers, tables, topic="moving")
        assert places(tables.read()) == [(0, offset) for offset in range(number + 1)]
    assert list(state(tables).batches.values()) == [2]


def test_values_are_decoded_and_a_function_changes_rows(
    spark: SparkSession, servers: str, schemas: str, tmp_path: Path
) -> None:
    def flatten(rows: pa.RecordBatch) -> pa.RecordBatch:
        place = rows.select(["topic", "partition", "offset"])
        fields = pa.RecordBatch.from_struct_array(rows.column("value"))
        made = pa.RecordBatch.from_arrays(
            [*place.columns, *fields.columns], [*place.schema.names, *fields.schema.names]
        )
        return made.filter(pc.not_equal(made.column("id"), 17))

    tables = Tables("iceberg", tmp_path)
    copy(spark, servers, tables, flatten, value_registry=schemas)
    found = tables.read()
    assert found.schema.names == ["topic", "partition", "offset", "id", "note"]
    rows = found.to_pylist()
    assert sorted(row["id"] for row in rows) == [n for n in range(ROWS) if n != 17]
    assert all(row["note"] == f"n{row['id']}" and row["partition"] == row["id"] % 2 for row in rows)


@pytest.mark.slow
def test_a_topic_is_copied_to_a_topic_in_transactions(spark: SparkSession, servers: str, tmp_path: Path) -> None:
    for _ in range(2):
        query = kwire.spark.copy_stream(
            spark,
            "kafka-live",
            read_options(servers, columns="key,value,partition"),
            "kafka-live",
            {"kafka.bootstrap.servers": servers, "topic": "copies", "transactionalIdPrefix": "copy"},
            checkpoint=str(tmp_path / "checkpoint"),
            name="copies",
            trigger={"availableNow": True},
        )
        query.awaitTermination()
        assert query.name == "copies"
        commits = sorted((tmp_path / "checkpoint" / "commits").glob("[0-9]*"))
        commits[-1].unlink()
        (commits[-1].parent / f".{commits[-1].name}.crc").unlink()
    logs = kwire.open(f"kafka://{servers}")
    for partition in (0, 1):
        ours, theirs = ([(r.key, r.value) for r in logs[topic, partition].read()] for topic in ("copies", "orders"))
        assert ours == theirs


@pytest.mark.slow
def test_a_function_stands_between_two_topics(spark: SparkSession, servers: str, schemas: str, tmp_path: Path) -> None:
    def notes(rows: pa.RecordBatch) -> pa.RecordBatch:
        notes = rows.column("value").field("note").cast(pa.binary())
        made = pa.RecordBatch.from_arrays([rows.column("key"), notes], ["key", "value"])
        return made.filter(pc.not_equal(notes, b"n17"))

    query = kwire.spark.copy_stream(
        spark,
        "kafka-live",
        read_options(servers, value_registry=schemas),
        "kafka-live",
        {"kafka.bootstrap.servers": servers, "topic": "changed", "transactionalIdPrefix": "changed"},
        checkpoint=str(tmp_path / "checkpoint"),
        function=notes,
        trigger={"availableNow": True},
    )
    query.awaitTermination()
    found = sorted((message.key(), message.value()) for message in consume(servers, "changed"))
    assert found == sorted((b"k%d" % (n % 10), b"n%d" % n) for n in range(ROWS) if n != 17)


@pytest.mark.slow
@pytest.mark.parametrize("format", mostly_slow(FORMATS[::-1]))
def test_a_new_query_starts_at_the_offsets_of_its_table(
    spark: SparkSession, servers: str, tmp_path: Path, format: str
) -> None:
    """The checkpoint is lost; meanwhile the topic gets records in an old partition and in a new one."""
    topic, tables = f"continued-{format}", Tables(format, tmp_path)
    producer = confluent_kafka.Producer({"bootstrap.servers": servers})

    def produce(*places: int) -> None:
        for number in range(5):
            for partition in places:
                producer.produce(topic, f"{number}", partition=partition)
        assert producer.flush(30) == 0

    def run(checkpoint: str) -> None:
        given = read_options(servers, subscribe=topic) | {"startFrom": "table"}
        del given["startingOffsets"]
        query = kwire.spark.copy_stream(
            spark,
            "kafka-live",
            given,
            f"kwire-{format}",
            options(tables),
            checkpoint=str(tmp_path / checkpoint),
            trigger={"availableNow": True},
        )
        query.awaitTermination()

    produce(0)
    run("first")
    produce(0, 1)
    run("second")
    assert places(tables.read()) == [(0, offset) for offset in range(10)] + [(1, offset) for offset in range(5)]
    assert state(tables).spans == {(topic, 0): ((0, 10),), (topic, 1): ((0, 5),)}
    run("second")
    run("third")
    assert len(tables.read()) == 15
    admin = AdminClient({"bootstrap.servers": servers})
    admin.delete_topics([topic])[topic].result(30)
    produce(*[0] * 3, 1)
    with pytest.raises(TableError, match="the topic was deleted and created again"):
        run("fourth")


@pytest.mark.slow
def test_a_copy_to_a_topic_that_is_killed_in_micro_batches_has_each_record_once(servers: str, tmp_path: Path) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": servers})
    for number in range(4000):
        producer.produce("many", f"v{number}", f"k{number}", partition=number % 2)
        producer.poll(0)
    assert producer.flush(HANG_S) == 0
    settings = QuerySettings(
        servers=servers,
        topic="many",
        checkpoint=str(tmp_path / "checkpoint"),
        format="kafka-live",
        options={"kafka.bootstrap.servers": servers, "topic": "many.copy", "transactionalIdPrefix": "many"},
        columns=(),
        is_direct=True,
        limit=100,
    )
    choose = random.Random(4000)
    query = TableQuery(tmp_path, settings, with_reserve=False)
    try:
        for kill in range(3):
            before, deadline = query.batch("commits"), time.monotonic() + HANG_S
            while query.batch("commits") <= before + 1 or query.batch("offsets") == query.batch("commits"):
                assert time.monotonic() < deadline
                query.look()
                time.sleep(0.005)
            time.sleep(choose.uniform(0, 0.2))  # seldom between a write and its commit, as test_sink_kills
            query.kill(with_workers=True)
            assert query.batch("commits") < 39, "it was killed too late"
            if kill < 2:
                query.replace()
        query.replace("rest")
        query.wait_until_done()
    finally:
        query.close()
    copied: dict[int, list[tuple[bytes, bytes]]] = {0: [], 1: []}
    for message in consume(servers, "many.copy"):
        copied[message.partition()].append((message.key(), message.value()))
    for partition, found in copied.items():
        assert found == [(b"k%d" % number, b"v%d" % number) for number in range(partition, 4000, 2)]


@pytest.mark.slow
def test_a_log_directory_is_copied(spark: SparkSession, modern: Path, tmp_path: Path) -> None:
    tables = Tables("delta", tmp_path)
    query = kwire.spark.copy_stream(
        spark,
        "kafka-log",
        {"path": str(modern), "subscribe": "orders", "startingOffsets": "earliest"},
        "kwire-delta",
        options(tables),
        checkpoint=str(tmp_path / "checkpoint"),
        trigger={"availableNow": True},
    )
    query.awaitTermination()
    expected = spark.read.format("kafka-log").option("subscribe", "orders").load(str(modern))
    assert places(tables.read()) == sorted(map(tuple, expected.select("partition", "offset").collect()))


@pytest.mark.slow
def test_a_function_that_changes_its_columns_fails_the_query(spark: SparkSession, servers: str, tmp_path: Path) -> None:
    def unstable(rows: pa.RecordBatch) -> pa.RecordBatch:
        return rows.select(["value"] if len(rows) else ["value", "offset"])

    tables = Tables("delta", tmp_path)
    with pytest.raises(Exception, match=r"function: returned the columns value: binary; without rows it returned va"):
        copy(spark, servers, tables, unstable)


@pytest.mark.parametrize(
    ("source", "more", "sink", "sink_options", "error", "message"),
    [
        ("kafka", {}, "kwire-delta", {}, OptionError, "source: expected one of kafka-live, kafka-log, got 'kafka'"),
        ("kafka-live", {}, "delta", {}, OptionError, "sink: expected one of kwire-iceberg, .*did you mean"),
        ("kafka-live", {"colums": "x"}, "kwire-delta", {}, OptionError, "did you mean 'columns'"),
        ("kafka-live", {}, "kwire-delta", {"pth": "/t"}, OptionError, r"Unknown option 'pth'"),
        ("kafka-live", {}, "kafka-live", {"topic": "t"}, OptionError, "'kafka.bootstrap.servers' must be specified"),
        ("kafka-live", {}, "kafka-live", {"topic": "orderz"}, BrokerError, "'orderz' does not exist.*create it first"),
        ("kafka-live", {}, "parquet", {}, OptionError, "Option 'path' must be specified"),
        ("kafka-live", {}, "parquet", {"path": "s3://b/x"}, OptionError, "expected a local path, got 's3://b/x'"),
        ("kafka-live", {}, "parquet", {"path": "/t", "partitionBy": "x"}, OptionError, "use kwire-delta"),
        ("kafka-live", {}, "parquet", {"path": "/t", "deadLetters": "/d"}, OptionError, "Unknown option 'deadletters'"),
        ("kafka-live", {}, "parquet", {"path": "/t", "compression": "zip"}, OptionError, "'compression'"),
        ("kafka-live", {"startFrom": "table"}, "parquet", {"path": "/t"}, OptionError, "the sink is no table"),
        ("kafka-live", {"endingOffsets": "latest"}, "kwire-delta", {}, OptionError, "not valid in streaming"),
        ("kafka-live", {"value_registry": "FOLDER", "value_subject": "x"}, "kwire-delta", {}, UnknownSchema, "'x'"),
    ],
)
def test_faults_are_found_before_the_query_starts(
    spark: SparkSession,
    servers: str,
    schemas: str,
    source: str,
    more: dict[str, Any],
    sink: str,
    sink_options: dict[str, str],
    error: type[Exception],
    message: str,
) -> None:
    more = {name: schemas if value == "FOLDER" else value for name, value in more.items()}
    if sink == "kafka-live" and "topic" in sink_options and error is BrokerError:
        sink_options = sink_options | {"kafka.bootstrap.servers": servers}
    given = read_options(servers, **more)
    if "startFrom" in more:
        del given["startingOffsets"]
    with pytest.raises(error, match=message):
        kwire.spark.copy_stream(spark, source, given, sink, sink_options, checkpoint="/c")


def test_a_function_that_returns_no_batch_is_refused(spark: SparkSession, servers: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"function: expected a pyarrow\.RecordBatch, got list"):
        copy(spark, servers, Tables("delta", tmp_path), pa.RecordBatch.to_pylist)


@pytest.mark.slow
@pytest.mark.parametrize("format", mostly_slow(FORMATS))
def test_bad_values_go_to_a_table_of_dead_letters_once(
    spark: SparkSession, servers: str, tmp_path: Path, format: str
) -> None:
    """The driver dies between the commits of dead letters and rows, in effect: the second is taken back."""
    encoder = Encoder(parse(SCHEMA))
    good = encoder.encode(pa.array([{"id": 1, "note": "n"}], encoder.type), prefix=b"\0\0\0\0\x07").array[0].as_py()
    topic = f"poisoned-{format}"
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / f"{topic}-value.1.7.avsc").write_text(SCHEMA)
    producer = confluent_kafka.Producer({"bootstrap.servers": servers})
    for number in range(150):
        producer.produce(topic, b"bad %d" % number if number % 50 == 7 else good, f"k{number}", partition=0)
    assert producer.flush(30) == 0
    tables = Tables(format, tmp_path)
    dead = {"deadLetters": options(tables, "dead")["path" if format == "delta" else "table"]}
    dead["metricsFile"] = str(tmp_path / "metrics.prom")
    given = read_options(servers, subscribe=topic, value_registry=str(tmp_path / "schemas"))

    def run(**more: str) -> Any:
        query = kwire.spark.copy_stream(
            spark,
            "kafka-live",
            given | more,
            f"kwire-{format}",
            options(tables) | dead,
            checkpoint=str(tmp_path / "checkpoint"),
            trigger={"availableNow": True},
        )
        query.awaitTermination()

    with pytest.raises(OptionError, match="mode: deadLetters requires deadletter, got 'permissive'"):
        run(**{"value.mode": "permissive"})
    run()
    counted = samples(tmp_path / "metrics.prom")
    name = tables.open().name
    wanted = {"rows_total": 147, "dead_letters_total": 3, "commits_total": 2, "files_total": 2}
    assert {each: counted[each, name] for each in wanted} == wanted
    assert counted["end_offset", name, topic, "0"] == 150
    assert time.time() - 120 < counted["newest_record_timestamp_seconds", name] <= time.time()
    forget_the_last_commit(tables)
    run()
    rows, letters = tables.read(), tables.read("dead")
    assert sorted(letters["offset"].to_pylist()) == [7, 57, 107]
    assert sorted(letters["value"].to_pylist()) == [b"bad 107", b"bad 57", b"bad 7"]
    assert sorted(rows["offset"].to_pylist()) == [n for n in range(150) if n % 50 != 7]
    assert set(rows["value"].to_pylist()[0]) == {"id", "note"}


@pytest.mark.slow
def test_bad_values_go_to_a_topic_of_dead_letters_at_least_once(
    spark: SparkSession, servers: str, tmp_path: Path
) -> None:
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "bad-value.1.7.avsc").write_text(SCHEMA)
    producer = confluent_kafka.Producer({"bootstrap.servers": servers})
    for topic in ("bad", "bad-letters"):
        producer.produce(topic, b"bad", b"k", partition=0, headers={"first": b""} if topic != "bad" else None)
    assert producer.flush(30) == 0
    tables, name = Tables("delta", tmp_path), f"kafka://{servers}/bad-letters"
    copied = kwire.spark.copy_stream(
        spark,
        "kafka-live",
        read_options(servers, subscribe="bad", value_registry=str(tmp_path / "schemas")),
        "kwire-delta",
        options(tables) | {"deadLetters": name, "kafka.client.id": "letters"},
        checkpoint=str(tmp_path / "checkpoint"),
        trigger={"availableNow": True},
    )
    copied.awaitTermination()
    assert tables.read().num_rows == 0
    assert state(tables).spans == {("bad", 0): ((0, 1),)}
    letters = (each for each in consume(servers, "bad-letters") if ("first", b"") not in each.headers())
    assert [(each.key(), each.value()) for each in letters] == [(b"k", b"bad")]


@pytest.mark.slow
def test_dead_letters_of_a_usual_stream(spark: SparkSession, servers: str, schemas: str, tmp_path: Path) -> None:
    """from_registry's struct of value and error is divided by the sink."""
    producer = confluent_kafka.Producer({"bootstrap.servers": servers})
    producer.produce("usual", b"bad", "k", partition=0)
    assert producer.flush(30) == 0
    rows = spark.read.format("kafka-live").options(**{"kafka.bootstrap.servers": servers, "subscribe": "usual"}).load()
    decoded = from_registry("value", schemas, subject="orders-value", mode="deadletter")
    named = "named_struct('value', d.value, 'error', d.error, 'bytes', value) AS value"
    rows = rows.withColumn("d", decoded).selectExpr("topic", "partition", "offset", named)
    tables = Tables("delta", tmp_path)
    writer = rows.write.format("kwire-delta").options(**options(tables), deadLetters=str(tmp_path / "dead"))
    writer.mode("append").save()
    assert len(tables.read()) == 0
    (letter,) = tables.read("dead").to_pylist()
    assert (letter["offset"], letter["value"], letter["topic"]) == (0, b"bad", "usual")
