"""A plain implementation of compaction: record objects, a dict and Kafka's filterTo, line by line."""

from __future__ import annotations

from collections.abc import Iterator

from kwire.log.cleaner.retention import CleanedTransactions, LastRecord, Retention, choose_batch
from kwire.log.cleaner.rewriting import empty_batch, rebuild_batch
from kwire.records import Batch, Record, read_batches


def newest_offsets(data: bytes, transactions: CleanedTransactions, first_dirty_offset: int = 0) -> dict[bytes, int]:
    """Return the highest offset of each key, without aborted transactions."""
    found: dict[bytes, int] = {}
    for batch in read_batches(data):
        if batch.is_control:
            transactions.on_control(batch)
        elif not (batch.is_transactional and transactions.on_data(batch.producer_id, batch.last_offset)):
            for record in batch.records():
                if record.key is not None and record.offset >= first_dirty_offset:
                    found[record.key] = record.offset
    return found


def stays(
    batch: Batch,
    record: Record,
    newest: dict[bytes, int],
    latest_offset: int,
    now_ms: int,
    keeps_old_tombstones: bool,
) -> bool:
    """Return whether a record is kept, unless its whole batch is dropped."""
    if record.offset > latest_offset:
        return True
    if record.key is None or record.offset < newest.get(record.key, -1):
        return False
    if record.value is not None:
        return True
    if batch.magic < 2:
        return keeps_old_tombstones
    return batch.delete_horizon_ms is None or now_ms < batch.delete_horizon_ms


def filter_batches(
    data: bytes,
    newest: dict[bytes, int],
    latest_offset: int,
    transactions: CleanedTransactions,
    last_records: dict[int, LastRecord],
    *,
    end_offset: int,
    now_ms: int,
    delete_retention_ms: int,
    keeps_old_tombstones: bool,
) -> Iterator[bytes]:
    """Return the remaining records of each batch."""
    for batch in read_batches(data):
        if batch.is_control:
            is_removable = transactions.on_control(batch)
        else:
            is_removable = batch.is_transactional and transactions.on_data(batch.producer_id, batch.last_offset)
        choice = choose_batch(batch, is_removable, last_records=last_records, end_offset=end_offset, now_ms=now_ms)
        records = list(batch.records())
        kept = [
            record
            for record in records
            if not choice.drops_records
            and (batch.is_control or stays(batch, record, newest, latest_offset, now_ms, keeps_old_tombstones))
        ]
        if not kept:
            if choice.when_empty is Retention.RETAIN_EMPTY:
                yield empty_batch(batch)
            continue
        has_tombstones = not batch.is_control and any(record.value is None for record in kept)
        horizon = batch.delete_horizon_ms
        if batch.magic == 2 and horizon is None and (has_tombstones or choice.needs_horizon):
            horizon = now_ms + delete_retention_ms
        if len(kept) == len(records) and horizon == batch.delete_horizon_ms:
            yield bytes(batch.buffer)
        else:
            yield rebuild_batch(batch, kept, horizon)
