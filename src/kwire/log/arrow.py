"""Segments as Arrow batches: pread into one buffer, kwire.records' columnar kernels on it, and what to do with damage.

Imports pyarrow and numba, so nothing that plans may import it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from kwire.errors import CorruptBatch, OptionError
from kwire.log.chunks import Chunks
from kwire.log.headers import HeaderWalk
from kwire.log.segment import Segment
from kwire.log.store import StoredFile
from kwire.log.transaction_index import AbortedTransaction
from kwire.records.columns import COLUMNS, ColumnReader, arrow_schema

if TYPE_CHECKING:
    from kwire.log.partition_log import Isolation, PartitionLog

CHUNK_BYTES = 8 << 20
CORRUPT = "_corrupt"


def default_columns(columns: Sequence[str] | None) -> tuple[str, ...]:
    """columns checked, or all but headers. Raises OptionError for a name that is none."""
    if columns is None:
        return tuple(name for name in COLUMNS if name != "headers")
    for name in columns:
        if name not in COLUMNS and name != CORRUPT:
            raise OptionError(f"no column {name!r}; columns are {', '.join([*COLUMNS, CORRUPT])}")
    return tuple(columns)


def schema_of(columns: Sequence[str]) -> pa.Schema:
    """The Arrow schema of columns, `_corrupt` included."""
    known = arrow_schema(tuple(name for name in columns if name != CORRUPT))
    return pa.schema([pa.field(CORRUPT, pa.string()) if name == CORRUPT else known.field(name) for name in columns])


def read_arrow(
    log: PartitionLog,
    start_offset: int,
    end_offset: int | None,
    isolation: Isolation,
    columns: Sequence[str] | None,
    *,
    check_crc: bool,
    max_decompressed_bytes: int,
) -> pa.RecordBatchReader:
    """PartitionLog.read_arrow."""
    wanted = default_columns(columns)
    if CORRUPT in wanted:
        raise OptionError(f"column {CORRUPT!r} is for read_split: read_arrow raises CorruptBatch")
    start, end = log.bounds(start_offset, end_offset, isolation)
    aborted = log.aborted_transactions(start, end) if isolation == "read_committed" else ()

    def batches() -> Iterator[pa.RecordBatch]:
        buffer = bytearray(CHUNK_BYTES)
        for segment in log.segments_between(start, end):
            with segment.open() as file:
                position, stop = segment.position_of(file, start), segment.end_position(file, end)
            yield from read_range(
                segment,
                wanted,
                topic=log.topic,
                partition=log.partition,
                start_position=position,
                stop_position=stop,
                start_offset=start,
                end_offset=end,
                aborted=aborted,
                check_crc=check_crc,
                max_decompressed_bytes=max_decompressed_bytes,
                buffer=buffer,
            )

    return pa.RecordBatchReader.from_batches(schema_of(wanted), batches())


def read_range(
    segment: Segment,
    columns: Sequence[str],
    *,
    topic: str,
    partition: int,
    start_position: int,
    stop_position: int,
    start_offset: int,
    end_offset: int,
    aborted: Sequence[AbortedTransaction],
    check_crc: bool,
    max_decompressed_bytes: int,
    mode: str = "FAILFAST",
    buffer: bytearray | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of the batches that start in [start_position, stop_position) of a segment, as read_split gives them.

    buffer: lent for the reads, to save its allocation.
    """
    errors: list[CorruptBatch] = []
    reader = ColumnReader(
        tuple(name for name in columns if name != CORRUPT),
        topic=topic,
        partition=partition,
        check_crc=check_crc,
        max_decompressed_bytes=max_decompressed_bytes,
        on_corrupt=None if mode == "FAILFAST" else errors.append,
    )
    schema = schema_of(columns)

    def finished(batch: pa.RecordBatch) -> pa.RecordBatch:
        if CORRUPT not in columns:
            return batch
        at = columns.index(CORRUPT)
        return batch.add_column(at, schema.field(at), pa.nulls(batch.num_rows, pa.string()))

    def corrupt_rows() -> Iterator[pa.RecordBatch]:
        if mode == "PERMISSIVE":
            lost = [error for error in errors if _meets(error, start_offset, end_offset)]
            if lost:
                yield _error_rows(lost, schema, topic, partition)
        errors.clear()

    with segment.open() as file:
        chunks = Chunks(
            file,
            start_position,
            stop_position,
            chunk_bytes=CHUNK_BYTES,
            max_batch_bytes=max_decompressed_bytes,
            buffer=bytearray() if buffer is None else buffer,
        )
        while (chunk := chunks.next_chunk()) is not None:
            try:
                for batch in reader.read(
                    chunk,
                    position=chunks.position,
                    file=file.url,
                    start_offset=start_offset,
                    end_offset=end_offset,
                    aborted=aborted,
                ):
                    yield finished(batch)
                damage = reader.stopped
                if damage is None and chunks.advance(reader.consumed):
                    yield from corrupt_rows()
                    continue
            except CorruptBatch as error:
                if segment.ends_in_zeros(file, error.position):
                    return
                if mode == "FAILFAST" or error.position != chunks.position:
                    raise
                damage = error  # a batch above the limit; the reader itself does not raise in the other modes
            if damage is None:
                damage = _unfinished(segment, file, chunks.position, stop_position)
            elif segment.ends_in_zeros(file, damage.position):
                damage = None
                errors = [error for error in errors if error is not reader.stopped]
            if damage is None:
                break
            if mode == "FAILFAST":
                raise damage
            errors[:] = [error for error in errors if error is not damage]
            region, resume = _skip(segment, file, damage, start_position, stop_position)
            errors.append(region)
            yield from corrupt_rows()
            if resume is None:
                break
            chunks.skip_to(resume)
        yield from corrupt_rows()


def _unfinished(segment: Segment, file: StoredFile, position: int, stop: int) -> CorruptBatch | None:
    """The damage where whole batches end before stop; None at the growing end of a log."""
    if position >= stop:
        return None
    if stop >= file.size():
        return segment.cut(file, position)
    return CorruptBatch(f"its length runs past byte {stop}, where another batch begins", position, (), file.url)


def _skip(
    segment: Segment, file: StoredFile, damage: CorruptBatch, start: int, stop: int
) -> tuple[CorruptBatch, int | None]:
    """The region that damage makes unreadable, as an error that names its offsets, and where batches go on.

    The `.index` knows batch starts; one behind the damage is taken if a batch is there whose offsets go on from before.
    """
    walk = HeaderWalk(file, start, damage.position)
    first_lost = segment.base_offset
    for header in walk:
        first_lost = header.last_offset + 1
    index = segment.index
    found = None
    if index is not None:
        for i in range(index.after_position(damage.position + 1), len(index)):
            offset, position = index[i]
            if position >= stop:
                break
            found = segment.landing(file, position, offset)
            if found is not None and found.stored_offset >= first_lost:
                break
            found = None
    behind = found or segment.landing(file, stop, (1 << 63) - 1)
    end = behind.stored_offset if behind is not None else segment.next_base
    offsets = None if end is None or end <= first_lost else (first_lost, end - 1)
    to = f"byte {found.position}" if found else f"the end of this range at byte {stop}"
    what = f"{damage.what}; unreadable from here to {to}"
    return CorruptBatch(what, damage.position, (), damage.file, offsets), found.position if found else None


def _meets(error: CorruptBatch, start_offset: int, end_offset: int) -> bool:
    """Whether an error concerns the offsets that were asked for; an error without offsets may."""
    return error.offsets is None or (error.offsets[0] < end_offset and error.offsets[1] >= start_offset)


def _error_rows(errors: Sequence[CorruptBatch], schema: pa.Schema, topic: str, partition: int) -> pa.RecordBatch:
    """A row for each error: topic, partition, first offset lost, the text in `_corrupt`, null in the other columns."""
    values = {
        "topic": [topic] * len(errors),
        "partition": [partition] * len(errors),
        "offset": [error.offsets[0] if error.offsets else None for error in errors],
        CORRUPT: [str(error) for error in errors],
    }
    arrays = [
        pa.array(values[field.name], field.type) if field.name in values else pa.nulls(len(errors), field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
