"""Recovery of directories after a crash, compared with a real broker and rule by rule."""

from __future__ import annotations

import re
import shutil
import struct
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kwire.log import LogConfig, LogManager, PartitionWriter
from kwire.log.files.offset_index import OffsetIndex
from kwire.log.files.producer_snapshot import parse_producer_snapshot
from kwire.log.files.time_index import TimeIndex
from kwire.records import Record, read_batches, write_batch
from kwire.storage.store import LocalFile
from tests.log.expected import Consumed, consumed, dumped_indexes, offsets, row
from tests.log.writing import NOW, SMALL, batch, differences, files_of, numbered, open_log, record, records_of

BROKER = LogConfig(index_interval_bytes=1024, segment_index_bytes=65536)
CLOCK = int(datetime(2026, 11, 21, 4, 32, 8, tzinfo=UTC).timestamp() * 1000)
AFTER_RECOVERY = re.compile(r"__transaction_state-\d+|u-txn-\d")  # the broker aborted what was open, and wrote that


def recovered(kafka_logs: dict[str, Path], tmp_path: Path, state: str) -> LogManager:
    shutil.copytree(kafka_logs["unclean"] / state / "data", tmp_path / "data")
    return LogManager.open(tmp_path / "data", now_ms=CLOCK, default_config=BROKER)


@pytest.mark.requirement("G-02", "G-05", "G-07", "G-08", "G-11", "G-12", "G-13", "F-03", "F-42", "F-43", "F-44")
def test_a_damaged_directory_recovers_as_in_the_broker(kafka_logs: dict[str, Path], tmp_path: Path) -> None:
    manager = recovered(kafka_logs, tmp_path, "damaged")
    assert not manager.was_clean
    manager.close()
    theirs = kafka_logs["unclean"] / "recovered" / "data"
    names = [log.name for log in manager.logs.values()]
    for name in names:
        if not AFTER_RECOVERY.fullmatch(name):
            assert differences(tmp_path / "data" / name, theirs / name) == []
    assert sum(not AFTER_RECOVERY.fullmatch(name) for name in names) == 6
    for name in ("u-txn-0", "u-txn-1"):
        ours, kafka = files_of(tmp_path / "data" / name), files_of(theirs / name)
        active = max(file for file in ours if file.endswith(".log")).removesuffix(".log")
        for file, data in ours.items():
            if file.startswith(f"{active}.") and not file.endswith((".snapshot", ".txnindex")):
                assert kafka[file].startswith(data)  # the marker of the abort stands behind it
            else:
                assert kafka[file] == data


@pytest.mark.parametrize("state", ["killed", "damaged"])
@pytest.mark.requirement("G-07", "G-08", "P-06")
def test_recovered_records_equal_those_the_broker_served(
    kafka_logs: dict[str, Path], tmp_path: Path, state: str
) -> None:
    expected = kafka_logs["unclean"] / "expected" / f"{state}-recovered"
    manager = recovered(kafka_logs, tmp_path, state)
    seen = 0
    for each in offsets(expected):
        log = manager.logs.get((each.topic, each.partition))
        if each.isolation == "read_uncommitted" and log is not None and not each.topic.startswith("__"):
            check_consumed(expected, each, log)
            seen += 1
    manager.close()
    assert seen >= 7


def check_consumed(expected: Path, each: Consumed, log: PartitionWriter) -> None:
    rows, _ = consumed(expected, each.topic, each.partition, each.isolation)
    assert log.log_start_offset == each.offsets["beginning"]
    found: list[Record] = []
    at = log.log_start_offset
    while batches := list(read_batches(log.fetch(at, 1 << 20).read())):
        for one in batches:
            if not one.is_valid:  # the one that recovery does not look at; Kafka's consumer stops there too
                assert (log.name, one.base_offset) == ("u-plain-4", rows[-1].offset + 1)
                assert [row(record) for record in found] == rows
                return
            if not one.is_control:
                found += one.records()
        at = batches[-1].next_offset
    assert [row(record) for record in found] == rows


@pytest.mark.requirement("F-11", "F-21", "G-08")
def test_rebuilt_indexes_equal_kafkas_dump(kafka_logs: dict[str, Path], tmp_path: Path) -> None:
    recovered(kafka_logs, tmp_path, "killed").close()
    compared = 0
    for name, lines in dumped_indexes(kafka_logs["unclean"] / "expected" / "killed-recovered"):
        if name.startswith("u-plain-") and name.endswith(("index", "timeindex")):
            compared += 1
            assert index_lines(tmp_path / "data" / name) == [
                line for line in lines if line.startswith(("offset: ", "timestamp: "))
            ], name
    assert compared > 10


def index_lines(path: Path) -> list[str]:
    """Render an index file like DumpLogSegments."""
    base = int(path.name.split(".")[0])
    with LocalFile(str(path)) as file:
        if path.suffix == ".index":
            index = OffsetIndex.read(file, base)
            assert index is not None
            return [f"offset: {offset} position: {position}" for offset, position in index]
        times = TimeIndex.read(file, base)
        assert times is not None
        return [f"timestamp: {timestamp} offset: {offset}" for timestamp, offset in times]


# ---- rule by rule


def written(tmp_path: Path, batches: int = 12) -> tuple[Path, dict[int, bytes | None]]:
    """A partition of several segments, closed cleanly, and its records."""
    log = open_log(tmp_path)
    for i in range(batches):
        log.append(numbered(i * 10, 10, 60), now_ms=NOW)
    records = records_of(log)
    assert len(log.segments) > 2
    log.close()
    return tmp_path / "t-0", records


def bases(directory: Path) -> list[int]:
    return sorted(int(path.stem) for path in directory.glob("*.log"))


def reopened(tmp_path: Path, **options: object) -> PartitionWriter:
    return open_log(tmp_path, **options)


@pytest.mark.requirement("G-02")
def test_files_marked_for_deletion_are_removed(tmp_path: Path) -> None:
    directory, records = written(tmp_path)
    for name in ("00000000000000000000.log.deleted", "00000000000000000007.index.cleaned", "x.deleted"):
        (directory / name).write_bytes(b"x")
    (directory / "00000000000000000064-0000000001.checkpoint.deleted").write_bytes(b"kept")  # KRaft's own
    log = reopened(tmp_path, is_clean=True)
    assert records_of(log) == records
    left = files_of(directory)
    assert [name for name in left if name.endswith((".deleted", ".cleaned"))] == [
        "00000000000000000064-0000000001.checkpoint.deleted"
    ]


@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.requirement("G-02", "G-03", "G-04", "X-35")
def test_an_interrupted_swap_is_completed_or_undone(tmp_path: Path, finished: bool) -> None:
    directory, records = written(tmp_path)
    first, second = bases(directory)[:2]
    for kind in ("log", "index", "timeindex"):  # the second segment, as if it had been compacted
        source = directory / f"{second:020d}.{kind}"
        shutil.copy(source, f"{source}.swap")
    if not finished:
        (directory / f"{first:020d}.log.cleaned").write_bytes(b"")  # a split: the first of its outputs is not there
    else:
        (directory / f"{second:020d}.log").write_bytes(b"what is replaced")
    log = reopened(tmp_path, is_clean=True)
    assert records_of(log) == records
    assert not list(directory.glob("*.swap"))
    assert not list(directory.glob("*.cleaned"))


@pytest.mark.parametrize(
    ("kind", "change"),
    [("index", None), ("txnindex", b"\x00\x00" + b"\xff" * 32), ("txnindex", b"\x01" * 34), ("timeindex", None)],
)
@pytest.mark.requirement("G-05", "F-33")
def test_missing_and_corrupt_indexes_are_rebuilt(tmp_path: Path, kind: str, change: bytes | None) -> None:
    directory, records = written(tmp_path)
    before = files_of(directory)
    name = f"{bases(directory)[1]:020d}.{kind}"
    if change is None:
        (directory / name).unlink()
    else:
        (directory / name).write_bytes(change)
    log = reopened(tmp_path, is_clean=True)
    assert records_of(log) == records
    log.close()
    after = files_of(directory)
    if kind == "timeindex":
        assert after[name] == b""  # created empty, as Kafka does
    elif kind == "txnindex":
        assert after[name] == b""
    else:
        assert after[name] == before[name]


@pytest.mark.requirement("G-05", "F-11")
@pytest.mark.parametrize(("more", "every"), [(-1, 1), (0, 2), (1, 2)])
def test_a_rebuilt_index_has_an_entry_after_more_than_the_interval(more: int, every: int, tmp_path: Path) -> None:
    """LogSegment.recover counts the bytes since the last entry, and adds one above index.interval.bytes."""
    size = len(numbered(0, 10))
    config = SMALL.replace(segment_bytes=1 << 20, index_interval_bytes=size + more)
    log = open_log(tmp_path, config)
    for i in range(9):
        log.append(numbered(i * 10, 10), now_ms=NOW)
    log.close()
    (tmp_path / "t-0" / f"{0:020}.index").unlink()
    open_log(tmp_path, config, is_clean=True).close()
    data = (tmp_path / "t-0" / f"{0:020}.index").read_bytes()
    entries = [struct.unpack_from(">ii", data, at) for at in range(0, len(data), 8)]
    assert entries == [(10 * i + 9, size * i) for i in range(every, 9, every)]


@pytest.mark.requirement("G-08", "F-20")
def test_the_time_index_is_rebuilt_with_the_earliest_batch_of_each_time(tmp_path: Path) -> None:
    """Timestamps go back and repeat: an entry names the first batch with the largest one so far."""
    size = len(batch(bytes(100)))
    config = LogConfig(index_interval_bytes=3 * size - 1)  # an entry with every third batch
    log = open_log(tmp_path, config)
    for later_ms in (5, 9, 9, 9, 20, 20, 3):
        log.append(batch(bytes(100), timestamp=NOW + later_ms), now_ms=NOW)
    log.close()
    directory = tmp_path / "t-0"
    before = files_of(directory)
    assert before["00000000000000000000.timeindex"] == b"".join(
        (NOW + later_ms).to_bytes(8, "big") + offset.to_bytes(4, "big") for later_ms, offset in ((9, 1), (20, 4))
    )
    for kind in ("index", "timeindex"):
        (directory / f"00000000000000000000.{kind}").unlink()
    open_log(tmp_path, config, is_clean=False).close()
    assert files_of(directory) == before


@pytest.mark.requirement("G-05")
def test_an_index_without_its_log_is_deleted(tmp_path: Path) -> None:
    directory, records = written(tmp_path)
    (directory / "00000000000000009999.index").write_bytes(b"12345678")
    log = reopened(tmp_path, is_clean=True)
    assert not (directory / "00000000000000009999.index").exists()
    assert records_of(log) == records


@pytest.mark.parametrize("tail", [b"\x00" * 100, b"garbage" * 10, numbered(0, 3)[:-1], b"\x00"])
@pytest.mark.requirement("G-07", "G-08")
def test_a_torn_tail_is_truncated(tmp_path: Path, tail: bytes, caplog: pytest.LogCaptureFixture) -> None:
    directory, records = written(tmp_path)
    active = directory / f"{bases(directory)[-1]:020d}.log"
    whole = active.read_bytes()
    active.write_bytes(whole + tail)
    log = reopened(tmp_path)
    assert records_of(log) == records
    assert active.read_bytes() == whole
    assert f"{active.name}: {len(tail)} bytes from byte {len(whole)} on are removed: " in caplog.text
    log.append(numbered(999, 1), now_ms=NOW)
    assert max(records_of(log)) == max(records) + 1


@pytest.mark.requirement("G-07")
def test_segments_after_a_damaged_one_are_deleted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    directory, records = written(tmp_path)
    first, second, third = bases(directory)[:3]
    path = directory / f"{second:020d}.log"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    log = reopened(tmp_path)
    assert log.segments.base_offsets == [first, second]
    assert log.log_end_offset < third
    assert records_of(log) == {offset: value for offset, value in records.items() if offset < log.log_end_offset}
    deleted = len(list(directory.glob("*.log.deleted")))
    assert deleted
    assert f"removed with the {deleted} segments after the damage" in caplog.text
    assert "stored CRC" in caplog.text
    log.local.delete_due_files(NOW + 60_000)
    assert not list(directory.glob("*.deleted"))


@pytest.mark.requirement("G-07", "G-11")
def test_segments_below_the_recovery_point_are_not_read(tmp_path: Path) -> None:
    directory, _ = written(tmp_path)
    first = directory / f"{bases(directory)[0]:020d}.log"
    data = bytearray(first.read_bytes())
    data[-1] ^= 1
    first.write_bytes(data)
    second = bases(directory)[1]
    log = reopened(tmp_path, recovery_point=second)
    assert log.log_end_offset == 120
    assert log.recovery_point == second
    log.abandon()
    assert reopened(tmp_path, recovery_point=10**9).recovery_point == 120
    assert reopened(tmp_path, is_clean=True).recovery_point == 120


@pytest.mark.requirement("G-07", "F-13")
def test_out_of_order_offsets_empty_the_segment(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = open_log(tmp_path, SMALL.replace(index_interval_bytes=0))
    for i in range(3):
        log.append(numbered(i * 10, 10), now_ms=NOW)
    log.close()
    path = tmp_path / "t-0" / f"{0:020d}.log"
    size = path.stat().st_size // 3
    path.write_bytes(path.read_bytes()[:size] * 3)  # the first batch three times: each is valid by itself
    log = open_log(tmp_path, SMALL.replace(index_interval_bytes=0))
    assert log.log_end_offset == 0
    assert path.stat().st_size == 0
    assert f"all of its {3 * size} bytes are removed" in caplog.text
    log.append(numbered(0, 1), now_ms=NOW)
    assert list(records_of(log)) == [0]


@pytest.mark.requirement("G-09")
def test_a_log_that_ends_below_its_start_offset_restarts_there(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory, _ = written(tmp_path)
    log = reopened(tmp_path, is_clean=True, log_start_offset=5000)
    assert "all segments are removed: the log ends at 120, below its start 5000" in caplog.text
    assert (log.log_start_offset, log.log_end_offset) == (5000, 5000)
    assert log.segments.base_offsets == [5000]
    assert log.append(numbered(0, 1), now_ms=NOW).first_offset == 5000
    assert [path.name for path in directory.glob("*.log")] == [f"{5000:020d}.log"]


@pytest.mark.requirement("G-10")
def test_a_new_log_starts_at_its_start_offset(tmp_path: Path) -> None:
    log = open_log(tmp_path, log_start_offset=70)
    assert (log.log_start_offset, log.log_end_offset) == (70, 70)
    assert log.segments.base_offsets == [70]


@pytest.mark.requirement("G-12")
def test_leader_epochs_are_truncated_to_the_log(tmp_path: Path) -> None:
    directory, _ = written(tmp_path)
    (directory / "leader-epoch-checkpoint").write_bytes(b"0\n4\n0 0\n1 20\n3 50\n9 5000\n")
    log = reopened(tmp_path, is_clean=True, log_start_offset=30)
    assert [(entry.leader_epoch, entry.start_offset) for entry in log.leader_epochs.entries] == [(1, 30), (3, 50)]
    assert (directory / "leader-epoch-checkpoint").read_bytes() == b"0\n2\n1 30\n3 50\n"


@pytest.mark.requirement("G-08", "G-12")
def test_a_missing_epoch_checkpoint_is_rebuilt_from_the_batches(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for epoch in (0, 0, 4, 7):
        log.append(numbered(0, 5), now_ms=NOW, leader_epoch=epoch)
    log.close()
    path = tmp_path / "t-0" / "leader-epoch-checkpoint"
    before = path.read_bytes()
    path.write_bytes(b"broken")
    log = reopened(tmp_path)
    assert path.read_bytes() == before == b"0\n3\n0 0\n4 10\n7 15\n"


def idempotent(sequence: int, count: int = 1, producer_id: int = 7, transactional: bool = False) -> bytes:
    values = [b"%d" % i for i in range(sequence, sequence + count)]
    return batch(
        *values, producer_id=producer_id, producer_epoch=0, base_sequence=sequence, is_transactional=transactional
    )


@pytest.mark.parametrize("damage", ["nothing", "last snapshot broken", "all snapshots gone"])
@pytest.mark.requirement("G-13", "F-42")
def test_producer_state_is_rebuilt_from_snapshots_and_records(tmp_path: Path, damage: str) -> None:
    log = open_log(tmp_path)
    for i in range(6):
        log.append(idempotent(i), now_ms=NOW)
        log.append(idempotent(i, producer_id=8, transactional=True), now_ms=NOW)
        if i in (1, 3):
            log.roll(NOW)
    log.append_marker(8, 0, False, 0, now_ms=NOW)
    log.append(idempotent(6, producer_id=8, transactional=True), now_ms=NOW)
    known = {each: (e.last_sequence, e.transaction_first_offset) for each, e in log.producers.entries.items()}
    assert known == {7: (5, None), 8: (6, 13)}
    log.close()
    snapshots = sorted((tmp_path / "t-0").glob("*.snapshot"))
    if damage == "last snapshot broken":
        snapshots[-1].write_bytes(snapshots[-1].read_bytes()[:-1] + b"\xff")
    elif damage == "all snapshots gone":
        for path in snapshots:
            path.unlink()
    log = reopened(tmp_path, is_clean=damage != "all snapshots gone")
    assert {k: (e.last_sequence, e.transaction_first_offset) for k, e in log.producers.entries.items()} == known
    assert log.last_stable_offset == 13
    assert log.append(idempotent(6), now_ms=NOW).first_offset == 14
    assert log.append(idempotent(6), now_ms=NOW).duplicate


@pytest.mark.requirement("G-13")
def test_a_clean_log_without_any_snapshot_is_not_scanned(tmp_path: Path) -> None:
    directory, _ = written(tmp_path)
    for path in directory.glob("*.snapshot"):
        path.unlink()
    log = reopened(tmp_path, is_clean=True)
    assert log.snapshots.offsets == [*bases(directory)[-2:], 120]
    assert all(parse_producer_snapshot(path.read_bytes()) == [] for path in directory.glob("*.snapshot"))


@pytest.mark.requirement("F-44")
def test_snapshots_at_no_base_offset_are_deleted_except_the_last(tmp_path: Path) -> None:
    directory, _ = written(tmp_path)
    inside = bases(directory)[1] + 1
    shutil.copy(directory / f"{120:020d}.snapshot", directory / f"{inside:020d}.snapshot")
    log = reopened(tmp_path, is_clean=True)
    assert inside not in log.snapshots.offsets
    assert log.snapshots.offsets[-1] == 120


@pytest.mark.requirement("F-14", "G-08")
def test_preallocated_segments_are_trimmed(tmp_path: Path) -> None:
    config = SMALL.replace(preallocate=True)
    log = open_log(tmp_path, config)
    log.append(numbered(0, 10), now_ms=NOW)
    path = tmp_path / "t-0" / f"{0:020d}.log"
    assert path.stat().st_size == 4096
    records = records_of(log)
    log.abandon()
    log = open_log(tmp_path, config)
    assert records_of(log) == records
    log.close()
    assert path.stat().st_size == len(numbered(0, 10))


@pytest.mark.requirement("G-06")
def test_a_segment_with_too_large_relative_offsets_is_split(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    far = [0, 10, 1 << 31, (1 << 31) + 5, 3 << 31]
    for base in far:
        log.append_as_given(write_batch([record(b"%d" % base)], base_offset=base), now_ms=NOW)
    log.close()
    directory = tmp_path / "t-0"
    data = b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))
    for path in directory.iterdir():
        path.unlink()
    (directory / f"{0:020d}.log").write_bytes(data)  # as brokers before 2.0 wrote it
    log = open_log(tmp_path)
    assert log.segments.base_offsets == [0, 1 << 31, 3 << 31]
    assert records_of(log) == {base: b"%d" % base for base in far}
    assert not [path for path in directory.iterdir() if path.suffix in (".cleaned", ".swap", ".deleted")]
    log.close()
    assert list(records_of(open_log(tmp_path, is_clean=True))) == far


@pytest.mark.requirement("G-06")
@pytest.mark.parametrize(
    ("offsets", "bases"),
    [
        ([0, (1 << 31) - 2], [0]),
        ([0, (1 << 31) - 1], [0]),
        ([0, 1 << 31], [0, 1 << 31]),
        ([0, (1 << 31) - 1, 1 << 31], [0, 1 << 31]),
    ],
)
def test_a_segment_is_split_above_the_largest_relative_offset(
    offsets: list[int], bases: list[int], tmp_path: Path
) -> None:
    """Records far from each other, put into one file."""
    log = open_log(tmp_path)
    for base in offsets:
        log.append_as_given(write_batch([record(b"%d" % base)], base_offset=base), now_ms=NOW)
    log.close()
    directory = tmp_path / "t-0"
    data = b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))
    for path in directory.iterdir():
        path.unlink()
    (directory / f"{0:020d}.log").write_bytes(data)
    log = open_log(tmp_path)
    assert log.segments.base_offsets == bases
    assert records_of(log) == {base: b"%d" % base for base in offsets}
    log.close()


@pytest.mark.requirement("G-13")
def test_the_state_of_the_first_producer_is_rebuilt(tmp_path: Path) -> None:
    """Producer ids begin with 0."""
    log = open_log(tmp_path)
    log.append(idempotent(0, 3, producer_id=0), now_ms=NOW)
    log.append(idempotent(0, producer_id=0 + 1), now_ms=NOW)
    log.append(batch(b"of no producer"), now_ms=NOW)
    log.abandon()
    log = open_log(tmp_path)
    assert {each: entry.last_sequence for each, entry in log.producers.entries.items()} == {0: 2, 1: 0}
    assert log.append(idempotent(0, 3, producer_id=0), now_ms=NOW).duplicate
