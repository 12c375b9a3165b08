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
SHIFT            0                             offset to add to the offsets of inner messages
FAULT            0, BAD_CRC, BAD_CODEC, Fault  the same
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kwire import native
from kwire.records.attributes import NO_PRODUCER_ID, NO_TIMESTAMP
from kwire.records.format.batch_header import (
    DEFAULT_HEADER,
    DEFAULT_HEADER_BYTES,
    FRAME_BYTES,
    LEGACY_HEADER,
    LEGACY_TIMESTAMP,
    LEGACY_TIMESTAMP_POSITION,
    MAGIC_POSITION,
    PREFIX_BYTES,
    batch_bytes,
    header_fault,
)
from kwire.records.format.wrapping import to_int64

__all__ = [
    "BAD_CODEC",
    "BAD_CRC",
    "COLUMN_COUNT",
    "CUT",
    "FULL",
    "TABLE",
    "UNBELIEVABLE",
    "WHOLE",
    "Scan",
    "scan_batches",
]

TABLE = (
    *("POSITION", "SIZE", "BASE_OFFSET", "LAST_OFFSET", "ATTRIBUTES", "BASE_TIMESTAMP", "MAX_TIMESTAMP", "COUNT"),
    *("MAGIC", "PRODUCER_ID", "START", "END", "SHIFT", "FAULT"),
)
POSITION, SIZE, BASE_OFFSET, LAST_OFFSET, ATTRIBUTES, BASE_TIMESTAMP, MAX_TIMESTAMP, COUNT = range(8)
MAGIC, PRODUCER_ID, START, END, SHIFT, FAULT = range(8, 14)
COLUMN_COUNT = len(TABLE)

WHOLE, CUT, UNBELIEVABLE, FULL = range(4)
"""How a scan of batch headers ended."""
BAD_CRC, BAD_CODEC = -1, -2
"""In FAULT; numbers above 0 are values of `Fault`."""


class Scan(NamedTuple):
    """The batches of some bytes: their rows, the position after them, and how the scan ended, which is not FULL."""

    table: npt.NDArray[np.int64]
    end: int
    status: int


def scan_batches(data: npt.NDArray[np.uint8], position: int, table: npt.NDArray[np.int64]) -> tuple[int, int, int]:
    """Read batch headers of data, from `position` on, into rows of table.

    Returns (rows filled, position after the last whole batch, status): WHOLE if the bytes end with a batch, CUT if they
    end inside one, UNBELIEVABLE if the size or magic there is impossible, FULL if the table is.
    """
    scan = scan_plain if native.LEVEL is None else native.scan_batches
    return scan(data, position, table)


def scan_plain(data: npt.NDArray[np.uint8], position: int, table: npt.NDArray[np.int64]) -> tuple[int, int, int]:
    """Scan in Python."""
    view, address = data.data, data.ctypes.data
    for rows in range(len(table) + 1):
        left = len(view) - position
        if left < FRAME_BYTES:
            return rows, position, CUT if left else WHOLE
        if rows == len(table):
            break
        size = batch_bytes(view, position)
        magic = view[position + MAGIC_POSITION] if left >= PREFIX_BYTES else None
        if header_fault(size - FRAME_BYTES, magic):
            return rows, position, UNBELIEVABLE
        if magic is None or size > left:
            return rows, position, CUT
        table[rows] = header_row(view, position, size, magic, address + position)
        position += size
    return len(table), position, FULL


def header_row(view: memoryview, position: int, size: int, magic: int, address: int) -> tuple[int, ...]:
    """Return the row of the batch at `position`, whose address this is."""
    if magic == 2:
        offset, _, _, _, _, attributes, delta, base_ms, max_ms, producer_id, _, _, count = DEFAULT_HEADER.unpack_from(
            view, position
        )
        last, start = to_int64(offset + delta), address + DEFAULT_HEADER_BYTES
    else:
        offset, _, _, _, attributes = LEGACY_HEADER.unpack_from(view, position)
        max_ms = NO_TIMESTAMP
        if magic == 1:
            (max_ms,) = LEGACY_TIMESTAMP.unpack_from(view, position + LEGACY_TIMESTAMP_POSITION)
        base_ms, producer_id, count, last, start = max_ms, NO_PRODUCER_ID, 1, offset, address
    end = address + size
    return position, size, offset, last, attributes, base_ms, max_ms, count, magic, producer_id, start, end, 0, 0
