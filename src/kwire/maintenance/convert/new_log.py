"""A partition that is written from its first batch to its last, through the writable log.

What comes is whole batches with their offsets, and where segments begin; indexes, snapshots, leader epochs and the roll
at 2 GiB are the writable log's business. A piece is appended a few kilobytes at a time, since the offset index gets an
entry an append (F-11).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator

from kwire.log.log_config import MAX_INT64, LogConfig
from kwire.log.partition_writer import PartitionWriter
from kwire.records.batch_header import BatchHeader, parse_header
from kwire.storage.file_system import FileSystem

__all__ = ["LARGEST_SEGMENT_BYTES", "NewLog", "pieces"]

LARGEST_SEGMENT_BYTES = (1 << 31) - 1


class NewLog:
    """Writes one partition into a directory that is empty or not there.

    first_offset: base offset of the first segment. segment_bytes: a segment that would get larger is followed by
    another one. topic_id: for partition.metadata. last_offset, size_bytes: of what was written.
    Methods raise LogError where writing fails, RejectedRecords on offsets that do not rise.
    """

    def __init__(
        self,
        file_system: FileSystem,
        directory: str,
        topic: str,
        partition: int,
        *,
        first_offset: int,
        now_ms: int,
        segment_bytes: int = LARGEST_SEGMENT_BYTES,
        topic_id: uuid.UUID | None = None,
    ) -> None:
        self._files, self._now_ms = file_system, now_ms
        # segments are cut by size and where the caller says; times would cut them anew
        config = LogConfig(segment_bytes=segment_bytes, segment_ms=MAX_INT64)
        self._log = PartitionWriter.open(
            file_system,
            directory,
            topic,
            partition,
            config,
            now_ms=now_ms,
            log_start_offset=first_offset,
            topic_id=topic_id,
        )
        self._modified: dict[int, int] = {}  # base offset -> modification time of its segment
        self._modified_ms: int | None = None

    @property
    def next_offset(self) -> int:
        """The offset after the last one written."""
        return self._log.log_end_offset

    @property
    def size_bytes(self) -> int:
        """Bytes of batches written."""
        return self._log.size_bytes

    def begin_segment(self, base_offset: int, modified_ms: int | None = None) -> None:
        """Put what follows into a segment of its own; modified_ms: its modification time once it is complete."""
        self._modified_ms = modified_ms
        if self._log.segments.active.base_offset != base_offset:
            self._log.roll(self._now_ms, base_offset)
        self._remember_time()

    def _remember_time(self) -> None:
        if self._modified_ms is not None:
            self._modified[self._log.segments.active.base_offset] = self._modified_ms

    def append(self, data: bytes | bytearray | memoryview) -> None:
        """Write whole batches."""
        view = memoryview(data)
        for start, end in pieces(view):
            before = self._log.segments.active
            self._log.append_as_given(view[start:end], now_ms=self._now_ms)
            if self._log.segments.active is not before:
                self._remember_time()

    def finish(self, *, log_start_offset: int, log_end_offset: int) -> None:
        """Close as a clean stop does. log_end_offset: the next record's offset, at or behind what was written."""
        log = self._log
        if log.log_end_offset < log_end_offset:
            log.roll(self._now_ms, log_end_offset)  # an empty segment: its base offset is the log's end
            log.log_end_offset = log.high_watermark = log_end_offset
            log.producers.end_offset = log_end_offset
        if log_start_offset > log.log_start_offset:
            log.high_watermark = log.log_end_offset
            log.delete_records(log_start_offset)
        log.close()
        for name in self._files.list(log.directory):  # closing has trimmed indexes, which no sync has seen
            with self._files.open(f"{log.directory}/{name}") as file:
                file.sync()
        self._files.sync_directory(log.directory)
        for base_offset, modified_ms in self._modified.items():
            self._files.set_modified(f"{log.directory}/{base_offset:020}.log", modified_ms)

    def abandon(self) -> None:
        """Let go of the files as they are."""
        if not self._log.is_closed:
            self._log.abandon()


def pieces(data: memoryview, at_least: int = 4096) -> Iterator[tuple[int, int]]:
    """[start, end) of runs of batches of at least so many bytes, less at the end and where a marker ends one: what is
    stable behind a marker (F-30) is asked when it is appended, and nothing behind it may be there by then."""
    start = at = 0
    while at < len(data):
        header = header_at(data, at)
        at += header.size_bytes
        if at - start > at_least or header.is_control:
            yield start, at
            start = at
    if at > start:
        yield start, at


def header_at(data: memoryview, at: int) -> BatchHeader:
    """The batch header at a position of our own output."""
    header = parse_header(data[at : at + 61], 0, at, "")
    assert header is not None
    return header
