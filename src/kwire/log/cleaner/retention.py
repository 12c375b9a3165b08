"""Which batches compaction retains, decided from batches alone, in log order.

A producer's last batch is retained without its records, because a broker restores the producer's sequence number and
epoch from it after a restart (X-26). A transaction's marker is retained for delete.retention.ms after the last batch
of the transaction is removed: a consumer in the middle of the transaction still reads its outcome (X-25).
Source: rules X-24 to X-27; kafka.log.Cleaner.cleanInto, CleanedTransactionMetadata.
"""

from __future__ import annotations

import enum
import heapq
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kwire.errors import LogError
from kwire.log.files.transaction_index import TransactionIndexEntry
from kwire.records import Batch, ControlRecordType, parse_control_record

__all__ = ["BatchChoice", "CleanedTransactions", "LastRecord", "Retention", "choose_batch", "is_last_of_producer"]


class LastRecord(NamedTuple):
    """The last record of an active producer. last_data_offset: None if only a marker remains."""

    last_data_offset: int | None
    producer_epoch: int


class Retention(enum.Enum):
    """Whether to retain a batch without retained records."""

    DELETE = enum.auto()
    RETAIN_EMPTY = enum.auto()


class BatchChoice(NamedTuple):
    """Decision about a batch before its records are read.

    drops_records: whether to drop all records. when_empty: what to do with the empty batch.
    needs_horizon: whether it is a marker of a removed transaction and needs a delete horizon.
    """

    drops_records: bool
    when_empty: Retention
    needs_horizon: bool


class CleanedTransactions:
    """Tracks transactions during one pass over a log, and collects the transaction index of the output.

    kept: index entries of the aborted transactions whose marker was retained since the last take_kept().
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[int, TransactionIndexEntry]] = []  # a heap by first offset
        self._aborted: dict[
            int, tuple[TransactionIndexEntry, bool]
        ] = {}  # producer id -> entry, whether a batch was seen
        self._committed: set[int] = set()
        self.kept: list[TransactionIndexEntry] = []

    def add(self, entries: Iterable[TransactionIndexEntry]) -> None:
        """Add aborted transactions that overlap the following batches; duplicates are permitted."""
        for entry in entries:
            heapq.heappush(self._waiting, (entry.first_offset, entry))

    def take_kept(self) -> list[TransactionIndexEntry]:
        """Return the entries kept so far, and start a new list."""
        kept, self.kept = self.kept, []
        return kept

    def on_data(self, producer_id: int, last_offset: int) -> bool:
        """Track a transactional data batch; return whether its transaction was aborted."""
        self._begin_up_to(last_offset)
        known = self._aborted.get(producer_id)
        if known is None:
            self._committed.add(producer_id)
            return False
        self._aborted[producer_id] = known[0], True
        return True

    def on_control(self, batch: Batch) -> bool:
        """Track a control batch; return whether it may be removed because no batch of its transaction remains.

        Raises LogError for an abort marker of data that is missing from the transaction index: without the index the
        data would count as committed. Raises Malformed and CorruptBatch if the marker does not decode.
        """
        self._begin_up_to(batch.last_offset)
        record = next(batch.records(), None)
        if record is None:
            return True  # emptied by an earlier pass
        kind = parse_control_record(record).type
        if kind == ControlRecordType.COMMIT:
            seen = batch.producer_id in self._committed
            self._committed.discard(batch.producer_id)
            return not seen
        if kind != ControlRecordType.ABORT:
            return False
        entry, seen = self._aborted.pop(batch.producer_id, (None, False))
        if entry is None and batch.producer_id in self._committed:
            what = (
                f"the transaction that producer {batch.producer_id} aborted at offset {batch.last_offset} is not in "
                "the transaction index; rebuild the index with `kwire log index`"
            )
            raise LogError(what, batch.file)
        if entry is None or not seen:
            return True
        self.kept.append(entry)
        return False

    def _begin_up_to(self, offset: int) -> None:
        while self._waiting and self._waiting[0][0] <= offset:
            _, entry = heapq.heappop(self._waiting)
            self._aborted.setdefault(entry.producer_id, (entry, False))


def is_last_of_producer(
    last_records: Mapping[int, LastRecord], producer_id: int, producer_epoch: int, last_offset: int, is_control: bool
) -> bool:
    """Return whether a broker needs the batch to restore its producer after a restart."""
    last = last_records.get(producer_id)
    if last is None:
        return False
    if last.last_data_offset is not None:
        return last_offset == last.last_data_offset
    return is_control and producer_epoch == last.producer_epoch


def choose_batch(
    batch: Batch,
    is_removable: bool,
    *,
    last_records: Mapping[int, LastRecord],
    end_offset: int,
    now_ms: int,
) -> BatchChoice:
    """Decide about a batch. is_removable: as returned by CleanedTransactions. end_offset: of the cleaned range.

    Source: the RecordFilter in kafka.log.Cleaner.cleanInto; KAFKA-16226 for end_offset.
    """
    drops = is_removable
    if batch.is_control:
        drops = is_removable and batch.delete_horizon_ms is not None and batch.delete_horizon_ms <= now_ms
    needed = batch.magic >= 2 and (
        batch.next_offset == end_offset
        or (
            batch.producer_id >= 0
            and is_last_of_producer(
                last_records, batch.producer_id, batch.producer_epoch, batch.last_offset, batch.is_control
            )
        )
    )
    return BatchChoice(drops, Retention.RETAIN_EMPTY if needed else Retention.DELETE, is_removable and batch.is_control)
