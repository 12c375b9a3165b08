"""Replace segments by others, so that a crash at any step leaves either the old or the new ones.

    .cleaned -> .swap      highest base offset first: once the lowest is renamed, all are (G-02)
    old ones -> .deleted
    .swap -> final names   a restart in between removes the replaced segments and continues (G-03, G-04)

Segments whose offsets do not fit an index (written by brokers before 2.0) are split the same way when opened.
Source: rules X-35, G-06; kafka.log.LocalLog.replaceSegments, splitOverflowedSegment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from kwire.log.files.index_writer import LARGEST_RELATIVE
from kwire.log.writing.segment_list import SegmentList
from kwire.log.writing.segment_writer import SegmentWriter
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
    """Replace the segments with the base offsets `old` by `.cleaned` ones, which are in offset order.

    removed: renames a replaced segment to `.deleted`.
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
    """Copy a segment's batches into new segments whose offsets fit an index.

    make(base_offset): creates an empty `.cleaned` segment. Raises CorruptBatch.
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
