"""Assign the files of a partition to segments, by the batches in them.

A segment's name is its base offset. Names and contents nearly always agree; then only the first and the last batch of
each file are read. Otherwise all headers are read, and the batches decide:

    copies      a file whose batches are all in another one, byte for byte; the name that its first batch confirms wins
    misnamed    a file whose name is not the base offset that its batches and neighbours imply
    loose       a file with batches under a name that brokers ignore, such as 972.log or ....log.bak

A single batch that does not fit its file is a damaged offset, not a wrong name: the scan of the segment reports it.
Source: rules F-01, G-05; Kafka's LogLoader.loadSegmentFiles, LogFileUtils.offsetFromFile.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kwire.errors import CorruptBatch
from kwire.identifiers import MAX_OFFSET
from kwire.log.files.file_names import SEGMENT_FILE, SegmentFiles, segment_file
from kwire.log.files.segment import Segment
from kwire.maintenance.verify.resync import Range, next_valid_batch, valid_batch
from kwire.records import read_batches
from kwire.records.attributes import CODEC_MASK
from kwire.records.format.batch_header import BatchHeader
from kwire.storage.header_walk import HeaderWalk
from kwire.storage.store import StoredFile

if TYPE_CHECKING:
    from kwire.log.reading.partition_log import PartitionLog

__all__ = ["Copy", "Layout", "Loose", "Piece", "Spare", "lay_out"]

ANYWHERE = Range(0, MAX_OFFSET)
NAMED = re.compile(r"(?P<number>[0-9]{1,20})\..*|.*", re.ASCII | re.DOTALL)
OTHER_FILES = (".checkpoint", ".checkpoint.deleted", ".checkpoint.part", ".tmp", "-checkpoint", ".snapshot", "index")
MIN_AGREEING_BATCHES = 2  # required to call a name wrong


@dataclass(frozen=True, slots=True)
class Piece:
    """Whole batches [position, position + size_bytes) of a file of the partition's directory, and their offsets."""

    name: str
    position: int
    size_bytes: int
    offsets: tuple[int, int]


@dataclass(slots=True, kw_only=True)
class Spare:
    """A file outside the log that contains batches of it. name: in the partition's directory."""

    log: PartitionLog
    name: str
    batches: list[BatchHeader]

    def pieces(self, first: int, last: int) -> list[Piece]:
        """Return its valid batches within offsets [first, last], in order; adjacent ones form one piece."""
        pieces: list[Piece] = []
        with self.log.open_file(self.name) as file:
            for header in self.batches:
                if header.stored_offset < first or header.last_offset > last:
                    continue
                if valid_batch(file, header.position, file.size(), ANYWHERE) is None:
                    continue
                previous = pieces[-1] if pieces else None
                if previous is not None and header.stored_offset <= previous.offsets[1]:
                    continue
                offsets = header.stored_offset, header.last_offset
                if previous is not None and previous.position + previous.size_bytes == header.position:
                    size = previous.size_bytes + header.size_bytes
                    pieces[-1] = Piece(self.name, previous.position, size, (previous.offsets[0], offsets[1]))
                else:
                    pieces.append(Piece(self.name, header.position, header.size_bytes, offsets))
        return pieces


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """A segment whose batches are in another file. segment: by its name. original: the file to keep."""

    segment: Segment
    original: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Empty:
    """A segment without batches whose base offset is inside the offset range of another file, within."""

    segment: Segment
    within: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Loose:
    """A file with batches whose name is not a segment's. number: in its name, None without one.

    offsets: (first, last). size_bytes: as listed.
    """

    name: str
    number: int | None
    offsets: tuple[int, int]
    size_bytes: int

    @property
    def right_name(self) -> str:
        """The segment name for the file; it keeps its number if the batches permit."""
        fits = self.number is not None and self.number <= self.offsets[0]
        return segment_file(self.number if fits and self.number is not None else self.offsets[0], "log")


@dataclass(slots=True, kw_only=True)
class Layout:
    """The segments of a partition by content, in order of their offsets.

    misnamed: base offset -> name of the file, for segments with a wrong name. adopted: base offset -> loose file that
    fills a gap.
    """

    segments: list[Segment]
    misnamed: dict[int, str] = field(default_factory=dict)
    adopted: dict[int, Loose] = field(default_factory=dict)
    empty: list[Empty] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    loose: list[Loose] = field(default_factory=list)
    spares: list[Spare] = field(default_factory=list)


@dataclass(slots=True)
class _File:
    """A file and its batches. chain: the batches without those with a damaged offset."""

    name: str
    number: int
    size_bytes: int
    modified_ms: int | None
    batches: list[BatchHeader]
    chain: list[BatchHeader]
    first: int
    files: dict[str, str]

    @property
    def last(self) -> int:
        return self.chain[-1].last_offset if self.chain else self.number - 1

    @property
    def is_confirmed(self) -> bool:
        """Whether its first batch starts at the offset in its name."""
        return bool(self.chain) and self.first == self.number


def lay_out(log: PartitionLog, *, known: tuple[int, int], is_compacted: Callable[[], bool | None]) -> Layout:
    """Return the layout of a partition.

    known: [start, end) of the log according to other files. is_compacted: returns whether the topic is compacted, None
    if unknown. A loose file that fills a gap is adopted, unless the topic is compacted.

    Raises LogError for unreadable files.
    """
    segments = log.segments
    if log.only_base_offset is not None:
        return Layout(segments=segments)
    names = _loose_names(log)
    if not names and all(_agrees(segment) for segment in segments):
        return Layout(segments=segments)
    return _Sorting(log, segments, names, known, is_compacted).layout()


def _agrees(segment: Segment) -> bool:
    """Return whether the headers are intact, and the first and last offsets fit the names of this and the next file."""
    with segment.open() as file:
        first = next(iter(HeaderWalk(file)), None)
    if first is not None and first.stored_offset < segment.base_offset:
        return False
    end = segment.end()
    if segment.next_base is None:
        return end.damage is None
    return end.position >= segment.size_bytes and end.next_offset <= segment.next_base


def _loose_names(log: PartitionLog) -> list[str]:
    """Return the files that start with a batch and do not have the name of a segment."""
    return [
        name
        for name in log.file_names
        if SEGMENT_FILE.fullmatch(name) is None and not name.endswith(OTHER_FILES) and _begins_with_batch(log, name)
    ]


def _begins_with_batch(log: PartitionLog, name: str) -> bool:
    with log.open_file(name) as file:
        return valid_batch(file, 0, file.size(), ANYWHERE) is not None


def batches_in(file: StoredFile) -> Iterator[BatchHeader]:
    """Yield all headers of a file; after damage, continue at the next batch with a valid checksum."""
    position, size = 0, file.size()
    while position < size:
        walk = HeaderWalk(file, position)
        yield from walk
        if walk.position >= size:
            return
        next_batch = next_valid_batch(file, walk.position + 1, size, ANYWHERE)
        if next_batch is None:
            return
        position = next_batch.position


def longest_increasing(batches: Sequence[BatchHeader]) -> list[BatchHeader]:
    """Return the longest subsequence with increasing offsets; the other batches have a damaged offset."""
    tails: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for i, header in enumerate(batches):
        at = bisect_left(tails, header.stored_offset)
        before.append(ends[at - 1] if at else -1)
        tails[at : at + 1] = [header.stored_offset]
        ends[at : at + 1] = [i]
    chain = []
    i = ends[-1] if ends else -1
    while i >= 0:
        chain.append(batches[i])
        i = before[i]
    return chain[::-1]


def _first_offset(file: StoredFile, header: BatchHeader) -> int:
    """Return the offset of the first record, which compressed messages of magic 0 and 1 have only inside."""
    if header.magic == 2 or not header.attributes & CODEC_MASK:
        return header.stored_offset
    try:
        for batch in read_batches(file.pread(header.position, header.size_bytes)):
            return next((record.offset for record in batch.records()), header.stored_offset)
    except CorruptBatch:
        pass
    return header.stored_offset


class _Sorting:
    """Reads all headers of a partition and assigns its files to segments."""

    def __init__(
        self,
        log: PartitionLog,
        segments: Sequence[Segment],
        loose: Sequence[str],
        known: tuple[int, int],
        is_compacted: Callable[[], bool | None],
    ) -> None:
        self.log, self.known, self.is_compacted = log, known, is_compacted
        self.by_name = {segment.name_of("log"): segment for segment in segments}
        self.files = [self._file(name, segment) for name, segment in self.by_name.items()]
        self.loose = sorted((self._file(name, None) for name in loose), key=lambda file: file.first)
        self.result = Layout(segments=[])
        self._strip_outliers()

    def _file(self, name: str, segment: Segment | None) -> _File:
        with self.log.open_file(name) as file:
            batches, size = list(batches_in(file)), file.size()
            chain = longest_increasing(batches)
            first = _first_offset(file, chain[0]) if chain else 0
        match = NAMED.fullmatch(name)
        number = match["number"] if match is not None else None
        base = int(number) if number is not None and int(number) <= MAX_OFFSET else first
        files = {"log": name}
        modified = None
        if segment is not None:
            files = {kind: segment.name_of(kind) for kind in segment.has}
            modified = segment.modified_ms
        return _File(name, base, size, modified, batches, chain, first if chain else base, files)

    def _strip_outliers(self) -> None:
        """Remove a first or last batch from its chain if it alone fits neither the name nor the neighbours."""
        files = [file for file in self.files if file.chain]
        for i, file in enumerate(files):
            before = files[i - 1].last if i else -1
            head = file.chain[:2]
            is_below = len(head) > 1 and head[0].stored_offset < file.number <= head[1].stored_offset
            if is_below and not _follows(*head) and file.first <= before:
                file.chain, file.first = file.chain[1:], head[1].stored_offset
            following = files[i + 1] if i + 1 < len(files) else None
            tail = file.chain[-2:]
            if following is None or len(tail) < 2:
                continue
            is_above = tail[0].last_offset < following.number <= tail[1].last_offset
            if is_above and not _follows(*tail) and following.first <= tail[1].last_offset:
                file.chain = file.chain[:-1]

    def layout(self) -> Layout:
        """Return the layout."""
        for file in self.loose:
            match = NAMED.fullmatch(file.name)
            number = int(match["number"]) if match is not None and match["number"] is not None else None
            offsets = file.first, file.last
            loose = Loose(name=file.name, number=number, offsets=offsets, size_bytes=file.size_bytes)
            self.result.loose.append(loose)
        kept = self._without_empty(self._without_copies())
        kept = self._with_loose(kept)
        self.result.segments = self._named(kept)
        return self.result

    # ---- copies

    def _without_copies(self) -> list[_File]:
        """Return the files without copies of other files."""
        kept: list[_File] = []
        # the best name of each copy first: it is kept
        for file in sorted(self.files, key=lambda file: (not file.is_confirmed, -len(file.chain), file.number)):
            original = next((other for other in kept if self._is_copy(file, other)), None)
            if original is None:
                longer = next((other for other in kept if self._is_copy(other, file)), None)
                if longer is not None:  # the better name has fewer batches: keep the name, with the longer file
                    kept[kept.index(longer)] = file
                    original, file = file, longer
                    original.number = min(original.number, file.number) if not file.is_confirmed else file.number
                else:
                    kept.append(file)
                    continue
            self.result.copies.append(Copy(segment=self.by_name[file.name], original=original.name))
            self.result.spares.append(Spare(log=self.log, name=file.name, batches=file.batches))
        return kept

    def _is_copy(self, file: _File, other: _File) -> bool:
        """Return whether other contains the offsets of file, and at least half of its batches byte for byte."""
        if not file.chain or not other.chain or file.first < other.first or file.last > other.last:
            return False
        places = {(each.stored_offset, each.last_offset, each.size_bytes): each.position for each in other.batches}
        same = 0
        with self.log.open_file(file.name) as one, self.log.open_file(other.name) as two:
            for each in file.chain:
                at = places.get((each.stored_offset, each.last_offset, each.size_bytes))
                if at is not None and one.pread(each.position, each.size_bytes) == two.pread(at, each.size_bytes):
                    same += 1
        return bool(same) and same * 2 >= len(file.chain)

    def _without_empty(self, files: list[_File]) -> list[_File]:
        """Return the files without empty ones inside the offset range of another file."""
        kept = []
        for file in files:
            others = (other for other in files if len(other.chain) >= MIN_AGREEING_BATCHES)
            within = next((other for other in others if other.first <= file.number <= other.last), None)
            if file.chain or within is None:
                kept.append(file)
            else:
                self.result.empty.append(Empty(segment=self.by_name[file.name], within=within.name))
        return kept

    # ---- files under other names

    def _with_loose(self, kept: list[_File]) -> list[_File]:
        """Return the files together with the loose files that fill a gap between them."""
        result = self.result
        for file, loose in zip(self.loose, list(result.loose), strict=True):
            result.spares.append(Spare(log=self.log, name=file.name, batches=file.batches))
            if not file.chain or not self._fits(file, kept) or self.is_compacted():
                continue
            base = int(loose.right_name[:20])
            if base <= max((each.last for each in kept if each.chain and each.last < file.first), default=-1):
                base = file.first
            for each in [each for each in kept if not each.chain and each.size_bytes == 0]:
                if base <= each.number <= file.last:
                    kept.remove(each)
                    result.empty.append(Empty(segment=self.by_name[each.name], within=file.name))
            file.number = base
            result.loose.remove(loose)
            result.adopted[base] = loose
            kept.append(file)
        return kept

    def _fits(self, file: _File, kept: list[_File]) -> bool:
        """Return whether the log lacks a file's offsets; at either end of the log, `known` must include them."""
        full = [each for each in kept if each.chain]
        below = [each.last for each in full if each.last < file.first]
        above = [each.first for each in full if each.first > file.last]
        if len(below) + len(above) < len(full):
            return False
        start, end = self.known
        if not above:
            return end > file.first and (not below or max(below) + 1 == file.first)
        return bool(below) or (start <= file.first and file.last + 1 == min(above))

    # ---- names

    def _named(self, kept: list[_File]) -> list[Segment]:
        """Return the segments in order, with the base offsets implied by their contents."""
        bases: list[tuple[int, _File]] = []
        end = 0  # of the previous files
        for file in sorted(kept, key=lambda file: (file.first if file.chain else file.number, file.number)):
            base = file.number
            is_certain = len(file.chain) >= MIN_AGREEING_BATCHES or (bool(file.chain) and file.first == end)
            if is_certain and not file.is_confirmed and not end <= base <= file.first:
                base = max(file.first, end)
            if bases and base <= bases[-1][0]:
                base = file.number  # two files for the same offsets, and no batch decides: keep both names
            bases.append((base, file))
            end = max(end, file.last + 1)
        bases.sort(key=lambda each: each[0])
        segments = []
        for i, (base, file) in enumerate(bases):
            following = bases[i + 1][0] if i + 1 < len(bases) else None
            is_swap = base not in self.result.adopted and file.name == f"{segment_file(base, 'log')}.swap"
            if file.name != segment_file(base, "log") and not is_swap:
                self.result.misnamed[base] = file.name
            segment = Segment(
                self.log.store,
                self.log.directory,
                SegmentFiles(base_offset=base, names=file.files),
                next_base=following,
                size_bytes=file.size_bytes,
                modified_ms=file.modified_ms,
            )
            segments.append(segment)
        return segments


def _follows(one: BatchHeader, two: BatchHeader) -> bool:
    return one.last_offset + 1 == two.stored_offset
