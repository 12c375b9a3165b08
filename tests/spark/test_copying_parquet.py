# ruff: noqa: F811 (pytest passes the imported fixtures)
"""copy_stream into Parquet files: Spark and others read each row once, whatever is killed."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.soak.table_query import COMMITTER, TASK, QuerySettings, TableQuery
from tests.waiting import HANG_S

import kwire.spark
from kwire.errors import OptionError
from kwire.lake.parquet.directory import committed_files

pytest.importorskip("pyspark.sql.datasource")
pytest.importorskip("pyiceberg")
pytest.importorskip("deltalake")
pytest.importorskip("confluent_kafka")

from tests.spark.test_copying import ALL, ROWS, read_options, schemas, servers  # noqa: F401 (fixtures)

duckdb = pytest.importorskip("duckdb")
confluent_kafka = pytest.importorskip("confluent_kafka")

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def copy(spark: SparkSession, given: dict[str, Any], folder: Path, function: Any = None, **more: str) -> Any:
    """Copy a topic to folder/rows in micro-batches until its end."""
    query = kwire.spark.copy_stream(
        spark,
        "kafka-live",
        given,
        "parquet",
        {"path": str(folder / "rows"), **more},
        checkpoint=str(folder / "checkpoint"),
        function=function,
        trigger={"availableNow": True},
    )
    query.awaitTermination()
    return query


def forget_the_last_commit(folder: Path) -> int:
    """Remove the last micro-batch from the checkpoint's commits, as if the driver had died before it wrote that."""
    commits = folder / "checkpoint" / "commits"
    last = max(int(each.name) for each in commits.glob("[0-9]*"))
    (commits / str(last)).unlink()
    (commits / f".{last}.crc").unlink()
    return last


def places_by_duckdb(path: Path) -> list[tuple[int, int]]:
    files = committed_files(str(path))
    found: list[tuple[int, int]] = duckdb.execute(
        'SELECT partition, "offset" FROM read_parquet(?) ORDER BY ALL', [files]
    ).fetchall()
    return found


def places_by_spark(spark: SparkSession, path: Path) -> list[tuple[int, int]]:
    return sorted(map(tuple, spark.read.parquet(str(path)).select("partition", "offset").collect()))


@pytest.mark.slow
def test_a_driver_that_dies_after_a_commit_writes_each_row_once(
    spark: SparkSession,
    servers: str,
    tmp_path: Path,
) -> None:
    copy(spark, read_options(servers), tmp_path)
    assert forget_the_last_commit(tmp_path) == 2
    copy(spark, read_options(servers), tmp_path)
    log = tmp_path / "rows" / "_spark_metadata"
    (log / "2").unlink()  # as if it had died before the commit
    forget_the_last_commit(tmp_path)
    copy(spark, read_options(servers), tmp_path)
    assert places_by_spark(spark, tmp_path / "rows") == ALL
    assert places_by_duckdb(tmp_path / "rows") == ALL
    assert len(list((tmp_path / "rows").glob("*.parquet"))) == 8, "two of them are in no commit"
    expected = spark.read.format("kafka-live").options(**{"kafka.bootstrap.servers": servers, "subscribe": "orders"})
    ours = spark.read.parquet(str(tmp_path / "rows"))
    assert ours.schema == expected.load().schema
    assert ours.exceptAll(expected.load()).count() == expected.load().exceptAll(ours).count() == 0


@pytest.mark.slow
def test_a_stream_of_spark_reads_the_directory(spark: SparkSession, servers: str, tmp_path: Path) -> None:
    copy(spark, read_options(servers, maxOffsetsPerTrigger=12), tmp_path)  # 25 micro-batches: two compactions
    names = {each.name for each in (tmp_path / "rows" / "_spark_metadata").glob("[0-9]*")}
    assert {"9.compact", "19.compact", "24"} <= names
    path = str(tmp_path / "rows")
    rows = spark.readStream.schema(spark.read.parquet(path).schema).parquet(path)
    query = rows.writeStream.format("memory").queryName("committed").trigger(availableNow=True).start()
    query.awaitTermination()
    assert spark.table("committed").count() == spark.read.parquet(path).count() == ROWS


@pytest.mark.slow
def test_values_are_decoded_and_a_function_changes_rows(
    spark: SparkSession,
    servers: str,
    schemas: str,
    tmp_path: Path,
) -> None:
    def flatten(rows: pa.RecordBatch) -> pa.RecordBatch:
        made = pa.RecordBatch.from_struct_array(rows.column("value"))
        return made.filter(pc.not_equal(made.column("id"), 17))

    copy(spark, read_options(servers, value_registry=schemas), tmp_path, flatten, compression="zstd")
    found = spark.read.parquet(str(tmp_path / "rows"))
    assert found.columns == ["id", "note"]
    assert sorted(map(tuple, found.collect())) == [(n, f"n{n}") for n in range(ROWS) if n != 17]


def test_a_column_that_spark_does_not_read_is_refused(
    spark: SparkSession,
    servers: str,
    tmp_path: Path,
) -> None:
    def unsigned(rows: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([rows.column("offset").cast(pa.uint64())], ["offset"])

    with pytest.raises(OptionError, match=r"a column has a type that Spark does not read: .*uint64.*cast it"):
        copy(spark, read_options(servers), tmp_path, unsigned)


@pytest.mark.slow
def test_another_query_is_refused(spark: SparkSession, servers: str, tmp_path: Path) -> None:
    copy(spark, read_options(servers), tmp_path)
    (tmp_path / "checkpoint").rename(tmp_path / "lost")
    with pytest.raises(Exception, match=r"another query, with the id .*, has written it; continue with the checkpoint"):
        copy(spark, read_options(servers), tmp_path)
    assert places_by_spark(spark, tmp_path / "rows") == ALL


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_copy_that_is_killed_in_micro_batches_has_each_record_once(
    spark: SparkSession,
    servers: str,
    tmp_path: Path,
    seed: int,
) -> None:
    """SIGKILL of drivers, of the process that commits, and of tasks, between the write and the checkpoint's commit."""
    topic, count, limit = f"killed-{seed}", 6000, 100
    producer = confluent_kafka.Producer({"bootstrap.servers": servers})
    for number in range(count):
        producer.produce(topic, f"v{number}", f"k{number}", partition=number % 2)
        producer.poll(0)
    assert producer.flush(HANG_S) == 0
    settings = QuerySettings(
        servers=servers,
        topic=topic,
        checkpoint=str(tmp_path / "checkpoint"),
        format="parquet",
        options={"path": str(tmp_path / "rows")},
        columns=(),
        is_direct=True,
        limit=limit,
    )
    choose = random.Random(seed)
    query = TableQuery(tmp_path, settings, with_reserve=True)
    try:
        for kill in range(5):
            before, deadline = query.batch("commits"), time.monotonic() + HANG_S
            while query.batch("commits") <= before + 1 or query.batch("offsets") == query.batch("commits"):
                assert time.monotonic() < deadline
                query.look()
                time.sleep(0.002)
            time.sleep(choose.uniform(0, 0.15))
            if kill % 2:
                kind = choose.choice([COMMITTER, TASK])
                query.kill_process(query.find(kind), kind)
                continue
            query.kill(with_workers=choose.random() < 0.7)  # others write on, without a driver that commits
            assert query.batch("commits") < count // limit - 1, "it was killed too late"
            query.replace()
        query.finish()
        query_id = query.id
    finally:
        query.close()
    expected = [(partition, offset) for partition in (0, 1) for offset in range(count // 2)]
    assert places_by_duckdb(tmp_path / "rows") == expected
    assert places_by_spark(spark, tmp_path / "rows") == expected
    rows = spark.read.parquet(str(tmp_path / "rows")).select("partition", "offset", "key", "value").collect()
    assert all(row.value == f"v{2 * row.offset + row.partition}" for row in rows)
    assert json.loads((tmp_path / "rows" / "_spark_metadata" / "query").read_text())["id"] == query_id
