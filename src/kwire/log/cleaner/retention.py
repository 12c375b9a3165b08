"""Which batches compaction keeps: decided from batches alone, in the order they stand in the log.

A producer's last batch outlives its records, because its sequence number and epoch are what a broker knows of the
producer after a restart (X-26). A transaction's marker outlives all batches of the transaction; then it is kept for
delete.retention.ms more, so that a reader who is in the middle of the transaction still learns how it ended (X-25).
Source: rules X-24 to X-27; kafka.log.Cleaner.cleanInto, CleanedTransactionMetadata.
"""

from __future__ import annotations

import enum
import heapq
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kwire.errors import LogError
from kwire.log.transaction_index import TransactionIndexEntry
from kwire.records import Batch, ControlRecordType, parse_control_record

__all__ = ["BatchChoice", "CleanedTransactions", "LastRecord", "Retention", "choose_batch", "is_last_of_producer"]


class LastRecord(NamedTuple):
    """What an active producer wrote last. last_data_offset: None when only a marker is left of it."""

    last_data_offset: int | None
    producer_epoch: int


class Retention(enum.Enum):
    """What becomes of a batch of which no record is kept."""

    DELETE = enum.auto()
    RETAIN_EMPTY = enum.auto()


class BatchChoice(NamedTuple):
    """What is decided of a batch before its records are looked at.

    drops_records: none of them is kept. when_empty: what stays of the batch then.
    needs_horizon: a marker whose transaction is gone: its own time starts to run now.
    """

    drops_records: bool
    when_empty: Retention
    needs_horizon: bool


class CleanedTransactions:
    """Follows transactions through one pass over a log, and collects the transaction index of the output.

    kept: index entries of the aborted transactions whose marker was kept since `take_kept` was called last.
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[int, TransactionIndexEntry]] = []  # a heap by first offset
        self._aborted: dict[int, tuple[TransactionIndexEntry, bool]] = {}  # producer id -> entry, a batch was met
        self._committed: set[int] = set()
        self.kept: list[TransactionIndexEntry] = []

    def add(self, entries: Iterable[TransactionIndexEntry]) -> None:
        """Aborted transactions that overlap with what comes next; it does no harm to name one again."""
        for entry in entries:
            heapq.heappush(self._waiting, (entry.first_offset, entry))

    def take_kept(self) -> list[TransactionIndexEntry]:
        """The entries kept so far, and start a new list."""
        kept, self.kept = self.kept, []
        return kept

    def on_data(self, producer_id: int, last_offset: int) -> bool:
        """A transactional batch with data: whether its transaction was aborted."""
        self._begin_up_to(last_offset)
        known = self._aborted.get(producer_id)
        if known is None:
            self._committed.add(producer_id)
            return False
        self._aborted[producer_id] = known[0], True
        return True

    def on_control(self, batch: Batch) -> bool:
        """A control batch: whether it may go, as nothing is left that needs it.

        Raises LogError at an abort marker of data that the transaction index does not know: without the index the data
        would pass for committed. Malformed and CorruptBatch where the marker does not decode.
        """
        self._begin_up_to(batch.last_offset)
        record = next(batch.records(), None)
        if record is None:
            return True  # emptied by an earlier pass
        kind = parse_control_record(record).type
        if kind == ControlRecordType.COMMIT:
            met = batch.producer_id in self._committed
            self._committed.discard(batch.producer_id)
            return not met
        if kind != ControlRecordType.ABORT:
            return False
        entry, met = self._aborted.pop(batch.producer_id, (None, False))
        if entry is None and batch.producer_id in self._committed:
            what = (
                f"the transaction that producer {batch.producer_id} aborted at offset {batch.last_offset} is not in "
                "the transaction index; rebuild the index with `kwire log index`"
            )
            raise LogError(what, batch.file)
        if entry is None or not met:
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
    """Whether a broker needs the batch to know its producer after a restart."""
    last = last_records.get(producer_id)
    if last is None:
        return False
    if last.last_data_offset is not None:
        return last_offset == last.last_data_offset
    return is_control and producer_epoch == last.producer_epoch


def choose_batch(
    batch: Batch,
    may_go: bool,
    *,
    last_records: Mapping[int, LastRecord],
    end_offset: int,
    now_ms: int,
) -> BatchChoice:
    """The choice for a batch. may_go: as CleanedTransactions says. end_offset: of the range that is cleaned.

    Source: the RecordFilter in kafka.log.Cleaner.cleanInto; KAFKA-16226 for end_offset.
    """
    drops = may_go
    if batch.is_control:
        drops = may_go and batch.delete_horizon_ms is not None and batch.delete_horizon_ms <= now_ms
    needed = batch.magic >= 2 and (
        batch.next_offset == end_offset
        or (
            batch.producer_id >= 0
            and is_last_of_producer(
                last_records, batch.producer_id, batch.producer_epoch, batch.last_offset, batch.is_control
            )
        )
    )
    return BatchChoice(drops, Retention.RETAIN_EMPTY if needed else Retention.DELETE, may_go and batch.is_control)
