"""Segments put in the place of others, so that a crash at any step leaves the old ones or the new ones.

    .cleaned -> .swap      highest base first: from the lowest on, all of them are there (G-02)
    old ones -> .deleted
    .swap -> their names   a start in between removes what they replace and goes on (G-03, G-04)

Segments whose offsets do not fit an index (written by brokers before 2.0) are split that way when they are met.
Source: rules X-35, G-06; kafka.log.LocalLog.replaceSegments, splitOverflowedSegment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from kwire.log.index_writer import LARGEST_RELATIVE
from kwire.log.segment_list import SegmentList
from kwire.log.segment_writer import SegmentWriter
from kwire.records import read_batches
from kwire.storage.file_system import FileSystem

__all__ = ["split", "swap"]


def swap(
    files: FileSystem,
    directory: str,
    segments: SegmentList,
    old: Iterable[int],
    new: Sequence[SegmentWriter],
    removed: Callable[[SegmentWriter], None],
) -> None:
    """Put segments with `.cleaned` names, in offset order, in the place of those with the base offsets `old`.

    removed: gives a segment that was taken out its `.deleted` name.
    """
    for segment in new:
        segment.sync()
    files.sync_directory(directory)
    for segment in reversed(new):
        segment.change_suffix(".swap")
    files.sync_directory(directory)
    for base_offset in sorted(old):
        before = segments.get(base_offset)
        if before is not None:
            segments.remove(base_offset)
            removed(before)
    for segment in new:
        segment.change_suffix("")
        segments.add(segment)
    files.sync_directory(directory)


def split(segment: SegmentWriter, make: Callable[[int], SegmentWriter]) -> list[SegmentWriter]:
    """Write a segment's batches into new ones that begin where offsets stop to fit.

    make(base_offset): an empty segment with `.cleaned` names. Raises CorruptBatch.
    """
    made: list[SegmentWriter] = []
    for header in segment.batches():
        data = segment.log.pread(header.position, header.size_bytes)
        if not made or header.last_offset - made[-1].base_offset > LARGEST_RELATIVE:
            made.append(make(next(read_batches(data, file=segment.log.url)).base_offset))
        made[-1].append([data], header.last_offset, header.max_timestamp, header.last_offset)
    modified_ms = segment.log.modified_ms()
    for one in made:
        one.deactivate()
        one.set_modified(modified_ms)
    return made
