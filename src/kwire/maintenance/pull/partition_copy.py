"""The copy of one partition: a log that fetched batches are appended to, with the hashes of its segments."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping

from kwire.client.fetcher import Position
from kwire.errors import CorruptBatch
from kwire.log.files.index_writer import LARGEST_RELATIVE
from kwire.log.writing.partition_writer import PartitionWriter
from kwire.maintenance.new_log import pieces
from kwire.maintenance.pull.cluster import Bounds
from kwire.maintenance.pull.manifest import READ_BYTES, PartitionEntry, SegmentEntry
from kwire.records import RejectedRecords
from kwire.records.format.batch_header import parse_header

__all__ = ["PartitionCopy"]

APPEND_BYTES = 64 << 10
"""Minimum size of an append, and so of the distance between entries of the offset index (F-11)."""


class PartitionCopy:
    """The copy of a partition.

    log: its open log. high_watermark: of the leader. log_start_offset: of the leader, when the copy began.
    """

    def __init__(self, log: PartitionWriter, bounds: Bounds, *, known: Mapping[int, SegmentEntry]) -> None:
        """known: entries of an earlier manifest, by base offset."""
        self.log = log
        self.log_start_offset, self.high_watermark = bounds.log_start_offset, bounds.high_watermark
        self._hashed: dict[int, SegmentEntry] = {}
        self._active = -1
        self._digest = hashlib.sha256()
        for segment in log.segments:
            entry = known.get(segment.base_offset)
            if entry is not None and entry.size_bytes == segment.log.end and segment is not log.segments.active:
                self._hashed[segment.base_offset] = entry
        self._is_new = self.is_empty
        self._follow_active()

    @property
    def bounds(self) -> Bounds:
        """Log start offset and high watermark of the leader."""
        return Bounds(log_start_offset=self.log_start_offset, high_watermark=self.high_watermark)

    @property
    def is_complete(self) -> bool:
        """Whether everything below the high watermark is copied."""
        return self.log.log_end_offset >= self.high_watermark

    @property
    def is_at_end(self) -> bool:
        """Whether the copy ends at the high watermark: above it, the leader may have lost records."""
        return self.log.log_end_offset == self.high_watermark

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever copied: the log may still begin anywhere."""
        return self.log.log_end_offset == 0 and self.log.size_bytes == 0

    def position(self) -> Position:
        """Return the position to fetch from."""
        log = self.log
        start = self.log_start_offset if self.is_empty else log.log_end_offset
        epoch = log.leader_epochs.latest
        return Position(start, -1 if epoch is None else epoch, log.topic_id)

    def append(self, records: memoryview, *, up_to: int | None, now_ms: int) -> int:
        """Append fetched batches and return their size.

        up_to: batches from this offset on are dropped. Raises CorruptBatch, RejectedRecords, LogError.
        """
        begins = self.is_empty and len(records) > 0
        if begins:
            self._begin(records, now_ms)
        try:
            written = self._append_pieces(records, up_to, now_ms)
        except (CorruptBatch, RejectedRecords):
            if begins and not self.log.size_bytes:  # where the log begins, that batch said
                self.log.truncate_fully_and_start_at(0, now_ms=now_ms)
                self._follow_active()
            raise
        self._move_start()
        return written

    def _append_pieces(self, records: memoryview, up_to: int | None, now_ms: int) -> int:
        written = 0
        for start, end in pieces(records, APPEND_BYTES):
            piece = records[start:end]
            if up_to is not None:
                piece = piece[: size_below(piece, up_to)]
            if not len(piece):
                break
            self._write(piece, now_ms)
            written += len(piece)
        return written

    def _write(self, piece: memoryview, now_ms: int) -> None:
        """Append a few batches, and hash them."""
        self._make_room(piece)
        self.log.append_as_given(piece, now_ms=now_ms)
        if self.log.segments.active.base_offset != self._active:
            self._follow_active(before=len(piece))
        self._digest.update(piece)

    def begin_at(self, offset: int, *, now_ms: int) -> None:
        """Begin an empty copy at an offset."""
        if offset:
            self.log.truncate_fully_and_start_at(offset, now_ms=now_ms)
            self.log.local.delete_due_files(now_ms + self.log.config.file_delete_delay_ms)  # the empty first segment
            self._follow_active()

    def truncate_to(self, offset: int, *, now_ms: int) -> None:
        """Remove what the leader does not have from offset on."""
        self.log.truncate_to(offset, now_ms=now_ms)
        closed = [segment.base_offset for segment in self.log.segments][:-1]
        self._hashed = {base: entry for base, entry in self._hashed.items() if base in closed}
        self._active = -1
        self._follow_active()

    def entry(self) -> PartitionEntry:
        """Return the entry for the manifest."""
        active = self.log.segments.active
        hashed = [self._hashed[base] for base in sorted(self._hashed)]
        if active.log.end:
            digest = self._digest.hexdigest()
            hashed.append(SegmentEntry(base_offset=self._active, size_bytes=active.log.end, sha256=digest))
        return PartitionEntry(
            log_start_offset=self.log.log_start_offset,
            log_end_offset=self.log.log_end_offset,
            high_watermark=self.high_watermark,
            segments=hashed,
        )

    def _move_start(self) -> None:
        """Set the log start offset of a new copy, where the leader's log begins inside a batch."""
        log = self.log
        if self._is_new and log.log_start_offset < self.log_start_offset <= log.high_watermark:
            log.delete_records(self.log_start_offset)

    def _begin(self, records: memoryview, now_ms: int) -> None:
        """Begin the first segment where the leader's log begins, or before it with the batch that contains its start.

        Compaction may have removed the batches at its start: they are missing, but the offsets are in range.
        """
        header = parse_header(records, 0, 0, self.log.name)
        assert header is not None  # fetched batches are complete
        base = min(header.base_offset, self.log_start_offset)
        if header.last_offset - base > LARGEST_RELATIVE:  # one segment cannot have both
            base = header.base_offset
        self.begin_at(base, now_ms=now_ms)

    def _make_room(self, piece: memoryview) -> None:
        """Allow a batch larger than segment.bytes, which the topic had when it was written."""
        config = self.log.config
        if len(piece) > config.max_segment_bytes:
            self.log.config = dataclasses.replace(config, segment_bytes=len(piece))

    def _follow_active(self, before: int = 0) -> None:
        """Hash the active segment from here on. before: bytes at its end that are hashed by the caller."""
        segments = self.log.segments
        for segment in segments:
            if segment is segments.active or segment.base_offset in self._hashed:
                continue
            digest = self._digest
            if segment.base_offset != self._active:
                digest = hashed(f"{self.log.directory}/{segment.base_offset:020}.log", segment.log.end)
            self._hashed[segment.base_offset] = SegmentEntry(
                base_offset=segment.base_offset, size_bytes=segment.log.end, sha256=digest.hexdigest()
            )
        active = segments.active
        self._active = active.base_offset
        self._digest = hashed(f"{self.log.directory}/{active.base_offset:020}.log", active.log.end - before)


def size_below(records: memoryview, offset: int) -> int:
    """Return the size of the batches that begin below an offset."""
    at = 0
    while at < len(records):
        header = parse_header(records, at, at, "")
        assert header is not None  # fetched batches are complete
        if header.base_offset >= offset:
            break
        at += header.size_bytes
    return at


def hashed(path: str, size_bytes: int) -> hashlib._Hash:
    """Hash the first bytes of a file of at least that size."""
    digest, remaining = hashlib.sha256(), size_bytes
    if remaining:
        with open(path, "rb") as file:
            while remaining and (data := file.read(min(READ_BYTES, remaining))):
                digest.update(data)
                remaining -= len(data)
    return digest
