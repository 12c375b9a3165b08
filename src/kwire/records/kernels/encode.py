"""Write rows of Arrow columns as records, in one pass that copies each value once.

`columns`, int64[COLUMN_COUNT]: addresses and sizes of the Arrow buffers, 0 for missing ones.
`room`: the output, one batch after another, each with 61 bytes reserved before its records; the headers are filled in
when the records are compressed or stay uncompressed (`write_headers`).
`table`, int64[batches, TABLE_COLUMNS]: a row for each batch.
`state`, int64[STATE_COUNT]: where the kernel stopped (at a fault, the row that has it), and why.

A kernel stops at the start of a batch: when the rows are done, when the room or the table is full, or at a fault. Every
value's place is checked against its buffer before it is read.
"""
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

from __future__ import annotations

import numpy as np

from kwire.records.attributes import NO_TIMESTAMP
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
from kwire.wire.kernels.arrays import WIDE, Int64s, Int64Table
from kwire.wire.kernels.compiler import export, inlined, kernel
from kwire.wire.kernels.memory import (
    byte_swap32,
    byte_swap64,
    copy_bytes,
    load_uint8,
    load_uint32,
    load_uint64,
    store_int32,
    store_int64,
    store_uint8,
)

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
) = range(29)
COLUMN_COUNT = 29

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
LONGEST_FIELDS = 40  # bytes of a record's numbers at most: 5 + 1 + 10 + 5 + 5 + 5 + 5


@inlined
def is_null(bitmap, bit):
    """Whether a bit of a validity bitmap is clear; without bitmap nothing is null."""
    return bitmap != 0 and (load_uint8(bitmap + (bit >> 3)) >> np.uint8(bit & 7)) & np.uint8(1) == 0


@inlined
def zigzag(value):
    """value as an unsigned number, small for small absolute values."""
    return np.uint64((value << 1) ^ (value >> 63))


@inlined
def varint_bytes(number):
    """Bytes of an unsigned varint."""
    n = 1
    while number >= np.uint64(0x80):
        number >>= np.uint64(7)
        n += 1
    return n


@inlined
def put_varint(at, number):
    """Store an unsigned varint; returns the address after it."""
    while number >= np.uint64(0x80):
        store_uint8(at, np.int64(number & np.uint64(0x7F)) | 0x80)
        at += 1
        number >>= np.uint64(7)
    store_uint8(at, np.int64(number))
    return at + 1


@inlined
def place(ends, row):
    """(first byte, byte after the last) of the value of a row in a binary column."""
    return np.int64(np.int32(load_uint32(ends + 4 * row))), np.int64(np.int32(load_uint32(ends + 4 * row + 4)))


@inlined
def milliseconds(columns, row):
    """The timestamp of a row, -1 for none; parts of a millisecond are dropped."""
    if columns[TIMESTAMPS] == 0 or is_null(columns[TIMESTAMP_BITMAP], columns[TIMESTAMP_BIT] + row):
        return np.int64(NO_TIMESTAMP)
    ticks = np.int64(load_uint64(columns[TIMESTAMPS] + 8 * row))
    unit = columns[TIMESTAMP_UNIT]
    if unit == 1000:
        return ticks // 1000
    if unit == 1:
        return ticks
    return ticks // 1000000


@kernel
def headers_bytes(columns, row):
    """(bytes of the headers of a row without their count, first header, header after the last, fault)."""
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
        total += varint_bytes(zigzag(end - start)) + end - start
        if is_null(columns[HEADER_VALUE_BITMAP], columns[HEADER_VALUE_BIT] + i):
            total += 1
        else:
            start, end = place(columns[HEADER_VALUE_ENDS], i)
            if start < 0 or end < start or end > columns[HEADER_VALUES_SIZE]:
                return np.int64(0), np.int64(0), np.int64(0), BAD_ARROW
            total += varint_bytes(zigzag(end - start)) + end - start
    return total, first, last, 0


@kernel
def put_headers(at, columns, first, last):
    """Store headers whose places headers_bytes has checked; returns the address after them."""
    for i in range(first, last):
        start, end = place(columns[HEADER_KEY_ENDS], i)
        at = put_varint(at, zigzag(end - start))
        keys = columns[HEADER_KEYS]
        copy_bytes(at, keys + start, end - start, keys + columns[HEADER_KEYS_SIZE])
        at += end - start
        if is_null(columns[HEADER_VALUE_BITMAP], columns[HEADER_VALUE_BIT] + i):
            store_uint8(at, 1)
            at += 1
        else:
            start, end = place(columns[HEADER_VALUE_ENDS], i)
            at = put_varint(at, zigzag(end - start))
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
    table: Int64Table,
    state: Int64s,
) -> None:
    """Put rows [row, rows) as batches of magic 2 into the room, which ends WIDE bytes before room_size.

    base_offset: of the first row, unless there are OFFSETS. batch_size: bytes of a batch, header included, that a
    second record may not exceed.
    Cost: 30 ns a record of 116 bytes into warm memory (benchmarks/records).
    """
    key_ends, keys, keys_size = columns[KEY_ENDS], columns[KEYS], columns[KEYS_SIZE]
    key_bitmap, key_bit = columns[KEY_BITMAP], columns[KEY_BIT]
    value_ends, values, values_size = columns[VALUE_ENDS], columns[VALUES], columns[VALUES_SIZE]
    value_bitmap, value_bit = columns[VALUE_BITMAP], columns[VALUE_BIT]
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
            first_offset = np.int64(load_uint64(columns[OFFSETS] + 8 * row))
            if first_offset < 0:
                stop = BAD_OFFSET
                at = start
                break
        offset = first_offset
        base_timestamp = max_timestamp = np.int64(NO_TIMESTAMP)
        while row < rows:
            delta = row - first
            if columns[OFFSETS] != 0:
                next_offset = np.int64(load_uint64(columns[OFFSETS] + 8 * row))
                if row > first and next_offset <= offset:
                    stop = BAD_OFFSET
                    break
                delta = next_offset - first_offset
                if delta > MAX_INT32:
                    break
            timestamp = milliseconds(columns, row)
            if timestamp < NO_TIMESTAMP:
                stop = BAD_TIMESTAMP
                break
            if row == first:
                base_timestamp = timestamp
            key_length = value_length = np.int64(-1)
            key_start = value_start = np.int64(0)
            key_bytes = value_bytes = np.int64(0)
            if key_ends != 0 and not is_null(key_bitmap, key_bit + row):
                key_start, key_end = place(key_ends, row)
                key_length = key_bytes = key_end - key_start
                if key_start < 0 or key_length < 0 or key_end > keys_size:
                    stop = BAD_ARROW
                    break
            if value_ends != 0 and not is_null(value_bitmap, value_bit + row):
                value_start, value_end = place(value_ends, row)
                value_length = value_bytes = value_end - value_start
                if value_start < 0 or value_length < 0 or value_end > values_size:
                    stop = BAD_ARROW
                    break
            header_bytes = np.int64(0)
            first_header = last_header = np.int64(0)
            if columns[HEADER_ENDS] != 0:
                header_bytes, first_header, last_header, stop = headers_bytes(columns, row)
                if stop != DONE:
                    break
            time_number, delta_number = zigzag(timestamp - base_timestamp), zigzag(delta)
            key_number, value_number = zigzag(key_length), zigzag(value_length)
            body = 1 + key_bytes + value_bytes + header_bytes
            body += varint_bytes(time_number) + varint_bytes(delta_number)
            body += varint_bytes(key_number) + varint_bytes(value_number)
            body += varint_bytes(zigzag(last_header - first_header))
            if body > LARGEST_RECORD:
                stop = TOO_LARGE
                break
            body_number = zigzag(body)
            size = body + varint_bytes(body_number)
            if row > first and at - start + size > batch_size:
                break
            if at + size > limit:
                stop = NO_ROOM
                state[NEEDED] = at + size - start + WIDE
                break
            at = put_varint(at, body_number)
            store_uint8(at, 0)
            at = put_varint(at + 1, time_number)
            at = put_varint(at, delta_number)
            at = put_varint(at, key_number)
            if key_bytes > 0:
                copy_bytes(at, keys + key_start, key_bytes, keys_end)
                at += key_bytes
            at = put_varint(at, value_number)
            if value_bytes > 0:
                copy_bytes(at, values + value_start, value_bytes, values_end)
                at += value_bytes
            at = put_varint(at, zigzag(last_header - first_header))
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
    table: Int64Table,
    state: Int64s,
) -> None:
    """Put rows [row, rows) as messages of magic 0 or 1 into the room, checksums included; a table row for each
    batch_size of them.

    relative: offsets count from the first of each batch (KIP-31, for messages that will be compressed).
    append_time: milliseconds, the timestamp of all with the type LOG_APPEND_TIME; -1 for CREATE_TIME.
    """
    limit = room + room_size - WIDE
    fixed = 34 if magic == 1 else 26
    attributes = 0x08 if magic == 1 and append_time >= 0 else 0
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
            first_offset = np.int64(load_uint64(columns[OFFSETS] + 8 * row))
            if first_offset < 0:
                stop = BAD_OFFSET
                at = start
                break
        offset = first_offset
        while row < rows:
            next_offset = first_offset + row - first
            if columns[OFFSETS] != 0:
                next_offset = np.int64(load_uint64(columns[OFFSETS] + 8 * row))
                if row > first and next_offset <= offset:
                    stop = BAD_OFFSET
                    break
            timestamp = append_time if append_time >= 0 else milliseconds(columns, row)
            if timestamp < NO_TIMESTAMP:
                stop = BAD_TIMESTAMP
                break
            key_length = value_length = np.int64(-1)
            key_start = value_start = np.int64(0)
            if columns[KEY_ENDS] != 0 and not is_null(columns[KEY_BITMAP], columns[KEY_BIT] + row):
                key_start, key_end = place(columns[KEY_ENDS], row)
                key_length = key_end - key_start
                if key_start < 0 or key_length < 0 or key_end > columns[KEYS_SIZE]:
                    stop = BAD_ARROW
                    break
            if columns[VALUE_ENDS] != 0 and not is_null(columns[VALUE_BITMAP], columns[VALUE_BIT] + row):
                value_start, value_end = place(columns[VALUE_ENDS], row)
                value_length = value_end - value_start
                if value_start < 0 or value_length < 0 or value_end > columns[VALUES_SIZE]:
                    stop = BAD_ARROW
                    break
            if columns[HEADER_ENDS] != 0:
                _, first_header, last_header, stop = headers_bytes(columns, row)
                if stop == DONE and last_header > first_header:
                    stop = HAS_HEADERS
                if stop != DONE:
                    break
            size = fixed + (key_length if key_length > 0 else 0) + (value_length if value_length > 0 else 0)
            if size > LARGEST_RECORD:
                stop = TOO_LARGE
                break
            if row > first and at - start + size > batch_size:
                break
            if at + size > limit:
                stop = NO_ROOM
                state[NEEDED] = at + size - start + WIDE
                break
            put_int64(at, next_offset - first_offset if relative else next_offset)
            put_int32(at + SIZE_POSITION, size - FRAME_BYTES)
            store_uint8(at + MAGIC_POSITION, magic)
            store_uint8(at + LEGACY_ATTRIBUTES_POSITION, attributes)
            field = at + LEGACY_TIMESTAMP_POSITION
            if magic == 1:
                put_int64(field, timestamp)
                field += 8
                if timestamp > max_timestamp:
                    max_timestamp = timestamp
            put_int32(field, key_length)
            field += 4
            if key_length > 0:
                copy_bytes(field, columns[KEYS] + key_start, key_length, columns[KEYS] + columns[KEYS_SIZE])
                field += key_length
            put_int32(field, value_length)
            field += 4
            if value_length > 0:
                copy_bytes(field, columns[VALUES] + value_start, value_length, columns[VALUES] + columns[VALUES_SIZE])
            put_int32(at + LEGACY_CRC_POSITION, crc32(at + MAGIC_POSITION, size - MAGIC_POSITION))
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


@inlined
def put_int64(at, value):
    """Store a big-endian int64."""
    store_int64(at, np.int64(byte_swap64(np.uint64(value))))


@inlined
def put_int32(at, value):
    """Store a big-endian int32."""
    store_int32(at, np.int64(byte_swap32(np.uint32(value))))


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
    """Fill in the headers of magic 2 batches, all but the checksum. Returns the sequence number after them.

    base_sequence: of the first batch, -1 for none. append_time: milliseconds, the maximum timestamp of all; -1 for the
    table's.
    """
    for i in range(batches):
        entry = table[i]
        at = room + entry[POSITION]
        put_int64(at, entry[BASE_OFFSET])
        put_int32(at + SIZE_POSITION, entry[SIZE] - FRAME_BYTES)
        put_int32(at + LEADER_EPOCH_POSITION, leader_epoch)
        store_uint8(at + MAGIC_POSITION, 2)
        store_uint8(at + ATTRIBUTES_POSITION, 0)
        store_uint8(at + ATTRIBUTES_POSITION + 1, attributes)
        last_delta = entry[LAST_OFFSET] - entry[BASE_OFFSET]
        put_int32(at + LAST_OFFSET_DELTA_POSITION, last_delta)
        put_int64(at + BASE_TIMESTAMP_POSITION, entry[BASE_TIMESTAMP])
        put_int64(at + MAX_TIMESTAMP_POSITION, append_time if append_time >= 0 else entry[MAX_TIMESTAMP])
        put_int64(at + PRODUCER_ID_POSITION, producer_id)
        store_uint8(at + PRODUCER_EPOCH_POSITION, producer_epoch >> 8)
        store_uint8(at + PRODUCER_EPOCH_POSITION + 1, producer_epoch)
        put_int32(at + BASE_SEQUENCE_POSITION, base_sequence)
        put_int32(at + COUNT_POSITION, entry[COUNT])
        if base_sequence >= 0:
            base_sequence = (base_sequence + last_delta + 1) & 0x7FFFFFFF
    return base_sequence
