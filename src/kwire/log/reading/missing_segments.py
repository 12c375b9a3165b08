"""Tell segments that are missing from a log from the gaps that compaction leaves.

Without compaction, a segment begins at the offset after its predecessor's last record (F-01), and retention deletes
only the oldest segments. So offsets between two segments, in a log that was never compacted, were in a segment that is
no longer there. Compaction shows in the cleaner's checkpoint, in the topic's cleanup.policy, or in offsets that are
missing inside of the two segments: no broker writes such batches.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from kwire.errors import CorruptBatch, MissingOffsets
from kwire.internal_topics.names import COORDINATOR_TOPICS
from kwire.log.files.segment_batches import segment_batches

if TYPE_CHECKING:
    from kwire.log.files.segment import Segment
    from kwire.log.reading.partition_listing import PartitionListing
    from kwire.log.reading.runs import Missing

__all__ = ["missing_after"]


def missing_after(
    log: PartitionListing,
    segment: Segment,
    reached: int | None,
    start_offset: int,
    end_offset: int,
    is_known_as_compacted: Callable[[], bool],
) -> Missing | None:
    """Return the offsets [from, to) of [start_offset, end_offset) that are missing after a segment, and the error.

    None without any. reached: the offset after the last batch of the segment, None to look it up.
    is_known_as_compacted: whether other files say that the log was compacted, or may be.
    Raises LogError for files that cannot be read.
    """
    if segment.next_base is None or (reached is not None and reached >= segment.next_base):
        return None
    first = max(segment.end().next_offset if reached is None else reached, start_offset)
    end = min(segment.next_base, end_offset)
    if first >= end or _may_be_compacted(log, segment, is_known_as_compacted):
        return None
    offsets = f"offset {first}" if first == end - 1 else f"offsets {first} to {end - 1}"
    what = (
        f"{offsets} are in no segment: this one ends before them, the next one begins at offset {segment.next_base}; "
        f"copy the missing segment from a replica or a backup, or read on from offset {segment.next_base}"
    )
    return (first, end), MissingOffsets(what, segment.url)


def _may_be_compacted(log: PartitionListing, segment: Segment, is_known_as_compacted: Callable[[], bool]) -> bool:
    if log.topic in COORDINATOR_TOPICS or is_known_as_compacted():
        return True
    following = [each for each in log.segments if each.base_offset == segment.next_base]
    before = [each for each in log.segments if each.next_base == segment.base_offset]
    # An empty segment says nothing, also not its magic, so what is before it has to.
    witnesses = [segment, *following] if segment.size_bytes else [*before, *following]
    return any(map(_has_holes, witnesses))


def _has_holes(segment: Segment) -> bool:
    """Return whether offsets are missing inside of a segment; in magic 0 and 1 this is not visible."""
    expected = segment.base_offset
    with suppress(CorruptBatch):
        for batch in segment_batches(segment):
            if batch.magic < 2 or batch.base_offset != expected or batch.count != batch.next_offset - expected:
                return True
            expected = batch.next_offset
    return False
