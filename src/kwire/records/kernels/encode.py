"""Write rows of Arrow columns as records, in one pass that copies each value once.

    columns    int64[COLUMN_COUNT]                addresses and sizes of the Arrow buffers, 0 for missing ones
    room       bytes                              the output, one batch after another
    table      int64[batches, TABLE_COLUMNS]      a row for each batch
    state      int64[STATE_COUNT]                 where the kernel stopped (at a fault: the row that has it), and why

Batches of magic 2 start with DEFAULT_HEADER_BYTES that `write_headers` fills in once the codec of the records is known.
A kernel stops at the start of a batch: when the rows are done, when the room or the table is full, or at a fault. Every
value is checked to be inside of its buffer before it is read.
"""
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

from __future__ import annotations

import numpy as np

from kwire.records.attributes import LOG_APPEND_TIME_FLAG, NO_TIMESTAMP
from kwire.records.batch_header import (
    ATTRIBUTES_POSITION,
    BASE_SEQUENCE_POSITION,
    BASE_TIMESTAMP_POSITION,
    COUNT_POSITION,
    DEFAULT_HEADER_BYTES,
    FRAME_BYTES,
    LARGEST_SIZE,
    LAST_OFFSET_DELTA_POSITION,
    LEADER_EPOCH_POSITION,
    LEGACY_ATTRIBUTES_POSITION,
    LEGACY_CRC_POSITION,
    LEGACY_TIMESTAMP_POSITION,
    MAGIC_POSITION,
    MAX_TIMESTAMP_POSITION,
    PRODUCER_EPOCH_POSITION,
    PRODUCER_ID_POSITION,
    SIZE_POSITION,
    SMALLEST_DEFAULT_SIZE,
)
from kwire.records.kernels.checksums import crc32
from kwire.records.kernels.legacy_messages import LENGTH_BYTES, legacy_key_position
from kwire.wire.kernels.arrays import WIDE, Int64s, Int64Table, WritableInt64s, WritableInt64Table
from kwire.wire.kernels.compiler import export, inlined, kernel
from kwire.wire.kernels.memory import (
    copy_bytes,
    int32_at,
    int64_at,
    load_byte,
    store_big_int16,
    store_big_int32,
    store_big_int64,
    store_byte,
)
from kwire.wire.kernels.varints import uvarint_bytes, write_uvarlong, zigzag

__all__ = [
    "COLUMN_COUNT",
    "STATE_COUNT",
    "TABLE_COLUMNS",
    "encode_default_batches",
    "encode_messages",
    "write_headers",
]

(
    KEY_ENDS,  # int32 Arrow offsets, from the first row on
    KEYS,
    KEYS_SIZE,  # bytes
    KEY_BITMAP,  # validity, 0: no nulls
    KEY_BIT,  # of the first row in it
    VALUE_ENDS,
    VALUES,
    VALUES_SIZE,
    VALUE_BITMAP,
    VALUE_BIT,
    TIMESTAMPS,  # int64
    TIMESTAMP_BITMAP,
    TIMESTAMP_BIT,
    TIMESTAMP_UNIT,  # ticks in a millisecond: 1, 1000 or 1000000
    OFFSETS,  # int64; 0: rows are numbered
    HEADER_ENDS,  # int32
    HEADER_BITMAP,
    HEADER_BIT,
    HEADER_COUNT,  # headers of all rows
    HEADER_KEY_ENDS,
    HEADER_KEYS,
    HEADER_KEYS_SIZE,
    HEADER_KEY_BITMAP,
    HEADER_KEY_BIT,
    HEADER_VALUE_ENDS,
    HEADER_VALUES,
    HEADER_VALUES_SIZE,
    HEADER_VALUE_BITMAP,
    HEADER_VALUE_BIT,
    ORDER,  # int64: the rows to write, one after another; 0: all rows in their order
) = range(30)
COLUMN_COUNT = 30

(
    POSITION,  # of the batch in the room
    SIZE,  # of the batch, header included
    COUNT,
    BASE_OFFSET,
    LAST_OFFSET,
    BASE_TIMESTAMP,
    MAX_TIMESTAMP,
) = range(7)
TABLE_COLUMNS = 7

(ROW, USED, BATCHES, STOP, NEEDED) = range(5)  # next row, bytes of room, rows of table, why, room that is needed
STATE_COUNT = 5

DONE, NO_ROOM, TABLE_FULL = 0, 1, 2
BAD_TIMESTAMP, BAD_OFFSET, BAD_ARROW, NULL_HEADER_KEY, TOO_LARGE, HAS_HEADERS = 11, 12, 13, 14, 15, 16

LARGEST_RECORD = LARGEST_SIZE - SMALLEST_DEFAULT_SIZE
MAX_INT32 = 2**31 - 1


@inlined
def is_null(bitmap, bit):
    """Return whether a bit of a validity bitmap is clear; without a bitmap nothing is null."""
    return bitmap != 0 and load_byte(bitmap + (bit >> 3)) >> (bit & 7) & 1 == 0


@inlined
def place(ends, row):
    """Return (first byte, byte after the last) of the value of a row in a binary column."""
    return int32_at(ends, row), int32_at(ends, row + 1)


@inlined
def ordered(order, row):
    """Return the number of a row in the columns."""
    return row if order == 0 else int64_at(order, row)


@inlined
def milliseconds(columns, row):
    """Return the timestamp of a row, -1 for none, rounded down to milliseconds."""
    if columns[TIMESTAMPS] == 0 or is_null(columns[TIMESTAMP_BITMAP], columns[TIMESTAMP_BIT] + row):
        return np.int64(NO_TIMESTAMP)
    ticks = int64_at(columns[TIMESTAMPS], row)
    unit = columns[TIMESTAMP_UNIT]
    if unit == 1000:
        return ticks // 1000
    if unit == 1:
        return ticks
    return ticks // 1000000


@kernel
def headers_bytes(columns, row):
    """Return (bytes of the headers of a row without their count, first header, header after the last, fault)."""
    if columns[HEADER_ENDS] == 0 or is_null(columns[HEADER_BITMAP], columns[HEADER_BIT] + row):
        return np.int64(0), np.int64(0), np.int64(0), 0
    first, last = place(columns[HEADER_ENDS], row)
    if first < 0 or last < first or last > columns[HEADER_COUNT]:
        return np.int64(0), np.int64(0), np.int64(0), BAD_ARROW
    total = np.int64(0)
    for i in range(first, last):
        if is_null(columns[HEADER_KEY_BITMAP], columns[HEADER_KEY_BIT] + i):
            return np.int64(0), np.int64(0), np.int64(0), NULL_HEADER_KEY
        start, end = place(columns[HEADER_KEY_ENDS], i)
        if start < 0 or end < start or end > columns[HEADER_KEYS_SIZE]:
            return np.int64(0), np.int64(0), np.int64(0), BAD_ARROW
        total += uvarint_bytes(zigzag(end - start)) + end - start
        if is_null(columns[HEADER_VALUE_BITMAP], columns[HEADER_VALUE_BIT] + i):
            total += 1
        else:
            start, end = place(columns[HEADER_VALUE_ENDS], i)
            if start < 0 or end < start or end > columns[HEADER_VALUES_SIZE]:
                return np.int64(0), np.int64(0), np.int64(0), BAD_ARROW
            total += uvarint_bytes(zigzag(end - start)) + end - start
    return total, first, last, 0


@kernel
def put_headers(at, columns, first, last):
    """Write headers, which headers_bytes has checked; returns the address after them."""
    for i in range(first, last):
        start, end = place(columns[HEADER_KEY_ENDS], i)
        at = write_uvarlong(at, zigzag(end - start))
        keys = columns[HEADER_KEYS]
        copy_bytes(at, keys + start, end - start, keys + columns[HEADER_KEYS_SIZE])
        at += end - start
        if is_null(columns[HEADER_VALUE_BITMAP], columns[HEADER_VALUE_BIT] + i):
            store_byte(at, 1)
            at += 1
        else:
            start, end = place(columns[HEADER_VALUE_ENDS], i)
            at = write_uvarlong(at, zigzag(end - start))
            values = columns[HEADER_VALUES]
            copy_bytes(at, values + start, end - start, values + columns[HEADER_VALUES_SIZE])
            at += end - start
    return at


@export
def encode_default_batches(
    columns: Int64s,
    row: int,
    rows: int,
    base_offset: int,
    batch_size: int,
    room: int,
    room_size: int,
    table: WritableInt64Table,
    state: WritableInt64s,
) -> None:
    """Write rows [row, rows) as batches of magic 2 to the room, except its last WIDE bytes.

    row, rows: of ORDER, if there is one. base_offset: of the first row, unless there are OFFSETS.
    batch_size: maximum bytes of a batch with more than one record, header included.
    Cost: 30 ns a record of 116 bytes into warm memory (benchmarks/records).
    """
    key_ends, keys, keys_size = columns[KEY_ENDS], columns[KEYS], columns[KEYS_SIZE]
    key_bitmap, key_bit = columns[KEY_BITMAP], columns[KEY_BIT]
    value_ends, values, values_size = columns[VALUE_ENDS], columns[VALUES], columns[VALUES_SIZE]
    value_bitmap, value_bit = columns[VALUE_BITMAP], columns[VALUE_BIT]
    order = columns[ORDER]
    keys_end, values_end = keys + keys_size, values + values_size
    limit = room + room_size - WIDE
    at = room
    batches = 0
    stop = DONE
    first = row
    while row < rows:
        if batches == table.shape[0]:
            stop = TABLE_FULL
            break
        start = at
        first = row
        at += DEFAULT_HEADER_BYTES
        first_offset = base_offset + first
        if columns[OFFSETS] != 0:
            first_offset = int64_at(columns[OFFSETS], ordered(order, row))
            if first_offset < 0:
                stop = BAD_OFFSET
                at = start
                break
        offset = first_offset
        base_timestamp = max_timestamp = np.int64(NO_TIMESTAMP)
        while row < rows:
            source = ordered(order, row)
            delta = row - first
            if columns[OFFSETS] != 0:
                next_offset = int64_at(columns[OFFSETS], source)
                if row > first and next_offset <= offset:
                    stop = BAD_OFFSET
                    break
                delta = next_offset - first_offset
                if delta > MAX_INT32:
                    break
            timestamp = milliseconds(columns, source)
            if timestamp < NO_TIMESTAMP:
                stop = BAD_TIMESTAMP
                break
            if row == first:
                base_timestamp = timestamp
            key_length = value_length = np.int64(-1)
            key_start = value_start = np.int64(0)
            key_bytes = value_bytes = np.int64(0)
            if key_ends != 0 and not is_null(key_bitmap, key_bit + source):
                key_start, key_end = place(key_ends, source)
                key_length = key_bytes = key_end - key_start
                if key_start < 0 or key_length < 0 or key_end > keys_size:
                    stop = BAD_ARROW
                    break
            if value_ends != 0 and not is_null(value_bitmap, value_bit + source):
                value_start, value_end = place(value_ends, source)
                value_length = value_bytes = value_end - value_start
                if value_start < 0 or value_length < 0 or value_end > values_size:
                    stop = BAD_ARROW
                    break
            header_bytes = np.int64(0)
            first_header = last_header = np.int64(0)
            if columns[HEADER_ENDS] != 0:
                header_bytes, first_header, last_header, stop = headers_bytes(columns, source)
                if stop != DONE:
                    break
            time_number, delta_number = zigzag(timestamp - base_timestamp), zigzag(delta)
            key_number, value_number = zigzag(key_length), zigzag(value_length)
            body = 1 + key_bytes + value_bytes + header_bytes
            body += uvarint_bytes(time_number) + uvarint_bytes(delta_number)
            body += uvarint_bytes(key_number) + uvarint_bytes(value_number)
            body += uvarint_bytes(zigzag(last_header - first_header))
            if body > LARGEST_RECORD:
                stop = TOO_LARGE
                break
            body_number = zigzag(body)
            size = body + uvarint_bytes(body_number)
            if row > first and at - start + size > batch_size:
                break
            if at + size > limit:
                stop = NO_ROOM
                state[NEEDED] = at + size - start + WIDE
                break
            at = write_uvarlong(at, body_number)
            store_byte(at, 0)
            at = write_uvarlong(at + 1, time_number)
            at = write_uvarlong(at, delta_number)
            at = write_uvarlong(at, key_number)
            if key_bytes > 0:
                copy_bytes(at, keys + key_start, key_bytes, keys_end)
                at += key_bytes
            at = write_uvarlong(at, value_number)
            if value_bytes > 0:
                copy_bytes(at, values + value_start, value_bytes, values_end)
                at += value_bytes
            at = write_uvarlong(at, zigzag(last_header - first_header))
            if last_header > first_header:
                at = put_headers(at, columns, first_header, last_header)
            if timestamp > max_timestamp:
                max_timestamp = timestamp
            offset = first_offset + delta
            row += 1
        if stop != DONE:
            at = start
            break
        entry = table[batches]
        entry[POSITION] = start - room
        entry[SIZE] = at - start
        entry[COUNT] = row - first
        entry[BASE_OFFSET] = first_offset
        entry[LAST_OFFSET] = offset
        entry[BASE_TIMESTAMP] = base_timestamp
        entry[MAX_TIMESTAMP] = max_timestamp
        batches += 1
    state[USED] = at - room
    state[BATCHES] = batches
    state[STOP] = stop
    state[ROW] = first if stop == NO_ROOM else row


@export
def encode_messages(
    columns: Int64s,
    row: int,
    rows: int,
    base_offset: int,
    batch_size: int,
    magic: int,
    relative: int,
    append_time: int,
    room: int,
    room_size: int,
    table: WritableInt64Table,
    state: WritableInt64s,
) -> None:
    """Write rows [row, rows) as messages of magic 0 or 1 to the room, checksums included.

    row, rows: of ORDER, if there is one. batch_size: maximum bytes of the messages of one row of the table, unless
    there is only one.
    relative: offsets are relative to the first of each batch (KIP-31, for messages that will be compressed).
    append_time: the timestamp of all records, of type LOG_APPEND_TIME; -1 for CREATE_TIME.
    """
    limit = room + room_size - WIDE
    fixed_bytes = legacy_key_position(magic) + 2 * LENGTH_BYTES
    attributes = LOG_APPEND_TIME_FLAG if magic == 1 and append_time >= 0 else 0
    order = columns[ORDER]
    at = room
    batches = 0
    stop = DONE
    first = row
    while row < rows:
        if batches == table.shape[0]:
            stop = TABLE_FULL
            break
        start = at
        first = row
        max_timestamp = np.int64(NO_TIMESTAMP)
        first_offset = base_offset + first
        if columns[OFFSETS] != 0:
            first_offset = int64_at(columns[OFFSETS], ordered(order, row))
            if first_offset < 0:
                stop = BAD_OFFSET
                at = start
                break
        offset = first_offset
        while row < rows:
            source = ordered(order, row)
            next_offset = first_offset + row - first
            if columns[OFFSETS] != 0:
                next_offset = int64_at(columns[OFFSETS], source)
                if row > first and next_offset <= offset:
                    stop = BAD_OFFSET
                    break
            timestamp = append_time if append_time >= 0 else milliseconds(columns, source)
            if timestamp < NO_TIMESTAMP:
                stop = BAD_TIMESTAMP
                break
            key_length = value_length = np.int64(-1)
            key_start = value_start = np.int64(0)
            if columns[KEY_ENDS] != 0 and not is_null(columns[KEY_BITMAP], columns[KEY_BIT] + source):
                key_start, key_end = place(columns[KEY_ENDS], source)
                key_length = key_end - key_start
                if key_start < 0 or key_length < 0 or key_end > columns[KEYS_SIZE]:
                    stop = BAD_ARROW
                    break
            if columns[VALUE_ENDS] != 0 and not is_null(columns[VALUE_BITMAP], columns[VALUE_BIT] + source):
                value_start, value_end = place(columns[VALUE_ENDS], source)
                value_length = value_end - value_start
                if value_start < 0 or value_length < 0 or value_end > columns[VALUES_SIZE]:
                    stop = BAD_ARROW
                    break
            if columns[HEADER_ENDS] != 0:
                _, first_header, last_header, stop = headers_bytes(columns, source)
                if stop == DONE and last_header > first_header:
                    stop = HAS_HEADERS
                if stop != DONE:
                    break
            size = fixed_bytes + (key_length if key_length > 0 else 0) + (value_length if value_length > 0 else 0)
            if size > LARGEST_RECORD:
                stop = TOO_LARGE
                break
            if row > first and at - start + size > batch_size:
                break
            if at + size > limit:
                stop = NO_ROOM
                state[NEEDED] = at + size - start + WIDE
                break
            store_big_int64(at, next_offset - first_offset if relative else next_offset)
            store_big_int32(at + SIZE_POSITION, size - FRAME_BYTES)
            store_byte(at + MAGIC_POSITION, magic)
            store_byte(at + LEGACY_ATTRIBUTES_POSITION, attributes)
            if magic == 1:
                store_big_int64(at + LEGACY_TIMESTAMP_POSITION, timestamp)
                if timestamp > max_timestamp:
                    max_timestamp = timestamp
            field = at + legacy_key_position(magic)
            store_big_int32(field, key_length)
            field += LENGTH_BYTES
            if key_length > 0:
                copy_bytes(field, columns[KEYS] + key_start, key_length, columns[KEYS] + columns[KEYS_SIZE])
                field += key_length
            store_big_int32(field, value_length)
            field += LENGTH_BYTES
            if value_length > 0:
                copy_bytes(field, columns[VALUES] + value_start, value_length, columns[VALUES] + columns[VALUES_SIZE])
            store_big_int32(at + LEGACY_CRC_POSITION, crc32(at + MAGIC_POSITION, size - MAGIC_POSITION))
            at += size
            offset = next_offset
            row += 1
        if stop != DONE:
            at = start
            break
        entry = table[batches]
        entry[POSITION] = start - room
        entry[SIZE] = at - start
        entry[COUNT] = row - first
        entry[BASE_OFFSET] = first_offset
        entry[LAST_OFFSET] = offset
        entry[BASE_TIMESTAMP] = entry[MAX_TIMESTAMP] = max_timestamp
        batches += 1
    state[USED] = at - room
    state[BATCHES] = batches
    state[STOP] = stop
    state[ROW] = first if stop == NO_ROOM else row


@export
def write_headers(
    room: int,
    table: Int64Table,
    batches: int,
    attributes: int,
    leader_epoch: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    append_time: int,
) -> int:
    """Write the headers of magic 2 batches, without the checksum. Returns the sequence number after the last batch.

    base_sequence: of the first batch, -1 for none. append_time: the maximum timestamp of all batches; -1 for the
    table's.
    """
    for i in range(batches):
        entry = table[i]
        at = room + entry[POSITION]
        store_big_int64(at, entry[BASE_OFFSET])
        store_big_int32(at + SIZE_POSITION, entry[SIZE] - FRAME_BYTES)
        store_big_int32(at + LEADER_EPOCH_POSITION, leader_epoch)
        store_byte(at + MAGIC_POSITION, 2)
        store_big_int16(at + ATTRIBUTES_POSITION, attributes & 0xFF)
        last_delta = entry[LAST_OFFSET] - entry[BASE_OFFSET]
        store_big_int32(at + LAST_OFFSET_DELTA_POSITION, last_delta)
        store_big_int64(at + BASE_TIMESTAMP_POSITION, entry[BASE_TIMESTAMP])
        store_big_int64(at + MAX_TIMESTAMP_POSITION, append_time if append_time >= 0 else entry[MAX_TIMESTAMP])
        store_big_int64(at + PRODUCER_ID_POSITION, producer_id)
        store_big_int16(at + PRODUCER_EPOCH_POSITION, producer_epoch)
        store_big_int32(at + BASE_SEQUENCE_POSITION, base_sequence)
        store_big_int32(at + COUNT_POSITION, entry[COUNT])
        if base_sequence >= 0:
            base_sequence = (base_sequence + last_delta + 1) & 0x7FFFFFFF
    return base_sequence
