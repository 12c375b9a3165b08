"""Partition writers: append, roll, fetch, truncate, delete, replace."""

from __future__ import annotations

import os
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kwire.errors import BrokerError, LogError, OptionError
from kwire.log import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    FileSystem,
    LogConfig,
    LogDirectory,
    PartitionWriter,
)
from kwire.log.files.time_lookup import TimestampAndOffset
from kwire.log.writing import append_preparation
from kwire.records import (
    AppendErrorCode,
    AppendOrigin,
    RejectedRecords,
    TimestampType,
    read_batches,
    write_batch,
    write_transaction_marker,
)
from kwire.records.format.control_record import ControlRecordType
from tests.log.writing import NOW, SMALL, batch, files_of, numbered, open_log, record, records_of

OFFSET_OUT_OF_RANGE = 1


# ---- appending


@pytest.mark.requirement("A-01", "A-20")
def test_appended_records_get_the_next_offsets(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    first = log.append(numbered(0, 3), now_ms=NOW, leader_epoch=4)
    second = log.append(numbered(3, 2), now_ms=NOW, leader_epoch=4)
    assert (first.first_offset, first.last_offset, first.log_append_time_ms) == (0, 2, -1)
    assert (second.first_offset, second.last_offset, second.log_start_offset) == (3, 4, 0)
    assert second.max_timestamp == NOW + 1
    assert not second.duplicate
    assert log.log_end_offset == log.high_watermark == log.last_stable_offset == 5
    assert list(records_of(log)) == [0, 1, 2, 3, 4]
    (stored, _) = read_batches(log.fetch(0, 10_000).read())
    assert stored.partition_leader_epoch == 4


@pytest.mark.requirement("A-20", "F-11", "P-01", "P-03")
def test_the_fast_path_writes_the_same_log_as_the_slow_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = [numbered(i, 3, 400) for i in range(0, 30, 3)]  # several segments and index entries
    producer = {"producer_id": 5, "producer_epoch": 0}
    sent += [batch(b"a", b"b", base_sequence=0, **producer), batch(b"c", base_sequence=2, **producer)]
    sent += [sent[-1], batch(b"d", base_sequence=9, **producer)]  # again, and out of order
    sent += [batch(b"t", base_sequence=3, is_transactional=True, **producer), batch(b"z", compression="zstd")]
    sent += [sent[0] + b"\0", sent[0][:-1] + b"!", b"", batch(b"e", timestamp=-1)]

    def append_all(log: PartitionWriter, produce_version: int | None) -> list[object]:
        responses: list[object] = []
        for data in sent:
            try:
                responses.append(log.append(data, now_ms=NOW, leader_epoch=2, produce_version=produce_version))
            except BrokerError as error:
                responses.append((type(error), error.code, str(error)))
        producers = repr(dict(log.producers.entries))
        log.close()
        return [*responses, producers]

    for version in (None, 3, 9):
        short = open_log(tmp_path / f"short{version}")
        responses = append_all(short, version)
        with monkeypatch.context() as patch:
            patch.setattr(append_preparation, "take_whole_batch", lambda *_args, **_settings: None)
            assert append_all(open_log(tmp_path / f"long{version}"), version) == responses
        mine, theirs = files_of(tmp_path / f"short{version}" / "t-0"), files_of(tmp_path / f"long{version}" / "t-0")
        assert mine == theirs
        assert len([name for name in mine if name.endswith(".log")]) > 1


@pytest.mark.requirement("A-17", "A-26")
def test_with_log_append_time_the_result_has_the_timestamp(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL.replace(message_timestamp_type="LogAppendTime"))
    appended = log.append(batch(b"a", timestamp=5), now_ms=NOW + 9)
    assert appended.log_append_time_ms == appended.max_timestamp == NOW + 9
    (stored,) = read_batches(log.fetch(0, 10_000).read())
    assert (stored.timestamp_type, stored.max_timestamp) == (TimestampType.LOG_APPEND_TIME, NOW + 9)


@pytest.mark.parametrize(
    ("data", "settings", "code"),
    [
        (numbered(0, 3)[:-1] + b"\xff", {}, AppendErrorCode.CORRUPT_MESSAGE),
        (batch(b"x" * 500), {"max_message_bytes": 400}, AppendErrorCode.MESSAGE_TOO_LARGE),
        (batch(b"x" * 500), {"segment_bytes": 400}, AppendErrorCode.RECORD_LIST_TOO_LARGE),
        (write_batch([record(b"x")], base_offset=7), {}, AppendErrorCode.INVALID_RECORD),
        (numbered(0, 1) + numbered(1, 1), {}, AppendErrorCode.INVALID_RECORD),
        (
            write_batch([record(b"x", key=None)]),
            {"cleanup_policy": frozenset({"compact"})},
            AppendErrorCode.INVALID_RECORD,
        ),
        (batch(b"x", timestamp=0), {"message_timestamp_before_max_ms": 1000}, AppendErrorCode.INVALID_TIMESTAMP),
    ],
)
@pytest.mark.requirement("A-01", "A-03", "A-04", "A-07", "A-10", "A-15", "A-16")
def test_a_rejected_append_changes_nothing(
    tmp_path: Path, data: bytes, settings: dict[str, object], code: AppendErrorCode
) -> None:
    log = open_log(tmp_path, LogConfig().replace(**settings))
    with pytest.raises(RejectedRecords) as caught:
        log.append(data, now_ms=NOW)
    assert caught.value.code == code
    assert log.log_end_offset == log.size_bytes == 0


def test_the_request_version_decides_the_valid_record_formats(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    old = write_batch([record(b"x")], magic=1)
    with pytest.raises(RejectedRecords, match="only allowed to contain record batches with magic version 2"):
        log.append(old, now_ms=NOW, produce_version=3)
    assert log.append(old, now_ms=NOW, produce_version=2).records_converted == 1
    zstd = write_batch([record(b"x")], compression="zstd")
    with pytest.raises(RejectedRecords, match="ZStandard"):
        log.append(zstd, now_ms=NOW, produce_version=6)


@pytest.mark.requirement("A-06")
def test_a_truncated_last_batch_is_dropped(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert log.append(numbered(0, 3) + numbered(3, 1)[:-4], now_ms=NOW).last_offset == 2
    assert log.append(numbered(0, 3)[:-4], now_ms=NOW).last_offset == -1
    assert log.append(b"", now_ms=NOW).first_offset == -1
    assert log.size_bytes == len(numbered(0, 3))


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd", "uncompressed"])
@pytest.mark.requirement("A-22")
def test_records_are_stored_with_the_topics_codec(tmp_path: Path, codec: str) -> None:
    log = open_log(tmp_path, SMALL.replace(compression_type=codec))
    log.append(batch(b"a" * 100, b"b" * 100), now_ms=NOW)
    (stored,) = read_batches(log.fetch(0, 10_000).read())
    assert stored.compression.text == codec.replace("uncompressed", "none")
    assert list(records_of(log).values()) == [b"a" * 100, b"b" * 100]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.requirement("A-08", "A-21")
def test_logs_of_old_formats_are_written(tmp_path: Path, magic: int) -> None:
    config = SMALL.replace(message_format_version="0.9.0" if magic == 0 else "0.10.2", segment_bytes=150)
    log = open_log(tmp_path, config)
    for i in range(5):
        assert log.append(numbered(i * 2, 2), now_ms=NOW).records_converted == 2
    (first, _) = read_batches(log.fetch(0, 130).read())
    assert first.magic == magic
    assert list(records_of(log)) == list(range(10))
    assert len(log.segments) > 2
    assert not (tmp_path / "t-0" / "leader-epoch-checkpoint").exists()
    log.close()
    assert list(records_of(open_log(tmp_path, config, is_clean=True))) == list(range(10))


@pytest.mark.requirement("A-05", "F-61")
def test_given_offsets_are_kept(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append_as_given(write_batch([record(b"a")], base_offset=5, partition_leader_epoch=2), now_ms=NOW)
    compressed = write_batch([record(b"b"), record(b"c")], magic=1, compression="gzip", base_offset=20)
    appended = log.append_as_given(compressed, now_ms=NOW)
    assert appended.last_offset == 21
    assert list(records_of(log)) == [5, 20, 21]
    assert log.log_end_offset == 22
    far = 1 << 40
    log.append_as_given(write_batch([record(b"d")], base_offset=far), now_ms=NOW)
    log.append_as_given(write_batch([record(b"e")], magic=1, base_offset=far * 2), now_ms=NOW)
    assert log.segments.base_offsets == [0, far, far * 2 - (1 << 31) + 1]  # magic 1 does not say where it begins
    assert list(records_of(log)) == [5, 20, 21, far, far * 2]
    with pytest.raises(RejectedRecords, match="less than the next offset"):
        log.append_as_given(write_batch([record(b"f")], base_offset=far), now_ms=NOW)
    ahead = write_batch([record(b"g")], base_offset=far * 3)
    with pytest.raises(RejectedRecords, match="Out of order"):
        log.append_as_given(ahead + ahead, now_ms=NOW)


@pytest.mark.requirement("A-08", "F-04", "F-05")
def test_leader_epochs_are_cached_and_looked_up(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for epoch in (1, 1, 5):
        log.append(numbered(0, 4), now_ms=NOW, leader_epoch=epoch)
    assert (tmp_path / "t-0" / "leader-epoch-checkpoint").read_bytes() == b"0\n2\n1 0\n5 8\n"
    assert log.end_offset_for(5) == (5, 12)
    assert log.end_offset_for(3) == (1, 8)
    assert log.end_offset_for(9) == (-1, -1)
    log.append_as_given(write_batch([record(b"x")], magic=1, base_offset=12), now_ms=NOW)
    assert log.leader_epochs.entries == []


@pytest.mark.requirement("F-04")
@pytest.mark.parametrize("is_clean", [True, False])
def test_leader_epochs_outlive_a_restart_unless_the_format_has_none(is_clean: bool, tmp_path: Path) -> None:
    """As in the checkpoint: after a clean shutdown, the batches are not read."""
    log = open_log(tmp_path)
    for epoch in (1, 5):
        log.append(numbered(0, 4), now_ms=NOW, leader_epoch=epoch)
    log.close()
    log = open_log(tmp_path, is_clean=is_clean)
    assert (log.end_offset_for(3), log.end_offset_for(5)) == ((1, 4), (5, 8))
    log.close()
    log = open_log(tmp_path, SMALL.replace(message_format_version="0.10.2"), is_clean=True)
    assert log.leader_epochs.entries == []
    assert not (tmp_path / "t-0" / "leader-epoch-checkpoint").exists()


# ---- rolling


@pytest.mark.requirement("F-60", "F-14", "F-43")
def test_a_full_segment_is_closed_and_a_new_one_created(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    size = len(numbered(0, 10, 60))
    for i in range(10):
        log.append(numbered(i * 10, 10, 60), now_ms=NOW)
    directory = tmp_path / "t-0"
    per_segment = 4096 // size
    assert log.segments.base_offsets == list(range(0, 100, per_segment * 10))
    closed, active = log.segments[0].base_offset, log.segments.active.base_offset
    assert (directory / f"{closed:020d}.log").stat().st_size == per_segment * size
    assert (directory / f"{closed:020d}.index").stat().st_size == 8 * 2  # every second batch of five
    assert (directory / f"{active:020d}.index").stat().st_size == 65536
    assert (directory / f"{active:020d}.timeindex").stat().st_size == 65532
    assert (directory / f"{active:020d}.snapshot").exists()
    log.close()
    assert (directory / f"{active:020d}.index").stat().st_size < 100


@pytest.mark.requirement("F-60")
def test_segments_roll_by_record_timestamps(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL.replace(segment_ms=1000))
    log.append(batch(b"a"), now_ms=NOW)
    log.append(batch(b"b", timestamp=NOW + 1000), now_ms=NOW + 10_000_000)  # the clock says nothing here
    assert len(log.segments) == 1
    log.append(batch(b"c", timestamp=NOW + 1001), now_ms=NOW)
    assert log.segments.base_offsets == [0, 2]


@pytest.mark.requirement("F-60")
def test_segments_without_timestamps_roll_by_the_clock(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL.replace(segment_ms=1000))
    log.append(batch(b"a", timestamp=-1 - 0), now_ms=NOW)
    log.append(batch(b"b", timestamp=-1), now_ms=NOW + 1000)
    assert len(log.segments) == 1
    log.append(batch(b"c", timestamp=-1), now_ms=NOW + 1001)
    assert len(log.segments) == 2


@pytest.mark.requirement("F-60", "F-13", "F-21")
def test_segments_roll_when_an_index_is_full(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(index_interval_bytes=0, segment_index_bytes=40))
    for i in range(20):
        log.append(batch(b"x", timestamp=NOW + i), now_ms=NOW)
    # three time index entries fit, one of them is for the roll: the first append has none
    assert log.segments.base_offsets == list(range(0, 20, 3))
    assert list(records_of(log)) == list(range(20))


@pytest.mark.requirement("F-60")
def test_segment_jitter_rolls_segments_earlier(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL.replace(segment_ms=10, segment_jitter_ms=10**9))
    assert 0 <= log.segments.active.roll_jitter_ms < 10


def test_a_segment_without_room_is_replaced(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL.replace(segment_index_bytes=4))  # room for no entry at all
    for i in range(3):
        log.append(numbered(i, 1), now_ms=NOW)
    assert list(records_of(log)) == [0, 1, 2]
    assert log.segments.base_offsets == [0, 1, 2]


# ---- reading


def filled(tmp_path: Path, batches: int = 30, config: LogConfig = SMALL) -> PartitionWriter:
    log = open_log(tmp_path, config)
    for i in range(batches):
        log.append(batch(*(b"%d" % (i * 10 + j) + b"." * 40 for j in range(10)), timestamp=NOW + i * 10), now_ms=NOW)
    return log


@pytest.mark.requirement("F-12", "F-16")
def test_every_offset_is_found(tmp_path: Path) -> None:
    log = filled(tmp_path)
    assert len(log.segments) > 3
    for offset in range(300):
        fetched = log.fetch(offset, 1)
        (found,) = read_batches(fetched.read())
        assert found.base_offset == offset // 10 * 10
        assert found.size_bytes == fetched.size_bytes
    assert log.fetch(300, 100).parts == ()
    for offset in (-1, 301):
        with pytest.raises(BrokerError) as caught:
            log.fetch(offset, 100)
        assert caught.value.code == OFFSET_OUT_OF_RANGE


def test_a_fetch_ends_at_its_size_limit_or_segment(tmp_path: Path) -> None:
    log = filled(tmp_path)
    size = log.fetch(0, 1).size_bytes
    assert log.fetch(0, size * 2 + 5).size_bytes == size * 2 + 5  # the third batch is cut, as Kafka does
    assert log.fetch(0, size, at_least_one=False).size_bytes == size
    assert log.fetch(0, size - 1, at_least_one=False).parts == ()
    assert log.fetch(0, size - 1, at_least_one=False, may_cut_first=True).size_bytes == size - 1
    assert log.fetch(0, 0, at_least_one=False, may_cut_first=True).parts == ()
    whole = log.fetch(5, 1 << 30)
    assert whole.size_bytes == log.segments[0].size_bytes
    assert whole.next_offset_bound == log.segments[1].base_offset


@pytest.mark.requirement("P-06")
def test_a_fetch_ends_at_its_upper_bound(tmp_path: Path) -> None:
    log = filled(tmp_path)
    assert list(records_of(log, up_to=150)) == list(range(150))
    assert log.fetch(150, 100, up_to=150).parts == ()
    assert log.fetch(200, 100, up_to=150).parts == ()
    log.high_watermark = 40
    assert list(records_of(log)) == list(range(40))
    log.high_watermark = 10**9
    assert log.high_watermark == 300


def test_fetched_file_ranges_outlive_their_segment(tmp_path: Path) -> None:
    log = filled(tmp_path)
    expected = log.fetch(0, 1 << 20).read()
    fetched = log.fetch(0, 1 << 20)
    (part,) = fetched.parts
    fd = part.file.hold()
    log.truncate_fully_and_start_at(1000, now_ms=NOW)
    log.local.delete_due_files(NOW + 60_000)
    assert os.pread(fd, part.size_bytes, part.position) == expected
    part.file.release()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)
    with pytest.raises(LogError, match="closed"):
        fetched.read()


@pytest.mark.requirement("F-12", "X-35")
def test_gaps_in_offsets_are_skipped(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for base in (0, 100, 5000):
        log.append_as_given(write_batch([record(b"%d" % base)], base_offset=base), now_ms=NOW)
        log.roll(NOW)
    for offset, first in ((1, 100), (101, 5000)):
        assert next(read_batches(log.fetch(offset, 1000).read())).base_offset == first
    assert log.fetch(101, 1000, up_to=4000).parts == ()


@pytest.mark.requirement("F-22", "D-08")
def test_offsets_by_timestamp_equal_the_readers(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.append(batch(b"late", b"early", timestamp=NOW - 500), now_ms=NOW)
    log.flush()
    reader = LogDirectory(tmp_path)["t", 0]
    for timestamp in [*range(NOW - 501, NOW + 320, 7), 0, NOW + 10_000, MAX_TIMESTAMP]:
        assert log.offset_for_time(timestamp) == reader.offset_for_time(timestamp), timestamp
    assert log.offset_for_time(EARLIEST_TIMESTAMP) == TimestampAndOffset(0, -1, 0)
    assert log.offset_for_time(LATEST_TIMESTAMP) == TimestampAndOffset(302, -1, 0)
    assert log.offset_for_time(LATEST_TIMESTAMP, up_to=7) == TimestampAndOffset(7, -1, 0)
    assert log.offset_for_time(NOW + 100, up_to=100) is None
    log.delete_records(155)
    assert log.offset_for_time(EARLIEST_TIMESTAMP) == TimestampAndOffset(155, -1, 0)
    assert log.offset_for_time(NOW) is None  # as a broker: the segment that would tell is below the log start
    log.delete_old_segments(NOW)
    assert log.offset_for_time(NOW) == TimestampAndOffset(155, NOW + 155, 0)


def test_a_magic_0_log_is_not_searched_by_timestamp(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL.replace(message_format_version="0.9.0"))
    log.append(numbered(0, 1), now_ms=NOW)
    with pytest.raises(BrokerError) as caught:
        log.offset_for_time(NOW)
    assert caught.value.code == 43
    assert log.offset_for_time(LATEST_TIMESTAMP) == TimestampAndOffset(1, -1, None)


# ---- transactions


def transactional(producer_id: int, sequence: int, count: int = 2) -> bytes:
    values = [b"%d" % i for i in range(count)]
    return batch(*values, producer_id=producer_id, producer_epoch=0, base_sequence=sequence, is_transactional=True)


@pytest.mark.requirement("P-05", "P-06", "P-08", "F-30", "F-32")
def test_transactions_hold_the_last_stable_offset_and_aborted_ones_are_listed(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append(transactional(1, 0), now_ms=NOW)
    log.append(transactional(2, 0), now_ms=NOW)
    assert log.last_stable_offset == 0
    log.append_marker(1, 0, True, 0, now_ms=NOW)
    assert log.last_stable_offset == 2
    log.append(transactional(1, 2), now_ms=NOW)
    log.append_marker(2, 0, False, 0, now_ms=NOW)
    assert log.last_stable_offset == 5
    log.append_marker(1, 0, False, 0, now_ms=NOW)
    log.append_marker(7, 0, False, 0, now_ms=NOW)  # no data: nothing to tell
    assert log.last_stable_offset == log.log_end_offset == 10
    assert [each[:] for each in log.aborted_transactions(0, 10)] == [(2, 2, 7), (1, 5, 8)]
    assert [each[:] for each in log.aborted_transactions(8, 10)] == [(1, 5, 8)]
    assert [each[:] for each in log.aborted_transactions(0, 3)] == [(2, 2, 7)]
    entries = log.segments.active.transaction_index.entries
    assert [entry.last_stable_offset for entry in entries] == [5, 9]
    log.flush()
    reader = LogDirectory(tmp_path)["t", 0]
    assert [record.offset for record in reader.read(isolation="read_committed")] == [0, 1]


def test_committed_data_can_end_inside_a_segment(tmp_path: Path) -> None:
    log = filled(tmp_path, 10)
    log.append(transactional(1, 0), now_ms=NOW)
    log.append(numbered(0, 3), now_ms=NOW)
    assert log.last_stable_offset == 100
    assert list(records_of(log, up_to=log.last_stable_offset)) == list(range(100))
    assert len(records_of(log)) == 105


@pytest.mark.requirement("A-12", "A-23")
def test_only_coordinators_write_markers(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL.replace(compression_type="gzip"))
    marker = write_transaction_marker(
        ControlRecordType.COMMIT, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp=NOW
    )
    with pytest.raises(RejectedRecords, match="not allowed to write control records"):
        log.append(marker, now_ms=NOW)
    assert log.append(marker, now_ms=NOW, origin=AppendOrigin.COORDINATOR).first_offset == 0


@pytest.mark.requirement("P-01")
def test_a_duplicate_returns_the_original_offsets_and_is_not_written(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    data = batch(b"a", b"b", producer_id=5, producer_epoch=0, base_sequence=0)
    log.append(data, now_ms=NOW)
    log.append(numbered(0, 1), now_ms=NOW)
    size = log.size_bytes
    again = log.append(data, now_ms=NOW)
    assert again.duplicate
    assert (again.first_offset, again.last_offset, again.log_append_time_ms) == (0, 1, NOW + 1)
    assert (log.size_bytes, log.log_end_offset) == (size, 3)


# ---- flushing and closing


@pytest.mark.requirement("G-11")
def test_the_recovery_point_is_the_flushed_offset(tmp_path: Path) -> None:
    log = filled(tmp_path)
    assert log.recovery_point == 0
    log.flush_rolled()
    assert log.recovery_point == log.segments.active.base_offset
    log.flush()
    assert log.recovery_point == 300
    log.truncate_to(250, now_ms=NOW)
    assert log.recovery_point == 250


@pytest.mark.requirement("G-11")
def test_another_thread_can_flush(tmp_path: Path) -> None:
    log = filled(tmp_path)
    base = log.segments.active.base_offset
    go_on = threading.Event()
    descriptors = len(os.listdir("/proc/self/fd"))
    with ThreadPoolExecutor(1) as executor:
        executor.submit(go_on.wait)
        log.flush_rolled(executor)
        log.flush_rolled(executor)
        log.append(numbered(300, 5), now_ms=NOW)
        assert log.recovery_point == 0
        go_on.set()
        while log.recovery_point == 0:
            log.flush_rolled(executor)
        assert log.recovery_point == base
        log.roll(NOW)
        log.flush_rolled(executor)
        log.truncate_to(base, now_ms=NOW)  # waits, so that nothing new counts as synced
        assert log.recovery_point == base
        log.append(numbered(base, 5), now_ms=NOW)
        log.roll(NOW)
        log.flush_rolled(executor)
        log.flush()
        assert log.recovery_point == base + 5
    log.close()
    assert len(os.listdir("/proc/self/fd")) < descriptors


def test_a_failed_flush_in_another_thread_is_raised(tmp_path: Path) -> None:
    log = filled(tmp_path)
    file = log.segments[0].log
    read_end, write_end = os.pipe()
    os.dup2(read_end, file.fileno())  # a pipe cannot be synced
    with ThreadPoolExecutor(1) as executor:
        log.flush_rolled(executor)
    with pytest.raises(LogError, match="cannot be synced") as caught:
        log.flush_rolled()
    assert caught.value.file == file.url
    assert log.recovery_point == 0
    os.close(read_end)
    os.close(write_end)


def test_flush_messages_triggers_a_flush(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL.replace(flush_messages=3))
    log.append(numbered(0, 2), now_ms=NOW)
    assert log.recovery_point == 0
    log.append(numbered(0, 1), now_ms=NOW)
    assert log.recovery_point == 3


@pytest.mark.requirement("F-43", "F-14")
def test_closing_writes_a_snapshot_at_the_log_end(tmp_path: Path) -> None:
    log = filled(tmp_path, 3)
    log.close()
    assert f"{30:020d}.snapshot" in files_of(tmp_path / "t-0")
    with pytest.raises(LogError, match="closed"):
        log.append(numbered(0, 1), now_ms=NOW)
    log.close()
    assert list(records_of(open_log(tmp_path, is_clean=True))) == list(range(30))


def test_a_failed_write_stops_all_writing(tmp_path: Path) -> None:
    log = filled(tmp_path, 3)
    log.segments.active.log.url = str(tmp_path / "gone")
    log.segments.active.log.give_back()
    for _ in range(2):
        with pytest.raises(LogError, match=r"gone: .*cannot be opened: No such file"):
            log.append(numbered(0, 1), now_ms=NOW)
    assert log.log_end_offset == 30
    with pytest.raises(LogError, match="a write failed before; reopen the log"):
        log.append(numbered(0, 1), now_ms=NOW)


# ---- cutting


@pytest.mark.requirement("F-16")
@pytest.mark.parametrize("offset", [0, 1, 15, 70, 71, 139, 290, 299])
def test_truncating_keeps_whole_batches_below_the_offset(tmp_path: Path, offset: int) -> None:
    log = filled(tmp_path)
    assert log.truncate_to(offset, now_ms=NOW)
    assert (log.log_end_offset, log.high_watermark) == (offset, offset)
    kept = list(range(offset // 10 * 10))
    assert list(records_of(log)) == kept
    assert log.append(numbered(offset, 3), now_ms=NOW).first_offset == offset
    assert list(records_of(log)) == [*kept, offset, offset + 1, offset + 2]
    log.close()
    reader = LogDirectory(tmp_path)["t", 0]
    assert [each.offset for each in reader.read()] == [*kept, offset, offset + 1, offset + 2]


@pytest.mark.requirement("F-16")
@pytest.mark.parametrize("more", [-1, 0, 1])
def test_a_segment_that_begins_at_the_end_of_a_truncation_stays(more: int, tmp_path: Path) -> None:
    """Source: LocalLog.truncateTo, baseOffset > targetOffset."""
    log = filled(tmp_path)
    bases = log.segments.base_offsets
    assert len(bases) > 3
    log.truncate_to(bases[2] + more, now_ms=NOW)
    assert log.segments.base_offsets == bases[: 2 if more < 0 else 3]
    assert log.append(numbered(bases[2] + more, 1), now_ms=NOW).first_offset == bases[2] + more
    log.close()
    assert open_log(tmp_path, is_clean=True).log_end_offset == bases[2] + more + 1


def test_truncating_at_the_end_changes_nothing(tmp_path: Path) -> None:
    log = filled(tmp_path, 3)
    assert not log.truncate_to(30, now_ms=NOW)
    assert not log.truncate_to(99, now_ms=NOW)
    with pytest.raises(OptionError, match="negative"):
        log.truncate_to(-1, now_ms=NOW)
    assert list(records_of(log)) == list(range(30))


@pytest.mark.requirement("P-07")
def test_changed_configs_decide_when_idle_producers_expire(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL.replace(producer_id_expiration_ms=1000))
    log.append(batch(b"a", producer_id=1, producer_epoch=0, base_sequence=0), now_ms=NOW)
    log.config = SMALL.replace(producer_id_expiration_ms=500)
    log.producers.remove_expired(NOW + 499)
    assert 1 in log.producers.entries
    log.producers.remove_expired(NOW + 500)
    assert 1 not in log.producers.entries


@pytest.mark.requirement("F-04", "P-05", "F-44")
def test_truncating_restores_producers_and_epochs(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append(transactional(1, 0), now_ms=NOW, leader_epoch=1)
    log.append_marker(1, 0, False, 0, now_ms=NOW, leader_epoch=1)
    log.roll(NOW)
    log.append(transactional(1, 2), now_ms=NOW, leader_epoch=3)
    log.append_marker(1, 0, False, 0, now_ms=NOW, leader_epoch=3)
    log.truncate_to(5, now_ms=NOW)
    assert log.producers.entries[1].last_sequence == 3
    assert log.last_stable_offset == 3
    assert [each[:] for each in log.aborted_transactions(0, 9)] == [(1, 0, 2)]
    log.truncate_to(2, now_ms=NOW)
    assert log.producers.entries[1].last_sequence == 1
    assert log.last_stable_offset == 0
    assert log.aborted_transactions(0, 9) == []
    assert (tmp_path / "t-0" / "leader-epoch-checkpoint").read_bytes() == b"0\n1\n1 0\n"
    assert log.append(transactional(1, 2), now_ms=NOW).first_offset == 2


def test_truncating_fully_restarts_the_log_at_an_offset(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.truncate_fully_and_start_at(1000, now_ms=NOW)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (1000, 1000, 1000)
    assert log.segments.base_offsets == [1000]
    log.append(numbered(0, 2), now_ms=NOW)
    assert list(records_of(log)) == [1000, 1001]
    log.local.delete_due_files(NOW + 60_000)
    names = set(files_of(tmp_path / "t-0"))
    assert {name for name in names if name.endswith(".log")} == {f"{1000:020d}.log"}
    assert log.truncate_to(10, now_ms=NOW)
    assert log.log_start_offset == 10


@pytest.mark.requirement("F-04", "F-62")
def test_deleting_records_advances_the_log_start(tmp_path: Path) -> None:
    log = filled(tmp_path)
    second = log.segments[1].base_offset
    assert log.delete_records(second + 5) == second + 5
    assert log.delete_records(3) == second + 5  # it never goes back
    assert next(iter(records_of(log))) == second + 5
    with pytest.raises(BrokerError) as caught:
        log.fetch(second + 4, 100)
    assert caught.value.code == OFFSET_OUT_OF_RANGE
    with pytest.raises(BrokerError) as caught:
        log.delete_records(301)
    assert caught.value.code == OFFSET_OUT_OF_RANGE
    assert log.delete_old_segments(NOW) == [0]
    assert log.segments.base_offsets[0] == second
    assert (log.leader_epochs.entries[0].start_offset) == second + 5
    assert log.delete_records(-1) == 300
    assert records_of(log) == {}


# ---- retention


@pytest.mark.requirement("F-62", "F-63")
def test_retention_deletes_segments_after_a_delay(tmp_path: Path) -> None:
    log = filled(tmp_path, config=SMALL.replace(retention_ms=1000))
    bases = log.segments.base_offsets
    assert log.delete_old_segments(NOW + 1000) == []
    assert log.delete_old_segments(NOW + 1000 + 75) == [bases[0]]  # its newest record is of NOW + 69
    directory = tmp_path / "t-0"
    assert (directory / f"{0:020d}.log.deleted").exists()
    assert (directory / f"{0:020d}.index.deleted").exists()
    assert log.log_start_offset == bases[1]
    log.local.delete_due_files(NOW + 1075 + 59_999)
    assert (directory / f"{0:020d}.log.deleted").exists()
    log.local.delete_due_files(NOW + 1075 + 60_000)
    assert not list(directory.glob("*.deleted"))


@pytest.mark.requirement("F-62", "F-43", "F-44")
def test_a_new_segment_is_created_before_all_others_are_deleted(tmp_path: Path) -> None:
    log = filled(tmp_path, config=SMALL.replace(retention_ms=1000))
    bases = log.segments.base_offsets
    assert log.delete_old_segments(NOW + 10**6) == bases
    assert log.segments.base_offsets == [300]
    assert (log.log_start_offset, log.log_end_offset) == (300, 300)
    assert log.delete_old_segments(NOW + 10**9) == []  # an empty last segment stays
    assert log.snapshots.offsets == [300]


@pytest.mark.requirement("F-62")
def test_size_retention_keeps_at_least_its_limit(tmp_path: Path) -> None:
    log = filled(tmp_path, config=SMALL.replace(retention_bytes=9000, retention_ms=-1))
    gone = log.delete_old_segments(NOW)
    assert gone
    assert log.size_bytes >= 9000
    assert log.size_bytes - log.segments[0].size_bytes < 9000


@pytest.mark.requirement("F-62")
def test_retention_keeps_segments_above_the_high_watermark(tmp_path: Path) -> None:
    log = filled(tmp_path, config=SMALL.replace(retention_ms=0))
    second, third = log.segments.base_offsets[1:3]
    log.high_watermark = third - 1
    assert log.delete_old_segments(NOW + 10**6) == [0]
    assert log.segments.base_offsets[0] == second


@pytest.mark.requirement("F-62", "X-37")
def test_retention_does_not_apply_to_a_compacted_log(tmp_path: Path) -> None:
    config = SMALL.replace(retention_ms=0, retention_bytes=0, cleanup_policy=frozenset({"compact"}))
    log = filled(tmp_path, config=config)
    assert log.delete_old_segments(NOW + 10**9) == []
    log.config = config.replace(cleanup_policy=frozenset({"compact", "delete"}))
    assert log.delete_old_segments(NOW + 10**9) != []


@pytest.mark.requirement("F-64", "F-62")
def test_without_timestamps_retention_uses_the_modification_time(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL.replace(retention_ms=1000))
    log.append(batch(b"x", timestamp=-1), now_ms=NOW)
    log.roll(NOW)
    FileSystem().set_modified(log.segments[0].path("log"), NOW)
    assert log.delete_old_segments(NOW + 1000) == []
    assert log.delete_old_segments(NOW + 1001) == [0]


# ---- replacing


@pytest.mark.requirement("X-35", "F-44")
def test_cleaned_segments_replace_the_originals(tmp_path: Path) -> None:
    log = filled(tmp_path)
    first, second, third = log.segments.base_offsets[:3]
    cleaned = log.local.new_cleaned_segment(first, now_ms=NOW)
    kept = [each for each in read_batches(log.fetch(0, 1 << 20).read()) if each.base_offset % 20 == 0]
    for each in kept:
        cleaned.append([each.buffer], each.last_offset, each.max_timestamp, each.last_offset)
    cleaned.deactivate()
    cleaned.close()
    expected = {
        offset: value for offset, value in records_of(log).items() if offset >= third or (offset // 10) % 2 == 0
    }
    expected = {offset: value for offset, value in expected.items() if not second <= offset < third}
    log.local.replace_segments([first, second], [first], now_ms=NOW)
    assert log.segments.base_offsets[:2] == [first, third]
    assert records_of(log) == expected
    directory = tmp_path / "t-0"
    assert not list(directory.glob("*.swap")) + list(directory.glob("*.cleaned"))
    assert (directory / f"{second:020d}.snapshot.deleted").exists()
    log.local.delete_due_files(NOW + 60_000)
    assert not list(directory.glob("*.deleted"))
    log.close()
    assert records_of(open_log(tmp_path, is_clean=True)) == expected


def test_the_active_segment_is_not_replaced(tmp_path: Path) -> None:
    log = filled(tmp_path)
    with pytest.raises(OptionError, match="is active"):
        log.local.replace_segments([log.segments.active.base_offset], [0], now_ms=NOW)
    with pytest.raises(OptionError, match="cannot replace"):
        log.local.replace_segments([7], [0], now_ms=NOW)
    with pytest.raises(OptionError, match="cannot replace"):
        log.local.replace_segments([0], [], now_ms=NOW)


# ---- names


@pytest.mark.parametrize("topic", ["", ".", "..", "../x", "a/b", "a" * 250, "ä", "a b", "a\x00", "a\n"])
def test_invalid_topic_names_are_rejected(tmp_path: Path, topic: str) -> None:
    with pytest.raises(OptionError, match="topic name"):
        PartitionWriter.open(FileSystem(), str(tmp_path / "x"), topic, 0, SMALL, now_ms=NOW)
    assert not list(tmp_path.iterdir())


def test_partition_numbers_are_int32(tmp_path: Path) -> None:
    for partition in (-1, 1 << 31):
        with pytest.raises(OptionError, match="partition"):
            PartitionWriter.open(FileSystem(), str(tmp_path / "x"), "t", partition, SMALL, now_ms=NOW)


def test_the_topic_id_is_written_and_checked(tmp_path: Path) -> None:
    topic_id = uuid.uuid4()
    open_log(tmp_path, topic_id=topic_id).close()
    assert open_log(tmp_path, is_clean=True).topic_id == topic_id
    with pytest.raises(LogError, match="of another topic"):
        open_log(tmp_path, topic_id=uuid.uuid4())


@pytest.mark.parametrize("timestamp_type", ["CreateTime", "LogAppendTime"])  # the short way and the long one
def test_prepared_records_are_appended_after_concurrent_appends(tmp_path: Path, timestamp_type: str) -> None:
    config = LogConfig(message_timestamp_type=timestamp_type)
    early, plain = (open_log(tmp_path / name, config) for name in ("early", "plain"))
    data = batch(b"one", b"two")
    prepared = early.prepare(data, now_ms=NOW)
    for log in (early, plain):
        log.append(batch(b"first"), now_ms=NOW)
    assert early.append_prepared(prepared) == plain.append(data, now_ms=NOW)
    assert early.append_prepared(prepared) == plain.append(data, now_ms=NOW)
    assert records_of(early) == {0: b"first", 1: b"one", 2: b"two", 3: b"one", 4: b"two"}
    early.close()
    plain.close()
    assert files_of(tmp_path / "early" / "t-0") == files_of(tmp_path / "plain" / "t-0")
