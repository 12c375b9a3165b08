"""The cleanable range of a log, and whether cleaning is due.

    [log start, first_dirty_offset)            clean: compacted before
    [first_dirty_offset, end_offset)           dirty and old enough: read into the offset map
    [end_offset, log end)                      not cleaned: open transactions, min.compaction.lag.ms, active segment

Source: rules X-01 to X-03; kafka.log.LogCleanerManager.cleanableOffsets, calculateCleanableBytes, maxCompactionDelay,
grabFilthiestCompactedLog; kafka.log.Cleaner.groupSegmentsBySize for the groups (X-34).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kwire.log.cleaner.log_state import LogState, SourceSegment
from kwire.log.writing.log_config import LogConfig

__all__ = ["CleaningPlan", "group_segments", "make_plan"]

LARGEST_RELATIVE = (1 << 31) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CleaningPlan:
    """The plan of a pass over a log.

    clean_bytes, cleanable_bytes: of segments with clean and with dirty offsets; one with both counts twice.
    overdue_ms: how much longer than max.compaction.lag.ms the oldest dirty segment has waited, 0 if not.
    resets_checkpoint: the checkpoint is outside the log and must be set to first_dirty_offset immediately.
    """

    first_dirty_offset: int
    end_offset: int
    clean_bytes: int
    cleanable_bytes: int
    overdue_ms: int
    resets_checkpoint: bool

    @property
    def dirty_ratio(self) -> float:
        """Ratio of dirty bytes to clean and dirty bytes; 0 for an empty log."""
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    def is_due(self, config: LogConfig) -> bool:
        """Return whether a broker would clean this log now."""
        overdue = self.overdue_ms > 0 and self.cleanable_bytes > 0
        return overdue or self.dirty_ratio > config.min_cleanable_dirty_ratio


def make_plan(log: LogState, checkpoint: int | None, now_ms: int) -> CleaningPlan:
    """Return the plan for a log. checkpoint: of the cleaner, None if the log was never cleaned."""
    first_dirty = log.log_start_offset if checkpoint is None else checkpoint
    resets = not log.log_start_offset <= first_dirty <= log.log_end_offset
    if resets:
        first_dirty = log.log_start_offset
    closed = log.segments_from(first_dirty, log.active_base_offset)
    limit = min(log.last_stable_offset, log.active_base_offset)
    if log.config.min_compaction_lag_ms > 0:
        youngest = now_ms - log.config.min_compaction_lag_ms
        too_young = (each.base_offset for each in closed if each.largest_timestamp > youngest)
        limit = min(limit, next(too_young, limit))
    limit = max(first_dirty, limit)
    uncleanable = log.segments_from(limit, log.active_base_offset)
    end = uncleanable[0].base_offset if uncleanable else log.active_base_offset
    return CleaningPlan(
        first_dirty_offset=first_dirty,
        end_offset=end,
        clean_bytes=sum(each.size_bytes for each in log.segments_from(-1, first_dirty)),
        cleanable_bytes=sum(each.size_bytes for each in log.segments_from(min(first_dirty, end), end)),
        overdue_ms=overdue_ms(closed, now_ms - log.config.max_compaction_lag_ms),
        resets_checkpoint=resets,
    )


def overdue_ms(dirty: Sequence[SourceSegment], clean_until_ms: int) -> int:
    """Return by how much the first timestamp of the oldest segment precedes clean_until_ms; 0 if none does."""
    times = (each.first_timestamp for each in dirty)
    earliest = min((time for time in times if time > 0), default=clean_until_ms)
    return max(clean_until_ms - earliest, 0)


def group_segments(
    segments: Sequence[SourceSegment], *, max_bytes: int, max_index_bytes: int, end_offset: int
) -> list[list[SourceSegment]]:
    """Group adjacent segments into new ones, so that segments do not shrink with every pass (X-34).

    end_offset: of the cleaned range; it bounds the offsets of the last segment.
    """
    groups: list[list[SourceSegment]] = []
    sizes = [0, 0, 0]
    for i, segment in enumerate(segments):
        own = [segment.size_bytes, segment.index_bytes, segment.time_index_bytes]
        last_offset = (segments[i + 1].base_offset if i + 1 < len(segments) else end_offset) - 1
        sums = [a + b for a, b in zip(sizes, own, strict=True)]
        fits = (
            groups
            and sums[0] <= max_bytes
            and max(sums[1:]) <= max_index_bytes
            and (own[0] == 0 or last_offset - groups[-1][0].base_offset <= LARGEST_RELATIVE)
        )
        if fits:
            groups[-1].append(segment)
            sizes = sums
        else:
            groups.append([segment])
            sizes = own
    return groups
