"""Tables by record type through Spark: option tableBy of the sinks and copy_stream, table_by of jobs.table."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.lake.avro_values import write_values
from tests.lake.mixed_values import CREATED, MOVED, PAID, TYPES, mixed_registry, value_of
from tests.lake.tables import Tables
from tests.lake.test_record_tables import KEY, Killed, drop, expected, name_of, offsets, record_tables
from tests.sampling import mostly_slow

import kwire
import kwire.spark
from kwire.broker import Broker
from kwire.errors import OptionError, TableError
from kwire.lake import Layout, RowOptions, append_logs
from kwire.log import LogDirectory

pytest.importorskip("pyspark.sql.datasource")
pytest.importorskip("pyiceberg")
pytest.importorskip("deltalake")

from tests.spark.lake.test_sink import forget_the_last_commit
from tests.spark.lake.test_sink import options as options_of

from kwire.spark import jobs
from kwire.spark.lake.options import parse_lake_options
from kwire.spark.lake.sink import LakeWriter

confluent_kafka = pytest.importorskip("confluent_kafka")

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = pa.schema(
    [
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
    ]
)


@pytest.fixture(params=mostly_slow(["delta", "iceberg"]))
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> Tables:
    return Tables(request.param, tmp_path)


def options(tables: Tables, **more: str) -> dict[str, str]:
    given = options_of(tables, "events")
    return given | {"tableBy": "record", "value.registry": str(tables.folder / "schemas"), **more}


def rows_of(values: list[bytes | None], first: int) -> pa.RecordBatch:
    rows = [
        {"value": value, "topic": "avro", "partition": 0, "offset": first + n, "timestamp": 0}
        for n, value in enumerate(values)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=ROWS)


def write_batch(tables: Tables, batch: int, rows: pa.RecordBatch, **more: str) -> None:
    """Write a micro-batch as a stream does, in two tasks."""
    given = options(tables, txnAppId="query", txnVersion=str(batch), **more)
    writer = LakeWriter(parse_lake_options(given, tables.format), rows.schema, overwrite=False)  # type: ignore[arg-type]
    half = len(rows) // 2
    in_task = pickle.loads(pickle.dumps(writer))
    messages = [in_task.write(iter([each])) for each in (rows.slice(0, half), rows.slice(half))]
    writer.commit(pickle.loads(pickle.dumps(messages)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_random_micro_batches_that_are_killed_and_run_again(
    tables: Tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Drivers die before or after the commit of any table; Spark then runs the batch again."""
    draw, registry = random.Random(seed), mixed_registry(tmp_path / "schemas")
    left, whens, kinds = [0], [""], list[str]()
    format_class: Any = type(tables.open("events"))
    really = format_class.add

    def add(self: Any, *given: Any) -> None:
        left[0] -= 1
        is_now = whens[0] and not left[0]
        if not (is_now and whens[0] == "before"):
            really(self, *given)
        if is_now:
            raise Killed

    monkeypatch.setattr(format_class, "add", add)
    for batch in range(6):
        new = [draw.choice(TYPES[: 2 + batch]) for _ in range(draw.randint(2, 9))]
        rows = rows_of([value_of(registry, each, len(kinds) + n) for n, each in enumerate(new)], len(kinds))
        kinds += new
        for when in (draw.choice(["", "before", "after"]), draw.choice(["", "before", "after"]), ""):
            whens[0], left[0] = when, draw.randint(1, 5)
            with suppress(Killed):
                write_batch(tables, batch, rows, compactEvery="3")
    assert {kind: offsets(tables, kind) for kind in set(kinds)} == expected(kinds)
    index = tables.open("events")
    index.refresh()
    assert index.state().spans == {KEY: ((0, len(kinds)),)}
    assert sorted(tables.read("events")["record"].to_pylist()) == sorted(set(kinds))


def test_a_new_query_continues_where_a_killed_one_stopped(tables: Tables, tmp_path: Path) -> None:
    """One table has the last batch and the index does not: a new query writes the rest of it."""
    registry = mixed_registry(tmp_path / "schemas")
    kinds = [CREATED, PAID, CREATED, MOVED, PAID, CREATED]
    values = [value_of(registry, kind, n) for n, kind in enumerate(kinds)]
    write_batch(tables, 0, rows_of(values[:2], 0))
    really = type(tables.open("events")).add
    with pytest.MonkeyPatch.context() as patch:

        def add(self: Any, *given: Any) -> None:
            really(self, *given)
            raise Killed

        patch.setattr(type(tables.open("events")), "add", add)
        with pytest.raises(Killed):
            write_batch(tables, 1, rows_of(values[2:], 2))
    parsed = parse_lake_options(options(tables), tables.format)  # type: ignore[arg-type]
    rows = rows_of(values[2:], 2)
    writer = LakeWriter(parsed, rows.schema, overwrite=False)
    writer.commit([writer.write(iter([rows]))])
    assert {kind: offsets(tables, kind) for kind in set(kinds)} == expected(kinds)
    with pytest.raises(TableError, match="the rows have offsets 2 to 5 of avro-0, and the table has 0 to 5 already"):
        LakeWriter(parsed, rows.schema, overwrite=False).write(iter([rows]))


def test_a_stream_warns_of_rows_that_a_table_has_lost(
    tables: Tables, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The checkpoint is behind them, so they are a hole of the index until they are appended."""
    registry = mixed_registry(tmp_path / "schemas")
    kinds = [CREATED, PAID, CREATED, PAID, PAID, CREATED, PAID, CREATED]
    values = [value_of(registry, kind, n) for n, kind in enumerate(kinds)]
    for batch in range(3):
        write_batch(tables, batch, rows_of(values[2 * batch : 2 * batch + 2], 2 * batch))
    drop(tables, name_of(CREATED))
    write_batch(tables, 3, rows_of(values[6:], 6))
    assert "it was dropped, or has gone back" in caplog.text
    index = tables.open("events")
    index.refresh()
    assert index.state().spans == {KEY: ((6, 8),)}
    assert offsets(tables, CREATED) == [7]
    write_batch(tables, 3, rows_of(values[6:], 6))  # Spark runs a batch again whose commit it does not know
    assert offsets(tables, CREATED) == [7]
    drop(tables, name_of(CREATED))
    write_batch(tables, 3, rows_of(values[6:], 6))
    source = write_values(tmp_path / "logs", values)
    records = record_tables(tables, registry)
    logs = [LogDirectory(source)[KEY]]
    list(append_logs(tables.open("events"), logs, layout=Layout(), rows=RowOptions(records=records), fill=True))
    assert {kind: offsets(tables, kind) for kind in set(kinds)} == expected(kinds)


def test_dead_letters_and_failed_tasks(tables: Tables, tmp_path: Path) -> None:
    registry = mixed_registry(tmp_path / "schemas")
    rows = rows_of([value_of(registry, PAID, 0), b"text", None, value_of(registry, PAID, 3)[:-1]], 0)
    dead = str(tmp_path / "dead") if tables.format == "delta" else "sales.dead"
    write_batch(tables, 0, rows, deadLetters=dead, metricsFile=str(tmp_path / "metrics"))
    write_batch(tables, 0, rows, deadLetters=dead)
    assert offsets(tables, PAID) == [0]
    assert sorted(tables.read("dead")["offset"].to_pylist()) == [1, 2, 3]
    text = (tmp_path / "metrics").read_text()
    assert 'kwire_table_rows_total{table="' in text
    assert "events" in text

    parsed = parse_lake_options(options(tables, deadLetters=dead), tables.format)  # type: ignore[arg-type]
    writer = LakeWriter(parsed, ROWS, overwrite=False)
    written = writer.write(iter([rows_of([value_of(registry, PAID, 4), b"x"], 4)]))
    writer.abort([written, None])
    for name in (name_of(PAID), "dead", "events"):
        assert tables.open(name).find_orphans(0) == []


REFUSED = [
    ({"value.registry": ""}, "Option 'value.registry': expected a URL or a folder"),
    ({"mergeKey": "key"}, "cannot be merged by key"),
    ({"onKnownOffsets": "append"}, "rows cannot be written again"),
    ({"value.mode": "permissive"}, "Option 'value.mode': does not apply to tableBy"),
    ({"value.schema": "union"}, "schema: does not apply"),
    ({"value.message": "Order"}, "message: does not apply"),
    ({"value.columns": "id"}, "columns: does not apply"),
    ({"value.headers": "true"}, "Option 'value.headers': does not apply to tableBy, which takes schema ids from val"),
    ({"key.registry": "/schemas"}, "Unknown option 'key.registry'"),
    ({"key.registry.ssl.ca.location": "ca.pem"}, "Unknown option 'key.registry.ssl.ca.location'"),
    ({"value.registry.no.such.setting": "1"}, "no.such.setting"),
    ({"value.format": "json", "value.registry": ""}, "requires option 'value.registry'"),
    ({"tableBy": "key"}, "Option 'tableBy': expected one of record, got 'key'"),
]


@pytest.mark.parametrize(("more", "message"), REFUSED)
def test_options_that_do_not_fit(tmp_path: Path, more: dict[str, str], message: str) -> None:
    mixed_registry(tmp_path / "schemas")
    given = options(Tables("delta", tmp_path), **more)
    if more.get("value.format"):
        del given["value.registry"]
    with pytest.raises(OptionError, match=message):
        LakeWriter(parse_lake_options(given, "delta"), ROWS, overwrite=False)


def test_rows_that_do_not_fit(tmp_path: Path) -> None:
    mixed_registry(tmp_path / "schemas")
    tables = Tables("delta", tmp_path)
    parsed = parse_lake_options(options(tables), "delta")
    with pytest.raises(OptionError, match="column 'value' is of type string; it must be binary"):
        LakeWriter(parsed, ROWS.set(0, pa.field("value", pa.string())), overwrite=False)
    with pytest.raises(OptionError, match="require the column 'offset'"):
        LakeWriter(parsed, ROWS.remove(3), overwrite=False)
    with pytest.raises(OptionError, match="'tableBy': requires appending"):
        LakeWriter(parsed, ROWS, overwrite=True)
    with pytest.raises(OptionError, match=r"'value\.registry': requires option 'tableBy'"):
        parse_lake_options({"path": "/t", "value.registry": "http://r"}, "delta")


@pytest.mark.slow
def test_a_job_writes_tables_by_record_type(tables: Tables, tmp_path: Path, spark: SparkSession) -> None:
    registry = mixed_registry(tmp_path / "schemas")
    kinds = [TYPES[n % 4] for n in range(11)]
    source = write_values(tmp_path / "logs", [value_of(registry, kind, n) for n, kind in enumerate(kinds)])
    target: dict[str, Any] = {"target": str(tmp_path / "events")}
    if tables.format == "iceberg":
        target = {"target": "sales.events", "catalog": tables.catalog(f"file://{tmp_path}")}
    given = {**target, "registry": registry, "values": {"table_by": "record"}}
    assert jobs.table(spark, str(source), **given).total("rows") == 11
    assert {kind: offsets(tables, kind) for kind in TYPES} == expected(kinds)
    assert jobs.table(spark, str(source), **given).total("rows") == 0
    drop(tables, name_of(PAID))
    assert jobs.table(spark, str(source), **given).total("rows") == kinds.count(PAID)  # the others have theirs
    with pytest.raises(OptionError, match="table_by: expected 'record', got 'key'"):
        jobs.table(spark, str(source), **{**given, "values": {"table_by": "key"}})
    with pytest.raises(OptionError, match="table_by: requires registry"):
        jobs.table(spark, str(source), **{**given, "registry": None})


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.mark.slow
@pytest.mark.parametrize("format", ["delta", "iceberg"])
@pytest.mark.parametrize("way", ["copy_stream", "DataFrame"])
def test_a_stream_gets_new_types_and_its_driver_dies(
    spark: SparkSession, broker: Broker, tmp_path: Path, format: str, way: str
) -> None:
    tables, topic = Tables(format, tmp_path), f"mixed-{way}-{format}"
    registry = mixed_registry(tmp_path / "schemas", topic=topic)
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})
    source: dict[str, Any] = {
        "kafka.bootstrap.servers": broker.bootstrap_servers,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": 40,
    }
    kinds: list[str] = []

    def run(*new: str) -> None:
        for kind in new:
            producer.produce(topic, value_of(registry, kind, len(kinds)), partition=0)
            kinds.append(kind)
        assert producer.flush(30) == 0
        checkpoint, trigger = str(tmp_path / "checkpoint"), {"availableNow": True}
        if way == "copy_stream":
            query = kwire.spark.copy_stream(
                spark, "kafka-live", source, f"kwire-{format}", options(tables), checkpoint=checkpoint, trigger=trigger
            )
        else:
            writer = spark.readStream.format("kafka-live").options(**source).load().writeStream
            writer = writer.format(f"kwire-{format}").options(**options(tables))
            query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        query.awaitTermination()

    run(*[PAID, CREATED] * 50)
    forget_the_last_commit(tables)
    run(*[PAID, MOVED] * 30)
    assert {kind: offsets(tables, kind) for kind in set(kinds)} == expected(kinds)
    if way == "copy_stream":
        del source["startingOffsets"]
        again = kwire.spark.starting_offsets("kafka-live", source, f"kwire-{format}", options(tables))
        assert again == f'{{"{topic}":{{"0":{len(kinds)}}}}}'
