"""Which file of a partition is which segment, judged by the batches in it.

A segment's name gives its base offset. Names and contents nearly always agree, and then one look at the first and the
last batch of each file is all that is done here. Otherwise every header is read, and the batches decide:

    copies      a file whose batches are all in another one, byte for byte; the name that its first batch confirms stays
    misnamed    a file whose name is not the base offset that its batches and neighbours leave
    loose       a file with batches under a name that brokers do not read, such as 972.log or ....log.bak

One batch that does not fit its file is a damaged offset and not a wrong name: the scan of the segment judges it.
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
from kwire.log.file_names import SEGMENT_FILE, SegmentFiles, segment_file
from kwire.log.segment import Segment
from kwire.log.verify.resync import Range, next_good, valid_batch
from kwire.records import read_batches
from kwire.records.attributes import CODEC_MASK
from kwire.records.batch_header import BatchHeader
from kwire.storage.header_walk import HeaderWalk
from kwire.storage.store import StoredFile

if TYPE_CHECKING:
    from kwire.log.partition_log import PartitionLog

__all__ = ["Copy", "Layout", "Loose", "Piece", "Spare", "lay_out"]

ANYWHERE = Range(0, MAX_OFFSET)
NAMED = re.compile(r"(?P<number>[0-9]{1,20})\..*|.*", re.ASCII | re.DOTALL)
OTHER_FILES = (".checkpoint", ".checkpoint.deleted", ".checkpoint.part", ".tmp", "-checkpoint", ".snapshot", "index")
FEWEST = 2  # batches that have to agree before a name is called wrong


@dataclass(frozen=True, slots=True)
class Piece:
    """Whole batches of a file of the partition's directory: [position, position + size_bytes), and their offsets."""

    name: str
    position: int
    size_bytes: int
    offsets: tuple[int, int]


@dataclass(slots=True, kw_only=True)
class Spare:
    """A file beside the log that holds batches of it. name: in the partition's directory."""

    log: PartitionLog
    name: str
    batches: list[BatchHeader]

    def pieces(self, first: int, last: int) -> list[Piece]:
        """Its batches within offsets [first, last] whose checksums hold, in order; neighbours are one piece."""
        found: list[Piece] = []
        with self.log.store.open(self.log.path_of(self.name)) as file:
            for header in self.batches:
                if header.stored_offset < first or header.last_offset > last:
                    continue
                if valid_batch(file, header.position, file.size(), ANYWHERE) is None:
                    continue
                previous = found[-1] if found else None
                if previous is not None and header.stored_offset <= previous.offsets[1]:
                    continue
                offsets = header.stored_offset, header.last_offset
                if previous is not None and previous.position + previous.size_bytes == header.position:
                    size = previous.size_bytes + header.size_bytes
                    found[-1] = Piece(self.name, previous.position, size, (previous.offsets[0], offsets[1]))
                else:
                    found.append(Piece(self.name, header.position, header.size_bytes, offsets))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """A segment whose batches are in another file. segment: as its name has it. original: the file that stays."""

    segment: Segment
    original: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Empty:
    """A segment without a batch whose base offset is inside the offsets of another file, within."""

    segment: Segment
    within: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Loose:
    """A file with batches whose name is not a segment's. number: of its name, None without one.

    offsets: from its first batch to its last one. size_bytes: as listed.
    """

    name: str
    number: int | None
    offsets: tuple[int, int]
    size_bytes: int

    @property
    def right_name(self) -> str:
        """The name under which a broker reads it: the number stays where its batches allow that."""
        fits = self.number is not None and self.number <= self.offsets[0]
        return segment_file(self.number if fits and self.number is not None else self.offsets[0], "log")


@dataclass(slots=True, kw_only=True)
class Layout:
    """The segments of a partition by content, in order of their offsets.

    misnamed: base offset of a segment -> name of its file, where that is another. adopted: bases of those that are
    loose files and fill a gap.
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
    """A file with what is in it. chain: its batches without those whose offset is damaged."""

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
        """Whether its first batch begins at the offset of its name."""
        return bool(self.chain) and self.first == self.number


def lay_out(log: PartitionLog, *, known: tuple[int, int], is_compacted: Callable[[], bool | None]) -> Layout:
    """The layout of a partition.

    known: [start, end) of the log by its other files. is_compacted: says whether the topic is compacted, None where
    nothing tells. A loose file that fits into a gap of a log that is not belongs there.

    Raises LogError where a file cannot be read.
    """
    segments = log.segments
    if log.only_base_offset is not None:
        return Layout(segments=segments)
    names = _loose_names(log)
    if not names and all(_agrees(segment) for segment in segments):
        return Layout(segments=segments)
    return _Sorting(log, segments, names, known, is_compacted).layout()


def _agrees(segment: Segment) -> bool:
    """Whether all batches can be followed, and the first and the last are between the segment's name and the next."""
    with segment.open() as file:
        first = next(iter(HeaderWalk(file)), None)
    if first is not None and first.stored_offset < segment.base_offset:
        return False
    end = segment.end()
    if segment.next_base is None:
        return end.damage is None
    return end.position >= segment.size_bytes and end.next_offset <= segment.next_base


def _loose_names(log: PartitionLog) -> list[str]:
    """Files that begin with a batch under a name that is not a segment's."""
    return [
        name
        for name in log.file_names
        if SEGMENT_FILE.fullmatch(name) is None and not name.endswith(OTHER_FILES) and _begins_with_batch(log, name)
    ]


def _begins_with_batch(log: PartitionLog, name: str) -> bool:
    with log.store.open(log.path_of(name)) as file:
        return valid_batch(file, 0, file.size(), ANYWHERE) is not None


def batches_in(file: StoredFile) -> Iterator[BatchHeader]:
    """Headers of a file from its beginning; after damage, from the next batch whose checksum holds."""
    position, size = 0, file.size()
    while position < size:
        walk = HeaderWalk(file, position)
        yield from walk
        if walk.position >= size:
            return
        found = next_good(file, walk.position + 1, size, ANYWHERE)
        if found is None:
            return
        position = found.position


def rising(batches: Sequence[BatchHeader]) -> list[BatchHeader]:
    """The longest run of batches whose offsets rise: the others have a damaged offset."""
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
    """The offset of a batch's first record; compressed messages of magic 0 and 1 tell it only inside."""
    if header.magic == 2 or not header.attributes & CODEC_MASK:
        return header.stored_offset
    try:
        for batch in read_batches(file.pread(header.position, header.size_bytes)):
            return next((record.offset for record in batch.records()), header.stored_offset)
    except CorruptBatch:
        pass
    return header.stored_offset


class _Sorting:
    """Reads all headers of a partition and puts its files in order."""

    def __init__(
        self,
        log: PartitionLog,
        segments: Sequence[Segment],
        loose: Sequence[str],
        known: tuple[int, int],
        is_compacted: Callable[[], bool | None],
    ) -> None:
        self.log, self.known, self.is_compacted = log, known, is_compacted
        self.by_name = {segment.path.rpartition("/")[2]: segment for segment in segments}
        self.files = [self._file(name, segment) for name, segment in self.by_name.items()]
        self.loose = sorted((self._file(name, None) for name in loose), key=lambda file: file.first)
        self.result = Layout(segments=[])
        self._strip_outliers()

    def _file(self, name: str, segment: Segment | None) -> _File:
        with self.log.store.open(self.log.path_of(name)) as file:
            batches, size = list(batches_in(file)), file.size()
            chain = rising(batches)
            first = _first_offset(file, chain[0]) if chain else 0
        match = NAMED.fullmatch(name)
        number = match["number"] if match is not None else None
        base = int(number) if number is not None and int(number) <= MAX_OFFSET else first
        files = {"log": name}
        modified = None
        if segment is not None:
            files = {kind: segment.path_of(kind).rpartition("/")[2] for kind in segment.has}
            modified = segment.modified_ms
        return _File(name, base, size, modified, batches, chain, first if chain else base, files)

    def _strip_outliers(self) -> None:
        """Take a file's first or last batch out of its chain that alone fits neither the name nor the neighbours."""
        files = [file for file in self.files if file.chain]
        for i, file in enumerate(files):
            before = files[i - 1].last if i else -1
            head = file.chain[:2]
            is_below = len(head) > 1 and head[0].stored_offset < file.number <= head[1].stored_offset
            if is_below and not _follows(*head) and file.first <= before:
                file.chain, file.first = file.chain[1:], head[1].stored_offset
            behind = files[i + 1] if i + 1 < len(files) else None
            tail = file.chain[-2:]
            if behind is None or len(tail) < 2:
                continue
            is_above = tail[0].last_offset < behind.number <= tail[1].last_offset
            if is_above and not _follows(*tail) and behind.first <= tail[1].last_offset:
                file.chain = file.chain[:-1]

    def layout(self) -> Layout:
        """All of it."""
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
        """The files without those whose batches are all in another one."""
        kept: list[_File] = []
        # the best name of each copy first: that one stays
        for file in sorted(self.files, key=lambda file: (not file.is_confirmed, -len(file.chain), file.number)):
            original = next((other for other in kept if self._is_copy(file, other)), None)
            if original is None:
                longer = next((other for other in kept if self._is_copy(other, file)), None)
                if longer is not None:  # the better name has fewer batches: the name stays, with the longer file
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
        """Whether the offsets of file lie in other's, and every batch that both have whole is the same."""
        if not file.chain or not other.chain or file.first < other.first or file.last > other.last:
            return False
        places = {(each.stored_offset, each.last_offset, each.size_bytes): each.position for each in other.batches}
        same = 0
        with (
            self.log.store.open(self.log.path_of(file.name)) as one,
            self.log.store.open(self.log.path_of(other.name)) as two,
        ):
            for each in file.chain:
                at = places.get((each.stored_offset, each.last_offset, each.size_bytes))
                if at is not None and one.pread(each.position, each.size_bytes) == two.pread(at, each.size_bytes):
                    same += 1
        return bool(same) and same * 2 >= len(file.chain)

    def _without_empty(self, files: list[_File]) -> list[_File]:
        """The files without those that have no batch and stand inside the offsets of another one."""
        kept = []
        for file in files:
            others = (other for other in files if len(other.chain) >= FEWEST)
            within = next((other for other in others if other.first <= file.number <= other.last), None)
            if file.chain or within is None:
                kept.append(file)
            else:
                self.result.empty.append(Empty(segment=self.by_name[file.name], within=within.name))
        return kept

    # ---- files under other names

    def _with_loose(self, kept: list[_File]) -> list[_File]:
        """The files and the loose ones that fill a gap between them."""
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
        """Whether a file's offsets are missing in the log; at an end of it, other files have to speak of them."""
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
        """Segments under the base offsets that their content leaves, in order."""
        bases: list[tuple[int, _File]] = []
        end = 0  # of what stands before
        for file in sorted(kept, key=lambda file: (file.first if file.chain else file.number, file.number)):
            base = file.number
            is_certain = len(file.chain) >= FEWEST or (bool(file.chain) and file.first == end)
            if is_certain and not file.is_confirmed and not end <= base <= file.first:
                base = max(file.first, end)
            if bases and base <= bases[-1][0]:
                base = file.number  # two files for the same offsets, and no batch says which: both are judged as named
            bases.append((base, file))
            end = max(end, file.last + 1)
        bases.sort(key=lambda each: each[0])
        found = []
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
            found.append(segment)
        return found


def _follows(one: BatchHeader, two: BatchHeader) -> bool:
    return one.last_offset + 1 == two.stored_offset
