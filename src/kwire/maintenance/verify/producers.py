"""Derive producers and transactions from the log, to check snapshots and `.txnindex` files.

Tracked batch by batch: the last sequence of each idempotent producer, and open and aborted transactions. A log may
begin in the middle (retention) or have holes (compaction) or damage; findings that these could explain are not
reported.
Source: rules F-30 to F-44, P-01 to P-08; Kafka's ProducerStateManager, ProducerAppendInfo.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kwire.errors import CorruptBatch, Malformed, counted
from kwire.log.files.damage import Kind
from kwire.log.files.producer_snapshot import ProducerState
from kwire.log.files.transaction_index import TransactionIndexEntry
from kwire.maintenance.verify.batches import SuspectBatch, ValidBatches
from kwire.records import ControlRecordType, parse_control_record, read_batches
from kwire.records.attributes import CODEC_MASK, CONTROL_FLAG, TRANSACTIONAL_FLAG

__all__ = ["Producer", "Producers"]

MAX_PRODUCERS = 1_000_000
SEQUENCES = 1 << 31


@dataclass(slots=True)
class Producer:
    """Latest state of a producer. last_sequence, last_offset: -1 before data."""

    epoch: int
    last_sequence: int = -1
    last_offset: int = -1


class Marker(NamedTuple):
    """A control batch; abort is None unless it is a transaction marker."""

    abort: bool | None
    fault: str | None = None


class Producers:
    """Tracks a partition's batches: call add() for each run of batches, lost() for damage.

    known_from: batches at or above this offset were seen without a gap. has_holes: whether compaction left gaps.
    aborted: transactions of the segment since the last take_aborted().
    """

    def __init__(self, known_from: int, *, is_compacted: bool) -> None:
        self.known: dict[int, Producer] = {}
        self.open: dict[int, int] = {}
        self.known_from: int | None = known_from
        self.has_holes = is_compacted
        self._aborted: list[TransactionIndexEntry] = []
        self._next = known_from

    def lost(self) -> None:
        """Handle damage, whose contents are unknown."""
        self.known.clear()
        self.open.clear()
        self.known_from = None

    def saw_all_since(self, offset: int) -> bool:
        """Return whether every batch from offset on was seen."""
        return self.known_from is not None and offset >= self.known_from

    def take_aborted(self) -> list[TransactionIndexEntry]:
        """Return the aborted transactions whose marker was seen since the last call."""
        taken, self._aborted = self._aborted, []
        return taken

    def add(self, batches: ValidBatches) -> list[SuspectBatch]:
        """Track these batches; return those that no producer would have written."""
        if self.known_from is None:
            self.known_from = self._next = int(batches.base[0])
        before = np.concatenate(([self._next], batches.last[:-1] + 1))
        plain = batches.attributes & CODEC_MASK == 0
        # a compressed message of magic 0 or 1 has its last offset only, so gaps before it are not visible
        whole = (batches.base == before) & ((batches.magic == 2) | plain)
        whole &= (batches.count == batches.last - batches.base + 1) | (batches.magic < 2)
        self.has_holes |= not whole.all()
        self._next = int(batches.last[-1]) + 1
        suspects: list[SuspectBatch] = []
        is_control = (batches.magic == 2) & (batches.attributes & CONTROL_FLAG != 0)
        rows = np.flatnonzero((batches.producer_id >= 0) | is_control)
        columns = (
            batches.producer_id,
            batches.producer_epoch,
            batches.base_sequence,
            batches.base,
            batches.last,
            batches.attributes,
        )
        for row, producer_id, epoch, sequence, base, last, attributes in zip(
            rows.tolist(), *(column[rows].tolist() for column in columns), strict=True
        ):
            if attributes & CONTROL_FLAG:
                what = self._control(batches, row, producer_id, epoch, last, bool(attributes & TRANSACTIONAL_FLAG))
                kind = Kind.CONTROL
            else:
                what, kind = self._data(producer_id, epoch, sequence, base, last), Kind.SEQUENCE
                if attributes & TRANSACTIONAL_FLAG:
                    self.open.setdefault(producer_id, base)
            if what:
                suspects.append(
                    SuspectBatch(int(batches.position[row]), int(batches.size[row]), kind, what, (base, last))
                )
        return suspects

    def _data(self, producer_id: int, epoch: int, sequence: int, base: int, last: int) -> str | None:
        state = self.known.get(producer_id)
        if state is None:
            while len(self.known) >= MAX_PRODUCERS:
                self.known.pop(next(iter(self.known)))
            state = self.known[producer_id] = Producer(epoch)
        what = None
        if epoch < state.epoch:
            what = f"producer {producer_id} returns from epoch {state.epoch} to {epoch}"
        elif epoch == state.epoch and state.last_sequence >= 0 and sequence > 0:
            # old clients restart at sequence 0 after retention has deleted all their records
            distance = (state.last_sequence - sequence) % SEQUENCES
            if distance < SEQUENCES // 2:
                what = f"producer {producer_id} returns from sequence {state.last_sequence} to {sequence}"
        state.epoch = epoch
        state.last_sequence = -1 if sequence < 0 else (sequence + last - base) % SEQUENCES
        state.last_offset = last
        return what

    def _control(
        self, batches: ValidBatches, row: int, producer_id: int, epoch: int, last: int, transactional: bool
    ) -> str | None:
        marker = _marker(batches, row)
        if marker.abort is None:
            return marker.fault
        if not transactional or producer_id < 0:
            return "a transaction marker outside a transaction"
        first = self.open.pop(producer_id, None)
        if first is not None and marker.abort:
            stable = min(self.open.values(), default=last + 1)
            self._aborted.append(TransactionIndexEntry(producer_id, first, last, stable))
        state = self.known.get(producer_id)
        if state is None or epoch > state.epoch:
            self.known[producer_id] = Producer(epoch)
        return marker.fault

    def disagreements(self, snapshot: list[ProducerState], offset: int) -> list[str]:
        """Return how a snapshot at `offset` differs from the log.

        Producers missing from the snapshot are not reported, since they may have expired.
        """
        if self.has_holes or self.known_from is None or self._next != offset:
            return []
        differences = []
        for entry in snapshot:
            if entry.last_offset < self.known_from:
                continue
            state = self.known.get(entry.producer_id)
            open_at = self.open.get(entry.producer_id, -1)
            if state is None:
                if len(self.known) < MAX_PRODUCERS:
                    differences.append(f"producer {entry.producer_id} has no batch in the log before the snapshot")
                continue
            log = (state.epoch, state.last_sequence, state.last_offset)
            stored = (entry.producer_epoch, entry.last_sequence, entry.last_offset)
            if log != stored:
                differences.append(
                    f"producer {entry.producer_id} has epoch, sequence, offset {stored} in the snapshot "
                    f"and {log} in the log"
                )
            elif open_at != entry.current_transaction_first_offset:
                differences.append(
                    f"producer {entry.producer_id}'s open transaction starts at "
                    f"{entry.current_transaction_first_offset} in the snapshot and at {open_at} in the log"
                )
        return differences


def _marker(batches: ValidBatches, row: int) -> Marker:
    try:
        for batch in read_batches(batches.bytes_of(row)):
            records = list(batch.records())
            if len(records) > 1 and batch.is_transactional:
                return Marker(None, f"a marker batch of {counted(len(records), 'record')}")
            parsed = [parse_control_record(record) for record in records]
            if not parsed or parsed[0].type not in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
                return Marker(None)
            return Marker(parsed[0].type == ControlRecordType.ABORT)
    except (CorruptBatch, Malformed) as error:
        return Marker(None, error.what)
    return Marker(None)
