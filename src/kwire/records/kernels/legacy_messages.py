"""Messages of magic 0 and 1 as places of fields: the inner ones of compressed ones."""
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

from __future__ import annotations

import numpy as np

from kwire.records.attributes import CODEC_MASK, NO_SEQUENCE, NO_TIMESTAMP
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
from kwire.records.kernels.checksums import crc32
from kwire.records.kernels.locate import MOST_BYTES, MOST_RECORDS, put_row
from kwire.wire.kernels.compiler import export, inlined
from kwire.wire.kernels.memory import (
    int64_at,
    load_big_int32,
    load_big_int64,
    load_big_uint32,
    load_byte,
)

__all__ = ["legacy_key_position", "locate_messages", "read_field"]

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
