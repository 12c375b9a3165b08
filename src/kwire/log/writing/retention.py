"""Select the segments beyond retention. Source: rule F-62; kafka.log.UnifiedLog.deleteOldSegments."""

from __future__ import annotations

from collections.abc import Callable

from kwire.log.writing.log_config import LogConfig
from kwire.log.writing.segment_list import SegmentList
from kwire.log.writing.segment_writer import SegmentWriter

__all__ = ["below_log_start", "over_size", "over_time"]

Condition = Callable[[SegmentWriter, int | None], bool]  # (segment, base offset of the next one)


def below_log_start(segments: SegmentList, log_start_offset: int, high_watermark: int, end: int) -> list[SegmentWriter]:
    """Return the segments that end at or below the log start offset."""

    def is_below(_: SegmentWriter, next_base: int | None) -> bool:
        return next_base is not None and next_base <= log_start_offset

    return oldest(segments, high_watermark, end, is_below)


def over_size(segments: SegmentList, config: LogConfig, high_watermark: int, end: int) -> list[SegmentWriter]:
    """Return the segments without which the log still has retention.bytes."""
    left = segments.size_bytes - config.retention_bytes
    if config.retention_bytes < 0 or left < 0:
        return []

    def exceeds(segment: SegmentWriter, _: int | None) -> bool:
        nonlocal left
        if left < segment.size_bytes:
            return False
        left -= segment.size_bytes
        return True

    return oldest(segments, high_watermark, end, exceeds)


def over_time(
    segments: SegmentList, config: LogConfig, high_watermark: int, end: int, now_ms: int
) -> list[SegmentWriter]:
    """Return the segments whose newest record is older than retention.ms."""
    keep_ms = config.retention_ms
    if keep_ms < 0:
        return []
    return oldest(segments, high_watermark, end, lambda segment, _: now_ms - segment.largest_timestamp > keep_ms)


def oldest(segments: SegmentList, high_watermark: int, end: int, condition: Condition) -> list[SegmentWriter]:
    """Return the leading segments that satisfy the condition and are below the high watermark.

    end: log end offset. An empty last segment stays.
    """
    deletable = []
    for i, segment in enumerate(segments):
        next_base = segments.next_base(i)
        if next_base is None and segment.size_bytes == 0:  # its age would be read from the file
            break
        if high_watermark < (end if next_base is None else next_base) or not condition(segment, next_base):
            break
        deletable.append(segment)
    return deletable
