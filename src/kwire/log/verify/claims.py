"""What other files say about the end of a log: checkpoints and snapshots are written after the records they refer to.

A log that ends below one of them lost its last records, also if it has no file or no directory any more. A deleted
partition has a directory marked so until no checkpoint names it. Source: rules F-01 to F-05; Kafka's
LogManager.asyncDelete.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kwire.identifiers import TopicPartition
from kwire.log.files.file_names import marked_as
from kwire.storage.checkpoints import HIGH_WATERMARKS, LOG_START_OFFSETS, RECOVERY_POINTS

if TYPE_CHECKING:
    from kwire.log.reading.log_directory import LogDirectory
    from kwire.log.reading.partition_log import PartitionLog
    from kwire.storage.checkpoints import LeaderEpoch

__all__ = ["CLAIMING_CHECKPOINTS", "Claim", "claims_above", "partitions_without_directory"]

CLAIMING_CHECKPOINTS = {
    RECOVERY_POINTS: "recovery point",
    HIGH_WATERMARKS: "high watermark",
    LOG_START_OFFSETS: "log start offset",
}
"""Checkpoints of a log directory that name its partitions, and what their offsets are."""


class Claim(NamedTuple):
    """A log end offset that a file implies, and the words for it."""

    offset: int
    text: str


def claims_above(
    end: int, log: PartitionLog, *, recovery_point: int | None, epochs: Sequence[LeaderEpoch]
) -> list[Claim]:
    """Return what implies a higher log end offset; of snapshots and leader epochs the newest one."""
    watermark, point = log.high_watermark or 0, recovery_point or 0
    snapshots = sorted(log.snapshots)[-1:]
    found = [
        Claim(watermark, f"the high watermark checkpoint has {watermark}"),
        Claim(point, f"the recovery point checkpoint has {point}"),
        *(Claim(offset, f"a producer snapshot has offset {offset}") for offset in snapshots),
        *(
            Claim(each.start_offset, f"leader epoch {each.leader_epoch} starts at {each.start_offset}")
            for each in epochs[-1:]
        ),
    ]
    return [each for each in found if each.offset > end]


def partitions_without_directory(
    directory: LogDirectory, checkpoints: Mapping[str, Mapping[TopicPartition, int]]
) -> dict[TopicPartition, Claim]:
    """Return the partitions that checkpoints name and that have no directory, not even a marked one.

    checkpoints: offsets by file name. Of several offsets, the highest one.
    """
    found: dict[TopicPartition, Claim] = {}
    for name, offsets in checkpoints.items():
        for key in offsets.keys() - directory.keys() if name in CLAIMING_CHECKPOINTS else ():
            claim = Claim(offsets[key], f"the {CLAIMING_CHECKPOINTS[name]} checkpoint has {offsets[key]}")
            found[key] = max(found.get(key, claim), claim, key=lambda each: each.offset)
    marked = [each.name for each in directory.ignored]
    return {key: found[key] for key in sorted(found) if not any(marked_as(name, *key) for name in marked)}
