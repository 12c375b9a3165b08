"""What other files say about the end of a log: checkpoints and snapshots are written after the records they refer to.

A log that ends below one of them lost its last records, also if it has no file any more. Source: rules F-01 to F-05.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kwire.log.partition_log import PartitionLog
    from kwire.storage.checkpoints import LeaderEpoch

__all__ = ["Claim", "claims_above"]


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
