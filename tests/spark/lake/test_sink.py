"""Streams and DataFrames into tables, through Spark: once, with offsets, whatever is run again."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.lake.tables import FORMATS, Tables, kafka_rows, write
from tests.lake.test_gone_back import go_back, point_of
from tests.sampling import mostly_slow

import kwire
from kwire.broker import Broker
from kwire.errors import OptionError, TableError
from kwire.lake import Layout, Mark, append_logs

pytest.importorskip("pyspark.sql.datasource")
pytest.importorskip("pyiceberg")
pytest.importorskip("deltalake")

from kwire.spark.lake.options import parse_lake_options
from kwire.spark.lake.sink import LakeStreamWriter, LakeWriter

confluent_kafka = pytest.importorskip("confluent_kafka")


if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = 300


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with Broker(num_partitions=2) as broker:
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})
        for number in range(ROWS):
            producer.produce("orders", str(number), f"k{number % 10}", partition=number % 2)
        assert producer.flush(30) == 0
        yield broker.bootstrap_servers


def options(tables: Tables, name: str = "orders") -> dict[str, str]:
    if tables.format == "delta":
        return {"path": str(tables.folder / name)}
    catalog = tables.catalog(f"file://{tables.folder}")
    return {"table": f"sales.{name}", **{f"catalog.{key}": value for key, value in catalog.items()}}


def copy(
    spark: SparkSession,
    servers: str,
    tables: Tables,
    *columns: str,
    topic: str = "orders",
    start: str = "earliest",
    **more: str,
) -> None:
    """Copy the topic in micro-batches of 100 rows until its end."""
    read = spark.readStream.format("kafka-live").option("kafka.bootstrap.servers", servers)
    read = read.option("subscribe", topic).option("startingOffsets", start).option("maxOffsetsPerTrigger", 100)
    rows = read.load().selectExpr(*(columns or ("*",)))
    writer = rows.writeStream.format(f"kwire-{tables.format}").options(**options(tables), **more)
    query = writer.option("checkpointLocation", str(tables.folder / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()


def state(tables: Tables) -> Any:
    table = tables.open()
    table.refresh()
    return table.state()


def forget_the_last_commit(tables: Tables) -> None:
    """Remove the last micro-batch from the checkpoint's commits, as if the driver had died before it wrote that."""
    commits = tables.folder / "checkpoint" / "commits"
    last = max(int(each.name) for each in commits.glob("[0-9]*"))
    (commits / str(last)).unlink()
    (commits / f".{last}.crc").unlink()


@pytest.mark.slow
@pytest.mark.parametrize("format", mostly_slow(FORMATS))
def test_a_stream_whose_driver_dies_after_a_commit_writes_each_row_once(
    spark: SparkSession, servers: str, tmp_path: Path, format: str
) -> None:
    tables = Tables(format, tmp_path)
    copy(spark, servers, tables)
    forget_the_last_commit(tables)
    copy(spark, servers, tables)
    found = tables.read()
    keys = zip(found.column("partition").to_pylist(), found.column("offset").to_pylist(), strict=True)
    assert sorted(keys) == [(partition, offset) for partition in (0, 1) for offset in range(ROWS // 2)]
    assert state(tables).spans == {("orders", partition): ((0, ROWS // 2),) for partition in (0, 1)}
    assert list(state(tables).batches.values()) == [2]
    assert tables.open().find_orphans(0) == []


@pytest.mark.slow
@pytest.mark.parametrize("format", mostly_slow(FORMATS))
def test_a_checkpoint_of_one_batch_before_the_table_is_an_error(
    spark: SparkSession, tmp_path: Path, format: str
) -> None:
    """The topic has grown since, so the batch is planned up to another end."""
    tables = Tables(format, tmp_path)
    with Broker() as broker:
        servers = broker.bootstrap_servers
        producer = confluent_kafka.Producer({"bootstrap.servers": servers})

        def produce_and_copy() -> None:
            for number in range(20):
                producer.produce("orders", str(number))
            assert producer.flush(30) == 0
            copy(spark, servers, tables)

        produce_and_copy()
        shutil.copytree(tmp_path / "checkpoint", tmp_path / "old")
        produce_and_copy()
        shutil.rmtree(tmp_path / "checkpoint")
        shutil.move(tmp_path / "old", tmp_path / "checkpoint")
        with pytest.raises(Exception, match="batch 1 is in the table, without offsets 40 to 59 of orders-0"):
            produce_and_copy()
    assert sorted(tables.read().column("offset").to_pylist()) == [*range(40)]
    assert tables.open().find_orphans(0) == []


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS)
def test_a_new_checkpoint_doubles_no_row_and_the_hole_it_leaves_is_filled(
    spark: SparkSession, tmp_path: Path, format: str
) -> None:
    tables = Tables(format, tmp_path)
    key = ("orders", 0)

    def forget() -> None:
        shutil.rmtree(tmp_path / "checkpoint")

    def offsets_in_table() -> list[int]:
        return sorted(tables.read().column("offset").to_pylist())

    with Broker() as broker:
        servers = broker.bootstrap_servers
        producer = confluent_kafka.Producer({"bootstrap.servers": servers})

        def produce(count: int) -> None:
            for number in range(count):
                producer.produce("orders", str(number))
            assert producer.flush(30) == 0

        produce(150)
        copy(spark, servers, tables)
        forget()
        with pytest.raises(Exception, match="have offsets 0 to 99 of orders-0, and the table has 0 to 149 already"):
            copy(spark, servers, tables)
        forget()
        produce(30)
        copy(spark, servers, tables, onKnownOffsets="skip")
        assert offsets_in_table() == list(range(180))
        forget()
        produce(30)  # of which a query that starts at the latest offset after 20 of them has 10
        copy(spark, servers, tables, start='{"orders":{"0":200}}')
        assert state(tables).spans == {key: ((0, 180), (200, 210))}
        forget()
        produce(5)
        copy(spark, servers, tables, start=state(tables).starting_offsets())
        assert state(tables).spans == {key: ((0, 180), (200, 215))}
        logs = kwire.open(f"kafka://{servers}")
        filled = list(append_logs(tables.open(), [logs["orders", 0]], layout=Layout(), fill=True))
        assert [each.rows for each in filled] == [20, 0]
        assert offsets_in_table() == list(range(215))
        assert state(tables).spans == {key: ((0, 215),)}
        assert tables.open().find_orphans(0) == []


@pytest.mark.parametrize("format", FORMATS)
def test_known_offsets_fail_are_skipped_or_appended(
    tmp_path: Path, format: Any, caplog: pytest.LogCaptureFixture
) -> None:
    tables = Tables(format, tmp_path)

    def save(start: int, end: int, *, overwrite: bool = False, **more: str) -> None:
        rows = kafka_rows(start, end)
        parsed = parse_lake_options({**options(tables), **more}, format)
        writer = pickle.loads(pickle.dumps(LakeWriter(parsed, rows.schema, overwrite=overwrite)))
        writer.commit([writer.write(iter(rows.slice(first, 5).to_batches())) for first in range(0, len(rows), 5)])

    save(0, 10)
    with pytest.raises(TableError, match="the rows have offsets 9 of orders-0, and the table has 0 to 9 already"):
        save(9, 20)
    save(9, 20, onKnownOffsets="Skip")
    assert "rows of orders-0 among offsets 9 were skipped; the table has them already" in caplog.text
    assert sorted(tables.read().column("offset").to_pylist()) == list(range(20))
    assert "hole" not in caplog.text
    save(21, 25)
    assert "it has a hole: rows of orders-0 at offsets 20 are in no commit" in caplog.text
    save(23, 26, onKnownOffsets="append")
    assert sorted(tables.read().column("offset").to_pylist()) == [*range(20), 21, 22, 23, 23, 24, 24, 25]
    save(0, 26, onKnownOffsets="skip")
    assert len(tables.read()) == 28
    assert state(tables).spans == {("orders", 0): ((0, 26),)}, "offset 20 was in the rows"
    caplog.clear()
    save(0, 3, onKnownOffsets="skip", txnAppId="empty", txnVersion="7")
    assert state(tables).batches == {"empty": 7}, "its next batch continues"
    save(0, 5, overwrite=True)
    assert sorted(tables.read().column("offset").to_pylist()) == list(range(5))


@pytest.mark.parametrize("format", FORMATS)
def test_rows_that_were_skipped_and_are_gone_at_the_commit_are_an_error(tmp_path: Path, format: Any) -> None:
    """Another program rolls the table back meanwhile. The table said that it had these offsets, without their rows."""
    tables = Tables(format, tmp_path)
    write(tables.open(), kafka_rows(0, 10))
    first = point_of(tables)
    write(tables.open(), kafka_rows(10, 20))
    rows = kafka_rows(0, 30)
    given = parse_lake_options({**options(tables), "onKnownOffsets": "skip"}, format)
    writer = LakeStreamWriter(given, rows.schema, overwrite=False)
    written = writer.write_task(iter(rows.to_batches()), Mark(query="q", batch=0))
    go_back(tables, first)
    with pytest.raises(TableError, match="without offsets 10 to 19 of orders-0; run again"):
        writer.commit([written], 0)
    again = LakeStreamWriter(given, rows.schema, overwrite=False)
    again.commit([again.write_task(iter(rows.to_batches()), Mark(query="q", batch=0))], 0)
    assert sorted(tables.read().column("offset").to_pylist()) == list(range(30))


@pytest.mark.parametrize("format", FORMATS)
def test_a_batch_that_was_in_the_table_and_is_gone_at_the_commit_is_an_error(tmp_path: Path, format: Any) -> None:
    """A batch that runs again writes nothing; its offsets were committed without rows."""
    tables = Tables(format, tmp_path)
    given = parse_lake_options(options(tables), format)

    def run(batch: int, point: int | None = None) -> None:
        rows = kafka_rows(10 * batch, 10 * batch + 10)
        writer = LakeStreamWriter(given, rows.schema, overwrite=False)
        written = writer.write_task(iter(rows.to_batches()), Mark(query="q", batch=batch))
        if point is not None:
            go_back(tables, point)
        writer.commit([written], batch)

    run(0)
    first = point_of(tables)
    run(1)
    with pytest.raises(TableError, match="it has gone back to before this batch while that ran; run again"):
        run(1, first)
    run(1)
    assert sorted(tables.read().column("offset").to_pylist()) == list(range(20))


@pytest.mark.parametrize("format", FORMATS)
def test_a_checkpoint_of_another_table_is_named(tmp_path: Path, format: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Its batches begin in the middle of the topic, which no hole shows."""
    tables = Tables(format, tmp_path)
    for batch in (7, 8):
        rows = kafka_rows(10 * batch, 10 * batch + 10)
        writer = LakeStreamWriter(parse_lake_options(options(tables), format), rows.schema, overwrite=False)
        writer.commit([writer.write_task(iter(rows.to_batches()), Mark(query="q", batch=batch))], batch)
        assert ("batch 7 is the first one of this query in it; rows of its earlier" in caplog.text) == (batch == 7)
        caplog.clear()


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS)
def test_a_stream_by_key_has_the_latest_value_of_each(
    spark: SparkSession, servers: str, tmp_path: Path, format: str
) -> None:
    tables = Tables(format, tmp_path)
    columns = ("CAST(key AS string) AS key", "CAST(CAST(value AS string) AS int) AS value", "partition", "offset")
    copy(spark, servers, tables, *columns, mergeKey="key")
    forget_the_last_commit(tables)
    copy(spark, servers, tables, *columns, mergeKey="key")
    found = tables.read().select(["key", "value"]).to_pylist()
    assert sorted(row["value"] for row in found) == list(range(ROWS - 10, ROWS))
    assert {row["key"] for row in found} == {f"k{number}" for number in range(10)}
    assert tables.open().find_orphans(0) == []


@pytest.mark.parametrize("format", mostly_slow(FORMATS[::-1]))
def test_batches_append_overwrite_and_evolve(spark: SparkSession, tmp_path: Path, format: str) -> None:
    tables = Tables(format, tmp_path)

    def save(rows: DataFrame, mode: str = "append", **more: str) -> None:
        rows.write.format(f"kwire-{format}").options(**options(tables), **more).mode(mode).save()

    save(spark.range(10).selectExpr("id", "TIMESTAMP '2026-01-01 00:00:00' AS at"), sortBy="id")
    once = {"txnAppId": "copy", "txnVersion": "4"}
    for _ in range(2):
        save(spark.range(10, 12).selectExpr("CAST(id AS int) AS id", "named_struct('a', id) AS more"), **once)
    rows = sorted(tables.read().to_pylist(), key=lambda row: row["id"])
    assert [row["id"] for row in rows] == list(range(12))
    assert rows[0]["more"] is None
    assert rows[11]["more"] == {"a": 11}
    assert str(rows[0]["at"]) == "2026-01-01 00:00:00+00:00"
    with pytest.raises(Exception, match="column 'id' is of type bigint in the table and string in the rows; cast"):
        save(spark.range(1).selectExpr("'x' AS id"))
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        save(spark.range(4, numPartitions=2).selectExpr("id", "1 / (id - 3) AS x"))
    assert len(tables.read()) == 12
    assert len(tables.open().find_orphans(0)) <= 1, "of the task that Spark stops when the other one fails"
    save(spark.range(3), "overwrite")
    assert sorted(tables.read().column("id").to_pylist()) == [0, 1, 2]


@pytest.mark.parametrize("format", FORMATS)
def test_files_of_a_commit_whose_response_was_lost_stay(tmp_path: Path, format: Any) -> None:
    """After a failed commit, engines call abort() with the messages of all tasks; after a failed task with None."""
    tables = Tables(format, tmp_path)
    rows = kafka_rows(0, 10)
    writer = LakeWriter(parse_lake_options(options(tables), format), rows.schema, overwrite=False)
    first, second = (writer.write(iter(rows.to_batches())) for _ in range(2))
    writer.commit([first])
    writer.abort([first])
    assert tables.read().num_rows == 10
    writer.abort([None, second])
    assert tables.open().find_orphans(0) == []


@pytest.mark.sampled
@pytest.mark.parametrize("format", FORMATS)
def test_small_files_are_joined_after_some_batches(
    tmp_path: Path, format: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Not by a batch that was committed before; one that fails is a warning."""
    tables = Tables(format, tmp_path)

    def write(batch: int) -> int:
        rows = kafka_rows(10 * batch, 10 * batch + 10)
        given = options(tables) | {"txnAppId": "app", "txnVersion": str(batch), "compactEvery": "3"}
        writer = LakeWriter(parse_lake_options(given, format), rows.schema, overwrite=False)
        writer.commit([writer.write(iter(rows.to_batches()))])
        table = tables.open()
        table.refresh()
        return len(table.live_files())

    assert [write(batch) for batch in (0, 1, 2, 3, 4, 4, 5)] == [1, 2, 1, 2, 3, 3, 1]
    write(6)

    def refuse(_: Any, change: Any) -> None:
        if change.removed:
            raise TableError("another writer has removed a file", "t")

    write(7)
    monkeypatch.setattr(type(tables.open()), "_check_removed", refuse)
    with caplog.at_level("WARNING", "kwire.spark"):
        assert write(8) == 4
    assert "option compactEvery tries again after 3 micro-batches" in caplog.text
    assert sorted(tables.read().column("offset").to_pylist()) == [*range(90)]
    with pytest.raises(OptionError, match="Option 'compactEvery': requires a stream"):
        LakeWriter(
            parse_lake_options(options(tables) | {"compactEvery": "3"}, format),
            kafka_rows(0, 1).schema,
            overwrite=False,
        )


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("mode", ["skip", "append"])
def test_a_merging_query_does_not_replace_later_rows(tmp_path: Path, format: Any, mode: str) -> None:
    """A hole is not filled; what the table has is skipped, or refused."""
    tables = Tables(format, tmp_path)

    def merge(rows: Any, mode: str) -> None:
        given = options(tables) | {"mergeKey": "key", "onKnownOffsets": mode}
        writer = LakeWriter(parse_lake_options(given, format), rows.schema, overwrite=False)
        writer.commit([writer.write(iter(rows.to_batches()))])

    merge(kafka_rows(0, 10, key=3), "fail")
    merge(kafka_rows(20, 30, key=3), "fail")
    if mode == "append":
        with pytest.raises(TableError, match="begin at offset 25, before the table's offset 30"):
            merge(kafka_rows(25, 40, key=3), mode)
    with pytest.raises(TableError, match=r"of orders-0 begin at offset 1?0, before the table's offset 30, and would"):
        merge(kafka_rows(0, 40, key=3), mode)
    assert sorted(tables.read().column("offset").to_pylist()) == [27, 28, 29]
    merge(kafka_rows(22 if mode == "skip" else 30, 32, key=3), mode)
    assert sorted(tables.read().column("offset").to_pylist()) == [29, 30, 31]
    appending = LakeWriter(parse_lake_options(options(tables), format), kafka_rows(0, 1).schema, overwrite=False)
    with pytest.raises(TableError, match="appended rows would be second ones"):
        appending.commit([appending.write(iter(kafka_rows(32, 33).to_batches()))])
