"""From options to tasks, on real logs, without Spark."""

from __future__ import annotations

import dataclasses
import json
import pickle
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.log.test_missing_segments import lose, make
from tests.object_store import ObjectStore

from kwire.errors import CorruptBatch, LogError, MissingOffsets, OptionError
from kwire.log import LogDirectory
from kwire.log.reading.splits import Cut, Split, SplitRun
from kwire.records import Record, TimestampType, write_batch
from kwire.spark.log import planning
from kwire.spark.log.options import parse_options
from kwire.spark.log.planning import plan_batch
from kwire.spark.log.reading import LogPartition, read_partition
from kwire.spark.packing import OPEN_COST_BYTES, SMALLEST_TASK_BYTES
from kwire.storage.store import LocalFile, LocalStore

datasource = pytest.importorskip("pyspark.sql.datasource")

COLUMNS = ("topic", "partition", "offset", "timestamp")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def tasks(path: Path | str, **options: object) -> list[list[Any]]:
    parsed = parse_options({"path": str(path), **{k: str(v) for k, v in options.items()}})
    return [list(task.splits) for task in plan_batch(parsed)]


def read(planned: list[list[Any]], columns: tuple[str, ...] = COLUMNS, **options: object) -> list[tuple[Any, ...]]:
    parsed = parse_options({"path": "/", **{key: str(value) for key, value in options.items()}})
    return [
        row
        for splits in planned
        for batch in read_partition(LogPartition([as_run(split) for split in splits]), columns, parsed)
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    ]


def as_run(split: Split) -> SplitRun:
    """Return a run of one split."""
    fields = dataclasses.asdict(split)
    return SplitRun(cuts=(Cut(**{name: fields.pop(name) for name in Cut._fields}),), **fields)


def offsets(path: Path | str, **options: object) -> dict[str, tuple[int, int, int]]:
    """Return (first, last, count) of the offsets by `topic-partition`."""
    found: dict[str, list[int]] = {}
    for topic, partition, offset, _ in read(tasks(path, **options)):
        found.setdefault(f"{topic}-{partition}", []).append(offset)
    return {name: (each[0], each[-1], len(each)) for name, each in found.items()}


def test_all_topics_but_internal_ones_are_read(modern: Path) -> None:
    topics = {name.rpartition("-")[0] for name in offsets(modern)}
    assert "orders" in topics
    assert not [name for name in topics if name.startswith("__")]
    assert "__consumer_offsets-1" in offsets(modern, includeInternal=True)


def test_options_set_the_start_and_end_offsets(modern: Path) -> None:
    both = {
        "startingOffsets": '{"orders":{"0":100,"1":-2,"2":6000}}',
        "endingOffsets": '{"orders":{"0":200,"1":3,"2":-1}}',
    }
    assert offsets(modern, subscribe="orders", **both) == {
        "orders-0": (100, 199, 100),
        "orders-1": (0, 2, 3),
        "orders-2": (6000, 6088, 89),
    }
    assert offsets(modern, assign='{"orders":[1]}', endingOffsets='{"orders":{"1":3}}') == {"orders-1": (0, 2, 3)}
    assert offsets(modern, subscribe="trimmed") == {"trimmed-0": (555, 1199, 645)}


@pytest.mark.parametrize(("more", "count"), [(-1, 2), (0, 1), (1, 1)])
def test_a_task_of_a_batch_query_is_filled_to_its_limit(modern: Path, more: int, count: int) -> None:
    logs = [log for log in LogDirectory(modern).values() if len(log.segments) == 1 and log.size_bytes > 1000][:2]
    assign = json.dumps(
        {topic: [log.partition for log in logs if log.topic == topic] for topic in {each.topic for each in logs}}
    )
    cost = 100
    limit = sum(log.size_bytes + cost for log in logs) + more
    assert len(tasks(modern, assign=assign, maxPartitionBytes=limit, openCostInBytes=cost)) == count


def test_offset_maps_must_name_every_partition(modern: Path) -> None:
    with pytest.raises(OptionError, match=r"Specified: \[orders-0\] Assigned: \[orders-0, orders-1, orders-2\]"):
        tasks(modern, subscribe="orders", startingOffsets='{"orders":{"0":100}}')


def test_offsets_deleted_by_retention_fail_or_are_skipped(modern: Path) -> None:
    gone = {"subscribe": "trimmed", "startingOffsets": '{"trimmed":{"0":10}}'}
    with pytest.raises(
        LogError, match=r"start offset 10 of trimmed-0 is out of range: the log holds offsets \[555, 1200\)"
    ):
        tasks(modern, **gone)
    assert offsets(modern, failOnDataLoss=False, **gone) == {"trimmed-0": (555, 1199, 645)}
    beyond = {"subscribe": "trimmed", "endingOffsets": '{"trimmed":{"0":5000}}'}
    with pytest.raises(LogError, match="end offset 5000 of trimmed-0 is out of range"):
        tasks(modern, **beyond)
    assert offsets(modern, failOnDataLoss=False, **beyond) == {"trimmed-0": (555, 1199, 645)}


def test_missing_topics_and_partitions_fail_or_are_skipped(modern: Path, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(
        LogError, match=r"order not found in .*did you mean 'orders'\?\); available topics: .*failOnDataLoss"
    ):
        tasks(modern, subscribe="order,ids")
    with pytest.raises(LogError, match=r"orders-9 not found"):
        tasks(modern, assign='{"orders":[9]}')
    assert set(offsets(modern, subscribe="order,ids", failOnDataLoss=False)) == {"ids-0", "ids-1"}
    assert "order not found" in caplog.text
    assert tasks(modern, subscribe="nothing", failOnDataLoss=False) == []


def test_a_pattern_without_a_match_reads_nothing_with_a_warning(modern: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert tasks(modern, subscribePattern="nothing.*") == []
    assert "matches subscribePattern" in caplog.text


def test_a_directory_with_only_internal_topics_is_an_error(modern: Path) -> None:
    with pytest.raises(LogError, match=r"only internal topics .* set includeInternal"):
        tasks(modern / "__consumer_offsets-1")
    assert set(offsets(modern / "__consumer_offsets-1", includeInternal=True)) == {"__consumer_offsets-1"}


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_timestamps_resolve_to_kafkas_offsets(kafka_logs: dict[str, Path], isolation: str) -> None:
    responses = json.loads((kafka_logs["modern"] / "expected" / "consumed" / "offsets.json").read_text())
    asked = 0
    for name, entry in responses.items():
        partition, _, level = name.partition(" ")
        topic, _, number = partition.rpartition("-")
        if level != isolation or topic.startswith("__") or not entry["records"]:
            continue
        for timestamp, offset, _ in entry["offsetsForTimes"]:
            common = {"assign": json.dumps({topic: [int(number)]}), "kafka.isolation.level": isolation}
            no_match = {"startingOffsetsByTimestampStrategy": "latest"}
            starts = tasks(kafka_logs["modern"] / "data", startingTimestamp=timestamp, **no_match, **common)
            ends = tasks(kafka_logs["modern"] / "data", endingTimestamp=timestamp, **common)
            expected = entry["end"] if offset is None else offset
            assert [task[0].start_offset for task in starts[:1]] == ([expected] if expected < entry["end"] else [])
            assert [task[-1].end_offset for task in ends[-1:]] == ([expected] if expected > entry["beginning"] else [])
            asked += 1
    assert asked > 50


def test_a_start_timestamp_without_a_match_fails_or_reads_nothing(modern: Path) -> None:
    late = {"subscribe": "ids", "startingTimestamp": 1_999_999_999_999}
    with pytest.raises(OptionError, match="No offset matched from request of topic-partition ids-0 and timestamp"):
        tasks(modern, **late)
    assert tasks(modern, startingOffsetsByTimestampStrategy="latest", **late) == []


def test_small_splits_share_tasks_and_stay_in_order(modern: Path) -> None:
    planned = tasks(modern)
    assert len(planned) < 5
    splits = [split for task in planned for split in task]
    assert splits == sorted(splits, key=lambda split: (split.topic, split.partition, split.start_offset))
    for task in planned:
        assert len(task) == 1 or sum(split.size_bytes + OPEN_COST_BYTES for split in task) <= SMALLEST_TASK_BYTES


def test_min_partitions_splits_the_same_rows_into_more_tasks(modern: Path) -> None:
    whole = read(tasks(modern, subscribe="orders"))
    many = tasks(modern, subscribe="orders", minPartitions=40)
    assert 40 <= len(many) <= 80
    assert read(many) == whole
    short = tasks(modern, subscribe="orders", maxRecordsPerPartition=1000)
    assert read(short) == whole
    assert all(len(read([task])) <= 1000 for task in short)
    assert len(tasks(modern, subscribe="orders", minPartitions=2)) >= 2


PLANNER = """
import pickle, sys
from kwire.spark.log.source import KafkaLogSource
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.types import StructType
assert isinstance(KafkaLogSource.name(), str)
source = pickle.loads(pickle.dumps(KafkaLogSource(CaseInsensitiveDict({"path": sys.argv[1], "startingTimestamp": "1",
    "startingOffsetsByTimestampStrategy": "latest", "kafka.isolation.level": "read_committed"}))))
schema = StructType()
for column in source.schema().split(", "):
    name, type_name = column.split(" ")
    schema = schema.add(name, {"int": "integer", "bigint": "long"}.get(type_name, type_name))
reader = source.reader(schema)
planned = reader.partitions()
assert planned and pickle.loads(pickle.dumps((reader, planned)))
import pyspark_kwire_log
assert pyspark_kwire_log.DefaultSource is KafkaLogSource
print(sorted({name.partition(".")[0] for name in sys.modules} & {"pyarrow", "numpy", "pandas", "fsspec"}))
"""


def test_the_planner_does_not_import_pyarrow(modern: Path) -> None:
    shown = subprocess.run([sys.executable, "-c", PLANNER, str(modern)], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_a_wrong_time_index_loses_no_row(modern: Path, tmp_path: Path) -> None:
    root = tmp_path / "data"
    shutil.copytree(modern / "orders-0", root / "orders-0")
    after_ms = 1_760_000_000_000 + 30_000

    def recent() -> list[tuple[Any, ...]]:
        return read(tasks(root, startingTimestamp=after_ms))

    expected = recent()
    everything = read(tasks(root))
    first = next(n for n, row in enumerate(everything) if row[3] >= EPOCH + timedelta(milliseconds=after_ms))
    assert expected == everything[first:]
    assert first > 0
    for file in (root / "orders-0").glob("*.timeindex"):
        entries = file.read_bytes()
        file.write_bytes(entries[: len(entries) // 24 * 12])  # the later half is gone
    assert recent() == expected
    for file in (root / "orders-0").glob("*.timeindex"):
        file.write_bytes(b"\x7f" * 24)
    assert recent() == expected
    for file in (root / "orders-0").glob("*.timeindex"):
        file.unlink()
    assert recent() == expected


# ---- places


def test_globs_alternatives_and_lists_of_paths_are_expanded(modern: Path, tmp_path: Path) -> None:
    everything = offsets(modern)
    assert set(offsets(f"{modern}/orders-*")) == {"orders-0", "orders-1", "orders-2"}
    assert set(offsets(f"{modern}/{{ids,txn}}-[01]")) == {"ids-0", "ids-1", "txn-0", "txn-1"}
    assert offsets(f"{modern.parent.parent}/mod*rn/data/") == everything
    assert set(offsets(f"{modern}/ids-0/0000000000000000000[0].log")) == {"ids-0"}
    for place in ("a", "b"):
        (tmp_path / place).mkdir()
    (tmp_path / "a" / "ids-0").symlink_to(modern / "ids-0")
    (tmp_path / "b" / "ids-1").symlink_to(modern / "ids-1")
    (tmp_path / "b" / "ids-1.0123456789abcdef0123456789abcdef-delete").symlink_to(modern / "ids-1")
    assert set(offsets(f"{tmp_path}/?")) == {"ids-0", "ids-1"}
    assert set(offsets(f"{tmp_path}/b/ids*")) == {"ids-1"}
    both = parse_options({"paths": json.dumps([f"{tmp_path}/a", f"{tmp_path}/b"])})
    several = plan_batch(both)
    assert {row[:2] for row in read([list(task.splits) for task in several])} == {("ids", 0), ("ids", 1)}
    with pytest.raises(LogError, match=r"duplicate of ids-0 in .*; read these directories separately"):
        tasks(f"{{{modern},{tmp_path}/a}}")
    with pytest.raises(LogError, match="nothing matches this pattern"):
        tasks(f"{modern}/nothing-*")


def test_urls_and_archives_are_read(modern: Path, tmp_path: Path) -> None:
    archive = tmp_path / "logs.zip"
    with zipfile.ZipFile(archive, "w") as out:
        for file in (modern / "ids-0").iterdir():
            out.write(file, f"backup/ids-0/{file.name}")
    expected = offsets(modern / "ids-0")
    assert offsets(f"zip://backup::{archive}") == expected
    assert offsets(f"zip://b*::{archive}") == expected
    assert offsets(f"file://{modern}/ids-0") == expected
    with pytest.raises(LogError):
        tasks("nosuchprotocol://bucket/logs")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of boto and its server, not of kwire
def test_storage_options_reach_the_driver_of_an_object_store(modern: Path, object_store: ObjectStore) -> None:
    object_store.fs.mkdir("spark-backups")
    object_store.upload(modern / "ids-0", "spark-backups/broker-1/ids-0")
    storage = {"storage.key": "hunter2", "storage.secret": "hunter2"}
    storage["storage.client_kwargs"] = json.dumps({"endpoint_url": object_store.endpoint})
    planned = tasks("s3://spark-backups/broker-*", **storage)
    assert pickle.loads(pickle.dumps(planned)) == planned
    assert "hunter2" not in repr(planned)
    assert read(planned) == read(tasks(modern / "ids-0"))
    with pytest.raises(LogError, match=r"unknown storage option 'endpointurl' \(did you mean 'endpoint_url'\?\)"):
        tasks("s3://spark-backups/broker-*", **storage, **{"storage.endpointurl": object_store.endpoint})


@pytest.mark.filterwarnings("ignore")  # of boto and its server, not of kwire
def test_planning_requests_every_object_once(modern: Path, object_store: ObjectStore) -> None:
    # Indexes and the ends of segments were read anew for every question: 22 requests for this partition.
    object_store.fs.mkdir("plan")
    object_store.upload(modern / "ids-0", "plan/data/ids-0")
    segments = len(LogDirectory(modern / "ids-0")[("ids", 0)].segments)
    storage = {f"storage.{name}": value for name, value in object_store.options.items()}
    object_store.requests.clear()
    planned = tasks("s3://plan/data/ids-0", **storage)
    read_bytes = [request for request in object_store.requests if "/ids-0/" in request and "?" not in request]
    assert len(read_bytes) == len(set(read_bytes)) <= 2  # the active segment and its index
    assert len(object_store.requests) <= 8, object_store.requests
    assert len([split for splits in planned for split in splits]) == segments > 1
    assert read(planned) == read(tasks(modern / "ids-0"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of boto and its server, not of kwire
def test_planning_lists_many_partitions_of_an_object_store_at_once(
    modern: Path, object_store: ObjectStore, tmp_path: Path
) -> None:
    # It listed each partition and read the end of each log: 3 requests for each of 10,000 partitions.
    for partition in range(30):
        shutil.copytree(modern / "ids-0", tmp_path / "data" / f"ids-{partition}")
    object_store.fs.mkdir("many")
    object_store.upload(tmp_path / "data", "many/data")
    storage = {f"storage.{name}": value for name, value in object_store.options.items()}
    object_store.requests.clear()
    everything = tasks("s3://many/data", **storage)
    assert len(object_store.requests) <= 8, object_store.requests
    assert read(everything) == read(tasks(tmp_path / "data"))
    object_store.requests.clear()
    assert tasks("s3://many/data", assign='{"ids":[7]}', **storage)
    assert len(object_store.requests) <= 8, object_store.requests
    object_store.requests.clear()
    latest = json.dumps({"ids": {str(partition): -1 for partition in range(30)}})
    bounded = tasks("s3://many/data", endingOffsets=latest, **storage)
    ends = [request for request in object_store.requests if "?" not in request and "/ids-" in request]
    assert len(ends) <= 60  # of a log and its index
    assert read(bounded) == read(everything)


@pytest.mark.parametrize("name", ["missing", "empty", "unrelated"])
def test_a_path_without_logs_is_reported(tmp_path: Path, name: str) -> None:
    if name != "missing":
        (tmp_path / name).mkdir()
    if name == "unrelated":
        (tmp_path / name / "README").write_text("hello")
    with pytest.raises(LogError, match=name):
        tasks(tmp_path / name)


# ---- damage


@pytest.fixture
def ids(modern: Path, tmp_path: Path) -> Path:
    shutil.copytree(modern / "ids-0", tmp_path / "data" / "ids-0")
    return tmp_path / "data"


def first_log(root: Path) -> Path:
    return min((root / "ids-0").glob("*.log"))


def test_a_missing_segment_fails_the_task_or_is_skipped(ids: Path, caplog: pytest.LogCaptureFixture) -> None:
    planned = tasks(ids)
    whole = read(planned)
    second = LogDirectory(ids)[("ids", 0)].segments[1].base_offset
    first_log(ids).unlink()
    with pytest.raises(LogError, match=r"ids-0/0+\.log: cannot be opened: No such file"):
        read(planned)
    assert read(planned, failOnDataLoss=False) == [row for row in whole if row[2] >= second]
    assert f"skipping offsets [0, {second})" in caplog.text


@pytest.mark.parametrize("options", [{}, {"minPartitions": 7}, {"startingOffsets": "earliest", "includeHeaders": True}])
def test_offsets_between_two_segments_fail_the_task_or_are_skipped(
    options: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = lose(make(tmp_path / "data"))
    planned = tasks(directory, **options)
    with pytest.raises(MissingOffsets, match=r"offsets 1[0-9]* to 1[0-9]* are in no segment.*failOnDataLoss"):
        read(planned, **options)
    rows = read(planned, failOnDataLoss=False, **options)
    assert [row[2] for row in rows] == [*range(100), *range(200, 300)]
    assert "are in no segment" in caplog.text


def damaged_batches(log: Path, root: Path) -> Iterator[Any]:
    for segment in LogDirectory(root)[("ids", 0)].segments:
        yield from segment.headers()


def test_a_flipped_byte_fails_is_dropped_or_gives_a_corrupt_row(ids: Path) -> None:
    whole = read(tasks(ids))
    log = first_log(ids)
    bad = list(damaged_batches(log, ids))[3]
    data = bytearray(log.read_bytes())
    data[bad.position + 80] ^= 1
    log.write_bytes(data)
    planned = tasks(ids)

    with pytest.raises(CorruptBatch) as caught:
        read(planned)
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.file, error.position, error.offsets) == (str(log), bad.position, (bad.stored_offset, bad.last_offset))
    assert all(
        part in str(error) for part in (str(log), str(bad.position), str(bad.stored_offset), str(bad.last_offset))
    )

    kept = [row for row in whole if not bad.stored_offset <= row[2] <= bad.last_offset]
    assert len(kept) < len(whole)
    assert read(planned, mode="DROPMALFORMED") == kept

    rows = read(planned, (*COLUMNS, "_corrupt"), mode="PERMISSIVE")
    assert [row[:4] for row in rows if row[4] is None] == kept
    (lost,) = [row for row in rows if row[4] is not None]
    assert lost[:4] == ("ids", 0, bad.stored_offset, None)
    assert lost[4] == str(error)


def test_the_corrupt_column_is_null_for_valid_records(ids: Path) -> None:
    for mode in ("FAILFAST", "DROPMALFORMED", "PERMISSIVE"):
        assert {row[0] for row in read(tasks(ids), ("_corrupt", "offset"), mode=mode)} == {None}


def test_a_corrupt_header_at_the_end_of_the_log_is_reported(ids: Path) -> None:
    log = max((ids / "ids-0").glob("*.log"))
    headers = [header for header in damaged_batches(log, ids) if header is not None]
    last = headers[-1]
    data = bytearray(log.read_bytes())
    data[last.position + 16] = 77  # magic
    log.write_bytes(data)
    with pytest.raises(CorruptBatch, match="magic 77"):
        read(tasks(ids))
    rows = read(tasks(ids), mode="DROPMALFORMED")
    assert rows[-1][2] == headers[-2].last_offset


def test_planning_whole_partitions_opens_no_file(modern: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Opening the ends of 10,000 logs took most of the planning of a query on them.
    everything = read(tasks(modern))
    bounded = read(tasks(modern, endingTimestamp=1 << 50))
    opened: list[str] = []
    monkeypatch.setattr(LocalStore, "open", lambda self, path, **_: opened.append(path) or LocalFile(self.url_of(path)))
    planned = tasks(modern)
    assert opened == ["trimmed-0/00000000000000000000.log"] * opened.count("trimmed-0/00000000000000000000.log")
    assert read(planned) == everything == bounded


def test_records_appended_after_planning_are_not_read(copied: Callable[[str, str], Path]) -> None:
    data = copied("modern", "orders-0")
    planned = tasks(data)
    rows = read(planned)
    segment = max((data / "orders-0").glob("*.log"))
    appended = segment.read_bytes()
    segment.write_bytes(appended + appended[-300:])
    assert read(planned) == rows


@pytest.mark.slow
def test_sizes_of_tasks_are_options(modern: Path) -> None:
    whole = read(tasks(modern))
    one_each = tasks(modern, subscribe="ids", maxPartitionBytes="1")
    assert read(one_each) == read(tasks(modern, subscribe="ids"))
    assert max(len(task) for task in one_each) == 1
    (everything,) = tasks(modern, maxPartitionBytes="1g", openCostInBytes=0)
    assert read([everything]) == whole
    divided = tasks(modern, subscribe="orders", maxRecordsPerPartition=1000)
    packed = tasks(modern, subscribe="orders", maxRecordsPerPartition=1000, maxPartitionBytes="1g", openCostInBytes=0)
    assert len(divided) > len(packed) == 1
    assert read(packed) == read(divided)


def test_queries_of_many_segments_divide_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "SMALLEST_TASK_BYTES", 1)
    folder = tmp_path / "large-0"
    folder.mkdir()
    value = bytes(range(256)) * 4096
    for base in (0, 10):
        records = [
            Record(offset=n, timestamp=0, timestamp_type=TimestampType.CREATE_TIME, key=None, value=value, headers=[])
            for n in range(base, base + 3)
        ]
        batches = [write_batch([record], base_offset=record.offset) for record in records]
        (folder / f"{base:020}.log").write_bytes(b"".join(batches))
    assert len(tasks(tmp_path)) == 6
    monkeypatch.setattr(planning, "MOST_DIVIDED_SEGMENTS", 1)
    assert [len(task) for task in tasks(tmp_path)] == [1, 1]
    assert len(tasks(tmp_path, maxPartitionBytes="1m")) == 6
