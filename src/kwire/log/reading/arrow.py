"""Read segments as Arrow batches: pread into one buffer, decode with kwire.records' columnar kernels, handle damage.

Imports pyarrow, so modules used for planning must not import it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Unpack

import pyarrow as pa
import pyarrow.compute as pc

from kwire.errors import CorruptBatch, LogError, OptionError
from kwire.identifiers import MAX_OFFSET
from kwire.log.files.chunks import Chunks
from kwire.log.files.segment import Segment
from kwire.log.files.transaction_index import AbortedTransaction
from kwire.log.reading.chunk_offset_check import ChunkOffsetCheck
from kwire.log.reading.runs import AbortedIn, PinnedRange, Run
from kwire.records import DEFAULT_MAX_DECOMPRESSED_BYTES
from kwire.records.columns.reader import COLUMNS, ColumnReader, DecodingOptions, arrow_schema
from kwire.records.format.batch_table import Scan
from kwire.storage.header_walk import HeaderWalk
from kwire.storage.store import DescriptorFile, StoredFile

CHUNK_BYTES = 8 << 20
FIRST_CHUNK_BYTES = 512 << 10  # of a file in a store: a query may need a few rows, or all of them
SMALLEST_CHUNK_BYTES = 64 << 10
CORRUPT = "_corrupt"

logger = logging.getLogger("kwire.log")


@dataclass(slots=True)
class NullTimestamps:
    """Records whose timestamp is null in its column, which counts microseconds in 64 bits.

    Batches are added in the order of their offsets; offsets that come again are not counted again.
    """

    count: int = 0
    first: str | None = None
    _next_offset: int = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Count the rows of a batch. Its offsets are counted if it has that column."""
        place = batch.schema.get_field_index("timestamp")
        times = None if place < 0 else batch.column(place)
        if times is None or not times.null_count:
            return
        rows = pc.is_null(times)
        if (place := batch.schema.get_field_index("offset")) >= 0:
            offsets = batch.column(place)
            rows = pc.and_(rows, pc.greater_equal(offsets, self._next_offset))
            self._next_offset = offsets[-1].as_py() + 1
            if self.first is None and (row := pc.index(rows, value=True).as_py()) >= 0:
                self.first = f"of offset {offsets[row]}"
        self.count += pc.sum(rows).as_py()

    @property
    def problem(self) -> str | None:
        """The text of a warning; None without such timestamps."""
        if not self.count:
            return None
        others = f" and of {self.count - 1} more" if self.count > 1 else ""
        which = f"the timestamp {self.first or 'of a record'}{others}"
        return f"{which} is beyond the year 294247, the last that fits the column, and null there"


def default_columns(columns: Sequence[str] | None) -> tuple[str, ...]:
    """Return the columns, by default all but headers. Raises OptionError for an unknown name."""
    if columns is None:
        return tuple(name for name in COLUMNS if name != "headers")
    for name in columns:
        if name not in COLUMNS and name != CORRUPT:
            raise OptionError(f"no column {name!r}; columns are {', '.join([*COLUMNS, CORRUPT])}")
    return tuple(columns)


def schema_of(columns: Sequence[str]) -> pa.Schema:
    """Return the Arrow schema of columns, including `_corrupt`."""
    known = arrow_schema(COLUMNS)
    return pa.schema([pa.field(CORRUPT, pa.string()) if name == CORRUPT else known.field(name) for name in columns])


def record_columns(columns: Sequence[str] | None) -> tuple[str, ...]:
    """Return default_columns. Raises OptionError for `_corrupt` too, which a reader that raises has no use for."""
    wanted = default_columns(columns)
    if not wanted:
        raise OptionError("columns: expected at least one name")
    if CORRUPT in wanted:
        raise OptionError(
            f"column {CORRUPT!r} is not supported by read_arrow, which raises CorruptBatch; use read_split"
        )
    return wanted


def read_warning(
    pinned: PinnedRange, columns: Sequence[str], *, skip_missing: bool, **options: Unpack[DecodingOptions]
) -> pa.RecordBatchReader:
    """Return read_pinned as an Arrow reader, which warns of timestamps that do not fit their column."""
    batches = read_pinned(pinned, columns, skip_missing=skip_missing, **options)
    return pa.RecordBatchReader.from_batches(schema_of(columns), _warning_of_nulls(pinned, batches))


def _warning_of_nulls(pinned: PinnedRange, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    lost = NullTimestamps()
    try:
        for batch in batches:
            lost.add(batch)
            yield batch
    finally:
        if lost.problem is not None:
            logger.warning("%s-%d: %s", pinned.topic, pinned.partition, lost.problem)


def read_pinned(
    pinned: PinnedRange,
    columns: Sequence[str],
    *,
    mode: str = "FAILFAST",
    skip_missing: bool = False,
    skipped: list[tuple[int, int]] | None = None,
    **options: Unpack[DecodingOptions],
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a pinned range. columns: as in read_arrow, or with `_corrupt`; mode: as in read_split.

    skip_missing: as in ReadableLog.read. skipped: receives the ranges of missing offsets, [from, to).
    """
    reader = RangeReader(
        columns,
        topic=pinned.topic,
        partition=pinned.partition,
        offsets=(pinned.start_offset, pinned.end_offset),
        mode=mode,
        skip_missing=skip_missing,
        **options,
    )
    for run in pinned.runs:
        try:
            yield from reader.read_run(run)
        except LogError:
            if not run.is_expired():
                raise
            continue
        if reader.is_whole:
            missing = run.check_end(reader.reached, pinned.end_offset, skip_missing=skip_missing)
            if missing is not None and skipped is not None:
                skipped.append(missing)


class RangeReader:
    """Reads ranges of the segments of one partition at a time, for read_split; reuses its buffers.

    offsets: records in [start, end) are returned. skip_missing: as in AbortedIn. The other arguments are as in
    read_split.
    is_whole: whether the last range ended with its file, without damage. reached: the offset after its last batch, None
    without one.
    """

    def __init__(
        self,
        columns: Sequence[str],
        *,
        topic: str,
        partition: int,
        offsets: tuple[int, int],
        mode: str = "FAILFAST",
        skip_missing: bool = False,
        **options: Unpack[DecodingOptions],
    ) -> None:
        self._columns, self._schema = tuple(columns), schema_of(columns)
        self._topic, self._partition = topic, partition
        self._offsets, self._mode, self._skip_missing = offsets, mode, skip_missing
        self._aborted_in: AbortedIn | None = None
        self._max_decompressed_bytes = options.get("max_decompressed_bytes", DEFAULT_MAX_DECOMPRESSED_BYTES)
        self._chunk_bytes = min(CHUNK_BYTES, max(SMALLEST_CHUNK_BYTES, options.get("max_bytes", CHUNK_BYTES)))
        self._store_chunk_bytes = FIRST_CHUNK_BYTES
        self._errors: list[CorruptBatch] = []
        self._buffer = bytearray()
        self._order = ChunkOffsetCheck()
        self.is_whole, self._is_damaged = False, False
        self.reached: int | None = None
        self._ends_in_zeros: Callable[[int], bool] = lambda position: False
        self._reader = ColumnReader(
            tuple(name for name in columns if name != CORRUPT) or ("partition",),
            topic=topic,
            partition=partition,
            on_corrupt=self._on_corrupt,
            **options,
        )

    def read_run(self, run: Run) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a run of the range."""
        segment, file, end = run.segment, run.file, self._offsets[1]
        self._offsets, self._aborted_in = (run.start_offset, end), run.aborted_in
        yield from self.read_open(
            segment, file, segment.position_of(file, run.start_offset), segment.end_position(file, end)
        )

    def move_to(self, topic: str, partition: int, offsets: tuple[int, int], aborted_in: AbortedIn | None) -> None:
        """Read another range of offsets from now on, of this partition or another. aborted_in: as in Run."""
        self._offsets, self._aborted_in = offsets, aborted_in
        if (topic, partition) != (self._topic, self._partition):
            self._topic, self._partition = topic, partition
            self._reader.set_partition(topic, partition)

    def read(self, segment: Segment, start_position: int, stop_position: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the batches of a segment that start in [start_position, stop_position)."""
        with segment.open() as file:
            yield from self.read_open(segment, file, start_position, stop_position)

    def read_open(
        self, segment: Segment, file: StoredFile, start_position: int, stop_position: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield the same rows from an open segment file."""
        order = self._order
        order.begin(segment)
        self.is_whole, self.reached, self._is_damaged = False, None, False
        self._ends_in_zeros = partial(segment.ends_in_zeros, file)
        is_local = isinstance(file, DescriptorFile)
        chunks = Chunks(
            file,
            start_position,
            stop_position,
            chunk_bytes=self._chunk_bytes if is_local else self._store_chunk_bytes,
            most_chunk_bytes=0 if is_local else self._chunk_bytes,
            max_batch_bytes=self._max_decompressed_bytes,
            buffer=self._buffer,
        )
        while (chunk := chunks.next_chunk()) is not None:
            prefix = order.valid_prefix(chunk, chunks.position, file.url)
            if prefix.damage is not None and prefix.size_bytes == 0:
                self._on_corrupt(prefix.damage)
                chunks.advance(prefix.damaged_bytes)
                continue
            yield from self._rows(chunk[: prefix.size_bytes], chunks.position, file.url, prefix.scan)
            if self._reader.stopped is None and chunks.advance(self._reader.consumed):
                yield from self._corrupt_rows()
                continue
            damage = self._damage(segment, file, chunks, stop_position)
            if damage is None:
                break
            if self._mode == "FAILFAST":
                raise damage
            region, resume = _skip(segment, file, damage, start_position, stop_position)
            self._errors.append(region)
            self._is_damaged = True
            chunks.skip_to(stop_position if resume is None else resume)
        self._buffer = chunks.buffer
        if not is_local:
            self._store_chunk_bytes = chunks.chunk_bytes
        yield from self._corrupt_rows()
        self.is_whole = chunks.position >= file.size() and not self._is_damaged
        self.reached = order.next_offset if chunks.position > start_position else None

    def _damage(self, segment: Segment, file: StoredFile, chunks: Chunks, stop: int) -> CorruptBatch | None:
        """Return the error at the current position; None if the log ends there."""
        stopped = self._reader.stopped
        if stopped is not None:
            if not self._errors or self._errors[-1] is not stopped:
                return None  # zeros
            return self._errors.pop()
        if chunks.refused is not None or chunks.position >= stop:
            return chunks.refused
        if stop >= file.size() or (segment.is_active and segment.search_start(file, stop, MAX_OFFSET) is None):
            return segment.cut(file, chunks.position, stop)  # the end of the file, or its end before it grew
        what = f"its length extends past byte {stop}, where another batch begins"
        return CorruptBatch(what, chunks.position, (), file.url)

    def _on_corrupt(self, error: CorruptBatch) -> None:
        if self._ends_in_zeros(error.position):
            return  # not damage: the reader stops there
        if self._mode == "FAILFAST":
            raise error
        self._errors.append(error)
        self._is_damaged = True

    def _rows(self, chunk: memoryview, position: int, file: str, scan: Scan | None) -> Iterator[pa.RecordBatch]:
        start, end = self._offsets
        aborted = self._aborted()
        batches = self._reader.read(
            chunk, position=position, file=file, start_offset=start, end_offset=end, aborted=aborted, scan=scan
        )
        if CORRUPT not in self._columns:
            yield from batches
            return
        for batch in batches:
            nothing = pa.nulls(batch.num_rows, pa.string())
            arrays = [nothing if name == CORRUPT else batch.column(name) for name in self._columns]
            yield pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _aborted(self) -> Sequence[AbortedTransaction]:
        """Return the aborted transactions in the chunk. Only batches of transactions need a search for them."""
        among = self._order.transactional
        if self._aborted_in is None or among is None:
            return ()
        start, end = max(among[0], self._offsets[0]), min(among[1], self._offsets[1])
        return self._aborted_in(start, end, skip_missing=self._skip_missing) if start < end else ()

    def _corrupt_rows(self) -> Iterator[pa.RecordBatch]:
        """Yield a row for each error since the last call: topic, partition, first lost offset and text, else null."""
        start, end = self._offsets
        errors = [e for e in self._errors if e.offsets is None or (e.offsets[0] < end and e.offsets[1] >= start)]
        self._errors.clear()
        if not errors or self._mode != "PERMISSIVE":
            return
        values = {
            "topic": [self._topic] * len(errors),
            "partition": [self._partition] * len(errors),
            "offset": [error.offsets[0] if error.offsets else None for error in errors],
            CORRUPT: [str(error) for error in errors],
        }
        arrays = [
            pa.array(values[field.name], field.type) if field.name in values else pa.nulls(len(errors), field.type)
            for field in self._schema
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _skip(
    segment: Segment, file: StoredFile, damage: CorruptBatch, start: int, stop: int
) -> tuple[CorruptBatch, int | None]:
    """Return the unreadable region as an error with its offsets, and the position of the next batch after it.

    The `.index` has batch starts; one after the damage is used if a batch starts there and continues the offsets.
    """
    walk = HeaderWalk(file, start, damage.position)
    first_lost = segment.base_offset
    for header in walk:
        first_lost = header.last_offset + 1
    index = segment.index
    next_start = None
    if index is not None:
        for i in range(index.after_position(damage.position + 1), len(index)):
            offset, position = index[i]
            if position >= stop:
                break
            next_start = segment.search_start(file, position, offset)
            if next_start is not None and next_start.stored_offset >= first_lost:
                break
            next_start = None
    following = next_start or segment.search_start(file, stop, MAX_OFFSET)
    end = following.stored_offset if following is not None else segment.next_base
    offsets = None if end is None or end <= first_lost else (first_lost, end - 1)
    to = f"byte {next_start.position}" if next_start else f"the end of this range at byte {stop}"
    what = f"{damage.what}; unreadable from here to {to}"
    return CorruptBatch(what, damage.position, (), damage.file, offsets), next_start.position if next_start else None
