"""The segments of an open partition in offset order. Source: Kafka's LogSegments."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from kwire.log.writing.segment_writer import SegmentWriter

__all__ = ["SegmentList"]

LOADED_INDEXES = 4  # of closed segments, kept in memory for lagging readers


class SegmentList:
    """Segments by base offset; the last one is active."""

    def __init__(self) -> None:
        self._bases: list[int] = []
        self._segments: list[SegmentWriter] = []
        self._loaded: list[SegmentWriter] = []

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[SegmentWriter]:
        return iter(self._segments)

    def __getitem__(self, i: int) -> SegmentWriter:
        return self._segments[i]

    def __contains__(self, base_offset: object) -> bool:
        return base_offset in self._bases

    @property
    def active(self) -> SegmentWriter:
        """The last segment."""
        return self._segments[-1]

    @property
    def base_offsets(self) -> list[int]:
        """All base offsets, ascending."""
        return list(self._bases)

    @property
    def size_bytes(self) -> int:
        """Bytes of batches in all segments."""
        return sum(segment.size_bytes for segment in self._segments)

    def add(self, segment: SegmentWriter) -> None:
        """Add a segment, replacing one with the same base offset."""
        i = bisect_left(self._bases, segment.base_offset)
        if i < len(self._bases) and self._bases[i] == segment.base_offset:
            self._segments[i] = segment
        else:
            self._bases.insert(i, segment.base_offset)
            self._segments.insert(i, segment)

    def remove(self, base_offset: int) -> None:
        """Remove a segment from the list; its files stay."""
        i = bisect_left(self._bases, base_offset)
        del self._bases[i], self._segments[i]

    def get(self, base_offset: int) -> SegmentWriter | None:
        """Return the segment with a base offset, None without one."""
        i = bisect_left(self._bases, base_offset)
        return self._segments[i] if i < len(self._bases) and self._bases[i] == base_offset else None

    def number_of(self, offset: int) -> int:
        """Return the index of the last segment that begins at or below offset, -1 without one."""
        return bisect_right(self._bases, offset) - 1

    def next_base(self, i: int) -> int | None:
        """Return the base offset of the segment after index i, None for the active one."""
        return self._bases[i + 1] if i + 1 < len(self._bases) else None

    def between(self, from_offset: int, to_offset: int) -> list[SegmentWriter]:
        """Return the segments from the one that contains from_offset, or the first, up to to_offset."""
        if from_offset >= to_offset:
            return []
        return self._segments[max(self.number_of(from_offset), 0) : bisect_left(self._bases, to_offset)]

    def reading(self, segment: SegmentWriter) -> None:
        """Mark a segment's indexes as used, and unload the indexes of the least recently used closed segment."""
        if segment is self._segments[-1] or (self._loaded and self._loaded[-1] is segment):
            return
        if segment in self._loaded:
            self._loaded.remove(segment)
        self._loaded.append(segment)
        if len(self._loaded) > LOADED_INDEXES:
            self._loaded.pop(0).unload()
