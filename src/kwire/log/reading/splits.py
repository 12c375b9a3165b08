"""Split logs into ranges that tasks read independently, and read one range.

Planning needs the standard library only, because a Spark planner is a new process for every query. Cut points come from
`.index` and are verified to be batch starts; without a usable index, headers are scanned. A Split has everything that a
task on another machine needs, if the same URL opens there.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from kwire.errors import OptionError
from kwire.extras import needing
from kwire.identifiers import MAX_OFFSET, TopicPartition
from kwire.log.files.file_names import SegmentFiles, segment_file
from kwire.log.files.segment import INDEX_TRIES, Segment
from kwire.log.reading.log_directory import LogDirectory
from kwire.log.reading.partition_log import AbortedLookup, PartitionLog
from kwire.log.reading.runs import ISOLATIONS, Isolation
from kwire.records import DEFAULT_MAX_DECOMPRESSED_BYTES
from kwire.records.format.batch_header import BatchHeader
from kwire.storage.header_walk import HeaderWalk
from kwire.storage.open_store import open_store
from kwire.storage.store import StoredFile

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger("kwire.log")

DEFAULT_SPLIT_BYTES = 128 << 20

Mode = Literal["FAILFAST", "DROPMALFORMED", "PERMISSIVE"]
MODES = ("FAILFAST", "DROPMALFORMED", "PERMISSIVE")


class Cut(NamedTuple):
    """A part of one segment: batches in [start_position, stop_position), records in [start_offset, end_offset).

    base_offset, next_base: of the segment and the next one (None for the active one). name: of the `.log` file, None
    for the usual one.
    """

    base_offset: int
    next_base: int | None
    start_position: int
    stop_position: int
    start_offset: int
    end_offset: int
    name: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitLog:
    """The log that splits are of, as a task on another machine needs it.

    store_url, storage_options, log_directory: its location.
    """

    topic: str
    partition: int
    store_url: str
    storage_options: Mapping[str, Any] = field(repr=False, compare=False)
    log_directory: str
    only_base_offset: int | None
    isolation: Isolation


@dataclass(frozen=True, slots=True, kw_only=True)
class Split(SplitLog):
    """A range of one segment: the fields of a Cut, and its log."""

    base_offset: int
    next_base: int | None
    start_position: int
    stop_position: int
    start_offset: int
    end_offset: int
    name: str | None

    @property
    def size_bytes(self) -> int:
        """Size of the range."""
        return self.stop_position - self.start_position

    @property
    def path(self) -> str:
        """The path of the `.log` file in the store."""
        name = self.name or segment_file(self.base_offset, "log")
        return f"{self.log_directory}/{name}" if self.log_directory else name

    @property
    def url(self) -> str:
        """The URL or path of the `.log` file."""
        return open_store(self.store_url, self.storage_options).url_of(self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitRun(SplitLog):
    """Consecutive splits of one partition, in a small form: their log, and a Cut for each."""

    cuts: tuple[Cut, ...]

    @property
    def size_bytes(self) -> int:
        """Size of all splits."""
        return sum(cut.stop_position - cut.start_position for cut in self.cuts)

    def part(self, cuts: Sequence[Cut]) -> SplitRun:
        """Return the run of some of the cuts."""
        return replace(self, cuts=tuple(cuts))

    def splits(self) -> list[Split]:
        """Return the splits."""
        log = {each.name: getattr(self, each.name) for each in fields(SplitLog)}
        return [Split(**log, **cut._asdict()) for cut in self.cuts]


def plan_splits(
    source: LogDirectory | PartitionLog | Iterable[PartitionLog],
    *,
    ranges: Mapping[TopicPartition, tuple[int, int | None]] | None = None,
    isolation: Isolation = "read_uncommitted",
    split_bytes: int = DEFAULT_SPLIT_BYTES,
) -> list[Split]:
    """Plan splits of about split_bytes, by topic, partition and offset; a larger batch is a split of its own.

    ranges: offsets [start, end) of the partitions to read, by default everything; end None is the log end, or the last
    stable offset.
    Raises OptionError for a wrong argument, LogError for files that cannot be read.
    """
    if isolation not in ISOLATIONS:
        raise OptionError(f"isolation {isolation!r}: expected one of {', '.join(ISOLATIONS)}")
    if split_bytes < 1:
        raise OptionError(f"split_bytes {split_bytes}: expected at least 1")
    if isinstance(source, PartitionLog):
        logs: Iterable[PartitionLog] = [source]
    else:
        logs = source.values() if isinstance(source, LogDirectory) else source
    splits: list[Split] = []
    for log in logs:
        wanted = (0, None) if ranges is None else ranges.get((log.topic, log.partition))
        if wanted is not None:
            splits += plan_range(log, *wanted, isolation, split_bytes)
    return splits


def plan_range(
    log: PartitionLog,
    start_offset: int,
    end_offset: int | None,
    isolation: Isolation = "read_uncommitted",
    split_bytes: int = DEFAULT_SPLIT_BYTES,
) -> list[Split]:
    """Plan the splits of offsets [start_offset, end_offset) of one log; arguments as for plan_splits."""
    start, end = log.bounds(start_offset, end_offset, isolation)
    return plan_run(log, start, end, isolation, split_bytes).splits()


def plan_run(
    log: PartitionLog,
    start: int,
    end: int,
    isolation: Isolation = "read_uncommitted",
    split_bytes: int = DEFAULT_SPLIT_BYTES,
) -> SplitRun:
    """Plan the splits of offsets [start, end), which must be inside the log, as one run."""
    if start >= end:
        return _run(log, isolation, [])
    cuts = [
        cut for segment in log.segments_between(start, end) for cut in _cut_segment(segment, start, end, split_bytes)
    ]
    return _run(log, isolation, cuts)


def plan_whole(log: PartitionLog) -> SplitRun:
    """Plan the read_uncommitted splits of a whole log, one for each segment, from its listing: no file is opened.

    The last split ends at the listed size of its file; its end_offset is MAX_OFFSET, since only the file has the end of
    the log.
    """
    spans = log.segment_spans()
    start = log.start_of(spans[0].base_offset) if spans else 0
    cuts = []
    for base, next_base, size_bytes, name in spans:
        if (size_bytes or next_base is not None) and (next_base is None or next_base > start):
            other_name = None if name.endswith(".log") else name
            cuts.append(Cut(base, next_base, 0, size_bytes, start, MAX_OFFSET, other_name))
    return _run(log, "read_uncommitted", cuts)


def divide_run(log: PartitionLog, run: SplitRun, split_bytes: int) -> SplitRun:
    """Divide the splits of plan_whole that are larger than split_bytes."""
    if all(cut.stop_position <= split_bytes for cut in run.cuts):
        return run
    segments = {segment.base_offset: segment for segment in log.segments}
    cuts: list[Cut] = []
    for cut in run.cuts:
        segment = segments.get(cut.base_offset)
        if cut.stop_position <= split_bytes or segment is None:
            cuts.append(cut)
            continue
        with segment.open() as file:
            first = segment.start_for(file, cut.start_offset)
            headers = list(_cut_points(segment, file, first, cut.stop_position, split_bytes))
        cuts += _parts(cut._replace(start_position=first), headers)
    return replace(run, cuts=tuple(cuts))


def _run(log: PartitionLog, isolation: Isolation, cuts: Sequence[Cut]) -> SplitRun:
    return SplitRun(
        topic=log.topic,
        partition=log.partition,
        store_url=log.store.url,
        storage_options=log.store.options,
        log_directory=log.directory,
        only_base_offset=log.only_base_offset,
        isolation=isolation,
        cuts=tuple(cuts),
    )


def _cut_segment(segment: Segment, start: int, end: int, split_bytes: int) -> list[Cut]:
    """Divide the offsets [start, end) of a segment."""
    base, next_base = segment.base_offset, segment.next_base
    name = segment.name_of("log")
    other_name = None if name == segment_file(base, "log") else name
    if next_base is not None and start <= base and next_base <= end and 0 < segment.size_bytes <= split_bytes:
        return _parts(Cut(base, next_base, 0, segment.size_bytes, start, end, other_name), [])
    if next_base is not None and not segment.size_bytes:  # its reader finds out whether records are missing
        return [Cut(base, next_base, 0, 0, start, end, other_name)]
    with segment.open() as file:
        first = segment.start_for(file, start)
        stop = _stop_position(segment, file, end)
        headers = list(_cut_points(segment, file, first, stop, split_bytes))
    return _parts(Cut(base, next_base, first, stop, start, end, other_name), headers)


def _parts(whole: Cut, headers: Sequence[BatchHeader]) -> list[Cut]:
    """Divide a cut at batches."""
    low, high = whole.start_offset, whole.end_offset
    lows = [low] + [max(low, cut.stored_offset) if cut.magic == 2 else low for cut in headers]
    highs = [min(high, cut.stored_offset) if cut.magic == 2 else high for cut in headers] + [high]
    positions = [whole.start_position, *(cut.position for cut in headers), whole.stop_position]
    return [
        whole._replace(
            start_position=positions[i], stop_position=positions[i + 1], start_offset=lows[i], end_offset=highs[i]
        )
        for i in range(len(lows))
        if positions[i] < positions[i + 1] and lows[i] < highs[i]
    ]


def _stop_position(segment: Segment, file: StoredFile, end: int) -> int:
    """Return where reading stops: after the last whole batch, or at the end of the file if there is damage."""
    if segment.is_active:
        size = file.size()
        now = segment.end()
        if now.damage is None and (now.position == size or segment.cut(file, now.position, size) is None):
            return now.position if end >= now.next_offset else min(now.position, segment.end_position(file, end))
    return segment.end_position(file, end)


def _cut_points(segment: Segment, file: StoredFile, start: int, stop: int, split_bytes: int) -> Iterator[BatchHeader]:
    """Yield the headers of the batches at which [start, stop) is cut into even parts of about split_bytes."""
    parts = -(-(stop - start) // split_bytes)
    index = segment.index if parts > 1 else None
    last = start
    for part in range(1, parts):
        wanted = start + (stop - start) * part // parts
        cut = None
        if index is not None:
            nearest = index.after_position(wanted)
            for i in range(nearest, min(len(index), nearest + INDEX_TRIES)):
                offset, position = index[i]
                cut = segment.search_start(file, position, offset) if last < position < stop else None
                if cut is not None:
                    break
        if cut is None:
            cut = next((header for header in HeaderWalk(file, last, stop) if header.position >= wanted), None)
            if cut is None:
                return  # one batch to the end, or damage, which the reader of that split reports
        if cut.position > last:
            last = cut.position
            yield cut


def split_segment(split: Split) -> Segment:
    """Return the segment of a split, without listing its directory."""
    name = split.name or segment_file(split.base_offset, "log")
    names = {"log": name, "index": name.replace(".log", ".index", 1)}
    store = open_store(split.store_url, split.storage_options)
    files = SegmentFiles(base_offset=split.base_offset, names=names)
    return Segment(store, split.log_directory, files, next_base=split.next_base, size_bytes=split.stop_position)


def split_log(split: Split) -> PartitionLog:
    """Return the whole partition of a split."""
    return PartitionLog(
        open_store(split.store_url, split.storage_options),
        split.log_directory,
        split.topic,
        split.partition,
        only_base_offset=split.only_base_offset,
    )


def read_split(
    split: Split,
    columns: Sequence[str] | None = None,
    *,
    mode: Mode = "FAILFAST",
    check_crc: bool = True,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> Iterator[pa.RecordBatch]:
    """Read the rows of one split as Arrow batches.

    columns: names of kwire.records.columns.reader.COLUMNS and `_corrupt`, in this order; default: all but headers.
    mode: handling of unreadable batches. FAILFAST raises CorruptBatch. DROPMALFORMED skips them. PERMISSIVE returns a
    row for each: topic, partition, the first lost offset if known, and the error in `_corrupt`; other columns are null.
    After an invalid header, reading continues at the next batch in the `.index`; without one, the rest of the split is
    one unreadable range.
    Raises OptionError for a wrong argument, LogError for missing or unreadable files, in every mode. After the rows of
    a split whose next segment is missing, it raises MissingOffsets.
    """
    yield from SplitReader(columns, mode=mode, check_crc=check_crc, max_decompressed_bytes=max_decompressed_bytes).read(
        split
    )


class SplitReader:
    """Reads one split after another with the same buffers.

    skip_missing: as in ReadableLog.read. Other arguments and errors: as for read_split.
    """

    def __init__(
        self,
        columns: Sequence[str] | None = None,
        *,
        mode: Mode = "FAILFAST",
        check_crc: bool = True,
        skip_missing: bool = False,
        max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
    ) -> None:
        with needing("records as Arrow columns"):
            from kwire.log.reading.arrow import RangeReader, default_columns

        if mode not in MODES:
            raise OptionError(f"mode {mode!r}: expected one of {', '.join(MODES)}")
        self._reader = RangeReader(
            default_columns(columns),
            topic="",
            partition=0,
            offsets=(0, 0),
            check_crc=check_crc,
            max_decompressed_bytes=max_decompressed_bytes,
            mode=mode,
            skip_missing=skip_missing,
        )
        self._skip_missing = skip_missing

    def read(self, split: Split) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split. Call it again when the iterator is exhausted."""
        lookup = AbortedLookup(split_log(split)) if split.isolation == "read_committed" else None
        self._reader.move_to(split.topic, split.partition, (split.start_offset, split.end_offset), lookup)
        segment = split_segment(split)
        yield from self._reader.read(segment, split.start_position, split.stop_position)
        if self._reader.is_whole and self._reader.reached != split.next_base:
            missing = split_log(split).missing_after(
                segment, split.start_offset, self._reader.reached, split.end_offset
            )
            if missing is not None:
                if not self._skip_missing:
                    raise missing[1]
                logger.warning("%s; skipping them", missing[1])
