"""Messages of magic 0 and 1 into Arrow columns or places of fields: single ones, and the inner ones of compressed ones.

reads     the rows of the header table (`table`) and the messages at [START, END): their header, as in
          `kwire.records.batch_header`, then

          int32    key length, -1 for null; key
          int32    value length, -1 for null; value

writes    the columns at `addresses`, and `state` (`output`)
"""
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

from __future__ import annotations

import numpy as np

from kwire.records import batch_table as t
from kwire.records.attributes import CODEC_MASK, LOG_APPEND_TIME_FLAG, NO_SEQUENCE, NO_TIMESTAMP
from kwire.records.batch_header import (
    FRAME_BYTES,
    LEGACY_ATTRIBUTES_POSITION,
    LEGACY_CRC_POSITION,
    LEGACY_TIMESTAMP,
    LEGACY_TIMESTAMP_POSITION,
    MAGIC_POSITION,
    SIZE_POSITION,
    SMALLEST_SIZE,
)
from kwire.records.faults import Fault
from kwire.records.kernels import locate
from kwire.records.kernels import output as o
from kwire.records.kernels.checksums import crc32
from kwire.records.kernels.default_records import put_no_headers
from kwire.records.kernels.locate import MOST_BYTES, MOST_RECORDS, put_row
from kwire.records.kernels.output import put_bytes, put_timestamp
from kwire.wire.kernels.arrays import Bytes, Int64s, Int64Table, WritableInt64s
from kwire.wire.kernels.compiler import export, inlined
from kwire.wire.kernels.memory import (
    int64_at,
    load_big_int32,
    load_big_int64,
    load_big_uint32,
    load_byte,
    set_int32,
    set_int64,
)

__all__ = [
    "legacy_key_position",
    "locate_messages",
    "measure_messages",
    "parse_legacy_messages",
    "scan_inner_messages",
    "skip_messages",
    "wrapped_value",
]

LENGTH_BYTES = 4
"""Of the int32 before a key or a value."""
KEY_POSITION_0 = LEGACY_TIMESTAMP_POSITION
KEY_POSITION_1 = LEGACY_TIMESTAMP_POSITION + LEGACY_TIMESTAMP.size

BAD_WRAPPER_VALUE = int(Fault.WRAPPER_VALUE)
BAD_INNER_SIZE = int(Fault.INNER_SIZE)
BAD_INNER_MAGIC = int(Fault.INNER_MAGIC)
COMPRESSED_AGAIN = int(Fault.INNER_COMPRESSED)
BAD_INNER_CRC = int(Fault.INNER_CRC)
BAD_MESSAGE_FIELDS = int(Fault.MESSAGE_FIELDS)


@inlined
def legacy_key_position(magic):
    """Return the position in a message of the length of its key, where the fields common to all messages end."""
    return KEY_POSITION_0 if magic == 0 else KEY_POSITION_1


@inlined
def read_field(at, end):
    """Read the length of a key or value: (length, address of the bytes); address 0 if they end beyond `end`."""
    if end - at < LENGTH_BYTES:
        return np.int64(0), np.int64(0)
    length = load_big_int32(at)
    if length > end - at - LENGTH_BYTES:
        return np.int64(0), np.int64(0)
    return length, at + LENGTH_BYTES


@export
def wrapped_value(start: int, end: int, magic: int) -> tuple[int, int, int]:
    """Find the value of the message at [start, end): (address, length, Fault or 0)."""
    key_length, at = read_field(start + legacy_key_position(magic), end)
    if at == 0:
        return np.int64(0), np.int64(0), BAD_MESSAGE_FIELDS
    length, at = read_field(at + max(key_length, 0), end)
    if at == 0:
        return np.int64(0), np.int64(0), BAD_MESSAGE_FIELDS
    if length < 0:
        return np.int64(0), np.int64(0), BAD_WRAPPER_VALUE
    return at, length, 0


@export
def scan_inner_messages(start: int, end: int) -> tuple[int, int, int, int]:
    """Scan decompressed messages: (messages, last offset, address after it, Fault or 0). Ignores a truncated one."""
    at, count, last = start, 0, np.int64(0)
    while end - at >= FRAME_BYTES:
        size = load_big_int32(at + SIZE_POSITION)
        if size < SMALLEST_SIZE:
            return count, last, at, BAD_INNER_SIZE
        if size > end - at - FRAME_BYTES:
            break
        if load_byte(at + MAGIC_POSITION) > 1:
            return count, last, at, BAD_INNER_MAGIC
        last = load_big_int64(at)
        at += FRAME_BYTES + size
        count += 1
    return count, last, at, 0


@export
def measure_messages(payload: Bytes) -> tuple[int, int, int]:
    """Scan decompressed messages: (messages, last offset, Fault or 0)."""
    start = np.int64(payload.ctypes.data)
    count, last, _, fault = scan_inner_messages(start, start + payload.size)
    return count, last, fault


@export
def locate_messages(
    start: int, end: int, position: int, count: int, header: int, rows: int
) -> tuple[int, int, int, int]:
    """Find the next messages of the `count` that scan_inner_messages has found at [start, end), from `position` on.

    Arguments and results are those of locate_records.
    """
    at = start + position
    first = at
    shift, check_crc = int64_at(header, locate.BASE_OFFSET), int64_at(header, locate.CHECK_CRC) != 0
    append_time = int64_at(header, locate.IS_APPEND_TIME) != 0
    max_timestamp = int64_at(header, locate.MAX_TIMESTAMP)
    lowest, highest = int64_at(header, locate.LOWEST_OFFSET), int64_at(header, locate.HIGHEST_OFFSET)
    read = np.int64(0)
    written = np.int64(0)
    fault = 0
    while read < count and read < MOST_RECORDS and at - first <= MOST_BYTES:
        if end - at < FRAME_BYTES + SMALLEST_SIZE:
            fault = BAD_INNER_SIZE
            break
        size = load_big_int32(at + SIZE_POSITION)
        if size < SMALLEST_SIZE or size > end - at - FRAME_BYTES:
            fault = BAD_INNER_SIZE
            break
        message_end = at + FRAME_BYTES + size
        magic = load_byte(at + MAGIC_POSITION)
        if load_byte(at + LEGACY_ATTRIBUTES_POSITION) & CODEC_MASK != 0:
            fault = COMPRESSED_AGAIN
            break
        if check_crc:
            stored = load_big_uint32(at + LEGACY_CRC_POSITION)
            if crc32(at + MAGIC_POSITION, message_end - at - MAGIC_POSITION) != stored:
                fault = BAD_INNER_CRC
                break
        timestamp = np.int64(NO_TIMESTAMP)
        if magic == 1:
            timestamp = max_timestamp if append_time else load_big_int64(at + LEGACY_TIMESTAMP_POSITION)
        key_bytes, key = read_field(at + legacy_key_position(magic), message_end)
        if key == 0:
            fault = BAD_MESSAGE_FIELDS
            break
        value_bytes, value = read_field(key + max(key_bytes, 0), message_end)
        if value == 0:
            fault = BAD_MESSAGE_FIELDS
            break
        offset = load_big_int64(at) + shift
        at = message_end
        read += 1
        if lowest <= offset <= highest:
            put_row(rows, written, offset, timestamp, np.int64(NO_SEQUENCE), key, key_bytes, value, value_bytes, 0, at)
            written += 1
    return written, read, at - start, fault


@export
def skip_messages(at: int, end: int, most: int, most_bytes: int) -> tuple[int, int]:
    """Skip inner messages, with the limits of skip_records: (number, address after them)."""
    start = at
    messages = 0
    while at < end and messages < most:
        after = at + FRAME_BYTES + load_big_int32(at + SIZE_POSITION)
        if messages > 0 and after - start > most_bytes:
            break
        at = after
        messages += 1
    return messages, at


@export
def parse_legacy_messages(
    table: Int64Table,
    first: int,
    last: int,
    lowest_offset: int,
    highest_offset: int,
    check_crc: int,
    addresses: Int64s,
    state: WritableInt64s,
) -> int:
    """Decode batches [first, last) of table into columns, less the records outside lowest_offset to highest_offset.

    START and END of a compressed message are those of its inner messages, which scan_inner_messages has checked.
    check_crc: 1 to verify inner messages; FAULT of the table has the result for the outer ones.
    Returns as parse_default_records.
    """
    offsets, timestamps, types = addresses[o.OFFSETS], addresses[o.TIMESTAMPS], addresses[o.TIMESTAMP_TYPES]
    key_ends, keys, key_bitmap = addresses[o.KEY_ENDS], addresses[o.KEYS], addresses[o.KEY_BITMAP]
    value_ends, values, value_bitmap = addresses[o.VALUE_ENDS], addresses[o.VALUES], addresses[o.VALUE_BITMAP]
    row, key_bytes, value_bytes = state[o.ROWS], state[o.KEY_BYTES], state[o.VALUE_BYTES]
    null_keys, null_values, unfit = state[o.NULL_KEYS], state[o.NULL_VALUES], state[o.UNFIT_TIMESTAMPS]
    i = first
    while i < last:
        batch = table[i]
        at, end = batch[t.START], batch[t.END]
        wrapped = batch[t.ATTRIBUTES] & CODEC_MASK != 0
        append_time = batch[t.MAGIC] == 1 and batch[t.ATTRIBUTES] & LOG_APPEND_TIME_FLAG != 0
        timestamp_type = np.int64(-1) if batch[t.MAGIC] == 0 else np.int64(1) if append_time else np.int64(0)
        null_headers = state[o.NULL_HEADERS]
        fault = 0
        record = 0
        while at < end:
            message_end = at + FRAME_BYTES + load_big_int32(at + SIZE_POSITION)
            magic = load_byte(at + MAGIC_POSITION)
            if wrapped and load_byte(at + LEGACY_ATTRIBUTES_POSITION) & CODEC_MASK != 0:
                fault = COMPRESSED_AGAIN
                break
            if wrapped and check_crc:
                stored = load_big_uint32(at + LEGACY_CRC_POSITION)
                if crc32(at + MAGIC_POSITION, message_end - at - MAGIC_POSITION) != stored:
                    fault = BAD_INNER_CRC
                    break
            timestamp = np.int64(-1)
            if magic == 1:
                timestamp = (
                    batch[t.MAX_TIMESTAMP]
                    if wrapped and append_time
                    else load_big_int64(at + LEGACY_TIMESTAMP_POSITION)
                )
            key_length, key_at = read_field(at + legacy_key_position(magic), message_end)
            if key_at == 0:
                fault = BAD_MESSAGE_FIELDS
                break
            value_length, value_at = read_field(key_at + max(key_length, 0), message_end)
            if value_at == 0:
                fault = BAD_MESSAGE_FIELDS
                break
            offset = load_big_int64(at) + batch[t.SHIFT]
            at = message_end
            record += 1
            if offset < lowest_offset or offset > highest_offset:
                continue
            if offsets != 0:
                set_int64(offsets, row, offset)
            if timestamps != 0:
                unfit += put_timestamp(timestamps, row, timestamp)
            if types != 0:
                set_int32(types, row, timestamp_type)
            if key_ends != 0:
                key_bytes = put_bytes(key_ends, keys, key_bitmap, row, key_bytes, key_at, key_length, end)
                null_keys += key_length < 0
            if value_ends != 0:
                value_bytes = put_bytes(value_ends, values, value_bitmap, row, value_bytes, value_at, value_length, end)
                null_values += value_length < 0
            if addresses[o.HEADER_ENDS] != 0:
                put_no_headers(addresses, state, row)
            row += 1
        if fault != 0:
            state[o.NULL_HEADERS] = null_headers
            state[o.STOPPED_BY] = fault
            state[o.STOPPED_AT] = record if wrapped else -1
            return i
        state[o.ROWS] = row
        state[o.KEY_BYTES] = key_bytes
        state[o.VALUE_BYTES] = value_bytes
        state[o.NULL_KEYS] = null_keys
        state[o.NULL_VALUES] = null_values
        state[o.UNFIT_TIMESTAMPS] = unfit
        i += 1
    return i
