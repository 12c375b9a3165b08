"""Aborted and open transactions are those of the log itself, whatever `.txnindex` and snapshots say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kwire.errors import LogError, MissingOffsets
from kwire.log import LogDirectory, PartitionLog, plan_splits, read_split
from kwire.log.files.transaction_index import ENTRY, AbortedTransaction, TransactionIndexEntry
from kwire.log.files.transactions import is_abort
from kwire.log.reading.partition_log import AbortedLookup
from kwire.records.columns.reader import COLUMNS
from kwire.records.format.batch_header import BatchHeader
from kwire.storage.store import StoredFile
from tests.log.expected import Row, consumed, read_arrow, read_objects, rows_of
from tests.log.writing import NOW, batch, open_log

Copied = Callable[[str, str], Path]
CASES = [
    ("modern", "txn", 0),
    ("modern", "txn", 1),
    ("modern44", "txn44", 0),
    ("modern44", "txn44", 1),
    ("modern", "compacted-txn", 0),
    ("modern", "__consumer_offsets", 1),
]


@pytest.mark.parametrize(("archive", "topic", "partition"), CASES)
@pytest.mark.parametrize(
    "kinds", [("txnindex",), ("txnindex", "snapshot"), ("snapshot",), ("index", "txnindex")], ids=str
)
@pytest.mark.requirement("D-04", "F-30", "F-32", "P-06", "P-08", "X-24")
def test_missing_transaction_files_change_nothing(
    copied: Copied, kafka_logs: dict[str, Path], archive: str, topic: str, partition: int, kinds: tuple[str, ...]
) -> None:
    data = copied(archive, f"{topic}-{partition}")
    before = LogDirectory(data)[topic, partition]
    stable = before.last_stable_offset
    removed = 0
    for path in (data / f"{topic}-{partition}").iterdir():
        if path.suffix.removeprefix(".") in kinds:
            path.unlink()
            removed += 1
    assert removed
    log = LogDirectory(data)[topic, partition]
    rows, _ = consumed(kafka_logs[archive] / "expected", topic, partition, "read_committed")
    assert log.last_stable_offset == stable
    assert read_objects(log, isolation="read_committed") == rows
    assert read_arrow(log, isolation="read_committed") == rows


@pytest.mark.parametrize(("archive", "topic", "partition"), CASES[:4])
@pytest.mark.requirement("F-30", "F-32")
def test_aborted_transactions_of_the_log_equal_those_of_the_index(
    copied: Copied, archive: str, topic: str, partition: int
) -> None:
    data = copied(archive, f"{topic}-{partition}")
    indexed = LogDirectory(data)[topic, partition]
    expected = {
        entry[:3] for segment in indexed.segments for entry in segment.transaction_index or () if entry.last_offset >= 0
    }
    assert expected
    for path in (data / f"{topic}-{partition}").glob("*.txnindex"):
        path.unlink()
    found = LogDirectory(data)[topic, partition].aborted_transactions(0, indexed.log_end_offset)
    assert {tuple(each) for each in found} == expected


@pytest.mark.sampled(3)
@pytest.mark.parametrize("start", range(0, 700, 23))
@pytest.mark.requirement("F-32", "D-04")
def test_read_committed_from_the_middle_is_a_slice_of_the_whole(copied: Copied, start: int) -> None:
    data = copied("modern", "txn-0")
    log = LogDirectory(data)["txn", 0]
    expected = [row for row in read_objects(log, isolation="read_committed") if start <= row.offset < start + 60]
    range_ = {"start_offset": start, "end_offset": start + 60}
    assert read_objects(log, isolation="read_committed", **range_) == expected
    for path in sorted((data / "txn-0").glob("*.txnindex"))[:1]:  # some segments by index, some by a walk
        path.unlink()
    for path in (data / "txn-0").glob("*.snapshot"):
        path.unlink()
    log = LogDirectory(data)["txn", 0]
    assert read_objects(log, isolation="read_committed", **range_) == expected
    assert read_arrow(log, isolation="read_committed", **range_) == expected


@pytest.mark.requirement("F-30")
def test_every_flipped_byte_of_a_transaction_index_changes_nothing(copied: Copied, kafka_logs: dict[str, Path]) -> None:
    data = copied("modern", "txn-0")
    rows, _ = consumed(kafka_logs["modern"] / "expected", "txn", 0, "read_committed")
    path = min((data / "txn-0").glob("*.txnindex"))
    honest = path.read_bytes()
    for at in range(len(honest)):
        path.write_bytes(honest[:at] + bytes([honest[at] ^ 1]) + honest[at + 1 :])
        assert read_objects(LogDirectory(data)["txn", 0], isolation="read_committed") == rows, at


@pytest.mark.requirement("F-30", "F-33")
def test_any_lost_entry_of_a_transaction_index_changes_nothing(copied: Copied, kafka_logs: dict[str, Path]) -> None:
    """As in a copy whose `.log` is newer than its index: the file looks as if it were whole."""
    data = copied("modern", "txn-0")
    rows, _ = consumed(kafka_logs["modern"] / "expected", "txn", 0, "read_committed")
    lost = 0
    for path in sorted((data / "txn-0").glob("*.txnindex")):
        honest = path.read_bytes()
        entries = [honest[at : at + ENTRY.size] for at in range(0, len(honest), ENTRY.size)]
        for number in range(len(entries)):
            for kept in (entries[:number], entries[:number] + entries[number + 1 :]):
                path.write_bytes(b"".join(kept))
                log = LogDirectory(data)["txn", 0]
                assert read_objects(log, isolation="read_committed") == rows
                assert read_arrow(log, isolation="read_committed") == rows
                lost += 1
        path.write_bytes(honest)
    assert lost > 4


@pytest.mark.requirement("F-31", "F-33", "F-42")
def test_garbage_in_transaction_files_is_ignored(copied: Copied, kafka_logs: dict[str, Path]) -> None:
    data = copied("modern", "txn-0")
    rows, _ = consumed(kafka_logs["modern"] / "expected", "txn", 0, "read_committed")
    for path in (data / "txn-0").iterdir():
        if path.suffix in (".txnindex", ".snapshot"):
            path.write_bytes(path.read_bytes() + b"\xff" * 20)
    assert read_objects(LogDirectory(data)["txn", 0], isolation="read_committed") == rows


@pytest.mark.requirement("F-32")
@pytest.mark.parametrize("archive", ["modern", "modern44"])
def test_a_range_has_the_transactions_that_reach_into_it(kafka_logs: dict[str, Path], archive: str) -> None:
    """As UnifiedLog.collectAbortedTransactions, without those that have nothing but their marker in the range."""
    log = LogDirectory(kafka_logs[archive] / "data")["txn" if archive == "modern" else "txn44", 0]
    entries = [entry for segment in log.segments for entry in segment.transaction_index or ()]
    assert entries

    def has(entry: TransactionIndexEntry, start: int, end: int) -> bool:
        key = entry.producer_id, entry.last_offset
        return key in [(each.producer_id, each.last_offset) for each in log.aborted_transactions(start, end)]

    for entry in entries:
        first, last = entry.first_offset, entry.last_offset
        assert not has(entry, last, last + 1)
        assert has(entry, first, first + 1)
        assert not has(entry, last + 1, last + 2)
        assert has(entry, max(first - 1, 0), first + 1)
        assert not has(entry, first - 1, first)


@pytest.mark.requirement("G-13", "F-43", "F-44")
def test_the_newest_valid_snapshot_below_the_log_end_is_used(copied: Copied) -> None:
    data = copied("modern", "txn-0")
    log = LogDirectory(data)["txn", 0]
    stable, snapshots = log.last_stable_offset, sorted((data / "txn-0").glob("*.snapshot"))
    assert len(snapshots) > 2
    above = data / "txn-0" / f"{log.log_end_offset + 500:020d}.snapshot"
    above.write_bytes(snapshots[0].read_bytes())
    log = LogDirectory(data)["txn", 0]
    assert log.last_stable_offset == stable
    snapshots[-1].write_bytes(b"")
    assert LogDirectory(data)["txn", 0].last_stable_offset == stable


@pytest.mark.requirement("P-06", "F-42")
@pytest.mark.parametrize("before", [0, 1])
def test_a_transaction_from_the_first_record_on_is_open(before: int, tmp_path: Path) -> None:
    """The producer snapshot of the second segment has it; -1 stands for none."""
    log = open_log(tmp_path)
    for _ in range(before):
        log.append(batch(b"before"), now_ms=NOW)
    log.append(batch(b"open", producer_id=0, producer_epoch=0, base_sequence=0, is_transactional=True), now_ms=NOW)
    log.append(batch(b"other", producer_id=1, producer_epoch=0, base_sequence=0), now_ms=NOW)
    log.roll(NOW)
    log.append(batch(b"after"), now_ms=NOW)
    assert log.last_stable_offset == before
    log.close()
    stored = LogDirectory(tmp_path)["t", 0]
    assert (stored.last_stable_offset, stored.log_end_offset) == (before, before + 3)
    assert [each.offset for each in stored.read(isolation="read_committed")] == list(range(before))


@pytest.mark.requirement("P-08")
def test_a_read_of_many_transactions_searches_in_growing_steps(
    kafka_logs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search for each batch looks at all aborted transactions: time that grows with the square of their number."""
    log = LogDirectory(kafka_logs["modern"] / "data")["txn", 0]
    rows, _ = consumed(kafka_logs["modern"] / "expected", "txn", 0, "read_committed")
    transactional = sum(batch.is_transactional and not batch.is_control for _, batch in log.batches())
    searched = list[tuple[int, int]]()
    search = AbortedLookup.__call__

    def counted(self: AbortedLookup, start_offset: int, end_offset: int, **kind: bool) -> list[AbortedTransaction]:
        searched.append((start_offset, end_offset))
        return search(self, start_offset, end_offset, **kind)

    monkeypatch.setattr(AbortedLookup, "__call__", counted)
    for first_step in (1, 3, 1000):
        monkeypatch.setattr("kwire.log.reading.readable_log.FIRST_SEARCH", first_step)
        searched.clear()
        assert read_objects(log, isolation="read_committed") == rows
        assert len(searched) < transactional
    assert len(searched) <= len(log.segments)


def test_a_search_that_failed_is_not_continued(copied: Copied, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it had found is not all there is: records of aborted transactions would become readable."""
    data = copied("modern", "txn-0")
    for file in (data / "txn-0").glob("*.txnindex"):
        file.unlink()
    log = LogDirectory(data)["txn", 0]
    expected = log.aborted_transactions()
    lookup = AbortedLookup(log)
    half = log.log_end_offset // 2

    def fail(file: StoredFile, header: BatchHeader) -> bool:
        if header.stored_offset < half:
            return is_abort(file, header)
        raise LogError("cannot be read", file.url)

    with monkeypatch.context() as patch:
        patch.setattr("kwire.log.files.transactions.is_abort", fail)
        with pytest.raises(LogError, match="cannot be read"):
            lookup(0, log.last_stable_offset)
    assert lookup(0, log.last_stable_offset) == expected
    assert lookup(0, log.last_stable_offset) == expected, "the same range again"


def read_splits(log: PartitionLog, *, start_offset: int, end_offset: int | None = None, isolation: str) -> list[Row]:
    splits = plan_splits(log, ranges={("txn", 0): (start_offset, end_offset)}, isolation=isolation)  # type: ignore[arg-type]
    return [row for split in splits for row in rows_of(read_split(split, COLUMNS))]


@pytest.mark.parametrize("read", [read_objects, read_arrow, read_splits])
def test_a_transaction_whose_end_is_in_a_missing_segment_is_an_error(
    read: Callable[..., list[Row]], copied: Copied, kafka_logs: dict[str, Path]
) -> None:
    """A read that ended before such a segment returned aborted records, or left committed ones out."""
    data = copied("modern", "txn-0")
    rows, _ = consumed(kafka_logs["modern"] / "expected", "txn", 0, "read_committed")
    lost, following = [segment.base_offset for segment in LogDirectory(data)["txn", 0].segments][5:7]
    for file in (data / "txn-0").glob(f"{lost:020}.*"):
        file.unlink()
    log = LogDirectory(data)["txn", 0]
    undecided = 315  # the first offset of a transaction that is open at the end of the segment before
    before = [row for row in rows if row.offset < undecided]
    assert read(log, start_offset=0, end_offset=undecided, isolation="read_committed") == before
    with pytest.raises(MissingOffsets, match=f"a transaction with records before them .* offsets {lost} to"):
        read(log, start_offset=0, end_offset=lost, isolation="read_committed")
    after = [row for row in rows if row.offset >= following]
    assert read(log, start_offset=following, isolation="read_committed") == after


@pytest.mark.parametrize("read", [read_objects, read_arrow])
def test_a_transaction_whose_end_is_missing_can_be_left_out(
    read: Callable[..., list[Row]], copied: Copied, kafka_logs: dict[str, Path], caplog: pytest.LogCaptureFixture
) -> None:
    data = copied("modern", "txn-0")
    rows, _ = consumed(kafka_logs["modern"] / "expected", "txn", 0, "read_committed")
    lost = LogDirectory(data)["txn", 0].segments[5].base_offset
    for file in (data / "txn-0").glob(f"{lost:020}.*"):
        file.unlink()
    log = LogDirectory(data)["txn", 0]
    found = read(log, end_offset=lost, isolation="read_committed", skip_missing=True)
    committed = [row for row in rows if row.offset < lost]
    assert [row for row in committed if row.offset < 315] == [row for row in found if row.offset < 315]
    assert len(found) < len(committed)
    assert all(row in committed for row in found)
    assert "its records are left out" in caplog.text
