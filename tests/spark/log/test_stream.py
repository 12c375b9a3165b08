"""`kafka-log` as a stream of a growing directory."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.object_store import ObjectStore
from tests.waiting import HANG_S

from kwire.errors import LogError, OptionError
from kwire.log import LogDirectory
from kwire.log.writing.log_config import LogConfig
from kwire.log.writing.log_manager import LogManager
from kwire.records import ColumnWriter
from kwire.spark.log.options import parse_options
from kwire.spark.packing import RECORD_BYTES
from kwire.spark.streaming.position import Position

datasource = pytest.importorskip("pyspark.sql.datasource")

from kwire.spark.log.planning import LogOffsetSource  # noqa: E402 (needs PySpark)
from kwire.spark.log.stream import LogStreamReader  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOW_MS = 1_760_000_000_000
SMALL = LogConfig(segment_bytes=4096)
MARK = {"#kafka-log": {}}  # in every checkpoint


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[LogManager]:
    with LogManager.open(tmp_path / "data", now_ms=NOW_MS, default_config=SMALL) as manager:
        yield manager


def write(logs: LogManager, partition: int, count: int, topic: str = "t", *, topic_id: uuid.UUID | None = None) -> None:
    if (topic, partition) not in logs.logs:
        logs.create(topic, partition, now_ms=NOW_MS, topic_id=topic_id)
    rows = pa.record_batch({"value": pa.array([b"v" * 100] * count, pa.binary())})
    log = logs.logs[topic, partition]
    for piece in ColumnWriter(batch_size=1024, base_offset=log.log_end_offset, partition_leader_epoch=0).write(rows):
        for batch in batches_of(piece):
            log.append_as_given(batch, now_ms=NOW_MS)


def batches_of(piece: memoryview) -> Iterator[memoryview]:
    at = 0
    while at < len(piece):
        size = 12 + int.from_bytes(piece[at + 8 : at + 12], "big")
        yield piece[at : at + size]
        at += size


def reader(logs: LogManager, **options: Any) -> LogStreamReader:
    given = {"path": logs.path, "startingoffsets": "earliest"} | {k.lower(): str(v) for k, v in options.items()}
    return LogStreamReader(parse_options(given, "stream"), ("partition", "offset"))


def batch(
    stream: LogStreamReader, start: dict[str, Any], limit: Any = None
) -> tuple[dict[str, Any], list[tuple[int, int]]]:
    """Return (end offsets, rows) of the micro-batch after start."""
    end = stream.latestOffset(start, limit)
    return end, rows_between(stream, start, end)


def position(end: dict[str, Any]) -> dict[str, Any]:
    """Return the end of a first micro-batch without the start in it."""
    return {name: offsets for name, offsets in end.items() if not name.startswith("#start=")}


def rows_between(stream: LogStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[tuple[int, int]]:
    return [
        row
        for task in stream.partitions(start, end)
        for found in stream.read(task)
        for row in zip(*(column.to_pylist() for column in found.columns), strict=True)
    ]


def test_new_records_segments_and_partitions_are_read_once(logs: LogManager) -> None:
    write(logs, 0, 50)
    stream = reader(logs, subscribePattern="t|u")
    start = stream.initialOffset()
    assert start == {"t": {"0": 0}, **MARK}
    start, rows = batch(stream, start)
    assert rows == [(0, n) for n in range(50)]
    assert batch(stream, start) == (start, [])
    write(logs, 0, 30)
    write(logs, 1, 5)
    write(logs, 0, 2, topic="u")
    start, rows = batch(stream, start)
    assert start == {"t": {"0": 80, "1": 5}, "u": {"0": 2}, **MARK}
    assert len(logs.logs["t", 0].segments) > 1
    assert sorted(rows) == sorted([(0, n) for n in range(50, 80)] + [(1, n) for n in range(5)] + [(0, 0), (0, 1)])


def test_a_stream_may_start_before_its_topic_exists_in_a_broker_directory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with LogManager.open(tmp_path / "data", now_ms=NOW_MS, default_config=SMALL) as logs:
        logs.write_checkpoints()
        stream = reader(logs)
        start, rows = batch(stream, stream.initialOffset())
        assert "no topic of this query in" in caplog.text
        assert (start, rows) == ({"#start={}": {}, **MARK}, [])
        assert batch(stream, start) == (start, [])
        write(logs, 0, 5)
        end, rows = batch(stream, start)
        assert rows == [(0, n) for n in range(5)]
        assert batch(stream, end) == (end, [])
    (tmp_path / "unmounted").mkdir()
    (tmp_path / "etc" / "polkit-1").mkdir(parents=True)
    for place in ("unmounted", "etc"):
        wrong = LogStreamReader(parse_options({"path": str(tmp_path / place)}, "stream"), ("offset",))
        with pytest.raises(LogError, match="no Kafka logs"):
            wrong.initialOffset()


def test_what_a_start_option_resolved_to_is_logged_once(logs: LogManager, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "kwire.spark")
    write(logs, 0, 50)
    write(logs, 1, 5)
    stream = reader(logs, startingOffsets="latest")
    for _ in range(2):
        stream.initialOffset()
    assert caplog.messages == ["a query without a checkpoint starts at [t-0: 50, t-1: 5]"]


def test_a_stream_starts_at_the_latest_offsets_and_respects_limits(logs: LogManager) -> None:
    write(logs, 0, 50)
    assert reader(logs, startingOffsets="latest").initialOffset() == {"t": {"0": 50}, **MARK}
    assert reader(logs, startingTimestamp=NOW_MS + 1, startingOffsetsByTimestampStrategy="latest").initialOffset() == {
        "t": {"0": 50},
        **MARK,
    }
    limited = reader(logs, maxOffsetsPerTrigger=20)
    start, sizes = limited.initialOffset(), []
    limited.prepareForTriggerAvailableNow()
    write(logs, 0, 10)  # after the trigger: not for this run
    while start != (end := limited.latestOffset(start, limited.getDefaultReadLimit())):
        start, rows = batch(limited, start)
        assert start == end
        sizes.append(len(rows))
    assert sizes == [20, 20, 10]
    waiting = reader(logs, minOffsetsPerTrigger=70)
    first = waiting.latestOffset(waiting.initialOffset(), waiting.getDefaultReadLimit())
    assert position(first) == {
        "t": {"0": 60},
        **MARK,
    }  # a new query reads all available records, as with Spark's source
    write(logs, 0, 69)
    assert waiting.latestOffset(first, waiting.getDefaultReadLimit()) == first
    write(logs, 0, 1)
    assert waiting.latestOffset(first, waiting.getDefaultReadLimit()) == {"t": {"0": 130}, **MARK}


def test_the_first_batch_is_repeated_unchanged_despite_new_data(logs: LogManager) -> None:
    # Spark keeps no initial offsets: a query that was killed in its first batch found new partitions "gone".
    write(logs, 0, 50)
    killed = reader(logs)
    end = killed.latestOffset(killed.initialOffset())
    write(logs, 0, 10)
    write(logs, 1, 5)
    again = reader(logs)
    assert rows_between(again, again.initialOffset(), end) == [(0, n) for n in range(50)]
    _, rows = batch(again, end)
    assert sorted(rows) == [(0, n) for n in range(50, 60)] + [(1, n) for n in range(5)]


@pytest.mark.parametrize("start", [{"startingOffsets": "latest"}, {"startingOffsets": '{"t":{"0":-1}}'}])
def test_a_stream_from_latest_misses_no_record_written_during_startup(logs: LogManager, start: dict[str, str]) -> None:
    # It failed: the end of its first batch was looked up before the start of it, or in a run before.
    write(logs, 0, 50)
    killed = reader(logs, **start)
    end = killed.latestOffset(killed.initialOffset())
    assert end == {"t": {"0": 50}, '#start={"t":{"0":50}}': {}, **MARK}
    write(logs, 0, 10)
    assert rows_between(killed, killed.initialOffset(), end) == []  # planned in the same run
    again = reader(logs, **start)
    assert rows_between(again, again.initialOffset(), end) == []
    write(logs, 0, 10)
    end, rows = batch(again, end)
    assert rows == [(0, n) for n in range(50, 70)]
    logs.delete("t", 0, now_ms=NOW_MS)
    write(logs, 1, 1)
    with pytest.raises(LogError, match="t-0"):
        batch(again, end)


def test_available_now_reads_records_written_during_startup_once(logs: LogManager) -> None:
    write(logs, 0, 50)
    stream = reader(logs, startingOffsets="latest")
    stream.prepareForTriggerAvailableNow()
    write(logs, 0, 10)
    end, rows = batch(stream, stream.initialOffset())
    assert (position(end), rows) == ({"t": {"0": 60}, **MARK}, [])
    assert batch(stream, end) == (end, [])


START_OPTIONS: dict[str, dict[str, Any]] = {
    "earliest": {"startingOffsets": "earliest"},
    "latest": {"startingOffsets": "latest"},
    "offsets": {"startingOffsets": '{"t":{"0":4}}'},
    "timestamp": {"startingTimestamp": NOW_MS + 1, "startingOffsetsByTimestampStrategy": "latest"},
}


@pytest.mark.parametrize("again", START_OPTIONS)
@pytest.mark.parametrize(("first", "rows"), [("earliest", 10), ("latest", 0), ("offsets", 6), ("timestamp", 0)])
def test_a_first_micro_batch_that_failed_is_repeated_whatever_the_start_options(
    logs: LogManager, first: str, rows: int, again: str
) -> None:
    # Spark asks for the start again: with other options, the records up to the end were lost, or read without need.
    write(logs, 0, 10)
    failed = reader(logs, **START_OPTIONS[first])
    start = failed.initialOffset()
    end = failed.latestOffset(start)
    failed.partitions(failed.initialOffset(), end)  # and now the sink fails
    write(logs, 0, 5)
    stream = reader(logs, **START_OPTIONS[again])
    assert rows_between(stream, stream.initialOffset(), end) == [(0, n) for n in range(10 - rows, 10)]
    end, found = batch(stream, end)
    assert (end, found) == ({"t": {"0": 15}, **MARK}, [(0, n) for n in range(10, 15)])
    assert batch(stream, end) == (end, [])


def test_records_deleted_before_a_failed_first_micro_batch_is_repeated_are_data_loss(logs: LogManager) -> None:
    write(logs, 0, 10)
    failed = reader(logs)
    end = failed.latestOffset(failed.initialOffset())
    logs.logs["t", 0].roll(NOW_MS)
    logs.logs["t", 0].delete_records(5)
    logs.write_checkpoints()
    for again in START_OPTIONS.values():
        strict, lenient = reader(logs, **again), reader(logs, failOnDataLoss=False, **again)
        if "4" not in str(again):  # an offset that was deleted fails at once
            with pytest.raises(LogError, match=r"offsets \[0, 5\) of t-0 were deleted before they were read"):
                strict.partitions(strict.initialOffset(), end)
        assert rows_between(lenient, lenient.initialOffset(), end) == [(0, n) for n in range(5, 10)]


def test_the_first_micro_batch_keeps_its_start_in_spark_4_1(logs: LogManager) -> None:
    # Spark 4.1 passes no start to latestOffset, and asks for the initial offset after it.
    write(logs, 0, 10)
    failed = reader(logs)
    end = failed.latestOffset()
    write(logs, 0, 5)
    assert rows_between(failed, failed.initialOffset(), end) == [(0, n) for n in range(10)]
    again = reader(logs, startingOffsets="latest")
    assert rows_between(again, again.initialOffset(), end) == [(0, n) for n in range(10)]
    after = again.latestOffset()
    assert rows_between(again, end, after) == [(0, n) for n in range(10, 15)]
    assert again.latestOffset() == after
    # A restart after a micro-batch that was completed, also with start options that are no longer valid.
    for options in ({}, {"startingOffsets": '{"u":{"0":4}}'}):
        stream = reader(logs, **options)
        idle = stream.latestOffset()
        assert rows_between(stream, after, idle) == []
        assert stream.latestOffset() == idle
        write(logs, 0, 1)
        after = stream.latestOffset()
        assert len(rows_between(stream, idle, after)) == 1


def test_partitions_that_are_absent_for_a_moment_are_not_read_again(
    logs: LogManager, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # Their offsets were dropped, and what came back was a new partition.
    ids = {"t": OLD, "u": NEW}
    for topic, partition in (("t", 0), ("t", 1), ("u", 0)):
        write(logs, partition, 10, topic, topic_id=ids[topic])
    strict, lenient = (reader(logs, failOnDataLoss=fails) for fails in (True, False))
    start, _ = batch(lenient, lenient.initialOffset())
    for gone in (["t-1"], ["t-0", "t-1"], ["t-0", "t-1", "u-0"]):
        for name in gone:
            (Path(logs.path) / name).rename(tmp_path / name)
        Path(logs.path, "meta.properties").touch()
        with pytest.raises(LogError, match=f"not found, deleted or not visible.* read {gone[0]} up to offset 1"):
            strict.latestOffset(start)
        caplog.clear()
        for _ in range(3):
            assert batch(lenient, start) == (start, [])
        assert [f"[{', '.join(gone)}] not found" in each for each in caplog.messages].count(True) == 1
        if "u-0" not in gone:
            write(logs, 0, 5, "u")
            start, rows = batch(lenient, start)
            assert len(rows) == 5
        for name in gone:
            (tmp_path / name).rename(Path(logs.path) / name)
        assert batch(lenient, start) == (start, [])
    write(logs, 1, 3)
    assert batch(lenient, start)[1] == [(1, n) for n in range(10, 13)]
    assert strict.latestOffset(start) == lenient.latestOffset(start)


def test_a_topic_recreated_while_it_was_absent_is_read_from_its_start(logs: LogManager) -> None:
    write(logs, 0, 10, topic_id=OLD)
    write(logs, 0, 1, topic="u")
    stream = reader(logs, failOnDataLoss=False)
    start, _ = batch(stream, stream.initialOffset())
    logs.delete("t", 0, now_ms=NOW_MS)
    assert batch(stream, start) == (start, [])
    write(logs, 0, 12, topic_id=NEW)
    end, rows = batch(stream, start)
    assert (position(end), rows) == ({"t": {"0": 12}, "u": {"0": 1}, **NEW_ID, **MARK}, [(0, n) for n in range(12)])


def test_a_topic_without_an_id_is_forgotten_unless_it_is_the_only_one(logs: LogManager) -> None:
    # It may be another topic when it comes back, and its first records would be skipped.
    write(logs, 0, 10)
    write(logs, 0, 1, topic="u")
    stream = reader(logs, failOnDataLoss=False)
    start, _ = batch(stream, stream.initialOffset())
    logs.delete("t", 0, now_ms=NOW_MS)
    start, _ = batch(stream, start)
    assert start == {"u": {"0": 1}, **MARK}
    logs.write_checkpoints()
    logs.delete("u", 0, now_ms=NOW_MS)
    assert batch(stream, start) == (start, [])


def test_a_repeated_batch_has_the_same_rows_and_tasks_after_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A sink that commits task by task would lose rows or have them twice. Tasks were cut by the sizes of segments, and
    # those change: here the same records in short segments, in one, and compacted down to a few.
    def tasks(name: str, segment_bytes: int, kept: range, **options: Any) -> list[list[tuple[int, int]]]:
        config = LogConfig(segment_bytes=segment_bytes)
        with LogManager.open(tmp_path / name, now_ms=NOW_MS, default_config=config) as logs:
            for partition, count in ((0, 95), (1, 4), (2, 3)):
                log = logs.create("t", partition, now_ms=NOW_MS)
                for offset in range(count):
                    if partition or offset in kept:
                        rows = pa.record_batch({"value": pa.array([b"v" * 100], pa.binary())})
                        for piece in ColumnWriter(base_offset=offset, partition_leader_epoch=0).write(rows):
                            log.append_as_given(piece, now_ms=NOW_MS)
            stream = reader(logs, **options)
            return [
                [
                    row
                    for found in stream.read(task)
                    for row in zip(*(column.to_pylist() for column in found.columns), strict=True)
                ]
                for task in stream.partitions({"t": {"0": 0, "1": 0, "2": 0}}, {"t": {"0": 95, "1": 4, "2": 3}})
            ]

    monkeypatch.setattr("kwire.spark.log.planning.SMALLEST_TASK_BYTES", 40 * RECORD_BYTES)
    monkeypatch.setattr("kwire.spark.packing.OPEN_COST_BYTES", 0)
    everything, few = range(95), range(40, 95, 7)
    wanted = [[(0, n) for n in range(31)], [(0, n) for n in range(31, 63)]]
    wanted += [[*((0, n) for n in range(63, 95)), *((1, n) for n in range(4)), *((2, n) for n in range(3))]]
    assert tasks("short", 1024, everything) == tasks("long", 1 << 20, everything) == wanted
    compacted = tasks("compacted", 1 << 20, few)
    assert compacted == [[row for row in task if row[0] or row[1] in few] for task in wanted]
    assert compacted[0] == []
    for options in ({"minPartitions": 7}, {"maxRecordsPerPartition": 30}):
        short, long = (
            tasks(f"{name} {options}", size, everything, **options) for name, size in (("s", 1024), ("l", 1 << 20))
        )
        assert short == long
        assert len(long) >= 6


def test_a_partially_written_batch_is_not_read_yet(logs: LogManager, tmp_path: Path) -> None:
    write(logs, 0, 10)
    write(logs, 0, 10)
    copy = tmp_path / "copy" / "t-0"
    shutil.copytree(f"{logs.path}/t-0", copy)
    (segment,) = copy.glob("*.log")
    whole = segment.read_bytes()
    segment.write_bytes(whole[:-3])
    stream = LogStreamReader(
        parse_options({"path": str(tmp_path / "copy"), "startingoffsets": "earliest"}, "stream"),
        ("partition", "offset"),
    )
    start, rows = batch(stream, stream.initialOffset())
    assert len(rows) < 20
    segment.write_bytes(whole)
    _, more = batch(stream, start)
    assert [offset for _, offset in rows + more] == list(range(20))


def test_deleted_records_and_partitions_fail_the_query_or_are_skipped(logs: LogManager) -> None:
    for partition in (0, 1):
        write(logs, partition, 50)
    strict, lenient = reader(logs), reader(logs, failOnDataLoss=False)
    start = strict.initialOffset()
    logs.logs["t", 0].roll(NOW_MS)
    logs.logs["t", 0].delete_records(40)
    logs.write_checkpoints()
    with pytest.raises(LogError, match=r"offsets \[0, 40\) of t-0 were deleted before they were read"):
        batch(strict, start)
    end, rows = batch(lenient, start)
    assert sorted(rows) == [(0, n) for n in range(40, 50)] + [(1, n) for n in range(50)]
    planned = {"t": {"0": 50, "1": 60}}  # a batch that was planned, and then its partition went
    logs.delete("t", 1, now_ms=NOW_MS)
    with pytest.raises(
        LogError, match=r"t-1. not found, deleted or not visible to this query, which has .* t-1 up to offset 50"
    ):
        strict.latestOffset(end)
    after = {"t": {"0": 50}, **MARK}
    assert batch(lenient, end) == (after, [])
    with pytest.raises(LogError, match="t-1 was deleted; the query had read it up to offset 50"):
        strict.partitions(end, after)
    with pytest.raises(LogError, match=r"offsets \[50, 60\) of t-1 were deleted before they were read"):
        strict.partitions(end, planned)
    assert not lenient.partitions(end, planned)


OLD, NEW = uuid.UUID(int=1), uuid.UUID(int=2)
OLD_ID, NEW_ID = {"t#AAAAAAAAAAAAAAAAAAAAAQ": {}}, {"t#AAAAAAAAAAAAAAAAAAAAAg": {}}


@pytest.mark.parametrize("count", [10, 80])  # fewer records than were read, and more
def test_a_recreated_topic_is_detected_by_its_id(
    logs: LogManager, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    # With more records than before, the first ones of the new topic were skipped without a word.
    write(logs, 0, 50, topic_id=OLD)
    write(logs, 1, 5, topic_id=OLD)
    write(logs, 0, 1, topic="u")
    strict = reader(logs)
    start, _ = batch(strict, strict.initialOffset())
    assert position(start) == {"t": {"0": 50, "1": 5}, "u": {"0": 1}, **OLD_ID, **MARK}
    for partition in (0, 1):
        logs.delete("t", partition, now_ms=NOW_MS)
    write(logs, 0, count, topic_id=NEW)
    write(logs, 0, 1, topic="u")
    message = "topic 't' was deleted and created again: its id was AAAAAAAAAAAAAAAAAAAAAQ.*failOnDataLoss to false"
    for _ in range(2):
        again = reader(logs)  # a restart fails in the same way, with the batch that it has planned
        with pytest.raises(LogError, match=message):
            batch(again, start)
    lenient = reader(logs, failOnDataLoss=False)
    end, rows = batch(lenient, start)
    assert end == {"t": {"0": count}, "u": {"0": 2}, **NEW_ID, **MARK}
    assert rows == [*((0, n) for n in range(count)), (0, 1)]
    assert "the query will read the new topic from its beginning" in caplog.text
    assert batch(lenient, end) == (end, [])


def test_a_recreated_topic_is_read_from_its_start_within_the_trigger_limits(logs: LogManager) -> None:
    write(logs, 0, 50, topic_id=OLD)
    stream = reader(logs, failOnDataLoss=False, maxOffsetsPerTrigger=30)
    start, sizes = {"t": {"0": 50}, **OLD_ID}, []
    logs.delete("t", 0, now_ms=NOW_MS)
    write(logs, 0, 80, topic_id=NEW)
    while start != (end := stream.latestOffset(start, stream.getDefaultReadLimit())):
        sizes.append(len(rows_between(stream, start, end)))
        start = end
    assert sizes == [30, 30, 20]


def test_a_topic_recreated_during_planning_gives_no_new_rows(logs: LogManager) -> None:
    write(logs, 0, 50, topic_id=OLD)
    strict, lenient = reader(logs), reader(logs, failOnDataLoss=False)
    start = strict.initialOffset()
    end = strict.latestOffset(start)
    logs.delete("t", 0, now_ms=NOW_MS)
    write(logs, 0, 80, topic_id=NEW)
    with pytest.raises(LogError, match=r"created again.*after this micro-batch was planned"):
        strict.partitions(start, end)
    assert rows_between(lenient, start, end) == []
    assert batch(lenient, end) == ({"t": {"0": 80}, **NEW_ID, **MARK}, [(0, n) for n in range(80)])


def test_a_task_reads_no_record_of_a_topic_recreated_after_planning(
    logs: LogManager, caplog: pytest.LogCaptureFixture
) -> None:
    write(logs, 0, 50, topic_id=OLD)
    write(logs, 0, 3, topic="u")
    strict, lenient = reader(logs), reader(logs, failOnDataLoss=False)
    start = strict.initialOffset()
    tasks = strict.partitions(start, strict.latestOffset(start))
    logs.delete("t", 0, now_ms=NOW_MS)
    write(logs, 0, 80, topic_id=NEW)
    with pytest.raises(LogError, match=r"t-0/0+\.log: topic 't' was deleted and created again after this task"):
        [list(strict.read(task)) for task in tasks]
    found = [row for task in tasks for rows in lenient.read(task) for row in rows.column("offset").to_pylist()]
    assert found == [0, 1, 2]  # of u
    assert "topic 't' was deleted and created again after this task was planned; offsets [0, " in caplog.text


def test_streams_resume_without_topic_ids(logs: LogManager, caplog: pytest.LogCaptureFixture) -> None:
    write(logs, 0, 50, topic_id=OLD)
    stream = reader(logs)
    end, rows = batch(stream, {"t": {"0": 40}})  # as 0.1 and Spark's own source write it
    assert (end, rows) == ({"t": {"0": 50}, **OLD_ID, **MARK}, [(0, n) for n in range(40, 50)])
    metadata = Path(logs.path, "t-0", "partition.metadata")
    for text in ("version: 0\ntopic_id: garbage\n", None):
        metadata.unlink()
        if text is not None:
            metadata.write_text(text)
        assert batch(stream, end) == (end, [])  # what is known stays known
    assert "will not be detected" in caplog.text
    assert batch(reader(logs), {"t": {"0": 40}}) == ({"t": {"0": 50}, **MARK}, rows)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of boto and its server, not of kwire
def test_a_stream_requests_only_objects_that_can_have_changed(
    logs: LogManager, object_store: ObjectStore, caplog: pytest.LogCaptureFixture
) -> None:
    # It listed every partition and read each active segment and its index anew: 33 requests for 6 idle partitions.
    for partition in range(6):
        write(logs, partition, 150, topic_id=OLD)
    logs.write_checkpoints()
    object_store.fs.mkdir("backups")
    object_store.upload(Path(logs.path), "backups/broker-1")
    storage = {f"storage.{name}": value for name, value in object_store.options.items()}
    stream = reader(logs, path="s3://backups/broker-1", failOnDataLoss=False, **storage)

    def requests(call: Callable[[], Any]) -> tuple[Any, list[str]]:
        object_store.requests.clear()
        result = call()
        return result, list(object_store.requests)

    start = stream.initialOffset()
    end, asked = requests(lambda: stream.latestOffset(start))
    assert len(asked) == 1, asked
    assert Position.parse(end).offsets == {("t", partition): 150 for partition in range(6)}
    assert requests(lambda: stream.latestOffset(end)) == (end, asked)
    planned, asked = requests(lambda: stream.partitions(start, end))
    assert len(asked) == 1, asked
    assert sum(found.num_rows for task in planned for found in stream.read(task)) == 900

    write(logs, 3, 5)  # a partition that has grown costs its active segment and the index of that
    write(logs, 6, 7, topic_id=OLD)  # and a new one its files
    object_store.upload(Path(logs.path, "t-3"), "backups/broker-1/t-3")
    object_store.upload(Path(logs.path, "t-6"), "backups/broker-1/t-6")
    grown, asked = requests(lambda: stream.latestOffset(end))
    assert Position.parse(grown).offsets == Position.parse(end).offsets | {("t", 3): 155, ("t", 6): 7}
    assert all("?" in each or "t-3/" in each or "t-6/" in each for each in asked), asked
    assert len(asked) <= 6, asked
    assert sorted(rows_between(stream, end, grown)) == [(3, n) for n in range(150, 155)] + [(6, n) for n in range(7)]

    object_store.fs.rm("backups/broker-1/t-0", recursive=True)
    write(logs, 0, 20)  # deleted and created again: seen though the rest is kept
    logs.delete("t", 0, now_ms=NOW_MS)
    write(logs, 0, 160, topic_id=NEW)
    object_store.upload(Path(logs.path, "t-0"), "backups/broker-1/t-0")
    _, rows = batch(stream, grown)
    assert [offset for partition, offset in rows if partition == 0] == list(range(160))
    assert "topic 't' was deleted and created again" in caplog.text


def test_committed_data_is_read_up_to_the_last_stable_offset(kafka_logs: dict[str, Path]) -> None:
    data = kafka_logs["modern"] / "data"
    options = {"path": str(data), "kafka.isolation.level": "read_committed"}
    source = LogOffsetSource(parse_options(options, "stream"), is_stream=True)
    log = LogDirectory(data)
    keys = source.partitions()
    assert source.latest(keys) == {key: log[key].last_stable_offset for key in keys}


def test_options_of_a_stream_equal_those_of_sparks_source() -> None:
    options = parse_options({"path": "/logs", "maxoffsetspertrigger": "5", "maxtriggerdelay": "30s"}, "stream")
    assert (options.limits.max_offsets, options.limits.max_delay_ms) == (5, 30_000)
    assert parse_options({"path": "/logs", "maxoffsetspertrigger": "5", "startingoffsets": "latest"}, "any")
    for wrong, what in (
        ({"endingoffsets": "latest"}, "Option 'endingOffsets': ending offset not valid in streaming queries"),
        ({"maxoffsetspertriger": "5"}, "did you mean 'maxOffsetsPerTrigger'"),
    ):
        with pytest.raises(OptionError, match=what):
            parse_options({"path": "/logs", **wrong}, "stream")
    with pytest.raises(OptionError, match="this is a batch query"):
        parse_options({"path": "/logs", "maxoffsetspertrigger": "5"})


@pytest.mark.slow
def test_spark_reads_a_growing_directory_across_restarts(spark: SparkSession, logs: LogManager, tmp_path: Path) -> None:
    def run() -> list[int]:
        query = (
            spark.readStream.format("kafka-log")
            .options(startingOffsets="earliest", maxOffsetsPerTrigger=40)
            .load(logs.path)
            .select("partition", "offset")
            .writeStream.format("parquet")
            .option("path", str(tmp_path / "out"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(int(HANG_S))
        assert query.exception() is None
        return [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]

    write(logs, 0, 50)
    assert run() == [40, 10]
    write(logs, 0, 20)
    write(logs, 1, 5)
    assert run() == [25]
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted((row.partition, row.offset) for row in rows) == [(0, n) for n in range(70)] + [
        (1, n) for n in range(5)
    ]


def test_a_checkpoint_of_kafka_live_is_rejected(logs: LogManager) -> None:
    write(logs, 0, 50)
    stream = reader(logs)
    of_live = Position({("t", 0): 30}).render("kafka-live")
    for call in (
        lambda: stream.latestOffset(of_live, stream.getDefaultReadLimit()),
        lambda: stream.partitions(of_live, of_live),
        lambda: stream.partitions(of_live, stream.latestOffset()),  # Spark 4.1 gives latestOffset no start
    ):
        with pytest.raises(OptionError, match="belongs to a query on kafka-live, and this query is on kafka-log"):
            call()
    assert rows_between(stream, Position({("t", 0): 48}).render(), stream.latestOffset()) == [(0, 48), (0, 49)]


@pytest.mark.slow
def test_invalid_options_of_a_stream_fail_the_query(logs: LogManager, spark: SparkSession, tmp_path: Path) -> None:
    write(logs, 0, 5)
    given = spark.readStream.format("kafka-log").option("endingOffsets", "latest").load(str(logs.path))
    query = given.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    with pytest.raises(Exception, match="'endingOffsets': ending offset not valid in streaming queries") as caught:
        query.awaitTermination()
    assert "UnboundLocalError" not in str(caught.value)
