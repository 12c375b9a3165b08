"""`.timeindex`: the largest timestamp up to an offset.

    pos  bytes  field       note, an entry of 12 bytes
      0      8  timestamp   ms; no record up to and including `offset` is later
      8      4  offset      relative to the segment's base offset

The last entry of a closed segment holds its largest timestamp. Files of active segments are preallocated with zeros.
Source: rules F-20 to F-23; Kafka's TimeIndex.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator

import msgspec

from kwire.log.files.offset_index import read_entries
from kwire.storage.store import StoredFile

ENTRY = struct.Struct(">qi")
assert ENTRY.size == 12

NO_TIMESTAMP = -1


class TimeIndex(msgspec.Struct, frozen=True):
    """The used entries of one `.timeindex` file. base_offset: of its segment."""

    base_offset: int
    entries: bytes

    @classmethod
    def read(cls, file: StoredFile, base_offset: int) -> TimeIndex | None:
        """Read an index; None if its size, first or last entry is invalid (F-23)."""
        if file.size() % ENTRY.size:
            return None
        index = cls(base_offset, read_entries(file, ENTRY.size))
        if len(index):
            (first, _), (last, offset) = index[0], index[len(index) - 1]
            if last < first or offset < base_offset:
                return None
        return index

    def __len__(self) -> int:
        return len(self.entries) // ENTRY.size

    def __getitem__(self, i: int) -> tuple[int, int]:
        """Return (timestamp in ms, absolute offset) of entry i."""
        timestamp, offset = ENTRY.unpack_from(self.entries, i * ENTRY.size)
        return timestamp, self.base_offset + offset

    def __iter__(self) -> Iterator[tuple[int, int]]:
        for timestamp, offset in ENTRY.iter_unpack(self.entries):
            yield timestamp, self.base_offset + offset

    @property
    def last(self) -> tuple[int, int]:
        """(timestamp, offset) of the last entry, (-1, base offset) without one."""
        return self[len(self) - 1] if len(self) else (NO_TIMESTAMP, self.base_offset)

    def lookup(self, timestamp: int) -> tuple[int, int]:
        """Return (timestamp, offset) of the largest entry at or below timestamp, else (-1, base offset) (F-22)."""
        i = bisect_right(range(len(self)), timestamp, key=lambda i: self[i][0])
        return self[i - 1] if i else (NO_TIMESTAMP, self.base_offset)
