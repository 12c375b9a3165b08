"""The scan of batch headers into the header table (`kwire.records.batch_table`)."""
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
from kwire.records.batch_table import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_TIMESTAMP,
    COUNT,
    CUT,
    END,
    FAULT,
    FULL,
    LAST_OFFSET,
    MAGIC,
    MAX_TIMESTAMP,
    POSITION,
    PRODUCER_ID,
    SHIFT,
    SIZE,
    START,
    UNBELIEVABLE,
    WHOLE,
)
from kwire.wire.kernels.arrays import WritableInt64Table
from kwire.wire.kernels.compiler import export
from kwire.wire.kernels.memory import load_big_int16, load_big_int32, load_big_int64, load_byte

__all__ = ["scan_batches"]


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
