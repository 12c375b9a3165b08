"""Check `.index` and `.timeindex` against the batches they refer to, in the same pass over the log.

An offset index entry refers to a batch start and the last offset of its append; a time index entry to the batch with
the largest timestamp so far. Entries that point into damage of the log are not checked.
Entries are held in memory (10 MiB per segment by Kafka's default); batches are streamed.
Source: rules F-10 to F-23; Kafka's OffsetIndex, TimeIndex, AbstractIndex.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kwire.errors import counted
from kwire.maintenance.verify.batches import ValidBatches
from kwire.storage.store import StoredFile

__all__ = ["IndexFault", "OffsetIndexCheck", "TimeIndexCheck"]

Int64s = npt.NDArray[np.int64]

BLOCK_BYTES = 1 << 20
WRONG_OFFSET = "its offset differs from that of the batch at its position"
MAX_ENTRY_BYTES = 256 << 20  # Kafka allows up to 2 GiB; the default is 10 MiB


class IndexFault(NamedTuple):
    """A fault of an index: position and cause.

    is_tail: only zeros follow the entries. is_slow: the remaining entries are valid, so lookups are only slower.
    """

    position: int
    size_bytes: int
    cause: str
    is_tail: bool = False
    is_slow: bool = False


class _Index:
    """The entries of one index file, and which of them are wrong."""

    entry_bytes: int
    names: tuple[str, str]

    def __init__(self, file: StoredFile, base_offset: int) -> None:
        self.base_offset = base_offset
        self.size = file.size()
        self.used = _used_bytes(file)
        # rounded up: a last entry may end in zeros
        used = -(-min(self.used, MAX_ENTRY_BYTES) // self.entry_bytes) * self.entry_bytes
        whole = min(used, self.size // self.entry_bytes * self.entry_bytes)
        self.count = whole // self.entry_bytes
        self.data = file.pread(0, whole)
        self.wrong: dict[int, str] = {}

    def faults(self) -> list[IndexFault]:
        """Return all faults; call at the end of the log."""
        faults = []
        if self.used > MAX_ENTRY_BYTES:
            faults.append(
                IndexFault(
                    MAX_ENTRY_BYTES,
                    self.size - MAX_ENTRY_BYTES,
                    f"larger than {MAX_ENTRY_BYTES >> 20} MiB, the limit for an index",
                )
            )
        if self.wrong:
            rows = sorted(self.wrong)
            first, last = rows[0], rows[-1]
            wrong = "1 entry is wrong" if len(rows) == 1 else f"{len(rows)} entries are wrong"
            what = f"{wrong} of {self.count}, the first: {self.wrong[first]}"
            start = first * self.entry_bytes
            faults.append(IndexFault(start, (last + 1) * self.entry_bytes - start, what))
        left = self.size % self.entry_bytes
        if left:
            what = f"its size is not a multiple of {self.entry_bytes}: {left} bytes remain"
            faults.append(IndexFault(self.size - left, left, what, is_slow=not self.wrong))
        entries = self.count * self.entry_bytes
        if self.size - left > entries:
            n = (self.size - left - entries) // self.entry_bytes
            what = f"{counted(n, 'empty entry', 'empty entries')} after {counted(self.count, 'used one')}"
            faults.append(IndexFault(entries, n * self.entry_bytes, what, is_tail=True))
        return faults

    def mark_wrong(self, rows: Int64s, what: str) -> None:
        """Report these entries unless they were reported before."""
        for row in rows.tolist():
            self.wrong.setdefault(row, what)


class OffsetIndexCheck(_Index):
    """Check of one `.index`: call add() and add_damage() in log order, then finish()."""

    entry_bytes = 8

    def __init__(self, file: StoredFile, base_offset: int) -> None:
        super().__init__(file, base_offset)
        entries = np.frombuffer(self.data, ">i4").reshape(-1, 2).astype(np.int64)
        self.offsets, self.positions = entries[:, 0] + base_offset, entries[:, 1]
        falling = np.flatnonzero((np.diff(self.offsets) <= 0) | (np.diff(self.positions) <= 0)) + 1
        self.mark_wrong(falling, "entries do not increase")
        self.mark_wrong(np.flatnonzero((entries[:, 0] < 0) | (entries[:, 1] < 0)), "an entry is negative")
        self._order = np.argsort(self.positions, kind="stable")
        self._sorted = self.positions[self._order]
        self._pending = np.empty(0, np.int64)  # entries whose append extends beyond the batches seen so far

    def add(self, batches: ValidBatches) -> None:
        """Check the entries that point into these batches."""
        start, end = int(batches.position[0]), int(batches.position[-1] + batches.size[-1])
        low, high = np.searchsorted(self._sorted, (start, end))
        rows = self._order[low:high]
        if len(self._pending):
            self._ends(self._pending, batches)
        if not len(rows):
            return
        at = np.searchsorted(batches.position, self.positions[rows])
        at = np.minimum(at, len(batches.position) - 1)
        self.mark_wrong(rows[batches.position[at] != self.positions[rows]], "it points into the middle of a batch")
        self.mark_wrong(rows[self.offsets[rows] < batches.base[at]], WRONG_OFFSET)
        self._ends(rows, batches)

    def _ends(self, rows: Int64s, batches: ValidBatches) -> None:
        """Check that entries have the last offset of a batch; an append may extend beyond these batches."""
        offsets = self.offsets[rows]
        owner = np.minimum(np.searchsorted(batches.last, offsets), len(batches.last) - 1)
        later = offsets > batches.last[-1]
        self.mark_wrong(rows[~later & (batches.last[owner] != offsets)], WRONG_OFFSET)
        self._pending = rows[later]

    def add_damage(self) -> None:
        """Skip entries that point into damage, and appends that extend into it."""
        self._pending = np.empty(0, np.int64)

    def finish(self, end_position: int) -> list[IndexFault]:
        """Return the faults. end_position: position of the end of the log."""
        self.mark_wrong(self._pending, WRONG_OFFSET)
        beyond = self.positions >= end_position
        self.mark_wrong(
            np.flatnonzero(beyond & (self.positions + self.offsets - self.base_offset > 0)),
            "it points past the end of the log",
        )
        return self.faults()


class TimeIndexCheck(_Index):
    """Check of one `.timeindex`: call add() and add_damage() in log order, then finish()."""

    entry_bytes = 12

    def __init__(self, file: StoredFile, base_offset: int) -> None:
        super().__init__(file, base_offset)
        entries = np.frombuffer(self.data, [("time", ">i8"), ("offset", ">i4")])
        self.times = entries["time"].astype(np.int64)
        self.offsets = entries["offset"].astype(np.int64) + base_offset
        self.mark_wrong(np.flatnonzero(np.diff(self.times) <= 0) + 1, "timestamps do not increase")
        self.mark_wrong(np.flatnonzero(np.diff(self.offsets) < 0) + 1, "offsets decrease")
        self.mark_wrong(np.flatnonzero((self.offsets < base_offset) | (self.times < 0)), "an entry is negative")
        self._order = np.argsort(self.offsets, kind="stable")
        self._sorted = self.offsets[self._order]
        self.largest = -1
        self.checked_offset = base_offset - 1
        self._blind = False

    def add(self, batches: ValidBatches) -> None:
        """Check the entries whose offset is in these batches."""
        low, high = np.searchsorted(self._sorted, (int(batches.base[0]), int(batches.last[-1]) + 1))
        # the max_timestamp of a batch may be wrong: an index built from it or from the records is valid
        certain = np.minimum(batches.max_timestamp, batches.newest)
        largest = np.maximum(np.maximum.accumulate(certain), self.largest)
        self.largest = int(largest[-1])
        self.checked_offset = int(batches.last[-1])
        rows = self._order[low:high]
        if not len(rows):
            return
        at = np.searchsorted(batches.last, self.offsets[rows])
        times = self.times[rows]
        self.mark_wrong(rows[largest[at] > times], "an earlier record has a larger timestamp")
        is_its = (batches.max_timestamp[at] == times) | (batches.newest[at] == times)
        self.mark_wrong(rows[~is_its], "the batch at its offset has another timestamp")

    def add_damage(self) -> None:
        """Handle damage: the largest timestamp after it is unknown."""
        self._blind = True

    def finish(self, *, is_closed: bool) -> list[IndexFault]:
        """Return the faults.

        is_closed: the segment was rolled or the broker stopped cleanly, so its last entry has the largest timestamp.
        """
        if not self._blind:
            self.mark_wrong(np.flatnonzero(self.offsets > self.checked_offset), "its offset is past the end of the log")
        faults = self.faults()
        last = int(self.times[-1]) if self.count else -1
        if is_closed and not self.wrong and not self._blind and self.largest >= 0 and last < self.largest:
            at = self.count * self.entry_bytes
            faults.append(
                IndexFault(at, 0, f"its last entry has timestamp {last}, the largest in the segment is {self.largest}")
            )
        return faults


def _used_bytes(file: StoredFile) -> int:
    """Return the bytes before the zeros at the end of the file."""
    size = position = file.size()
    while position > 0:
        start = max(position - BLOCK_BYTES, 0)
        block = file.pread(start, position - start).rstrip(b"\0")
        if block:
            return start + len(block)
        position = start
        size = position
    return size
