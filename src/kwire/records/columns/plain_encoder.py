"""Rows of Arrow columns to batches without compiled code: the bytes and the faults of native/encoding.c."""

from __future__ import annotations

from ctypes import c_char, c_int32, c_int64, string_at

import numpy as np
import numpy.typing as npt

from kwire.records.attributes import LOG_APPEND_TIME_FLAG, NO_TIMESTAMP
from kwire.records.columns.encoder_layout import Column, NewBatch, State, Stop
from kwire.records.format.batch_header import DEFAULT_HEADER, DEFAULT_HEADER_BYTES, FRAME_BYTES, LARGEST_RECORD
from kwire.records.format.default_writer import MAX_INT32, NO_ATTRIBUTES, Bytes, add_field, varlong
from kwire.records.format.legacy_writer import append_message, message_bytes
from kwire.records.format.wrapping import add_to_sequence, to_int64

__all__ = ["encode_batch", "write_headers"]

Int64s = npt.NDArray[np.int64]


class RowFault(Exception):
    """A row does not fit the format."""

    def __init__(self, stop: Stop) -> None:
        self.stop = stop


class Rows:
    """The rows of Arrow buffers at addresses. Whatever lies outside of its buffer is not read."""

    def __init__(self, columns: Int64s) -> None:
        self.columns: list[int] = columns.tolist()

    def int64(self, column: Column, row: int) -> int:
        """Return an element of an array."""
        return c_int64.from_address(self.columns[column] + 8 * row).value

    def is_null(self, bitmap: Column, row: int) -> bool:
        """Whether a row is null. The column after the bitmap is the number of its first bit."""
        address, bit = self.columns[bitmap], self.columns[bitmap + 1] + row
        return address != 0 and not string_at(address + (bit >> 3), 1)[0] >> (bit & 7) & 1

    def ends(self, column: Column, row: int, size: int) -> tuple[int, int]:
        """Return where a row starts and ends in data of this size. Raises RowFault."""
        start, end = (c_int32.from_address(self.columns[column] + 4 * (row + i)).value for i in (0, 1))
        if not 0 <= start <= end <= size:
            raise RowFault(Stop.BAD_ARROW)
        return start, end

    def binary(self, column: Column, row: int) -> bytes | None:
        """Return a value of a binary column, which has five numbers. Raises RowFault."""
        ends, data, size, bitmap, _ = range(column, column + 5)
        if not self.columns[ends] or self.is_null(Column(bitmap), row):
            return None
        start, end = self.ends(Column(ends), row, self.columns[size])
        return string_at(self.columns[data] + start, end - start)

    def offset(self, row: int, default: int) -> int:
        """Return the offset of a row; default: without a column of offsets."""
        return self.int64(Column.OFFSETS, row) if self.columns[Column.OFFSETS] else default

    def timestamp(self, row: int) -> int:
        """Return milliseconds, -1 for none. Raises RowFault."""
        if not self.columns[Column.TIMESTAMPS] or self.is_null(Column.TIMESTAMP_BITMAP, row):
            return NO_TIMESTAMP
        timestamp = self.int64(Column.TIMESTAMPS, row) // self.columns[Column.TIMESTAMP_UNIT]
        if timestamp < NO_TIMESTAMP:
            raise RowFault(Stop.BAD_TIMESTAMP)
        return timestamp

    def headers(self, row: int) -> list[bytes | None]:
        """Return the keys and values of headers, in turns. Raises RowFault."""
        if not self.columns[Column.HEADER_ENDS] or self.is_null(Column.HEADER_BITMAP, row):
            return []
        first, last = self.ends(Column.HEADER_ENDS, row, self.columns[Column.HEADER_COUNT])
        headers = []
        for i in range(first, last):
            key = self.binary(Column.HEADER_KEY_ENDS, i)
            if key is None:
                raise RowFault(Stop.NULL_HEADER_KEY)
            headers += [key, self.binary(Column.HEADER_VALUE_ENDS, i)]
        return headers


def record_of(rows: Rows, row: int, timestamp_delta: int, offset_delta: int) -> bytes:
    """Return a row as a record of magic 2. Raises RowFault."""
    key, value = rows.binary(Column.KEY_ENDS, row), rows.binary(Column.VALUE_ENDS, row)
    headers = rows.headers(row)
    parts: list[Bytes] = [NO_ATTRIBUTES, varlong(to_int64(timestamp_delta)), varlong(offset_delta)]
    add_field(parts, key)
    add_field(parts, value)
    parts.append(varlong(len(headers) // 2))
    for each in headers:
        add_field(parts, each)
    size = sum(map(len, parts))
    if size > LARGEST_RECORD:
        raise RowFault(Stop.TOO_LARGE)
    return b"".join([varlong(size), *parts])


def message_of(rows: Rows, row: int, magic: int, timestamp: int, is_append_time: bool, offset: int) -> bytearray:
    """Return a row as a message of magic 0 or 1. Raises RowFault."""
    key, value = rows.binary(Column.KEY_ENDS, row), rows.binary(Column.VALUE_ENDS, row)
    if rows.headers(row):
        raise RowFault(Stop.HAS_HEADERS)
    if message_bytes(magic, key, value) > LARGEST_RECORD:
        raise RowFault(Stop.TOO_LARGE)
    out = bytearray()
    attributes = LOG_APPEND_TIME_FLAG if magic and is_append_time else 0
    append_message(out, magic, offset=offset, attributes=attributes, timestamp=timestamp, key=key, value=value)
    return out


def encode_batch(
    columns: Int64s,
    row: int,
    rows: int,
    base_offset: int,
    batch_size: int,
    magic: int,
    relative: bool,
    append_time: int,
    table: Int64s,
    state: Int64s,
) -> bytearray:
    """Return a batch of rows from `row` on, at most to `rows`; sets the first row of the table, and the state.

    The parameters are the same as the kernels'. A batch of magic 2 starts with room for its header.
    """
    source, first = Rows(columns), row
    out = bytearray(DEFAULT_HEADER_BYTES if magic == 2 else 0)
    first_offset = last_offset = base_timestamp = 0
    max_timestamp, stop = NO_TIMESTAMP, Stop.DONE
    try:
        while row < rows:
            at = source.int64(Column.ORDER, row) if source.columns[Column.ORDER] else row
            offset = source.offset(at, base_offset + row)
            if offset < 0 or (row > first and offset <= last_offset):
                raise RowFault(Stop.BAD_OFFSET)
            if row == first:
                first_offset = offset
            if magic == 2 and offset - first_offset > MAX_INT32:
                break
            timestamp = append_time if magic < 2 and append_time >= 0 else source.timestamp(at)
            if row == first:
                base_timestamp = timestamp
            if magic == 2:
                record: Bytes = record_of(source, at, timestamp - base_timestamp, offset - first_offset)
            else:
                record = message_of(
                    source, at, magic, timestamp, append_time >= 0, offset - first_offset if relative else offset
                )
            if row > first and len(out) + len(record) > batch_size:
                break
            out += record
            last_offset, max_timestamp = offset, max(max_timestamp, timestamp)
            row += 1
    except RowFault as fault:
        stop = fault.stop
    entry = table[0]
    entry[NewBatch.POSITION], entry[NewBatch.SIZE], entry[NewBatch.COUNT] = 0, len(out), row - first
    entry[NewBatch.BASE_OFFSET], entry[NewBatch.LAST_OFFSET] = first_offset, last_offset
    entry[NewBatch.BASE_TIMESTAMP], entry[NewBatch.MAX_TIMESTAMP] = base_timestamp, max_timestamp
    state[State.ROW], state[State.USED], state[State.BATCHES] = row, len(out), stop == Stop.DONE
    state[State.STOP] = stop
    return out


def write_headers(
    room: int,
    table: Int64s,
    batches: int,
    attributes: int,
    leader_epoch: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    append_time: int,
) -> int:
    """Write the headers of batches of magic 2 as the kernel of this name does; return the next sequence number."""
    for position, size, count, base_offset, last_offset, base_timestamp, max_timestamp in table[:batches].tolist():
        DEFAULT_HEADER.pack_into(
            (c_char * DEFAULT_HEADER_BYTES).from_address(room + position),
            0,
            base_offset,
            size - FRAME_BYTES,
            leader_epoch,
            2,
            0,
            attributes,
            last_offset - base_offset,
            base_timestamp,
            append_time if append_time >= 0 else max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            count,
        )
        if base_sequence >= 0:
            base_sequence = add_to_sequence(base_sequence, last_offset - base_offset + 1)
    return base_sequence
