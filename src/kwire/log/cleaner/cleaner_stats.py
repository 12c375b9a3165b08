"""Statistics of a cleaning pass. Source: kafka.log.CleanerStats."""

from __future__ import annotations

from dataclasses import dataclass, fields

__all__ = ["CleanerStats"]


@dataclass(slots=True, kw_only=True)
class CleanerStats:
    """Counts of one pass, or the sum of several.

    map_bytes_read: of the dirty range, for the offset map. bytes_*, records_*: before and after cleaning.
    tombstones_dropped, keyless_records: of the removed records. batches_emptied: of the retained batches.
    map_utilization: the maximum, 0 to 1.
    """

    passes: int = 0
    map_bytes_read: int = 0
    map_utilization: float = 0.0
    bytes_read: int = 0
    bytes_written: int = 0
    records_read: int = 0
    records_written: int = 0
    tombstones_dropped: int = 0
    keyless_records: int = 0
    batches_emptied: int = 0
    segments_read: int = 0
    segments_written: int = 0

    def add(self, other: CleanerStats) -> None:
        """Add the counts of another pass."""
        for field in fields(self):
            mine, its = getattr(self, field.name), getattr(other, field.name)
            setattr(self, field.name, max(mine, its) if field.name == "map_utilization" else mine + its)
