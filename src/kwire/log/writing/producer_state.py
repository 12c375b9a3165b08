"""State of a log's producers: expected sequences, duplicates and open transactions.

    prepare(batches)   checks them against the state and returns the update; nothing changes
    commit(update)     applies it once the batches are in the log

A transaction is open from its first batch to its marker, and unstable until its marker is below the high watermark.
Source: rules P-01 to P-08, F-40 to F-43; Kafka's ProducerStateManager, ProducerAppendInfo, ProducerStateEntry.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kwire.errors import BrokerError
from kwire.log.files.producer_snapshot import ProducerState, parse_producer_snapshot, render_producer_snapshot
from kwire.records import AppendOrigin, Batch, ControlRecord, ControlRecordType
from kwire.records.format.batch_header import BatchHeader

__all__ = ["CompletedTransaction", "Duplicate", "ProducerBatch", "ProducerEntry", "ProducerStates", "ProducerUpdate"]

REMEMBERED_BATCHES = 5
NO_EPOCH = NO_SEQUENCE = NO_TIMESTAMP = NO_PRODUCER_ID = -1
LAST_SEQUENCE = (1 << 31) - 1
OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH = 45, 47
INVALID_TXN_STATE, TRANSACTION_COORDINATOR_FENCED = 48, 52

ProducerBatch = BatchHeader | Batch


class RememberedBatch(NamedTuple):
    """One of the last batches of a producer. timestamp: its largest, ms."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_offset(self) -> int:
        """Offset of its first record."""
        return self.last_offset - self.offset_delta

    @property
    def first_sequence(self) -> int:
        """Sequence number of its first record; sequences wrap around from 2147483647 to 0."""
        first = self.last_sequence - self.offset_delta
        return first if first >= 0 else first + (1 << 31)


class Duplicate(NamedTuple):
    """Position in the log of a duplicate batch. timestamp: its largest, in ms."""

    first_offset: int
    last_offset: int
    timestamp: int


class CompletedTransaction(NamedTuple):
    """A completed transaction. last_offset: the marker's."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


@dataclass(slots=True, kw_only=True)
class ProducerEntry:
    """One producer. last_timestamp: ms. transaction_first_offset: None without an open transaction.

    batches: up to five of the current epoch, the last one last.
    """

    producer_id: int
    producer_epoch: int = NO_EPOCH
    coordinator_epoch: int = -1
    last_timestamp: int = NO_TIMESTAMP
    transaction_first_offset: int | None = None
    batches: list[RememberedBatch] = field(default_factory=list)

    @property
    def last_sequence(self) -> int:
        """Last sequence number of the last batch, -1 without one."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        """Last offset of the last batch, -1 without one."""
        return self.batches[-1].last_offset if self.batches else -1

    def begin_epoch(self, producer_epoch: int) -> None:
        """Drop the batches of another epoch."""
        if self.producer_epoch != producer_epoch:
            self.batches.clear()
            self.producer_epoch = producer_epoch

    def add(self, batch: RememberedBatch) -> None:
        """Add a batch, replacing the oldest of five."""
        if len(self.batches) == REMEMBERED_BATCHES:
            del self.batches[0]
        self.batches.append(batch)


@dataclass(slots=True)
class ProducerUpdate:
    """Changes by batches. entries: the changed producers, with the new batches only.

    started: (first offset, producer id) of transactions. duplicate: position of the first duplicate batch; then nothing
    may be appended or committed.
    """

    entries: dict[int, ProducerEntry] = field(default_factory=dict)
    started: list[tuple[int, int]] = field(default_factory=list)
    completed: list[CompletedTransaction] = field(default_factory=list)
    duplicate: Duplicate | None = None


NO_UPDATE = ProducerUpdate()


class ProducerStates:
    """The producers of one partition. where: its name, for messages. expiration_ms: producer.id.expiration.ms.

    end_offset: of the log below which batches are applied. snapshot_offset: of the newest snapshot.
    """

    def __init__(self, where: str, *, expiration_ms: int) -> None:
        self._where, self.expiration_ms = where, expiration_ms
        self._entries: dict[int, ProducerEntry] = {}
        self._open: dict[int, int] = {}  # first offset of a transaction -> producer id, ascending
        self._unreplicated: dict[int, int] = {}  # first offset -> marker's offset
        self._most_entries = 0
        self.end_offset = self.snapshot_offset = 0

    @property
    def entries(self) -> Mapping[int, ProducerEntry]:
        """The producers by id; read-only."""
        return self._entries

    @property
    def is_empty(self) -> bool:
        """Whether no producer and no recent transaction is known."""
        return not self._entries and not self._unreplicated

    @property
    def first_undecided_offset(self) -> int | None:
        """First offset of the oldest open transaction."""
        return next(iter(self._open), None)

    @property
    def first_unstable_offset(self) -> int | None:
        """First offset of the oldest transaction that is open, or whose marker is not replicated yet (P-06)."""
        if not self._unreplicated:
            return self.first_undecided_offset
        return min([*self._open, *self._unreplicated])

    # ---- appending

    def prepare(
        self,
        batches: Iterable[tuple[ProducerBatch, ControlRecord | None]],
        origin: AppendOrigin,
    ) -> ProducerUpdate:
        """Check batches, each with its control record if it is a control batch that has one, against the state.

        Raises BrokerError: INVALID_PRODUCER_EPOCH (P-02), OUT_OF_ORDER_SEQUENCE_NUMBER (P-03), INVALID_TXN_STATE
        (P-04), TRANSACTION_COORDINATOR_FENCED (P-05).
        """
        update = None
        for batch, marker in batches:
            if batch.producer_id == NO_PRODUCER_ID:
                continue
            update = update or ProducerUpdate()
            if origin == AppendOrigin.CLIENT:
                update.duplicate = self._duplicate_of(batch)
                if update.duplicate is not None:
                    return update
            entry = update.entries.get(batch.producer_id)
            if entry is None:
                entry = update.entries[batch.producer_id] = self._copy(batch.producer_id)
            if not batch.is_control:
                self._add_data(entry, batch, origin, update)
            elif marker is not None and marker.coordinator_epoch is not None:
                self._add_marker(entry, batch, marker, origin, update)
        return update or NO_UPDATE

    def _copy(self, producer_id: int) -> ProducerEntry:
        known = self._entries.get(producer_id)
        if known is None:
            return ProducerEntry(producer_id=producer_id)
        return ProducerEntry(
            producer_id=producer_id,
            producer_epoch=known.producer_epoch,
            coordinator_epoch=known.coordinator_epoch,
            last_timestamp=known.last_timestamp,
            transaction_first_offset=known.transaction_first_offset,
        )

    def _duplicate_of(self, batch: ProducerBatch) -> Duplicate | None:
        """Return the position of the same batch if it is a duplicate (P-01)."""
        entry = self._entries.get(batch.producer_id)
        if entry is None or entry.producer_epoch != batch.producer_epoch:
            return None
        last_sequence = batch.last_sequence
        for known in entry.batches:
            if known.last_sequence == last_sequence and known.first_sequence == batch.base_sequence:
                return Duplicate(known.first_offset, known.last_offset, known.timestamp)
        return None

    def _check_epoch(self, entry: ProducerEntry, batch: ProducerBatch, origin: AppendOrigin) -> None:
        if batch.producer_epoch < entry.producer_epoch and origin != AppendOrigin.REPLICATION:
            raise BrokerError(
                f"Epoch of producer {batch.producer_id} at offset {batch.base_offset} in {self._where} is "
                f"{batch.producer_epoch}, which is smaller than the last seen epoch {entry.producer_epoch}",
                INVALID_PRODUCER_EPOCH,
            )

    def _check_sequence(self, entry: ProducerEntry, batch: ProducerBatch) -> None:
        """Check the sequence (P-03)."""
        first = batch.base_sequence
        if batch.producer_epoch != entry.producer_epoch:
            if first and entry.producer_epoch != NO_EPOCH:
                raise BrokerError(
                    f"Invalid sequence number for new epoch of producer {batch.producer_id} at offset "
                    f"{batch.base_offset} in partition {self._where}: {batch.producer_epoch} (request epoch), {first} "
                    f"(seq. number), {entry.producer_epoch} (current producer epoch)",
                    OUT_OF_ORDER_SEQUENCE_NUMBER,
                )
            return
        known = self._entries.get(batch.producer_id)
        if known is None or known.producer_epoch == NO_EPOCH:
            return
        if entry.batches:
            last = entry.last_sequence
        else:
            last = known.last_sequence if batch.producer_epoch == known.producer_epoch else NO_SEQUENCE
        if first != last + 1 and not (first == 0 and last == LAST_SEQUENCE):
            raise BrokerError(
                f"Out of order sequence number for producer {batch.producer_id} at offset {batch.base_offset} in "
                f"partition {self._where}: {first} (incoming seq. number), {last} (current end sequence number)",
                OUT_OF_ORDER_SEQUENCE_NUMBER,
            )

    def _add_data(
        self, entry: ProducerEntry, batch: ProducerBatch, origin: AppendOrigin, update: ProducerUpdate
    ) -> None:
        self._check_epoch(entry, batch, origin)
        if origin == AppendOrigin.CLIENT:
            self._check_sequence(entry, batch)
        first_offset, last_offset = batch.base_offset, batch.last_offset
        entry.begin_epoch(batch.producer_epoch)
        entry.add(RememberedBatch(batch.last_sequence, last_offset, last_offset - first_offset, batch.max_timestamp))
        entry.last_timestamp = batch.max_timestamp
        if not batch.is_transactional:
            if entry.transaction_first_offset is not None:
                raise BrokerError(
                    f"Expected transactional write from producer {batch.producer_id} at offset {first_offset} in "
                    f"partition {self._where}",
                    INVALID_TXN_STATE,
                )
        elif entry.transaction_first_offset is None:
            entry.transaction_first_offset = first_offset
            update.started.append((first_offset, batch.producer_id))

    def _add_marker(
        self,
        entry: ProducerEntry,
        batch: ProducerBatch,
        marker: ControlRecord,
        origin: AppendOrigin,
        update: ProducerUpdate,
    ) -> None:
        self._check_epoch(entry, batch, origin)
        assert marker.coordinator_epoch is not None
        if marker.coordinator_epoch < entry.coordinator_epoch and origin != AppendOrigin.REPLICATION:
            raise BrokerError(
                f"Invalid coordinator epoch for producerId {batch.producer_id} at offset {batch.base_offset} in "
                f"partition {self._where}: {marker.coordinator_epoch} (zombie), {entry.coordinator_epoch} (current)",
                TRANSACTION_COORDINATOR_FENCED,
            )
        if entry.transaction_first_offset is not None:  # a transaction without data needs no index entry (P-08)
            is_aborted = marker.type == ControlRecordType.ABORT
            update.completed.append(
                CompletedTransaction(batch.producer_id, entry.transaction_first_offset, batch.base_offset, is_aborted)
            )
        entry.begin_epoch(batch.producer_epoch)
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.transaction_first_offset = None
        entry.last_timestamp = batch.max_timestamp

    def commit(self, update: ProducerUpdate) -> None:
        """Apply an update of prepare. The caller calls complete() for each completed transaction."""
        for producer_id, new in update.entries.items():
            known = self._entries.get(producer_id)
            if known is None:
                self._entries[producer_id] = new
                self._most_entries = max(self._most_entries, len(self._entries))
                continue
            known.begin_epoch(new.producer_epoch)
            for batch in new.batches:
                known.add(batch)
            known.coordinator_epoch = new.coordinator_epoch
            known.transaction_first_offset = new.transaction_first_offset
            known.last_timestamp = new.last_timestamp
        for first_offset, producer_id in update.started:
            self._open[first_offset] = producer_id

    def last_stable_offset(self, completed: CompletedTransaction) -> int:
        """Return the last stable offset after a transaction completes, for its transaction index entry."""
        others = (first for first, producer_id in self._open.items() if producer_id != completed.producer_id)
        return next(others, completed.last_offset + 1)

    def complete(self, completed: CompletedTransaction) -> None:
        """Close a transaction; it stays unstable until its marker is below the high watermark."""
        self._open.pop(completed.first_offset, None)
        self._unreplicated[completed.first_offset] = completed.last_offset

    def replicated_to(self, offset: int) -> None:
        """Handle a new high watermark or log start offset."""
        if self._unreplicated:
            self._unreplicated = {first: last for first, last in self._unreplicated.items() if last >= offset}

    def remove_expired(self, now_ms: int) -> None:
        """Remove idle producers without an open transaction (P-07)."""
        expired = [producer_id for producer_id, entry in self._entries.items() if self._is_expired(entry, now_ms)]
        for producer_id in expired:
            del self._entries[producer_id]

    def _is_expired(self, entry: ProducerEntry, now_ms: int) -> bool:
        return entry.transaction_first_offset is None and now_ms - entry.last_timestamp >= self.expiration_ms

    # ---- snapshots

    def clear(self) -> None:
        """Remove all producers."""
        self._entries.clear()
        self._open.clear()
        self._unreplicated.clear()
        self._most_entries = 0

    def snapshot(self) -> bytes:
        """Render the state as a snapshot, with only the last batch of each producer (F-41)."""
        states = [
            ProducerState(
                producer_id=entry.producer_id,
                producer_epoch=entry.producer_epoch,
                last_sequence=entry.last_sequence,
                last_offset=entry.last_offset,
                offset_delta=entry.batches[-1].offset_delta if entry.batches else 0,
                timestamp=entry.last_timestamp,
                coordinator_epoch=entry.coordinator_epoch,
                current_transaction_first_offset=(
                    -1 if entry.transaction_first_offset is None else entry.transaction_first_offset
                ),
            )
            for entry in self._entries.values()
        ]
        return render_producer_snapshot(in_hash_order(states, self._most_entries))

    def load(self, data: bytes, now_ms: int) -> None:
        """Load the producers of a snapshot, except expired ones. Raises Malformed (F-42)."""
        for state in parse_producer_snapshot(data):
            first = state.current_transaction_first_offset
            entry = ProducerEntry(
                producer_id=state.producer_id,
                producer_epoch=state.producer_epoch,
                coordinator_epoch=state.coordinator_epoch,
                last_timestamp=state.timestamp,
                transaction_first_offset=first if first >= 0 else None,
            )
            if state.last_offset >= 0:
                entry.add(RememberedBatch(state.last_sequence, state.last_offset, state.offset_delta, state.timestamp))
            if not self._is_expired(entry, now_ms):
                self._entries[state.producer_id] = entry
                if first >= 0:
                    self._open[first] = state.producer_id
        self._open = dict(sorted(self._open.items()))
        self._most_entries = max(self._most_entries, len(self._entries))


def in_hash_order(states: Iterable[ProducerState], most_entries: int) -> list[ProducerState]:
    """Return states in Kafka's order: that of a Java hash map whose largest size was most_entries."""
    size = 16
    while most_entries > size * 3 // 4:
        size *= 2

    def bucket(state: ProducerState) -> int:
        value = (state.producer_id ^ state.producer_id >> 32) & 0xFFFF_FFFF
        return (value ^ value >> 16) & size - 1

    return sorted(states, key=bucket)
