"""Writing to `kafka-log`: a DataFrame becomes a complete log directory, or none."""

from __future__ import annotations

import os
import pickle
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from kwire.broker import Broker
from kwire.client import Client
from kwire.errors import KwireError, LogError, OptionError
from kwire.log import LogDirectory
from kwire.maintenance import encoded_runs
from kwire.records import read_batches
from kwire.records.partitioner import partitions_of_keys
from kwire.spark.log.write_options import parse_write_options
from kwire.storage.directory_lock import DirectoryLock

datasource = pytest.importorskip("pyspark.sql.datasource")

from kwire.spark.log import writing  # noqa: E402 (needs PySpark)
from kwire.spark.log.sink import LogWriter, TaskFile  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES: dict[str, Any] = {
    "key": pa.binary(),
    "value": pa.binary(),
    "headers": pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", "UTC"),
}


def batch(**columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(each, TYPES[name]) for name, each in columns.items()], list(columns))


def writer(path: Path, *columns: str, overwrite: bool = False, **options: str) -> LogWriter:
    given = {"path": str(path), **{name.replace("_", "."): value for name, value in options.items()}}
    return LogWriter(parse_write_options(given), columns, overwrite=overwrite)


def write(path: Path, tasks: list[list[pa.RecordBatch]], *, overwrite: bool = False, **options: str) -> None:
    """Write like Spark: tasks in copies of the writer, and their messages to the driver's."""
    first = next(each for task in tasks for each in task)
    sink = writer(path, *first.schema.names, overwrite=overwrite, **options)
    messages = []
    for number, batches in enumerate(tasks):
        copy = pickle.loads(pickle.dumps(sink))
        message = copy.write(iter(batches))
        message.task = number
        messages.append(pickle.loads(pickle.dumps(message)))
    sink.commit(list(reversed(messages)))


def rows(path: Path, topic: str, partition: int) -> list[tuple[int, bytes | None, bytes | None]]:
    log = LogDirectory(path)[topic, partition]
    return [
        (r.offset, None if r.key is None else bytes(r.key), None if r.value is None else bytes(r.value))
        for r in log.read()
    ]


def leftovers(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def test_rows_get_offsets_in_task_order_and_a_broker_serves_them(tmp_path: Path) -> None:
    target = tmp_path / "data"
    tasks = [
        [batch(key=[b"a", None], value=[b"1", b"2"], topic=["t", "u"], partition=[0, 3])],
        [],
        [batch(key=[b"b", b"c"], value=[None, b"4"], topic=["t", "t"], partition=[0, 0])] * 2,
    ]
    write(target, tasks)
    assert rows(target, "t", 0) == [(0, b"a", b"1"), (1, b"b", None), (2, b"c", b"4"), (3, b"b", None), (4, b"c", b"4")]
    assert rows(target, "u", 3) == [(0, None, b"2")]
    assert leftovers(tmp_path) == ["data"]
    assert not [each for each in LogDirectory(target).verify() if not each.is_harmless]
    with Broker(data_dir=target) as broker, Client(broker.bootstrap_servers) as client:
        (fetched,) = client.read("t", 0, 0, 5)
        found = [bytes(r.value or b"") for each in read_batches(fetched.records) for r in each.records()]
        assert found == [b"1", b"", b"4", b"", b"4"]


def test_offsets_timestamps_and_headers_of_rows_are_kept(tmp_path: Path) -> None:
    header = [{"key": "h", "value": b"1"}]
    one = batch(value=[b"b", b"a"], offset=[20, 10], timestamp=[2_000_000, 1_000_000], headers=[None, header])
    two = batch(value=[b"c"], offset=[15], timestamp=[3_000_000], headers=[header * 2])
    write(tmp_path / "data", [[one], [two]], topic="t")
    log = LogDirectory(tmp_path / "data")["t", 0]
    assert [(r.offset, r.timestamp, bytes(r.value or b""), len(r.headers)) for r in log.read()] == [
        (10, 1000, b"a", 1),
        (15, 3000, b"c", 2),
        (20, 2000, b"b", 0),
    ]
    assert (log.log_start_offset, log.log_end_offset) == (10, 21)
    with pytest.raises(LogError, match="offset 15 of t-0 is a duplicate"):
        write(tmp_path / "twice", [[two], [two]], topic="t")
    with pytest.raises(OptionError, match="Column 'offset': null values are not allowed"):
        write(tmp_path / "null", [[batch(value=[b"a"], offset=[None])]], topic="t")


def test_rows_of_tasks_with_interleaved_offsets_are_sorted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "BUFFER_BYTES", 1000)  # several runs of each partition in a task
    offsets = random.Random(5).sample(range(100_000), 6000)

    def numbered(some: list[int]) -> pa.RecordBatch:
        return batch(value=[b"%d" % each for each in some], offset=some, partition=[each % 3 for each in some])

    tasks = [[numbered(offsets[at : at + 40]) for at in range(start, start + 2000, 40)] for start in (0, 2000, 4000)]
    write(tmp_path / "data", tasks, topic="t", compression="zstd")
    for partition in range(3):
        found = [(offset, int(value or b"")) for offset, _, value in rows(tmp_path / "data", "t", partition)]
        assert found == [(each, each) for each in sorted(offsets) if each % 3 == partition]
    assert not [each for each in LogDirectory(tmp_path / "data").verify() if not each.is_harmless]
    again = [[numbered(sorted(offsets)[at : at + 1000]) for at in range(0, 6000, 1000)]]
    write(tmp_path / "sorted", again, topic="t")
    assert rows(tmp_path / "sorted", "t", 1) == rows(tmp_path / "data", "t", 1)


def test_rows_of_a_task_beyond_its_buffer_keep_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "BUFFER_BYTES", 4000)
    monkeypatch.setattr(encoded_runs, "CHUNK_BYTES", 3000)  # smaller than a batch
    values = [b"%05d" % n * 20 for n in range(4000)]
    tasks = [[batch(value=values[at : at + 10]) for at in range(start, start + 2000, 10)] for start in (0, 2000)]
    write(tmp_path / "data", tasks, topic="t")
    assert rows(tmp_path / "data", "t", 0) == [(n, None, value) for n, value in enumerate(values)]


def test_columns_of_large_and_view_types_are_written(tmp_path: Path) -> None:
    headers = pa.large_list(pa.struct([("key", pa.large_string()), ("value", pa.large_binary())]))
    types = [("key", pa.string_view()), ("value", pa.large_binary()), ("headers", headers)]
    given = [["a", None, "c"], [b"1", b"2", None], [[{"key": "h", "value": None}], None, []]]
    one = pa.RecordBatch.from_arrays(
        [pa.array(values, kind) for values, (_, kind) in zip(given, types, strict=True)], [name for name, _ in types]
    )
    write(tmp_path / "data", [[one]], topic="t")
    assert rows(tmp_path / "data", "t", 0) == [(0, b"a", b"1"), (1, None, b"2"), (2, b"c", None)]
    assert [list(r.headers) for r in LogDirectory(tmp_path / "data")["t", 0].read()] == [[("h", None)], [], []]


def test_append_times_of_rows_are_kept(tmp_path: Path) -> None:
    times = [1000, 1000, 2000, 3000, 3000]
    kinds = pa.array([1, 0, 1, 1, 1], pa.int32())
    one = batch(value=[b"a", b"b", b"c", b"d", b"e"], timestamp=[each * 1000 for each in times])
    one = one.append_column("timestampType", kinds).append_column("partition", pa.array([0, 0, 1, 0, 0], pa.int32()))
    write(tmp_path / "data", [[one], [one]], topic="t")
    found = LogDirectory(tmp_path / "data")["t", 0]
    assert [(r.timestamp, int(r.timestamp_type), r.value) for r in found.read()] == [
        (1000, 1, b"a"),
        (1000, 0, b"b"),
        (3000, 1, b"d"),
        (3000, 1, b"e"),
    ] * 2


def test_rows_without_a_partition_are_partitioned_by_key(tmp_path: Path) -> None:
    keys = [b"key %d" % n for n in range(100)]
    write(tmp_path / "data", [[batch(key=keys, value=keys)]], topic="t", partitions="5", compression="zstd")
    wanted = partitions_of_keys(pa.array(keys, pa.binary()), 5).tolist()
    for number in range(5):
        assert [key for _, key, _ in rows(tmp_path / "data", "t", number)] == [
            key for key, partition in zip(keys, wanted, strict=True) if partition == number
        ]
    write(tmp_path / "one", [[batch(value=[b"a"] * 10, partition=[9, *[None] * 9])]], topic="t")
    assert [len(rows(tmp_path / "one", "t", number)) for number in (0, 9)] == [9, 1]


def test_segments_have_the_configured_size_and_codec(tmp_path: Path) -> None:
    values = [os.urandom(1000) for _ in range(200)]
    write(tmp_path / "data", [[batch(value=values)]], topic="t", segment_bytes="65536", compression="lz4")
    log = LogDirectory(tmp_path / "data")["t", 0]
    assert len(log.segments) >= 3
    assert all(segment.size_bytes <= 65536 for segment in log.segments)
    data = (tmp_path / "data" / "t-0" / f"{0:020d}.log").read_bytes()
    assert {each.compression.text for each in read_batches(data)} == {"lz4"}


def test_an_existing_directory_is_replaced_only_with_overwrite(tmp_path: Path) -> None:
    target = tmp_path / "data"
    write(target, [[batch(value=[b"old"])]], topic="t")
    with pytest.raises(OptionError, match="use mode overwrite to replace it"):
        write(target, [[batch(value=[b"new"])]], topic="t")
    write(target, [[batch(value=[b"new"])]], topic="t", overwrite=True)
    assert rows(target, "t", 0) == [(0, None, b"new")]
    assert leftovers(tmp_path) == ["data"]
    lock = DirectoryLock(str(target))
    with pytest.raises(LogError, match="close it there first"):
        write(target, [[batch(value=[b"newer"])]], topic="t", overwrite=True)
    lock.release()
    assert rows(target, "t", 0) == [(0, None, b"new")]
    (target / "thesis.txt").write_text("years of work")
    with pytest.raises(OptionError, match=r"not replaced, since 'thesis.txt' does not belong to a log directory"):
        write(target, [[batch(value=[b"new"])]], topic="t", overwrite=True)
    (tmp_path / "empty").mkdir()
    write(tmp_path / "empty", [[batch(value=[b"first"])]], topic="t")
    assert rows(tmp_path / "empty", "t", 0) == [(0, None, b"first")]


def test_a_failed_write_leaves_no_files(tmp_path: Path) -> None:
    target = tmp_path / "data"

    def failing() -> Iterator[pa.RecordBatch]:
        yield batch(value=[b"a"])
        raise RuntimeError("the query's own")

    sink = writer(target, "value", topic="t")
    done = sink.write(iter([batch(value=[b"a"])]))
    assert leftovers(tmp_path) == [f"data.tasks-{sink.job}"]
    with pytest.raises(RuntimeError, match="own"):
        sink.write(failing())
    sink.abort([done, None])
    assert leftovers(tmp_path) == []
    with pytest.raises(LogError, match="driver and executors must share a file system"):
        sink.commit([done])
    with pytest.raises(OptionError, match="the DataFrame has no rows"):
        sink.commit([sink.write(iter([batch(value=[])])), TaskFile(1, None)])
    unreadable = sink.write(iter([batch(value=[b"a"])]))
    whole = Path(unreadable.path or "").read_bytes()
    for damaged in (b"not batches", whole[:-1], whole[:-1] + b"x"):
        Path(unreadable.path or "").write_bytes(damaged)
        with pytest.raises(KwireError):
            sink.commit([unreadable])
    sink.abort([unreadable])
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("topic", ["../t", "/etc", "a/../b", ".", "..", "", "t\0", "t\n", "x" * 250, "ü"])
def test_topic_names_cannot_escape_the_directory(tmp_path: Path, topic: str) -> None:
    with pytest.raises(OptionError, match="topic name"):
        write(tmp_path / "data", [[batch(value=[b"a"], topic=[topic])]])
    with pytest.raises(OptionError, match="topic name"):
        writer(tmp_path / "data", "value", topic=topic)
    assert {re.sub("[0-9a-f]{32}", "", name) for name in leftovers(tmp_path)} <= {"data.tasks-"}


def test_invalid_rows_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="null topic present in the data"):
        write(tmp_path / "data", [[batch(value=[b"a"], topic=[None])]])
    with pytest.raises(OptionError, match="has no partition -1"):
        write(tmp_path / "data", [[batch(value=[b"a"], partition=[-1])]], topic="t")
    with pytest.raises(KwireError, match="negative"):
        write(tmp_path / "data", [[batch(value=[b"a"], offset=[-1])]], topic="t")
    with pytest.raises(OptionError, match="a row for t-0 cannot be encoded: row 1: timestamp before 1970"):
        write(tmp_path / "data", [[batch(value=[b"a", b"b"], timestamp=[0, -5_000_000])]], topic="t")
    with pytest.raises(LogError, match="offset 7 of t-0 is a duplicate"):
        write(tmp_path / "data", [[batch(value=[b"a", b"b"], offset=[7, 7])]], topic="t")


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"topic": "t"}, "'path' must be specified"),
        ({"path": "s3://bucket/x"}, "a local file system"),
        ({"path": "/logs/*"}, "the name of a directory to write cannot contain"),
        ({"path": "/x", "storage.key": "k"}, "local file systems"),
        ({"path": "/x", "kafka.bootstrap.servers": "h:1"}, "use kafka-live"),
        ({"path": "/x", "compresion": "zstd"}, "did you mean 'compression'"),
        ({"path": "/x", "compression": "brotli"}, "expected one of none, gzip"),
        ({"path": "/x", "partitions": "0"}, "must be positive"),
        ({"path": "/x", "segment.bytes": "many"}, "expected an integer"),
        ({"path": "/x", "segment.bytes": "1000"}, "must be 16384 to 2147483647"),
    ],
)
def test_invalid_options_are_rejected(given: dict[str, str], what: str) -> None:
    with pytest.raises(OptionError, match=what):
        parse_write_options(given)
    assert parse_write_options({"path": "file:///x/../y"}).path == "/y"


@pytest.mark.slow
def test_spark_writes_a_directory_and_reads_it_back(spark: SparkSession, tmp_path: Path) -> None:
    target = tmp_path / "data"
    frame = spark.range(0, 3000, 1, 3).selectExpr(
        "CAST(id % 7 AS string) AS key", "CAST(id AS string) AS value", "CAST(id % 2 AS int) AS partition"
    )

    def save(rows: Any, mode: str) -> None:
        rows.write.format("kafka-log").option("topic", "t").mode(mode).save(str(target))

    save(frame, "append")
    with pytest.raises(Exception, match="use mode overwrite"):
        save(frame, "append")
    read = spark.read.format("kafka-log").load(str(target))
    found = read.selectExpr("partition", "offset", "CAST(CAST(value AS string) AS int) AS value").collect()
    assert sorted((row.partition, row.offset, row.value) for row in found) == [
        (partition, n, 2 * n + partition) for partition in (0, 1) for n in range(1500)
    ]
    broken = frame.selectExpr("key", "IF(key = '3', raise_error('no'), value) AS value", "partition")
    with pytest.raises(Exception, match="no"):
        save(broken, "overwrite")
    assert read.count() == 3000
    assert leftovers(tmp_path) == ["data"]
    # Offsets and all: what was read, of one partition, to another directory.
    part = read.where("partition = 1 AND offset >= 1000").drop("topic")
    part.write.format("kafka-log").option("topic", "copy").mode("append").save(str(tmp_path / "copy"))
    log = LogDirectory(tmp_path / "copy")["copy", 1]
    assert (log.log_start_offset, log.log_end_offset) == (1000, 1500)
