"""`offset_checks` for whole chunks: a comparison over the header table of kwire.records.

Cost: one scan over the headers of a chunk, under 1 ns a row for batches of 16 KB (benchmarks/log/read_arrow.py).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kwire import native
from kwire.errors import CorruptBatch
from kwire.log.files.offset_checks import offset_limit, outside_segment, overlapping
from kwire.log.files.segment import Segment
from kwire.records.attributes import TRANSACTIONAL_FLAG
from kwire.records.format import batch_table as t

TABLE_ROWS = 4096


class Prefix(NamedTuple):
    """The part of a chunk that is in order: its first size_bytes, followed by damaged_bytes of damage.

    scan: of a chunk without damage, which its reader can use; None for one with more batches than a table has rows.
    """

    size_bytes: int
    damage: CorruptBatch | None = None
    damaged_bytes: int = 0
    scan: t.Scan | None = None


class ChunkOffsetCheck:
    """Follows the offsets of one segment at a time through consecutive chunks. Not thread-safe.

    transactional: offsets [first, end) of the last chunk, from its first batch of a transaction to its last; or None.
    """

    def __init__(self) -> None:
        self._floor = self._ceiling = 0
        self._table = np.empty((TABLE_ROWS, t.COLUMN_COUNT), np.int64)
        self.transactional: tuple[int, int] | None = None

    @property
    def next_offset(self) -> int:
        """The offset after the last batch in order; the segment's base offset before the first."""
        return self._floor

    def begin(self, segment: Segment) -> None:
        """Begin with the first chunk of a segment."""
        self._floor, self._ceiling = segment.base_offset, offset_limit(segment)

    def valid_prefix(self, chunk: memoryview, position: int, file: str) -> Prefix:
        """Return how much of a chunk is in order; the chunk starts with the batch at `position` of the file."""
        data = np.frombuffer(chunk, np.uint8)
        at, status, floor = 0, t.FULL, self._floor
        scan: t.Scan | None = None
        self.transactional = None
        while status == t.FULL:
            is_first = at == 0
            rows, at, status = t.scan_batches(data, at, self._table)
            table = self._table[:rows]
            if is_first and status != t.FULL:
                scan = t.Scan(table, at, status)
            if not rows:
                break
            self._note_transactions(table)
            wrong = first_wrong(table, floor, self._ceiling)
            if wrong >= 0:
                return self._prefix(wrong, floor, position, file)
            floor = int(table[-1, t.LAST_OFFSET]) + 1
        self._floor = floor
        return Prefix(len(chunk), scan=scan)

    def _note_transactions(self, table: npt.NDArray[np.int64]) -> None:
        """Extend the range of offsets with batches of transactions by those of a table."""
        found = np.flatnonzero((table[:, t.MAGIC] == 2) & (table[:, t.ATTRIBUTES] & TRANSACTIONAL_FLAG != 0))
        if len(found):
            first = int(table[found[0], t.BASE_OFFSET]) if self.transactional is None else self.transactional[0]
            self.transactional = first, int(table[found[-1], t.LAST_OFFSET]) + 1

    def _prefix(self, i: int, floor: int, position: int, file: str) -> Prefix:
        """Return the prefix before row i of the table, or before its neighbour if either of the two may be wrong."""
        table = self._table
        first, last = int(table[i, t.BASE_OFFSET]), int(table[i, t.LAST_OFFSET])
        until = i
        what = ""
        if i and last < self._ceiling and first <= last:
            floor_before = int(table[i - 2, t.LAST_OFFSET]) + 1 if i > 1 else floor
            if first >= floor_before:
                until, what = i - 1, overlapping(first)
        self._floor = int(table[until - 1, t.LAST_OFFSET]) + 1 if until else floor
        start = int(table[until, t.POSITION])
        offsets = int(table[until, t.BASE_OFFSET]), int(table[i, t.LAST_OFFSET])
        damage = CorruptBatch(
            what or outside_segment(self._floor, self._ceiling),
            position + start,
            (),
            file,
            offsets if offsets[0] <= offsets[1] else None,
        )
        return Prefix(start, damage, int(table[i, t.POSITION] + table[i, t.SIZE]) - start)


def first_wrong(table: npt.NDArray[np.int64], floor: int, ceiling: int) -> int:
    """Return the first row of a header table whose offsets do not follow those before, from `floor` on, or are at the
    ceiling or beyond; -1 if there is none."""
    if native.LEVEL is not None:
        return native.first_wrong_offsets(table, floor, ceiling)
    first, last = table[:, t.BASE_OFFSET], table[:, t.LAST_OFFSET]
    before = np.empty_like(last)
    before[0], before[1:] = floor - 1, last[:-1]
    wrong = (first <= before) | (last >= ceiling) | (last < first)
    return int(wrong.argmax()) if wrong.any() else -1
