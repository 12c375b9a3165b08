"""The sources, functions and jobs on Sail, beside Spark: the same functions run on both engines."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark.sql.datasource")

from pyspark.sql.types import StructType
from tests.docs.examples import blocks
from tests.spark.test_schema import properties
from tests.waiting import HANG_S
from tools.sail import SailEngine, SailError, environment

from kwire.broker import Broker
from kwire.client import Client
from kwire.log import LogDirectory
from kwire.messages import registry
from kwire.spark.arrow_types import Ddl
from kwire.spark.sail import BATCHES_AS_READ, COMBINED_BYTES, ReadAhead, few_batches, is_sail, struct_type
from kwire.spark.schema import TYPES, render_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CAPTURES = str(Path(__file__).parents[1] / "data" / "captures")
ALL_COLUMNS = {"includeHeaders": "true", "includeInternal": "true"}
SAIL_QUEUE = 16  # batches of a task that Sail holds before it blocks


# ---- functions that run on either engine


def read(spark: SparkSession, source: str, path: str | None, options: dict[str, str]) -> tuple[str, pa.Table]:
    """Return the schema and the rows of a source."""
    frame = spark.read.format(source).options(**options).load(path)
    return frame.schema.simpleString(), frame.toArrow()


def read_columns(spark: SparkSession, path: str, ddl: str) -> list[tuple[Any, ...]]:
    """Return the rows of a log with a schema of the user."""
    return list(map(tuple, spark.read.format("kafka-log").schema(ddl).load(path).collect()))


def count_where(spark: SparkSession, path: str, condition: str) -> int:
    """Return the number of rows that pass a filter."""
    return spark.read.format("kafka-log").load(path).where(condition).count()


def sum_up(spark: SparkSession, path: str) -> list[tuple[Any, ...]]:
    """Return an aggregate of a log in SQL."""
    spark.read.format("kafka-log").option("includeInternal", "true").load(path).createOrReplaceTempView("records")
    return [
        tuple(row)
        for row in spark.sql(
            "SELECT topic, partition, count(*), count(key), sum(length(value)), min(offset), max(timestamp) "
            "FROM records GROUP BY topic, partition ORDER BY topic, partition"
        ).collect()
    ]


def read_in_zone(spark: SparkSession, path: str, zone: str) -> list[str]:
    """Return times of records as text in a zone; without a schema, Sail shows them in UTC, as those of Parquet."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        frame = spark.read.format("kafka-log").option("subscribe", "orders").schema("timestamp timestamp").load(path)
        return [row[0] for row in frame.selectExpr("cast(timestamp AS string) AS t").orderBy("t").limit(5).collect()]
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def decode_commits(spark: SparkSession, path: str) -> list[Any]:
    """Return committed offsets, decoded and encoded again, and the schema ids of all records."""
    from kwire.spark.functions import from_kafka, schema_registry_id, to_kafka

    frame = spark.read.format("kafka-log").options(includeInternal="true").load(path)
    options = {"prefixed": True, "mode": "PERMISSIVE"}
    commits = frame.where("topic = '__consumer_offsets' AND value IS NOT NULL").select(
        from_kafka("value", "OffsetCommitValue", 3, options).alias("c")
    )
    offsets = commits.where("c IS NOT NULL").select("c.offset", to_kafka("c", "OffsetCommitValue", 3).alias("again"))
    ids = frame.select(schema_registry_id("value").alias("id")).where("id IS NOT NULL").count()
    return [*sorted(tuple(row) for row in offsets.collect()), ids]


def decode_wrongly(spark: SparkSession, path: str) -> None:
    """Decode values that are not messages."""
    from kwire.spark.functions import from_kafka

    frame = spark.read.format("kafka-log").option("subscribe", "orders").load(path)
    frame.select(from_kafka("value", "OffsetCommitValue", 3)).collect()


def run_jobs(spark: SparkSession, path: str, out: str) -> dict[str, Any]:
    """Run jobs; return figures of each."""
    from kwire.spark import jobs

    verified = jobs.verify(spark, path)
    exported = jobs.export(spark, path, f"{out}/parquet", topics=["orders"])
    jobs.convert(spark, path, f"{out}/zstd", compression="zstd", topics=["orders"])
    jobs.compact(spark, path, f"{out}/compacted", topics=["compacted"])
    restored = jobs.restore(spark, f"{out}/parquet", f"{out}/restored")
    advice = jobs.advise(spark, captures=[CAPTURES])
    return {
        "verified": (verified.is_fine, verified.partitions.count()),
        "exported": exported.total("records"),
        "restored": restored.total("records"),
        "advised": advice.fields.count(),
    }


def write(spark: SparkSession, path: str, sink: str, options: dict[str, str], mode: str) -> None:
    """Copy a topic to a sink."""
    frame = spark.read.format("kafka-log").options(subscribe="orders", includeHeaders="true").load(path)
    frame.drop("offset", "timestamp", "timestampType").write.format(sink).options(**options).mode(mode).save()


def create_and_read_table(spark: SparkSession, path: str) -> int:
    """Count the rows of a table on a log."""
    spark.sql(f"CREATE TABLE sail_orders USING `kafka-log` OPTIONS (subscribe 'orders', path '{path}')")
    try:
        return spark.sql("SELECT count(*) FROM sail_orders").collect()[0][0]
    finally:
        spark.sql("DROP TABLE sail_orders")


# ---- both engines


def canonical(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=lambda row: json.dumps(row, default=str))


READS = [
    ("kafka-log", "modern", ALL_COLUMNS),
    ("kafka-log", "modern", {"subscribe": "empty"}),
    ("kafka-log", "modern", {"columns": "offset,key,timestamp", "kafka.isolation.level": "read_committed"}),
    ("kafka-log", "legacy", {"includeHeaders": "true", "mode": "PERMISSIVE"}),
    ("kafka-internal", "modern", {"kind": "offsets"}),
    ("kafka-internal", "modern", {"topic": "__cluster_metadata", "mode": "history"}),
    ("kafka-capture", "", {"message": "MetadataResponse"}),
]


@pytest.mark.sampled
@pytest.mark.parametrize(("source", "archive", "options"), READS)
def test_rows_and_types_are_those_of_spark(
    spark: SparkSession,
    sail: SailEngine,
    kafka_logs: dict[str, Path],
    source: str,
    archive: str,
    options: dict[str, str],
) -> None:
    path = str(kafka_logs[archive] / "data") if archive else CAPTURES
    (schema, rows), (expected_schema, expected) = sail(read, source, path, options), read(spark, source, path, options)
    assert schema == expected_schema
    assert canonical(rows) == canonical(expected)
    assert rows.num_rows or options.get("subscribe") == "empty"


@pytest.mark.slow
def test_functions_and_sql_return_what_they_do_on_spark(spark: SparkSession, sail: SailEngine, modern: Path) -> None:
    path = str(modern)
    assert sail(sum_up, path) == sum_up(spark, path)
    assert sail(read_in_zone, path, "America/New_York") == read_in_zone(spark, path, "America/New_York")
    found = sail(decode_commits, path)
    assert len(found) > 10
    assert found == decode_commits(spark, path)


# ---- Sail alone


def test_queries_of_a_log(sail: SailEngine, modern: Path) -> None:
    path, records = str(modern), sum(1 for n in range(3) for _ in LogDirectory(modern)["orders", n].read())
    assert sail(create_and_read_table, path) == records
    assert sail(count_where, path, "topic = 'orders'") == records
    offsets = [record.offset for record in LogDirectory(modern)["orders", 1].read()]
    assert sail(count_where, path, "topic LIKE 'o_d%' AND partition = 1 AND offset >= 10") == sum(
        offset >= 10 for offset in offsets
    )
    day = "cast(timestamp AS date) >= DATE'2020-01-01'"
    assert sail(count_where, path, f"topic = 'orders' AND {day}") == records


def test_the_example_of_the_page_runs(kafka_logs: dict[str, Path], tmp_path: Path) -> None:
    (example,) = blocks("sail.md", "python")
    (tmp_path / "logs").symlink_to(kafka_logs["modern"])
    (tmp_path / "example.py").write_text(example)
    command = [sys.executable, "example.py"]
    done = subprocess.run(command, env=environment(), cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.findall(r"\| +(\d)\| +(\d+)\|", done.stdout) == [
        (str(n), str(sum(1 for _ in LogDirectory(kafka_logs["modern"] / "data")["orders", n].read()))) for n in range(3)
    ]


def test_a_schema_of_the_user_selects_columns(sail: SailEngine, modern: Path) -> None:
    rows = sail(
        read_columns, str(modern), "offset bigint, headers array<struct<key:string,value:binary>>, topic string"
    )
    assert len(rows[0]) == 3
    for ddl, problem in (
        ("offset int", "column 'offset' is of type bigint, not int"),
        ("timestamp timestamp_ntz", "column 'timestamp' is of type timestamp, not timestamp_ntz"),
        ("ofset bigint", r"unknown column 'ofset' \(did you mean 'offset'\?\)"),
    ):
        with pytest.raises(SailError, match=problem):
            sail(read_columns, str(modern), ddl)


@pytest.mark.parametrize(
    ("source", "options", "problem"),
    [
        ("kafka-log", {"subscribee": "orders"}, r"OptionError: .*'subscribee' \(did you mean 'subscribe'\?\)"),
        ("kafka-log", {"subscribe": "ordrs"}, r"LogError: ordrs not found in .* \(did you mean 'orders'\?\)"),
        ("kafka-internal", {"kind": "group"}, r"OptionError: Option 'kind': .* \(did you mean 'groups'\?\)"),
        ("kafka-live", {"subscribe": "orders"}, r"OptionError: Option 'kafka.bootstrap.servers' must be specified"),
        ("kafka-capture", {"mode": "FAILFASTER"}, r"OptionError: Option 'mode': expected one of"),
    ],
)  # fmt: skip
def test_errors_reach_the_user(
    sail: SailEngine, modern: Path, source: str, options: dict[str, str], problem: str
) -> None:
    with pytest.raises(SailError, match=problem):
        sail(read, source, None if source == "kafka-live" else str(modern), options)


def test_a_corrupt_batch_and_a_wrong_message_fail_the_query(
    sail: SailEngine, modern: Path, copied: Callable[[str, str], Path]
) -> None:
    damaged = copied("modern", "orders-0")
    log = sorted((damaged / "orders-0").glob("*.log"))[0]
    content = bytearray(log.read_bytes())
    content[100] ^= 1
    log.write_bytes(content)
    with pytest.raises(SailError, match=r"CorruptBatch: .*orders-0"):
        sail(read, "kafka-log", str(damaged), {})
    with pytest.raises(SailError, match="OffsetCommitValue"):
        sail(decode_wrongly, str(modern))
    assert sail(count_where, str(modern), "topic = 'orders'") > 0  # the server is still well


@pytest.mark.slow
def test_jobs(sail: SailEngine, modern: Path, tmp_path: Path) -> None:
    ran = sail(run_jobs, str(modern), str(tmp_path))
    orders = {n: [(r.offset, r.key, r.value) for r in LogDirectory(modern)["orders", n].read()] for n in range(3)}
    assert ran["verified"] == (True, len(LogDirectory(modern)))
    assert ran["exported"] == ran["restored"] == sum(map(len, orders.values()))
    assert ran["advised"] > 10
    for name in ("zstd", "restored"):
        made = LogDirectory(tmp_path / name)
        assert {n: [(r.offset, r.key, r.value) for r in made["orders", n].read()] for n in range(3)} == orders
    assert {topic for topic, _ in LogDirectory(tmp_path / "compacted")} == {"compacted", "__cluster_metadata"}


def test_sinks(sail: SailEngine, modern: Path, tmp_path: Path) -> None:
    path, expected = str(modern), LogDirectory(modern)
    target = str(tmp_path / "copy")
    sail(write, path, "kafka-log", {"path": target}, "append")
    for partition in range(3):
        wanted = [(r.key, r.value, r.headers) for r in expected["orders", partition].read()]
        assert [(r.key, r.value, r.headers) for r in LogDirectory(target)["orders", partition].read()] == wanted
    with pytest.raises(SailError, match="a log directory cannot be extended"):
        sail(write, path, "kafka-log", {"path": target}, "append")
    with Broker() as broker:
        options = {"kafka.bootstrap.servers": broker.bootstrap_servers}
        cls: Any = registry.get("CreateTopicsRequest")
        topic = cls.CreatableTopic(name="orders", num_partitions=3, replication_factor=1)
        with Client(broker.bootstrap_servers) as client:
            assert client.request(cls(topics=[topic], timeout_ms=10_000)).topics[0].error_code == 0
        sail(write, path, "kafka-live", options, "append")
        wants = {"subscribe": "orders", "includeHeaders": "true", "minPartitions": "20"}  # threads read at a time
        schema, rows = sail(read, "kafka-live", None, options | wants)
        assert schema == "struct<{}>".format(",".join(f"{n}:{k}" for n, k in TYPES.items() if n != "_corrupt"))
        found = Counter((r["partition"], r["key"], r["value"]) for r in rows.to_pylist())
        assert found == Counter((n, r.key, r.value) for n in range(3) for r in expected["orders", n].read())
        with pytest.raises(SailError, match="'transactionalIdPrefix' is not supported on Sail"):
            sail(write, path, "kafka-live", options | {"transactionalIdPrefix": "x"}, "append")
        with pytest.raises(SailError, match="Overwrite is not allowed"):
            sail(write, path, "kafka-live", options, "overwrite")


# ---- the parts


def test_sail_finds_every_source_by_its_name() -> None:
    found = {each.name: each.load() for each in entry_points(group="pysail.datasources")}
    assert {name: cls.name() for name, cls in found.items()} == {name: name for name in found}
    assert sorted(found) == [
        "kafka-capture",
        "kafka-internal",
        "kafka-live",
        "kafka-log",
        "kwire-delta",
        "kwire-iceberg",
    ]


def test_a_schema_is_ddl_for_spark_and_an_arrow_schema_for_sail() -> None:
    made = render_schema(TYPES, {"path": "/logs"})
    assert isinstance(made, Ddl)
    assert made.startswith("key binary, value binary, topic string")
    arrow = pa.schema(made)
    assert arrow.field("timestamp").type == pa.timestamp("us", "UTC")
    assert is_sail(arrow)
    spark_schema = struct_type(arrow)
    assert spark_schema.simpleString() == "struct<{}>".format(",".join(f"{n}:{k}" for n, k in TYPES.items()))
    assert struct_type(spark_schema) is spark_schema
    assert not is_sail(StructType())
    of_table = render_schema(TYPES, properties({"subscribe": "t", "path": "/logs"}, "kafka-log"))
    assert pa.schema(of_table) == arrow


def batches_of(count: int, size: int) -> Iterator[pa.RecordBatch]:
    for number in range(count):
        yield pa.record_batch({"n": pa.array([number], pa.int64()), "data": pa.array([b"x" * size], pa.binary())})


@pytest.mark.parametrize(("count", "size"), [(0, 1), (1, 1), (7, 10), (17, 10), (1000, 10), (60, 1 << 20)])
def test_a_task_has_fewer_batches_than_sail_holds(count: int, size: int) -> None:
    found = list(few_batches(batches_of(count, size)))
    assert len(found) <= SAIL_QUEUE
    assert [n for batch in found for n in batch.column("n").to_pylist()] == list(range(count))
    assert all(batch.nbytes < 3 * COMBINED_BYTES for batch in found)


def test_the_first_batches_are_passed_on_at_once() -> None:
    read_so_far = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal read_so_far
        for batch in batches_of(100, 10):
            read_so_far += 1
            yield batch

    found = few_batches(batches())
    for number in range(BATCHES_AS_READ):
        next(found)
        assert read_so_far == number + 1


def test_a_task_waits_for_a_slot_and_until_memory_is_released() -> None:
    limited = ReadAhead(readers=1, max_bytes=pa.total_allocated_bytes() + (4 << 20), stall_s=60)
    first, second = limited.limit(batches_of(3, 10)), limited.limit(batches_of(1, 10))
    kept = [next(first)]
    has_slot, is_done = threading.Event(), threading.Event()
    held = pa.array([b"x" * (8 << 20)], pa.binary())

    def read_on() -> None:
        kept.extend(first)
        is_done.set()

    readers = [
        threading.Thread(target=lambda: (next(second), has_slot.set())),
        threading.Thread(target=read_on),
    ]
    for reader in readers:
        reader.start()
    assert not is_done.wait(0.05)
    assert not has_slot.is_set()
    del held
    for reader in readers:
        reader.join(HANG_S)
    assert has_slot.is_set()
    assert len(kept) == 3


def test_a_query_that_keeps_its_rows_gets_all_of_them() -> None:
    impatient = ReadAhead(readers=1, max_bytes=1, stall_s=0.01)
    held = pa.array([b"x" * (2 << 20)], pa.binary())
    assert len(list(impatient.limit(batches_of(3, 10)))) == 3
    assert len(held) == 1
