"""What a pass of the cleaner did. Source: kafka.log.CleanerStats."""

from __future__ import annotations

from dataclasses import dataclass, fields

__all__ = ["CleanerStats"]


@dataclass(slots=True, kw_only=True)
class CleanerStats:
    """Counts of one pass, or of several added up.

    map_bytes_read, map_records_read: of the dirty part, for the offset map. bytes, records: of what was cleaned, before
    and after. tombstones_dropped, keyless_records: among the records that are gone. batches_rewritten, batches_emptied:
    among the batches that stay. segments_read, segments_written. map_utilization: the fullest, 0 to 1.
    """

    passes: int = 0
    map_bytes_read: int = 0
    map_records_read: int = 0
    map_utilization: float = 0.0
    bytes_read: int = 0
    bytes_written: int = 0
    records_read: int = 0
    records_written: int = 0
    tombstones_dropped: int = 0
    keyless_records: int = 0
    batches_rewritten: int = 0
    batches_emptied: int = 0
    segments_read: int = 0
    segments_written: int = 0

    def add(self, other: CleanerStats) -> None:
        """Add another pass."""
        for field in fields(self):
            mine, its = getattr(self, field.name), getattr(other, field.name)
            setattr(self, field.name, max(mine, its) if field.name == "map_utilization" else mine + its)
