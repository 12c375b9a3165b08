"""Check that the offsets of batches increase and stay inside their segment.

A batch's offset field is outside its checksum, because the broker sets it on append. A flipped bit there passes every
CRC and would yield rows with wrong offsets, or drop rows in an offset filter. A batch that does not fit between its
neighbours is therefore damage; only the last batch of a log has no next neighbour.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kwire.errors import CorruptBatch
from kwire.identifiers import MAX_OFFSET
from kwire.log.files.segment import Segment
from kwire.records import Batch


def offset_limit(segment: Segment) -> int:
    """Return the exclusive upper bound of the segment's offsets."""
    return MAX_OFFSET if segment.next_base is None else segment.next_base


def outside_segment(floor: int, ceiling: int) -> str:
    """Describe a batch with offsets below the previous batch or above its segment."""
    return f"its offsets are not in [{floor}, {ceiling})"


def overlapping(next_offset: int) -> str:
    """Describe two overlapping neighbours, one of which must be wrong."""
    return f"its offsets reach into the next batch, which starts at offset {next_offset}"


def check_offsets(segment: Segment, batches: Iterable[Batch]) -> Iterator[Batch]:
    """Yield each batch after checking it against the next one. Raises CorruptBatch for one that does not fit."""
    floor, ceiling = segment.base_offset, offset_limit(segment)
    pending: Batch | None = None
    try:
        for batch in batches:
            lowest = batch.base_offset if batch.magic == 2 else batch.last_offset
            if pending is not None and floor <= lowest <= pending.last_offset:
                wrong = pending
                pending = None
                raise wrong.corrupt(overlapping(lowest))
            if pending is not None:
                yield pending
                floor, pending = pending.last_offset + 1, None
            if lowest < floor or batch.last_offset >= ceiling:
                raise batch.corrupt(outside_segment(floor, ceiling))
            pending = batch
    except CorruptBatch:
        if pending is not None:
            yield pending
        raise
    if pending is not None:
        yield pending
