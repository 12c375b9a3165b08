"""Whether the offsets of batches are believable: they rise, and stay inside their segment.

The offset field of a batch is outside its checksum (the broker sets it on append), so a flipped bit there passes every
CRC and would give rows with wrong offsets, or lose rows to an offset filter. What does not fit between its neighbours
is therefore damage. Only the very last batch of a log has no neighbour behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kwire.errors import CorruptBatch
from kwire.log.segment import Segment
from kwire.records import Batch

LARGEST_OFFSET = (1 << 63) - 1


def ceiling_of(segment: Segment) -> int:
    """The offset that no batch of the segment reaches."""
    return LARGEST_OFFSET if segment.next_base is None else segment.next_base


def outside(floor: int, ceiling: int) -> str:
    """The text for a batch that stands below what was before it or above its segment."""
    return f"its offsets are not in [{floor}, {ceiling})"


def overlapping(next_offset: int) -> str:
    """The text for two neighbours of which one must be wrong."""
    return f"its offsets reach into the next batch, which starts at offset {next_offset}"


def in_order(segment: Segment, batches: Iterable[Batch]) -> Iterator[Batch]:
    """The batches, each given once the one behind it is known to fit; raises CorruptBatch at one that does not."""
    floor, ceiling = segment.base_offset, ceiling_of(segment)
    held: Batch | None = None
    try:
        for batch in batches:
            lowest = batch.base_offset if batch.magic == 2 else batch.last_offset
            if held is not None and floor <= lowest <= held.last_offset:
                wrong = held
                held = None
                raise wrong.corrupt(overlapping(lowest))
            if held is not None:
                yield held
                floor, held = held.last_offset + 1, None
            if lowest < floor or batch.last_offset >= ceiling:
                raise batch.corrupt(outside(floor, ceiling))
            held = batch
    except CorruptBatch:
        if held is not None:
            yield held
        raise
    if held is not None:
        yield held
