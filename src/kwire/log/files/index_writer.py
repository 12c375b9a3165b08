"""Write the indexes of a segment: `.index`, `.timeindex`, `.txnindex`. Layouts: `offset_index` and its siblings.

    offset index       (last offset of an append, its position), both increasing; full when no entry fits
    time index         (largest timestamp so far, its offset); one slot is reserved for the entry on roll
    transaction index  aborted transactions by their markers; the file is created with its first entry

The first two are preallocated to `segment.index.bytes` with zeros, and trimmed when their segment is closed (F-14).
Lookups use entries in memory: indexes of the active segment stay there, indexes of closed segments are loaded on
demand and can be unloaded.
Source: rules F-10 to F-33; Kafka's AbstractIndex, OffsetIndex, TimeIndex, TransactionIndex.
"""

from __future__ import annotations

import struct
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from kwire.errors import LogError
from kwire.log.files import offset_index, time_index, transaction_index
from kwire.log.files.time_index import NO_TIMESTAMP
from kwire.log.files.transaction_index import TransactionIndexEntry
from kwire.storage.file_system import FileSystem, OpenFile

__all__ = ["LARGEST_RELATIVE", "InvalidOffset", "OffsetIndexWriter", "TimeIndexWriter", "TransactionIndexWriter"]

LARGEST_RELATIVE = (1 << 31) - 1


class InvalidOffset(LogError):
    """An index entry out of order: the offsets of the log do not increase (F-13, F-21)."""


class IndexWriter:
    """Base of the two preallocated indexes. base_offset: of the segment. max_bytes: maximum size of the file.

    count: entries in use. max_count: entries that fit into the file.
    """

    entry_bytes: int

    def __init__(self, file: OpenFile, base_offset: int, max_bytes: int) -> None:
        self.file, self.base_offset, self.max_bytes = file, base_offset, max_bytes
        self.count = self.max_count = file.end // self.entry_bytes
        self._loaded = self.count == 0

    def allocate(self) -> None:
        """Preallocate the file, as for an active segment."""
        self.max_count = self.max_bytes // self.entry_bytes
        self.file.end = self.count * self.entry_bytes
        self.file.allocate(max(self.max_count, self.count) * self.entry_bytes)

    def trim(self) -> None:
        """Trim the file to the entries in use."""
        self.file.end = self.count * self.entry_bytes
        self.file.trim()
        self.max_count = self.count

    def relative(self, offset: int) -> int:
        """Return offset relative to the base offset. Raises InvalidOffset if it does not fit."""
        relative = offset - self.base_offset
        if not 0 <= relative <= LARGEST_RELATIVE:
            raise InvalidOffset(
                f"offset {offset} does not fit a segment of base offset {self.base_offset}", self.file.url
            )
        return relative

    def _cut(self, count: int) -> None:
        self.count = count
        self.file.end = count * self.entry_bytes

    def _clear(self) -> None:
        """Clear the entries in memory."""
        raise NotImplementedError

    def unload(self) -> None:
        """Unload the entries until they are needed."""
        if self.count:
            self._clear()
            self._loaded = False

    def reset(self) -> None:
        """Remove all entries and preallocate the file."""
        self._clear()
        self._loaded = True
        self._cut(0)
        self.file.truncate(0)
        self.allocate()


class OffsetIndexWriter(IndexWriter):
    """The `.index` file of a segment that is written."""

    entry_bytes = offset_index.ENTRY.size

    def __init__(self, file: OpenFile, base_offset: int, max_bytes: int) -> None:
        super().__init__(file, base_offset, max_bytes)
        self._offsets, self._positions = array("i"), array("i")  # relative to base_offset; in the .log file

    @property
    def is_full(self) -> bool:
        """Whether no further entry fits."""
        return self.count >= self.max_count

    def append(self, offset: int, position: int) -> None:
        """Add an entry. Raises InvalidOffset unless offset is above the last entry's, LogError if the index is full."""
        self.load()
        if self.is_full:
            raise LogError(f"offset index is full with {self.count} entries", self.file.url)
        relative = self.relative(offset)
        if self.count and relative <= self._offsets[-1]:
            raise InvalidOffset(f"offset {offset} is not above the last one of the index", self.file.url)
        self.file.append(offset_index.ENTRY.pack(relative, position))
        self._offsets.append(relative)
        self._positions.append(position)
        self.count += 1

    def load(self) -> None:
        """Load the entries into memory."""
        if self._loaded:
            return
        flat = array("i", self.file.pread(0, self.count * self.entry_bytes))
        assert flat.itemsize == 4
        if sys.byteorder == "little":
            flat.byteswap()
        self._offsets, self._positions = flat[0::2], flat[1::2]
        self._loaded = True

    def _clear(self) -> None:
        self._offsets, self._positions = array("i"), array("i")

    def lookup(self, offset: int) -> int:
        """Return the position of the largest entry at or below offset, 0 without one (F-12)."""
        self.load()
        i = bisect_right(self._offsets, min(offset - self.base_offset, LARGEST_RELATIVE))
        return self._positions[i - 1] if i else 0

    def offset_after(self, position: int) -> int | None:
        """Return the offset of the first entry at or after position; None without one."""
        self.load()
        i = bisect_left(self._positions, position)
        return self.base_offset + self._offsets[i] if i < self.count else None

    @property
    def last_position(self) -> int:
        """Position of the last entry, 0 without one."""
        self.load()
        return self._positions[-1] if self.count else 0

    def truncate_to(self, offset: int) -> None:
        """Remove entries at or above offset (F-16)."""
        self.load()
        count = bisect_left(self._offsets, offset - self.base_offset)
        del self._offsets[count:], self._positions[count:]
        self._cut(count)


class TimeIndexWriter(IndexWriter):
    """The `.timeindex` file of a segment that is written. last_timestamp, last_offset: by default -1, base_offset."""

    entry_bytes = time_index.ENTRY.size

    def __init__(self, file: OpenFile, base_offset: int, max_bytes: int) -> None:
        super().__init__(file, base_offset, max_bytes)
        self._entries: list[tuple[int, int]] = []  # timestamp, offset relative to base_offset
        self.last_timestamp, self.last_offset = NO_TIMESTAMP, base_offset
        if self.count:
            data = self.file.pread((self.count - 1) * self.entry_bytes, self.entry_bytes)
            self.last_timestamp, relative = time_index.ENTRY.unpack(data)
            self.last_offset = self.base_offset + relative

    @property
    def is_full(self) -> bool:
        """Whether only the slot reserved for the roll is free."""
        return self.count >= self.max_count - 1

    def append(self, timestamp: int, offset: int, *, may_take_last_slot: bool = False) -> None:
        """Add an entry if timestamp (ms) is above the last one's (F-21).

        Raises InvalidOffset if offset or timestamp is below the last entry's, LogError if the index is full.
        """
        if self.is_full and not may_take_last_slot:
            raise LogError(f"time index is full with {self.count} entries", self.file.url)
        if self.count and (offset < self.last_offset or timestamp < self.last_timestamp):
            what = f"timestamp {timestamp} at offset {offset} is below the last entry of the index"
            raise InvalidOffset(what, self.file.url)
        if timestamp <= self.last_timestamp:
            return
        self.load()
        relative = self.relative(offset)
        self.file.append(time_index.ENTRY.pack(timestamp, relative))
        self._entries.append((timestamp, relative))
        self.count += 1
        self.last_timestamp, self.last_offset = timestamp, offset

    def load(self) -> None:
        """Load the entries into memory."""
        if not self._loaded:
            data = self.file.pread(0, self.count * self.entry_bytes)
            self._entries = [(timestamp, offset) for timestamp, offset in time_index.ENTRY.iter_unpack(data)]
            self._loaded = True

    def _clear(self) -> None:
        self._entries = []

    def lookup(self, timestamp: int) -> int:
        """Return the offset of the largest entry at or below timestamp (ms), the base offset without one (F-22)."""
        self.load()
        i = bisect_right(self._entries, (timestamp, LARGEST_RELATIVE))
        return self.base_offset + self._entries[i - 1][1] if i else self.base_offset

    def truncate_to(self, offset: int) -> None:
        """Remove entries at or above offset (F-16)."""
        self.load()
        count = bisect_left(self._entries, offset - self.base_offset, key=lambda entry: entry[1])
        del self._entries[count:]
        self._cut(count)
        self._set_last()

    def _set_last(self) -> None:
        timestamp, relative = self._entries[-1] if self._entries else (NO_TIMESTAMP, 0)
        self.last_timestamp, self.last_offset = timestamp, self.base_offset + relative

    def reset(self) -> None:
        """Remove all entries and preallocate the file."""
        super().reset()
        self._set_last()


class TransactionIndexWriter:
    """The `.txnindex` file of a segment that is written, also in memory. file: None until the first entry."""

    def __init__(self, file_system: FileSystem, path: str, base_offset: int) -> None:
        self._file_system, self.path, self.base_offset = file_system, path, base_offset
        self.file = file_system.open(path) if file_system.exists(path) else None
        self._entries: list[TransactionIndexEntry] | None = [] if self.file is None else None

    @property
    def entries(self) -> Sequence[TransactionIndexEntry]:
        """Return all whole entries. Raises LogError for an unknown version (F-31)."""
        return self._load()

    def _load(self) -> list[TransactionIndexEntry]:
        if self._entries is None:
            assert self.file is not None
            data = self.file.pread(0, self.file.end)
            whole = len(data) // transaction_index.ENTRY.size * transaction_index.ENTRY.size
            entries = []
            for version, *fields in transaction_index.ENTRY.iter_unpack(data[:whole]):
                if version >> 8:
                    raise LogError(f"aborted transaction of version {version >> 8}, expected 0", self.path)
                entries.append(TransactionIndexEntry(*fields))
            self._entries = entries
        return self._entries

    @property
    def is_sane(self) -> bool:
        """Return whether no marker is below the segment (F-33) and all versions are known."""
        try:
            return all(entry.last_offset >= self.base_offset for entry in self.entries)
        except (LogError, struct.error):
            return False

    def append(self, entry: TransactionIndexEntry) -> None:
        """Add an entry. Raises InvalidOffset unless its marker is after the last one's (F-31)."""
        entries = self._load()
        if entries and entry.last_offset <= entries[-1].last_offset:
            raise InvalidOffset(f"offset {entry.last_offset} is not above the last one of the index", self.path)
        if self.file is None:
            self.file = self._file_system.open(self.path, create=True)
        self.file.append(transaction_index.ENTRY.pack(0, *entry))
        entries.append(entry)

    def truncate_to(self, offset: int) -> None:
        """Remove the entries whose marker is at or above offset (F-16)."""
        if self.file is None:
            return
        entries = self._load()
        count = next((i for i, entry in enumerate(entries) if entry.last_offset >= offset), None)
        if count is not None:
            self.file.truncate(count * transaction_index.ENTRY.size)
            del entries[count:]

    def reset(self) -> None:
        """Remove all entries; an existing file stays, empty."""
        self._entries = []
        if self.file is not None:
            self.file.truncate(0)

    def rename(self, path: str) -> None:
        """Rename the file."""
        if self.file is not None:
            self.file.rename(path)
        self.path = path

    def close(self) -> None:
        """Close the file."""
        if self.file is not None:
            self.file.close()
