"""Retention of batches and markers."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.errors import LogError
from kwire.log.cleaner.retention import CleanedTransactions, LastRecord, Retention, choose_batch
from kwire.log.files.transaction_index import TransactionIndexEntry
from kwire.records import (
    Batch,
    ControlRecordType,
    Record,
    TimestampType,
    read_batches,
    write_batch,
    write_control_batch,
    write_transaction_marker,
)
from kwire.records.format.default_writer import BatchFields, write_empty_batch

HORIZON_MS = 5_000


def marker(offset: int, kind: ControlRecordType, producer_id: int = 9, producer_epoch: int = 2) -> Batch:
    data = write_transaction_marker(
        kind,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        coordinator_epoch=1,
        timestamp=1,
        base_offset=offset,
    )
    return next(read_batches(data))


def marker_with_horizon(offset: int) -> Batch:
    plain = marker(offset, ControlRecordType.COMMIT)
    data = write_batch(
        plain.records(),
        base_offset=offset,
        producer_id=9,
        producer_epoch=2,
        is_transactional=True,
        is_control=True,
        delete_horizon_ms=HORIZON_MS,
        keep_offsets=True,
    )
    return next(read_batches(data))


def data_batch(offset: int, producer_id: int = 9, magic: int = 2) -> Batch:
    record = Record(
        offset=offset, timestamp=1, timestamp_type=TimestampType.CREATE_TIME, key=b"k", value=b"v", headers=[]
    )
    fields: dict[str, Any] = {"producer_id": producer_id, "producer_epoch": 2, "base_sequence": 0} if magic == 2 else {}
    return next(read_batches(write_batch([record], magic=magic, base_offset=offset, **fields)))


def entry(first_offset: int, last_offset: int, producer_id: int = 9) -> TransactionIndexEntry:
    return TransactionIndexEntry(producer_id, first_offset, last_offset, last_offset + 1)


@pytest.mark.requirement("X-25")
def test_a_commit_marker_is_dropped_once_its_transaction_has_no_batches() -> None:
    transactions = CleanedTransactions()
    assert transactions.on_control(marker(3, ControlRecordType.COMMIT))
    assert not transactions.on_data(9, 4)
    assert not transactions.on_data(8, 5)
    assert not transactions.on_control(marker(6, ControlRecordType.COMMIT))
    assert transactions.on_control(marker(7, ControlRecordType.COMMIT))
    assert not transactions.on_control(marker(8, ControlRecordType.COMMIT, producer_id=8))
    assert transactions.kept == []


@pytest.mark.requirement("X-24", "X-25", "X-34")
def test_an_abort_marker_stays_indexed_while_its_transaction_has_batches() -> None:
    transactions = CleanedTransactions()
    transactions.add([entry(10, 14), entry(20, 21, producer_id=8), entry(30, 33)])
    assert not transactions.on_data(9, 9)  # before the transaction: committed
    assert not transactions.on_control(marker(9, ControlRecordType.COMMIT))
    assert transactions.on_data(9, 12)
    assert not transactions.on_control(marker(14, ControlRecordType.ABORT))
    assert transactions.on_control(marker(21, ControlRecordType.ABORT, producer_id=8))  # its data went before
    transactions.add([entry(30, 33)])  # named again by the next segment
    assert transactions.on_data(9, 32)
    assert not transactions.on_control(marker(33, ControlRecordType.ABORT))
    assert transactions.take_kept() == [entry(10, 14), entry(30, 33)]
    assert transactions.take_kept() == []


@pytest.mark.requirement("X-25", "P-08")
def test_an_abort_marker_without_data_is_dropped_without_an_index_entry() -> None:
    assert CleanedTransactions().on_control(marker(3, ControlRecordType.ABORT))


def test_an_abort_missing_from_the_index_is_an_error_not_committed_data() -> None:
    transactions = CleanedTransactions()
    transactions.on_data(9, 4)
    with pytest.raises(LogError, match="not in the transaction index; rebuild"):
        transactions.on_control(marker(5, ControlRecordType.ABORT))


@pytest.mark.requirement("X-25")
def test_emptied_control_batches_are_dropped_and_other_control_records_kept() -> None:
    fields = BatchFields(producer_id=9, producer_epoch=2, is_transactional=True, is_control=True)
    emptied = next(read_batches(write_empty_batch(fields, base_offset=5, last_offset=5)))
    assert CleanedTransactions().on_control(emptied)
    leader_change = next(read_batches(write_control_batch([(ControlRecordType.LEADER_CHANGE, b"x")], timestamp=1)))
    assert not CleanedTransactions().on_control(leader_change)


@pytest.mark.requirement("X-25")
def test_a_droppable_marker_waits_for_its_delete_horizon() -> None:
    def choose(batch: Batch, now_ms: int, is_removable: bool = True) -> tuple[bool, bool]:
        choice = choose_batch(batch, is_removable, last_records={}, end_offset=100, now_ms=now_ms)
        return choice.drops_records, choice.needs_horizon

    assert choose(marker(5, ControlRecordType.COMMIT), 10**12) == (False, True)
    assert choose(marker_with_horizon(5), HORIZON_MS - 1) == (False, True)
    assert choose(marker_with_horizon(5), HORIZON_MS) == (True, True)
    assert choose(marker_with_horizon(5), HORIZON_MS, is_removable=False) == (False, False)
    assert choose(data_batch(5), 0) == (True, False)  # of an aborted transaction
    assert choose(data_batch(5), 0, is_removable=False) == (False, False)


@pytest.mark.requirement("X-26", "X-27")
def test_batches_are_kept_empty_for_active_producers_and_at_the_end_of_the_range() -> None:
    def when_empty(batch: Batch, last: LastRecord | None = None, end_offset: int = 100) -> Retention:
        last_records = {} if last is None else {9: last}
        return choose_batch(batch, True, last_records=last_records, end_offset=end_offset, now_ms=0).when_empty

    assert when_empty(data_batch(5)) is Retention.DELETE
    assert when_empty(data_batch(5), LastRecord(5, 2)) is Retention.RETAIN_EMPTY
    assert when_empty(data_batch(5), LastRecord(6, 2)) is Retention.DELETE
    assert when_empty(data_batch(5, producer_id=8), LastRecord(5, 2)) is Retention.DELETE
    commit = marker(5, ControlRecordType.COMMIT)
    assert when_empty(commit, LastRecord(None, 2)) is Retention.RETAIN_EMPTY
    assert when_empty(commit, LastRecord(None, 3)) is Retention.DELETE
    assert when_empty(commit, LastRecord(4, 2)) is Retention.DELETE
    assert when_empty(data_batch(5), LastRecord(None, 2)) is Retention.DELETE
    assert when_empty(data_batch(5), end_offset=6) is Retention.RETAIN_EMPTY
    assert when_empty(data_batch(5), end_offset=7) is Retention.DELETE
    assert when_empty(data_batch(5, magic=1), end_offset=6) is Retention.DELETE  # magic 1 cannot be emptied


@pytest.mark.requirement("X-26")
def test_the_last_batch_of_the_first_producer_is_kept() -> None:
    """Producer ids begin with 0."""
    for last_offset, kept in ((5, Retention.RETAIN_EMPTY), (6, Retention.DELETE)):
        choice = choose_batch(
            data_batch(5, 0), True, last_records={0: LastRecord(last_offset, 2)}, end_offset=100, now_ms=0
        )
        assert choice.when_empty is kept
