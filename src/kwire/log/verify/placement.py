"""Findings about whole files of a partition: twice there, under a wrong name, missing.

Source: rules F-01, G-05; Kafka's LogLoader.loadSegmentFiles, which makes an empty segment for a file like 972.log.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kwire.log.damage import Kind, Severity
from kwire.log.file_names import SEGMENT_FILE, segment_file
from kwire.log.verify.judgement import Judgement
from kwire.log.verify.layout import Layout, Loose

if TYPE_CHECKING:
    from kwire.log.partition_log import PartitionLog
    from kwire.log.verify.findings import SegmentFindings

__all__ = ["Finding", "gap_findings", "layout_findings"]

ORPHANS = ("index", "timeindex", "txnindex")


class Finding(NamedTuple):
    """A Damage without the log's name."""

    file: str
    kind: Kind
    judgement: Judgement
    cause: str
    position: int | None = None
    size_bytes: int | None = None
    offsets: tuple[int, int] | None = None


def layout_findings(log: PartitionLog, layout: Layout) -> Iterator[Finding]:
    """Copies, misnamed segments, and other files that hold batches."""
    for copy in layout.copies:
        what = f"a copy of {copy.original}: its batches are in that file too"
        yield Finding(copy.segment.url, Kind.SEGMENT, _COPY, what)
    for empty in layout.empty:
        if empty.within not in layout.misnamed.values():  # which is a finding
            what = f"an empty segment, and {empty.within} has offsets on both sides of its number"
            yield Finding(empty.segment.url, Kind.SEGMENT, _EMPTY, what)
    for base, name in layout.misnamed.items():
        url = log.store.url_of(log.path_of(name))
        right = segment_file(base, "log")
        loose = layout.adopted.get(base)
        if loose is None:
            yield Finding(url, Kind.SEGMENT, _MISNAMED, f"its batches belong into {right}: the name is wrong")
        else:
            what = f"it holds offsets {_range(loose.offsets)} of the log, and no broker reads it under this name"
            judgement = _LOST._replace(hint=f"rename it to {right}, or kwire log repair")
            yield Finding(url, Kind.SEGMENT, judgement, what, offsets=loose.offsets)
    for loose in layout.loose:
        url = log.store.url_of(log.path_of(loose.name))
        yield Finding(url, Kind.LEFTOVER, _loose(loose), _loose_text(loose, layout))


def _loose(loose: Loose) -> Judgement:
    if not loose.name.endswith(".log"):
        return _LOOSE
    return _NOT_A_NUMBER if loose.number is None else _OTHER_NUMBER


def _loose_text(loose: Loose, layout: Layout) -> str:
    first, last = loose.offsets
    inside = [segment for segment in layout.segments if segment.base_offset <= last]
    where = "segments have that range too" if inside else "below the log"
    return (
        f"it holds batches of offsets {_range((first, last))} ({where}); a segment's name would be {loose.right_name}"
    )


def gap_findings(
    log: PartitionLog, layout: Layout, segments: Sequence[SegmentFindings], *, may_compact: bool | None
) -> Iterator[Finding]:
    """Offsets between two segments that are in neither; the topic is not known to be compacted.

    may_compact: None where compaction may have left such a gap all the same. Then only an index whose segment is
    missing shows a loss, since compaction removes both; the other gaps are one note.
    """
    orphans = _orphans(log, layout)
    doubtful: list[Finding] = []
    for before, behind in itertools.pairwise(segments):
        first, last = before.next_offset, behind.segment.base_offset - 1
        told = [bad for bad in before.bad if bad.is_tail or (bad.offsets is not None and bad.offsets[1] >= last)]
        if first > last or told or before.is_unreadable or last < log.log_start_offset:
            continue
        names = [segment_file(base, "log") for base in orphans if first <= base <= last]
        missing = f"; {', '.join(names)} is missing, and its index is here" if names else ""
        what = f"offsets {_range((first, last))} are in no segment{missing}"
        place = before.segment.url, Kind.MISSING_RECORDS
        # a conversion to magic 0 or 1 leaves out control batches
        if (may_compact is False and before.magic == 2) or names:
            yield Finding(*place, _LOST, what, before.size_bytes, 0, (first, last))
        else:
            doubtful.append(Finding(*place, _GAP, what, before.size_bytes, 0, (first, last)))
    if doubtful:
        one = doubtful[0]
        more = len(doubtful) - 1
        yield one._replace(cause=f"{one.cause}; so it is in {more} more places") if more else one


def _orphans(log: PartitionLog, layout: Layout) -> list[int]:
    """Numbers of indexes whose `.log` is missing."""
    bases = {segment.base_offset for segment in layout.segments}
    found = set()
    for name in log.file_names:
        match = SEGMENT_FILE.fullmatch(name)
        if match is not None and match["suffix"] is None and match["kind"] in ORPHANS:
            found.add(int(match["base"]))
    return sorted(found - bases)


def _range(offsets: tuple[int, int]) -> str:
    first, last = offsets
    return str(first) if first == last else f"{first} to {last}"


_COPY = Judgement(
    Severity.MISLEADS,
    "brokers count it twice, and look for offsets in the wrong file",
    "move it elsewhere, or kwire log repair, which keeps what only it has",
)
_EMPTY = Judgement(
    Severity.MISLEADS,
    "brokers look for offsets from its number on in it, and skip the ones that the other file has",
    "move it elsewhere, or kwire log repair",
)
_MISNAMED = Judgement(
    Severity.MISLEADS,
    "brokers look for offsets in the wrong file, and may not find them",
    "kwire log repair renames it",
)
_LOST = Judgement(
    Severity.LOSES_RECORDS, "consumers step over these offsets without notice", "a replica or a backup may have them"
)
_GAP = Judgement(
    Severity.NOTE,
    "consumers step over them; compaction leaves such gaps",
    "nothing where the topic is compacted; otherwise a replica or a backup may have the records",
)
_LOOSE = Judgement(Severity.NOTE, "brokers do not read it", "nothing; or move it elsewhere")
_OTHER_NUMBER = Judgement(
    Severity.MISLEADS,
    "a starting broker makes an empty segment of that number, and no longer finds the offsets from there on",
    "move it elsewhere",
)
_NOT_A_NUMBER = Judgement(Severity.STOPS_BROKER, "a broker takes the whole directory offline", "move it elsewhere")
