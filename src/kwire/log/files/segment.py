"""One segment: a `.log` file, its indexes, and lookups of offsets in it.

Indexes only save time. An entry is used if it points at the header of a batch inside the segment that does not start
above the requested offset; otherwise, and without a usable index, headers are read from the start of the file. A
missing, torn or wrong index therefore costs time and never a record.
Source: rules F-10 to F-33, F-64; Kafka's LogSegment.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from kwire.errors import CorruptBatch, LogError
from kwire.log.files.file_names import SegmentFiles
from kwire.log.files.offset_index import OffsetIndex
from kwire.log.files.time_index import TimeIndex
from kwire.log.files.transaction_index import TransactionIndexEntry, parse_transaction_index
from kwire.records.attributes import NO_TIMESTAMP
from kwire.records.format.batch_header import BatchHeader
from kwire.storage.header_walk import HeaderWalk, PlainBatches, header_at, is_zero_tail
from kwire.storage.store import Store, StoredFile

INDEX_TRIES = 8  # wrong entries after which the index is no longer used


class End(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a segment's batches.

    next_offset: after the last whole batch, or the base offset if there is none. magic: of that batch, or None.
    position: in the file. damage: of the bytes that follow; None if the file ends there, inside a batch or in zeros.
    """

    next_offset: int
    magic: int | None
    position: int
    damage: CorruptBatch | None


class Segment:
    """A segment as of one listing. Methods open and close the files they need.

    base_offset: lower bound of its offsets. next_base: base offset of the next segment, None for the active one.
    size_bytes: of the `.log` file when listed. modified_ms: its modification time, None if unknown to the store.
    plain_batches: those that a search for transactions has found outside of any, so that the next one skips them.
    """

    def __init__(
        self,
        store: Store,
        directory: str,
        files: SegmentFiles,
        *,
        next_base: int | None,
        size_bytes: int,
        modified_ms: int | None = None,
    ) -> None:
        self._store, self._directory, self._names = store, directory, files.names
        self.base_offset, self.next_base = files.base_offset, next_base
        self.size_bytes, self.modified_ms = size_bytes, modified_ms
        self._end: End | None = None
        self.plain_batches: PlainBatches | None = None

    def __repr__(self) -> str:
        return f"Segment({self.url!r}, {self.size_bytes} bytes)"

    @property
    def path(self) -> str:
        """Path of the `.log` file, relative to the store."""
        return self.path_of("log")

    @property
    def url(self) -> str:
        """The URL or path of the `.log` file."""
        return self._store.url_of(self.path)

    @property
    def has(self) -> frozenset[str]:
        """The kinds of files that exist: `log`, `index` and so on."""
        return frozenset(self._names)

    def path_of(self, kind: str) -> str:
        """Return the path of an existing file by kind, relative to the store."""
        return f"{self._directory}/{self._names[kind]}" if self._directory else self._names[kind]

    def name_of(self, kind: str) -> str:
        """Return the name of an existing file by kind."""
        return self._names[kind]

    @property
    def is_active(self) -> bool:
        """Whether this is the last segment, which grows."""
        return self.next_base is None

    def open(self) -> StoredFile:
        """Open the `.log` file. Raises LogError if it is missing."""
        return self._store.open(self.path, is_closed=self.next_base is not None)

    # ---- indexes

    @property
    def index(self) -> OffsetIndex | None:
        """The current offset index; None if it is missing, unreadable or of an invalid size."""
        with self._open_index("index") as file:
            return None if file is None else OffsetIndex.read(file, self.base_offset)

    @property
    def time_index(self) -> TimeIndex | None:
        """The current time index; None if it is missing, unreadable or invalid."""
        with self._open_index("timeindex") as file:
            return None if file is None else TimeIndex.read(file, self.base_offset)

    @property
    def transaction_index(self) -> list[TransactionIndexEntry] | None:
        """The current transaction index; None if it is missing, unreadable or invalid."""
        with self._open_index("txnindex") as file:
            if file is None:
                return None
            return parse_transaction_index(file.pread(0, file.size()), self.base_offset, self.next_base)

    @contextmanager
    def _open_index(self, kind: str) -> Iterator[StoredFile | None]:
        try:
            file = self._store.open(self.path_of(kind)) if kind in self._names else None
        except LogError:
            file = None  # unreadable, or deleted since the listing: use the log itself
        if file is None:
            yield None
        else:
            with file:
                yield file

    # ---- positions

    def is_inside(self, header: BatchHeader) -> bool:
        """Return whether a batch's offsets are between this segment's base offset and the next one's."""
        return self.base_offset <= header.stored_offset and (
            self.next_base is None or header.last_offset < self.next_base
        )

    def search_start(self, file: StoredFile, position: int, offset: int) -> BatchHeader | None:
        """Return the header at position if a search for `offset` can start there; else None.

        It can if the bytes are a header, the batch ends inside the file and the segment, and no offset at or above
        `offset` can precede it. In magic 0 and 1 the stored offset is the last one, which makes the test stricter.
        """
        size = file.size()
        if not 0 <= position < size:
            return None
        header = header_at(file, position)
        if header is None or position + header.size_bytes > size or not self.is_inside(header):
            return None
        return header if header.stored_offset <= offset else None

    def start_for(self, file: StoredFile, offset: int) -> int:
        """Return a batch start before everything at or above offset: from the index, else 0."""
        if offset <= self.base_offset:
            return 0
        index = self.index
        if index is not None:
            position = index.lookup(offset)[1]
            if position and self.search_start(file, position, offset):
                return position
        return 0

    def position_of(self, file: StoredFile, offset: int) -> int:
        """Return the position of the first batch that ends at or above offset, or the end of the batches.

        Raises CorruptBatch for damage before that position.
        """
        if offset <= self.base_offset:
            return 0
        walk = HeaderWalk(file, self.start_for(file, offset))
        for header in walk:
            if header.last_offset >= offset:
                return header.position
        self._raise_damage(file, walk)
        return walk.position

    def end_position(self, file: StoredFile, end_offset: int) -> int:
        """Return a position at or after the end of everything below end_offset; the file's size if uncertain."""
        if self.next_base is not None and end_offset >= self.next_base:
            return file.size()
        next_offset = 0
        above: BatchHeader | None = None
        for header in HeaderWalk(file, self.start_for(file, end_offset)):
            if above is not None:
                if header.stored_offset > above.last_offset:
                    return above.position
                above = None  # that batch was out of order: the reader has to see it
            if next_offset >= end_offset or (header.magic == 2 and header.stored_offset >= end_offset):
                above = header
            next_offset = header.last_offset + 1
        return file.size() if above is None else above.position

    def _raise_damage(self, file: StoredFile, walk: HeaderWalk) -> None:
        if walk.damage and not self.ends_in_zeros(file, walk.position):
            raise walk.damage

    def end(self) -> End:
        """Find the end of the batches, from the last valid index entry on. Zeros at the end are preallocated (F-14).

        The end is kept until the file grows. A file with bytes after it is read again each time.
        """
        with self.open() as file:
            known = self._end
            if known is not None and known.position == file.size():
                return known
            end = self._walk_to_end(file, 0) if file.size() <= file.window_bytes else None  # one read in either case
            if end is None or end.position < file.size():
                end = self._walk_to_end(file, self._last_indexed(file))
            self._end = end
            return end

    def _walk_to_end(self, file: StoredFile, position: int) -> End:
        """Follow the batches from a batch start on."""
        walk = HeaderWalk(file, position)
        next_offset, magic = self.base_offset, None
        for header in walk:
            next_offset, magic = header.last_offset + 1, header.magic
        damage = None if walk.damage and is_zero_tail(file, walk.position) else walk.damage
        return End(next_offset=next_offset, magic=magic, position=walk.position, damage=damage)

    def _last_indexed(self, file: StoredFile) -> int:
        """Return the position of the last index entry that is a batch, 0 without one."""
        index = self.index
        for i in range(len(index) if index else 0, 0, -1):
            assert index is not None
            offset, position = index[i - 1]
            if self.search_start(file, position, offset):
                return position
            if len(index) - i >= INDEX_TRIES:  # one scan of all headers is cheaper than more tries
                break
        return 0

    def ends_in_zeros(self, file: StoredFile, position: int) -> bool:
        """Return whether only preallocated zeros of the active segment follow position."""
        return self.is_active and is_zero_tail(file, position)

    def cut(self, file: StoredFile, position: int, size: int) -> CorruptBatch | None:
        """Return the damage if the batches end at position, before the end of the file; None for a write in progress.

        size: of the file when the read began; a writer may have appended since. The end of the active segment may cut a
        batch that is being written. In a closed segment, or with later batches in the index, it is damage.
        """
        if position >= size:
            return None
        if self.next_base is not None:
            what = f"the segment ends inside this batch: {size - position} bytes remain"
            return CorruptBatch(what, position, (), file.url)
        index = self.index
        if index is not None:
            first = index.after_position(position + 1)
            for offset, later in (index[i] for i in range(first, min(len(index), first + INDEX_TRIES))):
                if later < size and self.search_start(file, later, offset):
                    what = f"its length extends past the end of the file, but a batch begins at byte {later}"
                    return CorruptBatch(what, position, (), file.url)
        return None

    def headers(self, start_position: int = 0) -> Iterator[BatchHeader]:
        """Iterate over the batch headers from a batch start on; ends silently at damage."""
        with self.open() as file:
            yield from HeaderWalk(file, start_position)

    # ---- time

    def largest_timestamp(self, file: StoredFile, enough: int | None = None) -> int:
        """Return the largest timestamp of the segment in ms, -1 if no record has one (F-64 without the file's time).

        Read from the last entry of the time index if a batch confirms it, and from the headers after it: an index may
        have lost entries. Otherwise read from all headers. enough: a timestamp at or above it may be returned instead.
        """
        index = self.time_index
        start, largest = 0, NO_TIMESTAMP
        if index is not None:
            largest, offset = index.last
            if len(index) == 0:
                if not self.is_active and not self._starts_with_timestamp(file):
                    return NO_TIMESTAMP
            elif (at := self.batch_at(file, offset)) is None or at.max_timestamp != largest:
                largest = NO_TIMESTAMP
            else:
                start = at.position
        walk = iter(HeaderWalk(file, start))
        while (enough is None or largest < enough) and (header := next(walk, None)) is not None:
            largest = max(largest, header.max_timestamp)
        return largest

    def _starts_with_timestamp(self, file: StoredFile) -> bool:
        for header in HeaderWalk(file):
            return header.max_timestamp >= 0
        return False

    def batch_at(self, file: StoredFile, offset: int) -> BatchHeader | None:
        """Return the header of the first batch that ends at or above offset, None at the end."""
        for header in HeaderWalk(file, self.start_for(file, offset)):
            if header.last_offset >= offset:
                return header
        return None

    def time_start(self, file: StoredFile, timestamp: int, start_offset: int) -> int:
        """Return a batch start before every record at or above start_offset and at or after timestamp (ms)."""
        index = self.time_index
        offset = start_offset
        if index is not None and len(index):
            entry_timestamp, entry_offset = index.lookup(timestamp - 1)  # an equal timestamp may precede its entry
            at = self.batch_at(file, entry_offset)
            if at is not None and at.max_timestamp == entry_timestamp:
                offset = max(offset, entry_offset)
        return self.start_for(file, offset)
