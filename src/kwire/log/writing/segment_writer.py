"""Write one segment: a growing `.log` file and its indexes.

Before an append, an index entry is added if more than `index.interval.bytes` were appended since the last one: (last
offset of this append, its position). The first append therefore has none, and an entry is where to start reading for an
offset, not the offset's position (F-11, F-12).
Source: rules F-11 to F-22, F-60, F-64; Kafka's LogSegment.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

from kwire.log.files.file_names import segment_file
from kwire.log.files.index_writer import (
    LARGEST_RELATIVE,
    InvalidOffset,
    OffsetIndexWriter,
    TimeIndexWriter,
    TransactionIndexWriter,
)
from kwire.log.files.time_lookup import TimestampAndOffset, records_of
from kwire.log.files.transaction_index import TransactionIndexEntry
from kwire.log.writing.log_config import LogConfig
from kwire.records.attributes import NO_TIMESTAMP
from kwire.records.format.batch_header import BatchHeader
from kwire.storage.file_system import FileSystem, OpenFile
from kwire.storage.header_walk import HeaderWalk

__all__ = ["BatchPosition", "SegmentWriter"]

Data = bytes | bytearray | memoryview


class BatchPosition(NamedTuple):
    """The position of a batch in its segment."""

    position: int
    size_bytes: int
    base_offset: int  # as stored: of magic 0 and 1 the last offset
    last_offset: int


class SegmentWriter:
    """A segment of an open partition.

    directory: the partition's. suffix: of the file names, ".cleaned" before the segment is swapped in. base_offset:
    lower bound of its offsets. log: the `.log` file; its end is the segment's size. created_ms: time of construction,
    used for segments whose records have no timestamp.
    """

    def __init__(
        self,
        file_system: FileSystem,
        directory: str,
        base_offset: int,
        config: LogConfig,
        *,
        now_ms: int,
        suffix: str = "",
        is_new: bool = False,
    ) -> None:
        """is_new: create the files, with preallocated indexes; otherwise the segment is opened as closed."""
        self._file_system, self.directory, self.base_offset, self.suffix = file_system, directory, base_offset, suffix
        self.index_interval_bytes = config.index_interval_bytes
        self.created_ms = now_ms
        self.log = file_system.open(self.path("log"), create=is_new)
        if is_new and config.preallocate:
            self.log.allocate(config.max_segment_bytes)
        max_bytes = config.segment_index_bytes
        self.offset_index = OffsetIndexWriter(self._open_index("index"), base_offset, max_bytes)
        self.time_index = TimeIndexWriter(self._open_index("timeindex"), base_offset, max_bytes)
        self.transaction_index = TransactionIndexWriter(file_system, self.path("txnindex"), base_offset)
        if is_new:
            self.offset_index.allocate()
            self.time_index.allocate()
        jitter_ms = min(config.segment_jitter_ms, config.segment_ms)
        self.roll_jitter_ms = random.randrange(jitter_ms) if jitter_ms else 0
        self._bytes_since_entry = 0
        self._first_timestamp: int | None = None  # of the first batch, once it was read
        self._largest: tuple[int, int] | None = None  # timestamp and offset, once they were read
        self._last_batch: BatchPosition | None = None  # of the last append, if that was one batch
        self._removed = False

    def _open_index(self, kind: str) -> OpenFile:
        return self._file_system.open(self.path(kind), create=True)

    def __repr__(self) -> str:
        return f"SegmentWriter({self.log.url!r}, {self.size_bytes} bytes)"

    def path(self, kind: str) -> str:
        """Return the path of a file by kind: log, index, timeindex or txnindex."""
        return f"{self.directory}/{segment_file(self.base_offset, kind)}{self.suffix}"

    @property
    def files(self) -> list[OpenFile]:
        """All its files."""
        files = [self.log, self.offset_index.file, self.time_index.file]
        if self.transaction_index.file is not None:
            files.append(self.transaction_index.file)
        return files

    @property
    def size_bytes(self) -> int:
        """Bytes of batches."""
        return self.log.end

    # ---- appending

    def append(
        self,
        data: Sequence[Data],
        last_offset: int,
        max_timestamp: int,
        offset_of_max_timestamp: int,
        *,
        only_base_offset: int | None = None,
    ) -> int:
        """Append batches, and index entries if due; return the position of the first batch.

        last_offset: of the last batch. max_timestamp (ms), offset_of_max_timestamp: from validation. only_base_offset:
        base offset of a single batch of magic 2.
        Raises InvalidOffset, before anything is written, if last_offset does not fit the segment.
        """
        if not 0 <= last_offset - self.base_offset <= LARGEST_RELATIVE:
            raise InvalidOffset(
                f"offset {last_offset} does not fit a segment of base offset {self.base_offset}", self.log.url
            )
        position = self.log.end
        if position == 0:
            self._first_timestamp = max_timestamp
        largest = self.largest
        self.log.append(data)
        if max_timestamp > largest[0]:
            self._largest = largest = max_timestamp, offset_of_max_timestamp
        if self._bytes_since_entry > self.index_interval_bytes:
            self.offset_index.append(last_offset, position)
            self.time_index.append(*largest)
            self._bytes_since_entry = 0
        size_bytes = self.log.end - position
        self._bytes_since_entry += size_bytes
        if only_base_offset is None:
            self._last_batch = None
        else:
            self._last_batch = BatchPosition(position, size_bytes, only_base_offset, last_offset)
        return position

    @property
    def largest(self) -> tuple[int, int]:
        """(largest timestamp in ms, last offset of the earliest batch with it); -1 without one.

        For an opened segment, from its time index, which is complete if the segment was closed.
        """
        if self._largest is None:
            self._largest = self.time_index.last_timestamp, self.time_index.last_offset
        return self._largest

    @property
    def largest_timestamp(self) -> int:
        """Largest timestamp in ms; the file's modification time if no record has one (F-64)."""
        largest = self.largest[0]
        return largest if largest >= 0 else self.modified_ms

    def waited_ms(self, now_ms: int, timestamp: int) -> int:
        """Return the age of this segment by the timestamps of records or, without them, by the clock."""
        first = self.first_timestamp
        return timestamp - first if first >= 0 else now_ms - self.created_ms

    @property
    def first_timestamp(self) -> int:
        """Largest timestamp of the first batch in ms, -1 without one."""
        if self._first_timestamp is None:
            header = next(iter(HeaderWalk(self.log)), None)
            if header is None:
                return NO_TIMESTAMP
            self._first_timestamp = header.max_timestamp
        return self._first_timestamp

    def should_roll(
        self, config: LogConfig, now_ms: int, size_bytes: int, last_offset: int, max_timestamp: int
    ) -> bool:
        """Return whether new batches require a new segment (F-60)."""
        size = self.log.end
        if size > config.max_segment_bytes - size_bytes:
            return True
        if size and self.waited_ms(now_ms, max_timestamp) > config.segment_ms - self.roll_jitter_ms:
            return True
        if self.offset_index.is_full or self.time_index.is_full:
            return True
        return not 0 <= last_offset - self.base_offset <= LARGEST_RELATIVE

    def activate(self) -> None:
        """Become the active segment: preallocate the indexes."""
        self.offset_index.allocate()
        self.time_index.allocate()

    def deactivate(self) -> None:
        """Become a closed segment: write the last time index entry and trim the files."""
        self.time_index.append(*self.largest, may_take_last_slot=True)
        self.offset_index.trim()
        self.time_index.trim()
        self.log.trim()

    # ---- reading

    @property
    def index_bytes(self) -> int:
        """Size of the offset index entries."""
        return self.offset_index.count * self.offset_index.entry_bytes

    @property
    def time_index_bytes(self) -> int:
        """Size of the time index entries."""
        return self.time_index.count * self.time_index.entry_bytes

    @property
    def modified_ms(self) -> int:
        """Modification time of the `.log` file."""
        return self.log.modified_ms()

    @property
    def aborted(self) -> Sequence[TransactionIndexEntry]:
        """Entries of the transaction index."""
        return self.transaction_index.entries

    def opened(self) -> AbstractContextManager[OpenFile]:
        """Use the `.log` file, which stays open."""
        return nullcontext(self.log)

    def position_of(self, offset: int) -> int:
        """Return the start of a batch before everything at or above offset, from the offset index."""
        return self.offset_index.lookup(offset)

    def batches(self, position: int = 0) -> Iterator[BatchHeader]:
        """Iterate over the headers from position on. Raises CorruptBatch for bytes that are not a header."""
        walk = HeaderWalk(self.log, position)
        yield from walk
        if walk.damage:
            raise walk.damage

    def find_batch(self, offset: int) -> BatchPosition | None:
        """Find the first batch that ends at or above offset; None without one."""
        last = self._last_batch
        if last is not None and last.base_offset <= offset <= last.last_offset:
            return last
        for header in self.batches(self.position_of(offset)):
            if header.last_offset >= offset:
                return BatchPosition(header.position, header.size_bytes, header.stored_offset, header.last_offset)
        return None

    def read_next_offset(self) -> int:
        """Return the offset after the last batch, the base offset without one."""
        next_offset = self.base_offset
        for header in HeaderWalk(self.log, self.offset_index.last_position):
            next_offset = header.last_offset + 1
        return next_offset

    def find_timestamp(self, timestamp: int, start_offset: int) -> TimestampAndOffset | None:
        """Find the first record at or after timestamp (ms) and at or above start_offset (F-22). Raises CorruptBatch."""
        offset = max(self.time_index.lookup(timestamp), start_offset)
        for header in self.batches(self.position_of(offset)):
            if header.max_timestamp >= timestamp and header.last_offset >= start_offset:
                for record in records_of(self.log, header):
                    if record.timestamp >= timestamp and record.offset >= start_offset:
                        return TimestampAndOffset(record.offset, record.timestamp, record.leader_epoch)
        return None

    def find_largest_timestamp(self) -> TimestampAndOffset | None:
        """Find the first record with the segment's largest timestamp (KIP-734). Raises CorruptBatch."""
        timestamp, offset = self.largest
        for header in self.batches(self.position_of(offset)):
            if header.max_timestamp == timestamp:
                for record in records_of(self.log, header):
                    if record.timestamp == timestamp:
                        return TimestampAndOffset(record.offset, record.timestamp, record.leader_epoch)
        return None

    # ---- changing

    def truncate_to(self, offset: int, now_ms: int) -> int:
        """Remove batches that end at or above offset, and their index entries; return the number of bytes removed.

        The indexes are preallocated, since a truncated segment becomes active.
        """
        place = self.find_batch(offset)
        self._last_batch = None
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.transaction_index.truncate_to(offset)
        self.activate()
        before = self.log.end
        if place is not None:
            self.log.truncate(place.position)
        if self.log.end == 0:
            self.created_ms, self._first_timestamp = now_ms, None
        self._bytes_since_entry = 0
        if self.largest[0] >= 0:
            self._largest = self._read_largest()
        return before - self.log.end

    def _read_largest(self) -> tuple[int, int]:
        largest = self.time_index.last_timestamp, self.time_index.last_offset
        for header in self.batches(self.offset_index.lookup(largest[1])):
            if header.max_timestamp > largest[0]:
                largest = header.max_timestamp, header.last_offset
        return largest

    def set_largest(self, largest: tuple[int, int]) -> None:
        """Set the largest (timestamp in ms, offset), when indexes are rebuilt."""
        self._largest = largest

    def sync(self) -> None:
        """Make all files durable."""
        for file in self.files:
            file.sync()

    def change_suffix(self, suffix: str) -> None:
        """Rename all files: ".cleaned" to ".swap" to "", or "" to ".deleted"."""
        self.suffix = suffix
        self.log.rename(self.path("log"))
        self.offset_index.file.rename(self.path("index"))
        self.time_index.file.rename(self.path("timeindex"))
        self.transaction_index.rename(self.path("txnindex"))

    def set_modified(self, modified_ms: int) -> None:
        """Set the modification time of log and indexes."""
        for kind in ("log", "index", "timeindex"):
            self._file_system.set_modified(self.path(kind), modified_ms)

    def unload(self) -> None:
        """Unload the index entries until they are needed."""
        self.offset_index.unload()
        self.time_index.unload()

    def close(self) -> None:
        """Close cleanly: last time index entry, files trimmed. Does not sync."""
        if self._largest is not None:
            self.time_index.append(*self._largest, may_take_last_slot=True)
        self.offset_index.trim()
        self.time_index.trim()
        self.log.trim()
        self.close_files()

    def close_files(self) -> None:
        """Close the descriptors without changing the files."""
        self.log.close()
        self.offset_index.file.close()
        self.time_index.file.close()
        self.transaction_index.close()

    def remove(self) -> None:
        """Close and remove the files under their current names."""
        if self._removed:
            return
        self._removed = True
        self.close_files()
        for kind in ("log", "index", "timeindex", "txnindex"):
            self._file_system.remove(self.path(kind))

    def remove_indexes(self) -> None:
        """Remove all index entries and preallocate the indexes."""
        self.offset_index.reset()
        self.time_index.reset()
        self.transaction_index.reset()
