"""Conversion of batches to another magic by columns: the bytes of the object path, at the speed of the kernels.

Batches that columns cannot represent exactly, or that do not decode, are left to the object path (conversion), which
also raises the errors: the result is then None.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kwire.errors import CorruptBatch, EncodeError
from kwire.records.attributes import (
    CODEC_MASK,
    CONTROL_FLAG,
    LOG_APPEND_TIME_FLAG,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    Compression,
    TimestampType,
)
from kwire.records.columns.reader import ColumnReader
from kwire.records.columns.writer import ColumnWriter
from kwire.records.compression.compressor import KAFKA_LEVELS
from kwire.records.format import batch_table as t
from kwire.records.format.batch_header import DEFAULT_HEADER_BYTES, LARGEST_SIZE, LEADER_EPOCH_POSITION
from kwire.records.format.default_writer import MAX_INT32
from kwire.records.format.legacy_writer import message_bytes

__all__ = ["ConvertedRun", "HeaderTable", "convert_span", "spans_to_convert"]

HeaderTable = npt.NDArray[np.int64]
Int64Array = npt.NDArray[np.int64]

TABLE_ROWS = 8192
BATCH_BYTES = 128 << 10  # of uncompressed messages that are encoded at a time
MORE_BYTES = 40  # of a record than of its message, at most
MICROSECONDS = 1000  # in a millisecond
LARGEST_JOINED_BYTES = 64 << 20  # of rows of one span in memory, besides twice the span itself
SPAN_BYTES = 1 << 20  # of compressed batches that are converted together
FEW_RECORDS = 128  # fewer are converted faster as objects
FEW_COMPRESSED_BYTES = 4096  # of messages, whose number is not in the header


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertedRun:
    """The converted batches of a run. with_headers, with_timestamp: records that had them.

    with_producer, with_leader_epoch: batches that had a producer id, or a leader epoch.
    """

    data: bytearray
    records: int
    with_headers: int
    with_timestamp: int
    with_producer: int
    with_leader_epoch: int


def read_headers(view: memoryview) -> Iterator[tuple[HeaderTable, int]]:
    """Yield the headers of whole batches as rows of batch_table, and the position after them."""
    data = np.frombuffer(view, np.uint8) if len(view) else np.empty(0, np.uint8)
    at, status = 0, t.FULL
    while status == t.FULL:
        table = np.empty((TABLE_ROWS, t.COLUMN_COUNT), np.int64)
        rows, at, status = t.scan_batches(data, at, table)
        yield table[:rows], at


def convert_run(
    view: memoryview, table: HeaderTable, magic: int, *, max_batch_bytes: int, max_decompressed_bytes: int
) -> ConvertedRun | None:
    """Convert batches of one magic, codec and append time. None if objects are required.

    view: their bytes. table: their headers. max_batch_bytes: of uncompressed batches of magic 2.
    """
    first = table[0]
    codec = Compression(int(first[t.ATTRIBUTES]) & CODEC_MASK)
    is_append_time = first[t.MAGIC] > 0 and bool(first[t.ATTRIBUTES] & LOG_APPEND_TIME_FLAG)
    names = ["offset", "key", "value", "timestamp", *(["headers"] if first[t.MAGIC] == 2 else [])]
    # the object path checks the checksums of inner messages; wrong outer ones only send a run there
    reader = ColumnReader(names, check_crc=bool(first[t.MAGIC] < 2), max_decompressed_bytes=max_decompressed_bytes)
    out = bytearray()
    with_headers = with_timestamp = records = 0
    last_offset = -1
    try:
        for batch in rows_of(reader, view, is_joined=magic == 2 or codec > 0):
            times = batch.column("timestamp")
            offsets = batch.column("offset").to_numpy()
            if times.null_count or offsets[0] <= last_offset or (offsets[1:] <= offsets[:-1]).any():
                return None  # too large for microseconds; out of order
            last_offset = int(offsets[-1])
            ticks: Int64Array = times.cast(pa.int64()).to_numpy()
            with_timestamp += int((ticks != NO_TIMESTAMP * MICROSECONDS).sum())
            if "headers" in names:
                with_headers += batch.num_rows - batch.column("headers").null_count
                batch = batch.drop_columns(["headers"])
            ends, batch_size = [batch.num_rows], BATCH_BYTES
            if magic == 2 or codec:
                sizes = message_sizes(batch, int(first[t.MAGIC]))
                if codec:
                    ends = ends_of_compressed(table, offsets)
                else:
                    ends = batch_ends(batch, offsets, ticks // MICROSECONDS, sizes, max_batch_bytes)
                batch_size = largest_batch(sizes, ends)
            writer = ColumnWriter(
                magic=magic,
                compression=codec,
                level=KAFKA_LEVELS.get(codec) if magic < first[t.MAGIC] else None,
                batch_size=min(batch_size, LARGEST_SIZE),
                keep_offsets=True,
                timestamp_type=TimestampType.LOG_APPEND_TIME if is_append_time else TimestampType.CREATE_TIME,
                log_append_time_ms=int(first[t.MAX_TIMESTAMP]) if is_append_time else NO_TIMESTAMP,
            )
            for piece in writer.write(batch, ends=ends):
                out += piece
            records += batch.num_rows
        if reader.consumed != len(view):
            return None
    except (CorruptBatch, EncodeError, NotByColumns):
        return None
    producers, epochs = count_set_fields(view, table) if first[t.MAGIC] == 2 else (0, 0)
    return ConvertedRun(
        data=out,
        records=records,
        with_headers=with_headers,
        with_timestamp=with_timestamp,
        with_producer=producers,
        with_leader_epoch=epochs,
    )


class NotByColumns(Exception):
    """Batches that columns do not represent exactly."""


def rows_of(reader: ColumnReader, view: memoryview, *, is_joined: bool) -> Iterator[pa.RecordBatch]:
    """Yield the rows of batches. is_joined: as one Arrow batch, where Kafka's batches do not end with Arrow's.

    Raises NotByColumns if that does not fit in memory.
    """
    if not is_joined:
        yield from reader.read(view)
        return
    batches: list[pa.RecordBatch] = []
    size = 0
    for batch in reader.read(view):
        batches.append(batch)
        size += batch.nbytes
        if size > LARGEST_JOINED_BYTES + 2 * len(view):
            raise NotByColumns
    joined = pa.Table.from_batches(batches).combine_chunks().to_batches() if batches else []
    if len(joined) != 1:
        raise NotByColumns
    yield joined[0]


def ends_of_compressed(table: HeaderTable, offsets: Int64Array) -> list[int]:
    """Return the number of rows up to the end of each compressed batch. Raises NotByColumns."""
    ends = np.searchsorted(offsets, table[:, t.LAST_OFFSET], "right")
    if table[0, t.MAGIC] == 2:
        ends = np.cumsum(table[:, t.COUNT])  # compaction may have removed the last records of a batch
    starts = np.concatenate(([0], ends[:-1]))
    if ends[-1] != len(offsets) or (ends <= starts).any() or (offsets[ends - 1] - offsets[starts] > MAX_INT32).any():
        raise NotByColumns
    positions: list[int] = ends.tolist()
    return positions


def largest_batch(sizes: Int64Array, ends: list[int]) -> int:
    """Return an upper bound of the bytes of a batch. sizes: of the records as messages."""
    before = np.concatenate(([0], np.cumsum(sizes + MORE_BYTES)))
    return int(np.diff(before[[0, *ends]]).max()) + DEFAULT_HEADER_BYTES


def lengths_of(column: pa.Array) -> Int64Array:
    """Return the length of each value, -1 for null."""
    lengths: Int64Array = pc.fill_null(pc.binary_length(column), -1).to_numpy(zero_copy_only=False).astype(np.int64)
    return lengths


def message_sizes(batch: pa.RecordBatch, magic: int) -> Int64Array:
    """Return the bytes of each row as a message of magic 0 or 1 (the larger one for 2)."""
    sizes: Int64Array = np.full(batch.num_rows, message_bytes(min(magic, 1), None, None), np.int64)
    for name in ("key", "value"):
        sizes += np.maximum(lengths_of(batch.column(name)), 0)
    return sizes


def varint_bytes(numbers: Int64Array) -> Int64Array:
    """Return the bytes of each number in zig-zag."""
    size = np.ones(len(numbers), np.int64)
    rest = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64) >> np.uint64(7)
    while rest.any():
        size += rest != 0
        rest >>= np.uint64(7)
    return size


def batch_ends(
    batch: pa.RecordBatch, offsets: Int64Array, times: Int64Array, messages: Int64Array, limit: int
) -> list[int]:
    """Return where batches of magic 2 end that collect messages as long as they fit in limit bytes (conversion.Run)."""
    fixed = np.full(len(offsets), 2, np.int64)  # attributes, number of headers
    for name in ("key", "value"):
        lengths = lengths_of(batch.column(name))
        fixed += varint_bytes(lengths) + np.maximum(lengths, 0)
    ends: list[int] = []
    start, rows = 0, len(offsets)
    while start < rows:
        # no more rows fit: a record has at most the bytes of its message, and at least 7
        most = int(np.searchsorted(np.cumsum(fixed[start : start + limit // 7 + 1]), limit, "right"))
        some = slice(start, start + most)
        deltas = offsets[some] - offsets[start]
        body = fixed[some] + varint_bytes(times[some] - times[start]) + varint_bytes(deltas)
        filled = DEFAULT_HEADER_BYTES + np.cumsum(body + varint_bytes(body))
        fits = (filled[:-1] + messages[some][1:] <= limit) & (deltas[1:] <= MAX_INT32)
        start += 1 + (len(fits) if fits.all() else int(np.argmin(fits)))
        ends.append(start)
    return ends


@dataclass(frozen=True, slots=True)
class Span:
    """Batches [start, end) of the bytes that are converted together. table: their headers; None for objects."""

    start: int
    end: int
    table: HeaderTable | None


def spans_to_convert(view: memoryview, to_magic: int, first_offset: int, *, down: bool) -> Iterator[Span]:
    """Divide batches into spans. Those that are copied, dropped or refused are left to the object path.

    first_offset: an uncompressed batch below it is left to the object path.
    """
    parts = list(read_headers(view))
    table, after = np.concatenate([part for part, _ in parts]), parts[-1][1]
    if len(table):
        magic, attributes, codec = table[:, t.MAGIC], table[:, t.ATTRIBUTES], table[:, t.ATTRIBUTES] & CODEC_MASK
        is_append_time = (magic > 0) & (attributes & LOG_APPEND_TIME_FLAG != 0)
        append_time = np.where(is_append_time, table[:, t.MAX_TIMESTAMP], NO_TIMESTAMP)
        chosen = (magic > to_magic if down else magic < to_magic) & (codec < Compression.ZSTD)
        chosen &= ((magic < 2) | (attributes & CONTROL_FLAG == 0)) & (table[:, t.COUNT] > 0)
        chosen &= (codec != 0) | (table[:, t.BASE_OFFSET] >= first_offset)
        chosen &= ~(is_append_time & (append_time < 0))
        keys = np.stack([chosen, magic, codec, is_append_time, append_time])
        differs = (keys[:, 1:] != keys[:, :-1]).any(axis=0)
        # compressed batches stay what they are, so they can be converted in parts
        part = table[:, t.POSITION] // SPAN_BYTES
        differs |= (codec[1:] != 0) & chosen[1:] & (part[1:] != part[:-1])
        borders = [0, *(np.flatnonzero(differs) + 1).tolist(), len(table)]
        for first, last in itertools.pairwise(borders):
            some = table[first:last]
            start, end = int(some[0, t.POSITION]), int(some[-1, t.POSITION] + some[-1, t.SIZE])
            yield Span(start, end, some if chosen[first] and is_worthwhile(some) else None)
    if after < len(view):
        yield Span(after, len(view), None)  # cut, or not a header


def is_worthwhile(table: HeaderTable) -> bool:
    """Return whether columns convert batches faster than objects, which need 3 to 6 us a record."""
    if table[0, t.MAGIC] < 2 and table[0, t.ATTRIBUTES] & CODEC_MASK:
        return bool(table[:, t.SIZE].sum() >= FEW_COMPRESSED_BYTES)
    return bool(table[:, t.COUNT].sum() >= FEW_RECORDS)


def convert_span(
    view: memoryview, span: Span, magic: int, *, max_batch_bytes: int, max_decompressed_bytes: int
) -> Iterator[tuple[int, int, ConvertedRun | None]]:
    """Yield (start, end, result) of a span, or of each of its compressed batches; without a result use objects."""
    run, table = None, span.table
    if table is not None:
        run = convert_run(
            view[span.start : span.end],
            table,
            magic,
            max_batch_bytes=max_batch_bytes,
            max_decompressed_bytes=max_decompressed_bytes,
        )
    if run is not None or table is None or len(table) == 1 or not table[0, t.ATTRIBUTES] & CODEC_MASK:
        yield span.start, span.end, run
        return
    for row in range(len(table)):
        start = int(table[row, t.POSITION])
        single = table[row : row + 1]
        alone = Span(start, start + int(table[row, t.SIZE]), single if is_worthwhile(single) else None)
        yield from convert_span(
            view, alone, magic, max_batch_bytes=max_batch_bytes, max_decompressed_bytes=max_decompressed_bytes
        )


def count_set_fields(view: memoryview, table: HeaderTable) -> tuple[int, int]:
    """Return how many batches of magic 2 have a producer id, and a leader epoch."""
    data = np.frombuffer(view, np.uint8)
    starts = table[:, t.POSITION] - table[0, t.POSITION]
    epochs = data[starts[:, None] + np.arange(LEADER_EPOCH_POSITION, LEADER_EPOCH_POSITION + 4)]
    return int((table[:, t.PRODUCER_ID] != NO_PRODUCER_ID).sum()), int((epochs != 0xFF).any(axis=1).sum())
