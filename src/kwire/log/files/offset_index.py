"""`.index`: positions of offsets in a segment.

    pos  bytes  field       note, an entry of 8 bytes
      0      4  offset      relative to the segment's base offset; last offset of the append
      4      4  position    in the .log file, where that append starts

A lookup finds the largest entry at or below the offset; scanning starts at its position (rule F-12). The file of an
active segment is preallocated with zeros, so the entries end at the first zero one (F-14). An index is a hint only:
`kwire.log.files.segment` verifies that an entry points at a batch before it uses it.
Source: rules F-10 to F-16; Kafka's OffsetIndex, AbstractIndex.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

import msgspec

from kwire.storage.store import StoredFile

ENTRY = struct.Struct(">ii")
assert ENTRY.size == 8


def read_entries(file: StoredFile, entry_bytes: int) -> bytes:
    """Read the whole entries before the zeros at the end of a preallocated file.

    A small file is read in one request. Of a larger one, the last entry shows whether there are zeros; then the end is
    looked for at doubling distances from the start, and between the last two: of a preallocated index of 10 MiB, an
    object store reads the beginning only.
    """
    count = file.size() // entry_bytes
    whole = file.pread(0, count * entry_bytes) if count * entry_bytes <= file.window_bytes else None
    empty = bytes(entry_bytes)

    def unused(i: int) -> bool:
        at = i * entry_bytes
        return (file.pread(at, entry_bytes) if whole is None else whole[at : at + entry_bytes]) in (empty, b"")

    if whole is not None:
        return whole[: bisect_left(range(count), True, key=unused) * entry_bytes]
    if not unused(count - 1):
        return file.pread(0, count * entry_bytes)
    low, high = 0, file.window_bytes // entry_bytes
    while not unused(high - 1):
        low, high = high, min(count, 2 * high)
    return file.pread(0, (low + bisect_left(range(low, high), True, key=unused)) * entry_bytes)


class OffsetIndex(msgspec.Struct, frozen=True):
    """The used entries of one `.index` file. base_offset: of its segment."""

    base_offset: int
    entries: bytes

    @classmethod
    def read(cls, file: StoredFile, base_offset: int) -> OffsetIndex | None:
        """Read an index; None if its size is not a multiple of 8 (F-15)."""
        if file.size() % ENTRY.size:
            return None
        return cls(base_offset, read_entries(file, ENTRY.size))

    def __len__(self) -> int:
        return len(self.entries) // ENTRY.size

    def __getitem__(self, i: int) -> tuple[int, int]:
        """Return (absolute offset, position) of entry i."""
        offset, position = ENTRY.unpack_from(self.entries, i * ENTRY.size)
        return self.base_offset + offset, position

    def __iter__(self) -> Iterator[tuple[int, int]]:
        for offset, position in ENTRY.iter_unpack(self.entries):
            yield self.base_offset + offset, position

    def lookup(self, offset: int) -> tuple[int, int]:
        """Return (offset, position) of the largest entry at or below offset, else (base offset, 0) (F-12)."""
        i = bisect_right(range(len(self)), offset, key=lambda i: self[i][0])
        return self[i - 1] if i else (self.base_offset, 0)

    def after_position(self, position: int) -> int:
        """Return the number of the first entry at or after position, len(self) without one."""
        return bisect_left(range(len(self)), position, key=lambda i: self[i][1])
