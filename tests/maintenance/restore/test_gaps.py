"""Cuts where compaction removed records: consumers reach the end of every restored log."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from kwire.broker import Broker
from kwire.log import LogDirectory
from kwire.log.files.damage import Kind, Severity
from kwire.maintenance.new_directory import NewDirectory
from kwire.maintenance.restore import AtOffsets, AtTime, RestorePoint, restore_directory
from kwire.records import ControlRecordType, parse_control_record, write_transaction_marker
from kwire.storage.file_system import FileSystem
from tests.log.writing import NOW, batch
from tests.waiting import HANG_S

FAR = 3 << 31


def make(directory: Path, *batches: tuple[int, int, int], end: int | None = None, start: int = 0) -> Path:
    """Write a log of one partition. batches: base offset, number of records, time in ms. end: log end offset."""
    new = NewDirectory(FileSystem(), str(directory), now_ms=NOW, segment_bytes=1 << 20)
    new.create()
    log = new.open(("t", 0), 0)
    for base, count, at in batches:
        values = (b"%d" % offset for offset in range(base, base + count))
        log.append(batch(*values, timestamp=NOW + at, base_offset=base, partition_leader_epoch=7))
    if end is not None:
        log.begin_segment(end)
    new.finish(("t", 0), 0)
    new.publish()
    if start:
        (directory / "log-start-offset-checkpoint").write_text(f"0\n1\nt 0 {start}\n")
    return directory


def consumed(directory: Path) -> tuple[list[int], int, int]:
    """Return the offsets that a consumer gets from a broker on the directory, its last position, and the log end."""
    with Broker(data_dir=directory, log_retention_ms=-1) as broker:
        consumer = Consumer(
            {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "enable.partition.eof": True}
        )
        try:
            low, high = consumer.get_watermark_offsets(TopicPartition("t", 0), HANG_S)
            consumer.assign([TopicPartition("t", 0, low)])
            offsets: list[int] = []
            while (message := consumer.poll(HANG_S)) is not None:
                if message.error() is not None:
                    break  # the end: nothing more to fetch
                offsets.append(message.offset() or 0)
            assert message is not None
            return offsets, message.offset() or 0, high
        finally:
            consumer.close()


GAP = (0, 5, 0), (296, 5, 100)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("point", "end", "empty"),
    [
        (AtOffsets(offsets={("t", 0): 5}), 5, None),
        (AtOffsets(offsets={("t", 0): 6}), 6, 5),
        (AtOffsets(offsets={("t", 0): 150}), 150, 149),
        (AtOffsets(offsets={("t", 0): 295}), 295, 294),
        (AtOffsets(offsets={("t", 0): 296}), 296, 295),
        (AtOffsets(offsets={("t", 0): 300}), 296, 295),
        (AtOffsets(offsets={("t", 0): 301}), 301, None),
        (AtTime(time_ms=NOW + 50), 296, 295),
        (AtTime(time_ms=NOW + 200), 301, None),
    ],
)
def test_a_cut_inside_a_gap_ends_with_an_empty_batch(
    point: RestorePoint, end: int, empty: int | None, tmp_path: Path
) -> None:
    source = make(tmp_path / "source", *GAP)
    restore_directory(str(source), str(tmp_path / "new"), point, now_ms=NOW)
    log = LogDirectory(tmp_path / "new")["t", 0]
    assert log.log_end_offset == end
    last = [each for _, each in log.batches()][-1]
    assert last.last_offset == end - 1
    assert [each.base_offset for _, each in log.batches() if each.count == 0] == [empty] * (empty is not None)
    assert last.leader_epoch == 7
    assert [each for each in log.verify() if not each.is_harmless] == []
    offsets, reached, high = consumed(tmp_path / "new")
    assert offsets == [offset for offset in [*range(5), *range(296, 301)] if offset < end]
    assert reached == high == end


def test_a_log_that_begins_in_the_gap_needs_no_batch_up_to_its_start(tmp_path: Path) -> None:
    source = make(tmp_path / "source", *GAP, start=150)
    for at, empties in ((150, []), (151, [150])):
        target = tmp_path / f"at-{at}"
        restore_directory(str(source), str(target), AtOffsets(offsets={("t", 0): at}), now_ms=NOW)
        log = LogDirectory(target)["t", 0]
        assert (log.log_start_offset, log.log_end_offset) == (150, at)
        assert [each.base_offset for _, each in log.batches() if each.count == 0] == empties
        assert [each for each in log.verify() if not each.is_harmless] == []
        assert consumed(target) == ([], at, at)


def test_a_log_without_any_record_below_the_cut_has_the_batch_too(tmp_path: Path) -> None:
    source = make(tmp_path / "source", (296, 5, 0))
    restore_directory(str(source), str(tmp_path / "new"), AtOffsets(offsets={("t", 0): 150}), now_ms=NOW)
    assert consumed(tmp_path / "new") == ([], 150, 150)


def test_a_gap_wider_than_a_segment_gets_a_segment_of_its_own(tmp_path: Path) -> None:
    source = make(tmp_path / "source", (0, 5, 0), (FAR, 5, 100))
    restore_directory(str(source), str(tmp_path / "new"), AtOffsets(offsets={("t", 0): FAR - 9}), now_ms=NOW)
    log = LogDirectory(tmp_path / "new")["t", 0]
    assert [each.base_offset for each in log.segments] == [0, FAR - 10]
    assert log.log_end_offset == FAR - 9
    assert consumed(tmp_path / "new") == ([*range(5)], FAR - 9, FAR - 9)


def test_a_source_that_ends_in_a_gap_is_reported_and_restored_with_a_reachable_end(tmp_path: Path) -> None:
    source = make(tmp_path / "source", (0, 5, 0), end=150)
    (found,) = [each for each in LogDirectory(source)["t", 0].verify() if not each.is_harmless]
    assert (found.kind, found.severity, found.offsets) == (Kind.OFFSETS, Severity.STOPS_CONSUMERS, (5, 149))
    assert found.name == f"{150:020}.log"
    assert "no batch has offsets 5 to 149" in found.cause
    restore_directory(str(source), str(tmp_path / "new"), AtTime(time_ms=NOW + 200), now_ms=NOW)
    assert LogDirectory(tmp_path / "new")["t", 0].verify() == []
    assert consumed(tmp_path / "new") == ([*range(5)], 150, 150)


def test_an_end_at_the_start_of_the_log_or_after_its_last_batch_is_reachable(tmp_path: Path) -> None:
    for name, end, start in (("next", 5, 0), ("start", 150, 150)):
        source = make(tmp_path / name, (0, 5, 0), end=end, start=start)
        assert LogDirectory(source)["t", 0].log_end_offset == end
        assert [each for each in LogDirectory(source)["t", 0].verify() if not each.is_harmless] == []


def test_an_abort_marker_in_the_place_of_a_commit_marker_has_its_epochs(tmp_path: Path) -> None:
    """The cut divides a transaction of two partitions: where its marker is below the cut, its outcome changes."""
    new = NewDirectory(FileSystem(), str(tmp_path / "source"), now_ms=NOW, segment_bytes=1 << 20)
    new.create()
    epochs = {"producer_id": 7, "producer_epoch": 3, "partition_leader_epoch": 9}
    for partition in (0, 1):
        log = new.open(("t", partition), 0)
        for base in range(partition + 1):
            sent = {**epochs, "base_offset": base, "base_sequence": base, "is_transactional": True}
            log.append(batch(b"value", timestamp=NOW, **sent))
        log.append(
            write_transaction_marker(
                ControlRecordType.COMMIT,
                coordinator_epoch=5,
                timestamp=NOW + 40,
                base_offset=partition + 1,
                **epochs,
            )
        )
        new.finish(("t", partition), partition + 1)
    new.publish()
    point = AtOffsets(offsets={("t", 0): 2, ("t", 1): 1})
    result = restore_directory(str(tmp_path / "source"), str(tmp_path / "new"), point, now_ms=NOW)
    assert [each.is_committed for each in result.transactions] == [False]
    for key in (("t", 0), ("t", 1)):
        log = LogDirectory(tmp_path / "new")[key]
        marker = [each for _, each in log.batches()][-1]
        (control,) = map(parse_control_record, marker.records())
        assert (marker.base_offset, control.type) == (1, ControlRecordType.ABORT)
        assert control.coordinator_epoch == 5
        assert (marker.producer_id, marker.producer_epoch, marker.leader_epoch) == (7, 3, 9)
        assert marker.max_timestamp == (NOW + 40 if key == ("t", 0) else NOW)
        assert [each for each in log.verify() if not each.is_harmless] == []
