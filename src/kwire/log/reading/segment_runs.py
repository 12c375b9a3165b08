"""Open the segments of a range of offsets, while a broker may roll, delete or compact them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from kwire.errors import LogError
from kwire.log.files.segment import Segment
from kwire.log.reading.partition_listing import PartitionListing
from kwire.log.reading.relisting import TRIES, retry_on_change
from kwire.storage.store import StoredFile

__all__ = ["check_end", "is_expired", "open_segments"]

L = TypeVar("L", bound=PartitionListing)


def open_segments(log: L, start: int, end: int) -> Iterator[tuple[L, Segment, StoredFile, int]]:
    """Yield the segments of offsets [start, end): the listing that has it, the segment, its open file, first offset.

    If a file is missing or was replaced since the listing, the directory is listed again. Records deleted by retention
    meanwhile are skipped, as consumers skip them. A segment missing between unchanged ones, or at the end, is lost: its
    LogError is raised.
    """
    offset, tries = start, 0
    while True:
        for segment in log.segments_between(offset, end):
            try:
                file = segment.open()
            except LogError:
                if tries == TRIES or log.is_deleted:
                    raise
                again = relisted(log)
                if not log.has_changed(again) or is_lost(segment, log, again):
                    raise
                check_end(end_of(again), end, again.url)
                log, tries = again, tries + 1
                break
            with file:
                if segment.next_base is not None and file.size() != segment.size_bytes and tries < TRIES:
                    again, tries = relisted(log), tries + 1
                    if log.has_changed(again):
                        check_end(end_of(again), end, again.url)
                        log = again
                        break
                yield log, segment, file, offset
            offset = end if segment.next_base is None else max(offset, segment.next_base)
        else:
            return


def end_of(log: PartitionListing) -> int:
    """Return the offset that a listing ends at, 0 without segments."""
    return log.segments[-1].end().next_offset if log.segments else 0


def check_end(now: int, end: int, url: str) -> None:
    """Raise LogError if a log ends before `end`, where it ended before: its last records are gone."""
    if now < end:
        what = f"the log ends at offset {now}, and ended at {end} or above when the read began"
        raise LogError(f"{what}: it was truncated, or files were removed", url)


def relisted(log: L) -> L:
    """Return the log with a new listing that has its segments: a `.swap` file may be renamed before it is opened."""

    def listed(again: L) -> L:
        again.segments  # noqa: B018
        return again

    return retry_on_change(log.reopened(), listed)


def is_expired(log: PartitionListing, segment: Segment) -> bool:
    """Return whether a new listing shows that retention has deleted a segment, and at most those before it.

    A local file that is open stays readable. An object that is deleted while it is read does not.
    """
    try:
        now = log.reopened().segments
    except LogError:
        return False
    return bool(now) and now[0].base_offset > segment.base_offset


def is_lost(segment: Segment, log: PartitionListing, again: PartitionListing) -> bool:
    """Return whether a segment is missing from a new listing although neither retention nor compaction removed it.

    Retention removes the oldest segments. Compaction replaces an older segment by a new file, which then has the
    retained records of the missing one.
    """
    before = [each for each in again.segments if each.base_offset <= segment.base_offset]
    if not before or before[-1].base_offset == segment.base_offset:
        return False
    name = before[-1].name_of("log")
    return again.entries[name] == log.entries.get(name)
