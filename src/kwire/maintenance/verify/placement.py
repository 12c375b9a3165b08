"""Findings about whole files of a partition: duplicate, misnamed and missing segments.

Source: rules F-01, G-05; Kafka's LogLoader.loadSegmentFiles, which creates an empty segment for a file like 972.log.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kwire.errors import counted
from kwire.log.files.damage import Damage, Kind, Severity
from kwire.log.files.file_names import SEGMENT_FILE, segment_file
from kwire.maintenance.verify.assessment import NOT_A_NUMBER, RESTORE, Assessment
from kwire.maintenance.verify.layout import Layout, Loose

if TYPE_CHECKING:
    from kwire.log.reading.partition_log import PartitionLog
    from kwire.maintenance.verify.findings import SegmentFindings

__all__ = ["gap_findings", "layout_findings"]

ORPHANS = ("index", "timeindex", "txnindex")


def layout_findings(log: PartitionLog, layout: Layout) -> Iterator[Damage]:
    """Yield findings about copies, empty and misnamed segments, and other files with batches."""
    for copy in layout.copies:
        what = f"a copy of {copy.original}: that file contains its batches too"
        yield _COPY.damage(log, copy.segment.url, Kind.SEGMENT, what)
    for empty in layout.empty:
        if empty.within not in layout.misnamed.values():  # reported below
            what = f"an empty segment inside the offset range of {empty.within}"
            yield _EMPTY.damage(log, empty.segment.url, Kind.SEGMENT, what)
    for base, name in layout.misnamed.items():
        url = log.url_of(name)
        right = segment_file(base, "log")
        loose = layout.adopted.get(base)
        if loose is None:
            yield _MISNAMED.damage(log, url, Kind.SEGMENT, f"wrong file name: its batches belong to {right}")
        else:
            what = f"it contains offsets {_range(loose.offsets)} of the log, but brokers ignore files with this name"
            assessment = _LOST._replace(hint=f"rename it to {right}, or run kwire log repair")
            yield assessment.damage(log, url, Kind.SEGMENT, what, offsets=loose.offsets)
    for loose in layout.loose:
        url = log.url_of(loose.name)
        yield _loose(loose).damage(log, url, Kind.LEFTOVER, _loose_text(loose, layout))


def _loose(loose: Loose) -> Assessment:
    if not loose.name.endswith(".log"):
        return _LOOSE
    return NOT_A_NUMBER if loose.number is None else _OTHER_NUMBER


def _loose_text(loose: Loose, layout: Layout) -> str:
    first, last = loose.offsets
    is_inside = any(segment.base_offset <= last for segment in layout.segments)
    where = "also in the segments" if is_inside else "below the log"
    return f"it contains offsets {_range((first, last))} ({where}); as a segment it would be {loose.right_name}"


def gap_findings(
    log: PartitionLog, layout: Layout, segments: Sequence[SegmentFindings], *, may_compact: bool | None
) -> Iterator[Damage]:
    """Yield findings about gaps between the offsets of two segments, unless the topic is known to be compacted.

    may_compact: None if compaction may have left such gaps. Then only an index without its segment proves a loss,
    because compaction removes both; all other gaps become one note.
    """
    orphans = _orphans(log, layout)
    doubtful: list[Damage] = []
    for before, after in itertools.pairwise(segments):
        first, last = before.next_offset, after.segment.base_offset - 1
        lost = (each.offsets[1] for each in before.damaged if each.offsets is not None)
        reported = any(each.is_tail for each in before.damaged) or max(lost, default=-1) >= last
        if first > last or reported or before.is_unreadable or last < log.log_start_offset:
            continue
        names = [segment_file(base, "log") for base in orphans if first <= base <= last]
        missing = f"; the index of {', '.join(names)} exists, the segment is missing" if names else ""
        what = f"offsets {_range((first, last))} are in no segment{missing}"
        # a conversion to magic 0 or 1 leaves out control batches
        is_certain = (may_compact is False and before.magic == 2) or bool(names)
        damage = (_LOST if is_certain else _GAP).damage(
            log,
            before.segment.url,
            Kind.MISSING_RECORDS,
            what,
            position=before.size_bytes,
            size_bytes=0,
            offsets=(first, last),
        )
        if is_certain:
            yield damage
        else:
            doubtful.append(damage)
    if doubtful:
        one, more = doubtful[0], len(doubtful) - 1
        yield replace(one, cause=f"{one.cause}; {counted(more, 'more gap')} like this") if more else one


def _orphans(log: PartitionLog, layout: Layout) -> list[int]:
    """Return the base offsets of indexes whose `.log` is missing."""
    bases = {segment.base_offset for segment in layout.segments}
    base_offsets = set()
    for name in log.file_names:
        match = SEGMENT_FILE.fullmatch(name)
        if match is not None and match["suffix"] is None and match["kind"] in ORPHANS:
            base_offsets.add(int(match["base"]))
    return sorted(base_offsets - bases)


def _range(offsets: tuple[int, int]) -> str:
    first, last = offsets
    return str(first) if first == last else f"{first} to {last}"


_COPY = Assessment(
    Severity.MISLEADS,
    "brokers count its records twice, and search for offsets in the wrong file",
    "move it elsewhere, or run kwire log repair, which keeps records found only in this file",
)
_EMPTY = Assessment(
    Severity.MISLEADS,
    "brokers search this segment for offsets from its base offset on, and skip those in the other file",
    "move it elsewhere, or run kwire log repair",
)
_MISNAMED = Assessment(
    Severity.MISLEADS,
    "brokers search for offsets in the wrong file and may not find them",
    "run kwire log repair to rename it",
)
_LOST = Assessment(Severity.LOSES_RECORDS, "consumers skip these offsets without an error", RESTORE)
_GAP = Assessment(
    Severity.NOTE,
    "consumers skip them; compaction leaves such gaps",
    f"none needed if the topic is compacted; otherwise {RESTORE}",
)
_LOOSE = Assessment(Severity.NOTE, "brokers ignore it", "none needed; or move it elsewhere")
_OTHER_NUMBER = Assessment(
    Severity.MISLEADS,
    "a starting broker creates an empty segment with that base offset and hides the offsets after it",
    "move it elsewhere",
)
