"""The header table, int64[batches, COLUMN_COUNT]: one row for each batch, filled by one walk over the bytes.

column           magic 2                       magic 0 and 1
POSITION         of the batch in the bytes     the same
SIZE             of the whole batch            the same
BASE_OFFSET      first offset                  the message's offset
LAST_OFFSET      last offset                   the message's offset
ATTRIBUTES       as stored                     as stored
BASE_TIMESTAMP   as stored                     the message's timestamp, -1 in magic 0
MAX_TIMESTAMP    as stored                     the same
COUNT            as stored                     1; of inner messages once decompressed
MAGIC            2                             0 or 1
PRODUCER_ID      as stored                     -1
START, END       addresses of the records      of the message; of the inner ones once decompressed
SHIFT            0                             offset to add to those of inner messages
FAULT            0, BAD_CRC, BAD_CODEC, Fault  the same
"""
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

from __future__ import annotations

from kwire.records.batch_header import (
    ATTRIBUTES_POSITION,
    BASE_TIMESTAMP_POSITION,
    COUNT_POSITION,
    DEFAULT_HEADER_BYTES,
    FRAME_BYTES,
    LARGEST_SIZE,
    LAST_OFFSET_DELTA_POSITION,
    LEGACY_ATTRIBUTES_POSITION,
    LEGACY_TIMESTAMP_POSITION,
    MAGIC_POSITION,
    MAX_TIMESTAMP_POSITION,
    PREFIX_BYTES,
    PRODUCER_ID_POSITION,
    SIZE_POSITION,
    SMALLEST_DEFAULT_SIZE,
    SMALLEST_SIZE,
)
from kwire.wire.kernels.arrays import WritableInt64Table
from kwire.wire.kernels.compiler import export
from kwire.wire.kernels.memory import load_big_int16, load_big_int32, load_big_int64, load_byte

__all__ = ["BAD_CODEC", "BAD_CRC", "COLUMN_COUNT", "CUT", "FULL", "UNBELIEVABLE", "WHOLE", "scan_batches"]

TABLE = (
    *("POSITION", "SIZE", "BASE_OFFSET", "LAST_OFFSET", "ATTRIBUTES", "BASE_TIMESTAMP", "MAX_TIMESTAMP", "COUNT"),
    *("MAGIC", "PRODUCER_ID", "START", "END", "SHIFT", "FAULT"),
)
POSITION, SIZE, BASE_OFFSET, LAST_OFFSET, ATTRIBUTES, BASE_TIMESTAMP, MAX_TIMESTAMP, COUNT = range(8)
MAGIC, PRODUCER_ID, START, END, SHIFT, FAULT = range(8, 14)
COLUMN_COUNT = 14

WHOLE, CUT, UNBELIEVABLE, FULL = range(4)
BAD_CRC, BAD_CODEC = -1, -2  # in FAULT; numbers above 0 are those of `Fault`


@export
def scan_batches(start: int, length: int, position: int, table: WritableInt64Table) -> tuple[int, int, int]:
    """Read batch headers of the `length` bytes at address `start`, from `position` on, into rows of table.

    table: int64[rows, COLUMN_COUNT].
    Returns (rows filled, position after the last whole batch, status): WHOLE if the bytes end with a batch, CUT if they
    end inside one, UNBELIEVABLE if the size or magic there is impossible, FULL if the table is.
    """
    rows = 0
    while True:
        left = length - position
        if left < FRAME_BYTES:
            return rows, position, WHOLE if left == 0 else CUT
        if rows == table.shape[0]:
            return rows, position, FULL
        at = start + position
        size = load_big_int32(at + SIZE_POSITION)
        if size < SMALLEST_SIZE or size > LARGEST_SIZE:
            return rows, position, UNBELIEVABLE
        if left < PREFIX_BYTES:
            return rows, position, CUT
        magic = load_byte(at + MAGIC_POSITION)
        if magic > 2 or (magic == 2 and size < SMALLEST_DEFAULT_SIZE):
            return rows, position, UNBELIEVABLE
        if size + FRAME_BYTES > left:
            return rows, position, CUT
        row = table[rows]
        row[POSITION] = position
        row[SIZE] = size + FRAME_BYTES
        row[BASE_OFFSET] = load_big_int64(at)
        row[MAGIC] = magic
        row[END] = at + size + FRAME_BYTES
        row[SHIFT] = 0
        row[FAULT] = 0
        if magic == 2:
            row[ATTRIBUTES] = load_big_int16(at + ATTRIBUTES_POSITION)
            row[LAST_OFFSET] = row[BASE_OFFSET] + load_big_int32(at + LAST_OFFSET_DELTA_POSITION)
            row[BASE_TIMESTAMP] = load_big_int64(at + BASE_TIMESTAMP_POSITION)
            row[MAX_TIMESTAMP] = load_big_int64(at + MAX_TIMESTAMP_POSITION)
            row[PRODUCER_ID] = load_big_int64(at + PRODUCER_ID_POSITION)
            row[COUNT] = load_big_int32(at + COUNT_POSITION)
            row[START] = at + DEFAULT_HEADER_BYTES
        else:
            row[ATTRIBUTES] = load_byte(at + LEGACY_ATTRIBUTES_POSITION)
            row[LAST_OFFSET] = row[BASE_OFFSET]
            row[BASE_TIMESTAMP] = load_big_int64(at + LEGACY_TIMESTAMP_POSITION) if magic == 1 else -1
            row[MAX_TIMESTAMP] = row[BASE_TIMESTAMP]
            row[PRODUCER_ID] = -1
            row[COUNT] = 1
            row[START] = at
        rows += 1
        position += size + FRAME_BYTES
