"""Results of verification: of one segment, of one partition, and of all."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kwire.log.files.damage import Damage
from kwire.log.files.segment import Segment
from kwire.maintenance.verify.batches import DamagedRange, SuspectBatch
from kwire.maintenance.verify.layout import Layout, Piece

if TYPE_CHECKING:
    from kwire.log.reading.readable_log import ReadableLog

__all__ = ["DirectoryFindings", "PartitionFindings", "SegmentFindings"]


@dataclass(slots=True, kw_only=True)
class SegmentFindings:
    """Result of verifying one segment.

    end, end_offset: position and offset after the last valid batch; the offset is None if damage follows it.
    magic: of the last valid batch so far. damaged: in file order. epochs: batches with only a wrong leader epoch.
    is_unreadable: the operating system failed to read a part, so what follows is unknown.
    fills: position of a damaged range -> batches of other files that belong there.
    """

    segment: Segment
    size_bytes: int
    end: int = 0
    next_offset: int
    is_unreadable: bool = False
    end_offset: int | None = None
    magic: int = 2
    damaged: list[DamagedRange] = field(default_factory=list)
    epochs: list[SuspectBatch] = field(default_factory=list)
    fills: dict[int, list[Piece]] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class PartitionFindings:
    """Result of verify_partition. log_end_offset: after the last valid batch. damages: by file and position.

    layout: the files that make up the segments. fetched_bytes: bytes read of a log whose segments are unknown.
    """

    log: ReadableLog
    segments: list[SegmentFindings]
    damages: list[Damage]
    layout: Layout = field(default_factory=lambda: Layout(segments=[]))
    log_end_offset: int = 0
    is_compacted: bool = False
    fetched_bytes: int = 0

    @property
    def size_bytes(self) -> int:
        """Bytes of batches that were read."""
        return self.fetched_bytes + sum(segment.size_bytes for segment in self.segments)


@dataclass(slots=True, kw_only=True)
class DirectoryFindings:
    """Result of verify_logs: findings by partition, and all damages, worst first.

    unchecked: what could not be checked, for people; empty for a directory.
    """

    partitions: list[PartitionFindings] = field(default_factory=list)
    damages: list[Damage] = field(default_factory=list)
    unchecked: str = ""
