"""Streams and DataFrames into tables, through Spark: once, with offsets, whatever is run again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.lake.tables import FORMATS, Tables, kafka_rows

from kwire.broker import Broker

pytest.importorskip("pyspark.sql.datasource")
pytest.importorskip("pyiceberg")
pytest.importorskip("deltalake")

from kwire.spark.lake.options import parse_lake_options
from kwire.spark.lake.sink import LakeWriter

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


def copy(spark: SparkSession, servers: str, tables: Tables, *columns: str, **more: str) -> None:
    """Copy the topic in micro-batches of 100 rows until its end."""
    read = spark.readStream.format("kafka-live").option("kafka.bootstrap.servers", servers)
    read = read.option("subscribe", "orders").option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", 100)
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


@pytest.mark.parametrize("format", FORMATS)
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
    assert state(tables).spans == {("orders", partition): (0, ROWS // 2) for partition in (0, 1)}
    assert list(state(tables).batches.values()) == [2]
    assert tables.open().find_orphans(0) == []


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


@pytest.mark.parametrize("format", FORMATS)
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
    assert tables.open().find_orphans(0) == []
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
