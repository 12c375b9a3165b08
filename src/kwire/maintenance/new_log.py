"""A partition written from its first batch to its last.

Input is complete batches with their offsets, and segment boundaries. PartitionWriter adds indexes, snapshots, leader
epochs and the roll at 2 GiB. Data is appended a few kilobytes at a time, because the offset index gets one entry per
append (F-11).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator

from kwire.log.files.file_names import LARGEST_SEGMENT_BYTES
from kwire.log.writing.log_config import MAX_INT64, LogConfig
from kwire.log.writing.partition_writer import PartitionWriter
from kwire.log.writing.recovery import PartitionCheckpoints
from kwire.records.format.batch_header import parse_header
from kwire.storage.file_system import FileSystem

__all__ = ["NewLog", "pieces"]


class NewLog:
    """Writer of one partition into an empty or missing directory.

    first_offset: base offset of the first segment. segment_bytes: a segment that would get larger is followed by
    another one. topic_id: for partition.metadata. last_offset, size_bytes: of what was written.
    Methods raise LogError if a write fails, RejectedRecords for offsets that do not increase.
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
        # segments are cut by size and by the caller, not by time
        config = LogConfig(segment_bytes=segment_bytes, segment_ms=MAX_INT64)
        self._log = PartitionWriter.open(
            file_system,
            directory,
            topic,
            partition,
            config,
            now_ms=now_ms,
            checkpoints=PartitionCheckpoints(log_start_offset=first_offset),
            topic_id=topic_id,
        )
        self._modified: dict[int, int] = {}  # base offset -> modification time of its segment
        self._modified_ms: int | None = None

    @property
    def next_offset(self) -> int:
        """Offset after the last one written."""
        return self._log.log_end_offset

    @property
    def size_bytes(self) -> int:
        """Bytes of batches written."""
        return self._log.size_bytes

    @property
    def leader_epoch(self) -> int:
        """The latest leader epoch of what was written, -1 without one."""
        latest = self._log.leader_epochs.latest
        return -1 if latest is None else latest

    def coordinator_epoch(self, producer_id: int) -> int:
        """Return the coordinator epoch of a producer's last transaction marker, -1 without one."""
        known = self._log.producers.entries.get(producer_id)
        return -1 if known is None else known.coordinator_epoch

    def begin_segment(self, base_offset: int, modified_ms: int | None = None) -> None:
        """Start a new segment. modified_ms: its modification time when it is complete."""
        self._modified_ms = modified_ms
        if self._log.segments.active.base_offset != base_offset:
            self._log.roll(self._now_ms, base_offset)
        self._remember_time()

    def _remember_time(self) -> None:
        if self._modified_ms is not None:
            self._modified[self._log.segments.active.base_offset] = self._modified_ms

    def append(self, data: bytes | bytearray | memoryview) -> None:
        """Write complete batches."""
        view = memoryview(data)
        for start, end in pieces(view):
            before = self._log.segments.active
            self._log.append_as_given(view[start:end], now_ms=self._now_ms)
            if self._log.segments.active is not before:
                self._remember_time()

    def finish(self, *, log_start_offset: int, log_end_offset: int) -> None:
        """Close like a clean shutdown. log_end_offset: at or after the last offset written."""
        log = self._log
        if log.log_end_offset < log_end_offset:
            log.roll(self._now_ms, log_end_offset)  # an empty segment: its base offset is the log end offset
            log.local.log_end_offset = log_end_offset
            log.high_watermark = log_end_offset
            log.producers.end_offset = log_end_offset
        if log_start_offset > log.log_start_offset:
            log.high_watermark = log.log_end_offset
            log.delete_records(log_start_offset)
        log.close()
        for name in self._files.list(log.directory):  # indexes were trimmed by closing and are not synced yet
            with self._files.open(f"{log.directory}/{name}") as file:
                file.sync()
        self._files.sync_directory(log.directory)
        for base_offset, modified_ms in self._modified.items():
            self._files.set_modified(f"{log.directory}/{base_offset:020}.log", modified_ms)

    def abandon(self) -> None:
        """Close the files without finishing them."""
        if not self._log.is_closed:
            self._log.abandon()


def pieces(data: memoryview, at_least: int = 4096) -> Iterator[tuple[int, int]]:
    """Yield [start, end) of runs of batches of a minimum size. A run ends after a transaction marker.

    The last stable offset is computed when a marker is appended (F-30), so nothing may follow it in the append.
    """
    start = at = 0
    while at < len(data):
        header = parse_header(data, at, at, "")
        assert header is not None  # our own output
        at += header.size_bytes
        if at - start > at_least or header.is_control:
            yield start, at
            start = at
    if at > start:
        yield start, at
