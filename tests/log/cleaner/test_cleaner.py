"""The whole cleaner on directories: results equal Kafka's, and interruptions at any step are safe."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kwire.errors import CorruptBatch
from kwire.log import FileSystem, LogConfig, LogDirectory, LogManager, PartitionWriter
from kwire.log.cleaner import Cleaner
from kwire.log.cleaner.offset_map import SLOT_BYTES
from kwire.log.files.cleaner_checkpoints import CleanerCheckpoints
from kwire.log.writing.recovery import PartitionCheckpoints
from kwire.records import write_batch
from tests.log.cleaner import kafka_cleaned
from tests.log.cleaner.compared import log_content, segment_files
from tests.log.writing import NOW, record
from tests.sampling import mostly_slow
from tests.storage.faults import Stopped, StoppingFileSystem

pytestmark = pytest.mark.usefixtures("path")
EXPECTED = json.loads(kafka_cleaned.EXPECTED.read_text())
CONFIG = LogConfig(
    cleanup_policy=frozenset({"compact"}),
    segment_bytes=1200,
    segment_index_bytes=65536,
    index_interval_bytes=100,
    file_delete_delay_ms=0,
    retention_ms=-1,
)
KEYS = 5


def filled(directory: Path, batches: int = 40, config: LogConfig = CONFIG, **options: Any) -> PartitionWriter:
    """A partition "t-0" with several segments, repeated keys and some compressed batches."""
    log = PartitionWriter.open(
        options.pop("file_system", None) or FileSystem(), str(directory / "t-0"), "t", 0, config, now_ms=NOW
    )
    draw = random.Random(5)
    for i in range(batches):
        records = [
            record(b"%d" % (10 * i + j) + b"." * draw.randrange(40), NOW + i, b"key-%d" % draw.randrange(KEYS))
            for j in range(draw.choice([1, 2, 5]))
        ]
        log.append(write_batch(records, compression=draw.choice(["none", "none", "lz4"])), now_ms=NOW)
    return log


def contents(directory: Path) -> dict[int, tuple[bytes | None, bytes | None]]:
    """Return (key, value) by offset of all records, also during a pass, whose gaps nothing explains yet."""
    return {each.offset: (each.key, each.value) for each in LogDirectory(directory)["t", 0].read(skip_missing=True)}


def newest(records: dict[int, tuple[bytes | None, bytes | None]], end_offset: int) -> dict[int, Any]:
    """Return the expected records after compaction below end_offset."""
    last = {key: offset for offset, (key, _) in sorted(records.items()) if offset < end_offset}
    return {offset: each for offset, each in records.items() if offset >= end_offset or last[each[0]] == offset}


@pytest.mark.sampled(5)
@pytest.mark.requirement("X-10", "X-12", "X-20", "X-21", "X-22", "X-23", "X-24", "X-25", "X-26", "X-27", "X-30")
@pytest.mark.requirement("X-31", "X-32", "X-33", "X-34", "X-36")
@pytest.mark.parametrize(("archive", "name"), list(kafka_cleaned.partitions()))
def test_golden_logs_are_cleaned_as_by_kafka(
    archive: str, name: str, kafka_logs: dict[str, Path], tmp_path: Path
) -> None:
    directory = kafka_cleaned.copy_partition(kafka_logs[archive], name, tmp_path)
    topic, _, partition = name.rpartition("-")
    files = FileSystem()
    for now_ms, expected in zip(kafka_cleaned.PASSES, EXPECTED[f"{archive}/{name}"], strict=True):
        (tmp_path / "cleaner-offset-checkpoint").unlink(missing_ok=True)
        config = LogConfig.parse(kafka_cleaned.SETTINGS)
        log = PartitionWriter.open(
            files,
            str(directory),
            topic,
            int(partition),
            config,
            now_ms=now_ms,
            checkpoints=PartitionCheckpoints(is_clean=True),
        )
        active = log.segments.active
        untouched = active.log.pread(0, active.size_bytes)
        cleaner = Cleaner(CleanerCheckpoints(files, str(tmp_path)))
        stats = cleaner.clean(log, now_ms)
        assert (cleaner.checkpoints.get((topic, int(partition))) or 0) == expected["end_offset"]
        cleaned = [each for each in log.segments if each.base_offset < expected["end_offset"]]
        assert stats.bytes_written == sum(each.size_bytes for each in cleaned)
        log.close()
        assert segment_files(directory)[-1].read_bytes() == untouched
        assert kafka_cleaned.digests(directory) == expected["files"]


@pytest.mark.requirement("X-22", "X-34", "X-36")
def test_the_last_record_of_each_key_is_kept_and_the_active_segment_unchanged(tmp_path: Path) -> None:
    log = filled(tmp_path)
    before, active = contents(tmp_path), log.segments.active
    segments, times = len(log.segments), [each.log.modified_ms() for each in log.segments]
    log.config = CONFIG.replace(segment_bytes=3000)
    cleaner = Cleaner(CleanerCheckpoints(FileSystem(), str(tmp_path)))
    stats = cleaner.clean(log, NOW)
    assert cleaner.checkpoints.get(("t", 0)) == active.base_offset
    assert (tmp_path / "cleaner-offset-checkpoint").read_text() == f"0\n1\nt 0 {active.base_offset}\n"
    left = contents(tmp_path)
    assert left == newest(before, active.base_offset)
    assert (stats.segments_read, stats.records_read) == (
        segments - 1,
        sum(each < active.base_offset for each in before),
    )
    assert stats.records_written == sum(each < active.base_offset for each in left)
    assert len(log.segments) < segments
    assert [each.log.modified_ms() for each in log.segments][-1] == times[-1]
    assert log.segments.active is active
    for offset in range(log.log_end_offset):  # by the new indexes
        found = [b.last_offset for b in _batches(log, offset)]
        assert found
        assert found[0] >= offset
    log.append(write_batch([record(b"later")]), now_ms=NOW)
    again = cleaner.clean(log, NOW)
    assert (again.passes, again.segments_read) == (1, 0)  # nothing is dirty
    log.close()
    reopened = PartitionWriter.open(
        FileSystem(), str(tmp_path / "t-0"), "t", 0, CONFIG, now_ms=NOW, checkpoints=PartitionCheckpoints(is_clean=True)
    )
    assert len(contents(tmp_path)) == len(left) + 1
    reopened.close()


def _batches(log: PartitionWriter, offset: int) -> Iterator[Any]:
    from kwire.records import read_batches

    return read_batches(log.fetch(offset, 1 << 20).read())


@pytest.mark.sampled
@pytest.mark.requirement("X-11")
def test_a_small_map_needs_more_passes_for_the_same_result(tmp_path: Path) -> None:
    for name, memory in (("large", 1 << 20), ("small", 4 * SLOT_BYTES)):
        log = filled(tmp_path / name)
        before = contents(tmp_path / name)
        cleaner = Cleaner(CleanerCheckpoints(FileSystem(), str(tmp_path / name)), dedupe_buffer_bytes=memory)
        stats = cleaner.clean_fully(log, NOW)
        assert (stats.passes > 5) == (name == "small")
        end = log.segments.active.base_offset
        assert cleaner.checkpoints.get(("t", 0)) == end
        assert contents(tmp_path / name).items() >= newest(before, end).items()
        assert contents(tmp_path / name).keys() <= before.keys()
        log.close()
    assert len(contents(tmp_path / "small")) >= len(contents(tmp_path / "large"))


@pytest.mark.requirement("X-35", "G-02", "G-03", "G-04")
@pytest.mark.parametrize("power_lost", mostly_slow([True, False]))
def test_an_interruption_at_any_step_leaves_the_old_or_the_new_records(tmp_path: Path, power_lost: bool) -> None:
    made = filled(tmp_path / "made", 9, CONFIG.replace(segment_bytes=400))
    end = made.segments.active.base_offset
    made.close()
    before = contents(tmp_path / "made")
    after = newest(before, end)
    config, map_bytes = CONFIG.replace(segment_bytes=900), 1 << 12
    stop_at, seen_old, seen_new, stopped = 0, False, False, True
    while stopped:
        root = tmp_path / str(stop_at)
        shutil.copytree(tmp_path / "made", root)
        files = StoppingFileSystem(None)
        log = PartitionWriter.open(
            files, str(root / "t-0"), "t", 0, config, now_ms=NOW, checkpoints=PartitionCheckpoints(is_clean=True)
        )
        files.stop_at, files.torn = len(files.steps) + stop_at, bool(stop_at % 2)
        stopped = False
        try:
            Cleaner(CleanerCheckpoints(files, str(root)), dedupe_buffer_bytes=map_bytes).clean(log, NOW)
        except Stopped:
            stopped = True
        log.abandon()
        if power_lost:
            files.lose_unsynced(random.Random(stop_at))
        files = StoppingFileSystem(None)  # which syncs nothing: faster
        reopened = PartitionWriter.open(files, str(root / "t-0"), "t", 0, config, now_ms=NOW)
        found = contents(root)
        assert found.items() >= after.items()
        assert found.items() <= before.items()
        assert reopened.log_end_offset == max(before) + 1
        seen_old, seen_new = seen_old or found == before, seen_new or found == after
        (root / "cleaner-offset-checkpoint").unlink(missing_ok=True)
        Cleaner(CleanerCheckpoints(files, str(root)), dedupe_buffer_bytes=map_bytes).clean(
            reopened, NOW
        )  # and it can be done again
        reopened.close()
        assert contents(root) == after
        assert not list((root / "t-0").glob("*.cleaned"))
        stop_at += 1
    assert seen_old
    assert seen_new
    assert stop_at > 30


@pytest.mark.requirement("X-03")
def test_the_dirtiest_due_log_is_cleaned_first(tmp_path: Path) -> None:
    plain = CONFIG.replace(cleanup_policy=frozenset({"delete"}))
    logs = [
        filled(tmp_path / "a", 40),
        filled(tmp_path / "b", 20, CONFIG.replace(min_cleanable_dirty_ratio=0.99)),
        filled(tmp_path / "c", 40, plain),
        filled(tmp_path / "d", 2),
    ]
    for log, partition in zip(logs, range(4), strict=True):
        log.partition = partition
    cleaner = Cleaner(CleanerCheckpoints(FileSystem(), str(tmp_path)))
    for partition in range(4):
        (tmp_path / f"t-{partition}").mkdir()
    assert cleaner.choose(logs, NOW) == logs[:2]  # d has nothing but its active segment
    cleaner.checkpoints.put(("t", 0), logs[0].segments[2].base_offset)
    assert cleaner.plan(logs[0], NOW).dirty_ratio < cleaner.plan(logs[1], NOW).dirty_ratio == 1
    assert cleaner.choose(logs, NOW) == [logs[1], logs[0]]
    cleaner.checkpoints.put(("t", 1), logs[1].segments[1].base_offset)
    assert cleaner.choose(logs, NOW) == [logs[0]]
    cleaner.checkpoints.put(("t", 0), 1 << 40)
    assert cleaner.choose(logs, NOW) == [logs[0]]
    assert cleaner.checkpoints.get(("t", 0)) == 0  # a checkpoint beyond the log is reset immediately


def test_a_log_may_grow_during_a_pass(tmp_path: Path) -> None:
    log = filled(tmp_path)
    before, end = contents(tmp_path), log.segments.active.base_offset
    cleaner = Cleaner(CleanerCheckpoints(FileSystem(), str(tmp_path)))
    steps = 0
    for _ in cleaner.steps(log, NOW):
        log.append(write_batch([record(b"step %d" % steps, key=b"key-0")] * 20), now_ms=NOW)
        before = contents(tmp_path) | before
        steps += 1
    assert steps > 5
    assert contents(tmp_path).items() >= newest(before, end).items()
    assert cleaner.checkpoints.get(("t", 0)) == end


@pytest.mark.requirement("X-37", "F-62")
def test_retention_during_a_pass_ends_it(tmp_path: Path) -> None:
    config = CONFIG.replace(cleanup_policy=frozenset({"compact", "delete"}), retention_ms=10, segment_bytes=2500)
    log = filled(tmp_path, config=config)
    cleaner = Cleaner(CleanerCheckpoints(FileSystem(), str(tmp_path)))
    steps = cleaner.steps(log, NOW)
    for _ in range(len(log.segments)):  # the map, and the first chunk of the first group
        next(steps)
    assert list((tmp_path / "t-0").glob("*.cleaned"))
    gone = log.delete_old_segments(NOW + 45)
    assert 0 in gone
    before = contents(tmp_path)
    assert len(list(steps)) < 3
    assert contents(tmp_path) == before
    assert not list((tmp_path / "t-0").glob("*.cleaned"))
    assert cleaner.checkpoints.get(("t", 0)) is None
    assert cleaner.plan(log, NOW).first_dirty_offset == log.log_start_offset
    cleaner.clean(log, NOW + 45)
    assert contents(tmp_path) == newest(before, log.segments.active.base_offset)


@pytest.mark.requirement("X-37")
def test_replaced_segments_may_be_removed_during_a_pass(tmp_path: Path) -> None:
    log = filled(tmp_path)
    cleaner = Cleaner(CleanerCheckpoints(FileSystem(), str(tmp_path)))
    cleaner.clean(log, NOW)
    for i in range(400):
        log.append(write_batch([record(b"%d" % i + b"." * 50, NOW + i, b"key-%d" % i)]), now_ms=NOW)
    before, end = contents(tmp_path), log.segments.active.base_offset
    for _ in cleaner.steps(log, NOW):
        log.local.delete_due_files(NOW)
    assert contents(tmp_path) == newest(before, end)


@pytest.mark.requirement("X-37", "F-62")
def test_segments_may_be_removed_while_the_map_is_built(tmp_path: Path) -> None:
    config = CONFIG.replace(cleanup_policy=frozenset({"compact", "delete"}), retention_ms=10, segment_bytes=2500)
    log = filled(tmp_path, config=config)
    cleaner = Cleaner(CleanerCheckpoints(FileSystem(), str(tmp_path)))
    steps = cleaner.steps(log, NOW)
    next(steps)
    assert log.delete_old_segments(NOW + 45)
    log.local.delete_due_files(NOW + 45)
    before = contents(tmp_path)
    assert list(steps) == []
    assert contents(tmp_path) == before
    assert not cleaner.uncleanable


@pytest.mark.requirement("D-07")
def test_a_damaged_batch_leaves_the_log_unchanged(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.flush()
    path = segment_files(tmp_path / "t-0")[2]
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)
    files_before = log_bytes(tmp_path / "t-0")
    cleaner = Cleaner(CleanerCheckpoints(FileSystem(), str(tmp_path)))
    with pytest.raises(CorruptBatch, match="stored CRC"):
        cleaner.clean(log, NOW)
    assert log_bytes(tmp_path / "t-0") == files_before
    assert cleaner.choose([log], NOW) == []
    assert list(cleaner.uncleanable) == [log]
    log.abandon()
    assert cleaner.choose([], NOW) == []
    assert not cleaner.uncleanable


def log_bytes(directory: Path) -> dict[str, bytes]:
    """Return every file except preallocated ones."""
    return {path.name: path.read_bytes() for path in directory.iterdir() if not path.name.endswith("index")}


def test_unreadable_checkpoints_are_empty_and_deleted_partitions_dropped(tmp_path: Path) -> None:
    (tmp_path / "cleaner-offset-checkpoint").write_text("not a checkpoint")
    log = filled(tmp_path)
    cleaner = Cleaner(CleanerCheckpoints(FileSystem(), str(tmp_path)))
    assert cleaner.plan(log, NOW).first_dirty_offset == 0
    (tmp_path / "cleaner-offset-checkpoint").write_text("0\n2\ngone 3 7\nt 0 9\n")
    cleaner = Cleaner(CleanerCheckpoints(FileSystem(), str(tmp_path)))
    assert cleaner.checkpoints.get(("gone", 3)) is None
    assert cleaner.plan(log, NOW).first_dirty_offset == 9
    cleaner.checkpoints.truncate(("t", 0), 12)
    assert cleaner.checkpoints.get(("t", 0)) == 9
    cleaner.checkpoints.truncate(("t", 0), 4)
    assert (tmp_path / "cleaner-offset-checkpoint").read_text() == "0\n1\nt 0 4\n"
    cleaner.checkpoints.remove(("t", 0))
    assert (tmp_path / "cleaner-offset-checkpoint").read_text() == "0\n0\n"


@pytest.mark.sampled
@pytest.mark.requirement("X-36")
@pytest.mark.parametrize("chunks", range(1, 4))
def test_a_log_deleted_during_a_pass_leaves_no_checkpoint(tmp_path: Path, chunks: int) -> None:
    filled(tmp_path).close()
    with LogManager.open(tmp_path, now_ms=NOW, default_config=CONFIG) as manager:
        cleaner = Cleaner(manager.cleaner_checkpoints)
        cleaner.clean(manager.logs["t", 0], NOW)
        assert manager.cleaner_checkpoints.get(("t", 0))
        steps = cleaner.steps(manager.logs["t", 0], NOW)
        for _ in range(chunks):
            next(steps, None)
        manager.delete("t", 0, now_ms=NOW)
        new = manager.create("t", 0, now_ms=NOW)
        assert list(steps) == []
        assert manager.cleaner_checkpoints.get(("t", 0)) is None
        assert cleaner.plan(new, NOW).first_dirty_offset == 0
        assert not cleaner.uncleanable


def test_every_remaining_segment_is_intact(tmp_path: Path) -> None:
    log = filled(tmp_path)
    Cleaner(CleanerCheckpoints(FileSystem(), str(tmp_path))).clean(log, NOW)
    log.close()
    assert sum(len(each) for each in log_content(tmp_path / "t-0").values()) > 3  # which verifies checksums
