"""The columns of one Arrow batch, as the kernels that read records fill them.

    addresses    int64[ADDRESS_COUNT]    of the buffers; 0 for columns that are not projected
    state        int64[STATE_COUNT]      rows and bytes written so far, from where the next kernel continues

All buffers have room for every row; KEYS, VALUES, HEADER_KEYS and HEADER_VALUES for all bytes of the records and WIDE
more. The bits of the bitmaps are set beforehand.
"""
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

from __future__ import annotations

import numpy as np

from kwire.wire.kernels.compiler import inlined
from kwire.wire.kernels.memory import clear_bit, copy_bytes, set_int32, set_int64

__all__ = ["ADDRESS_COUNT", "STATE_COUNT", "UNFIT_TIMESTAMP", "put_bytes", "put_timestamp"]

(
    OFFSETS,  # int64
    TIMESTAMPS,  # int64, microseconds
    TIMESTAMP_TYPES,  # int32
    KEY_ENDS,  # int32, the Arrow offsets of a binary column
    KEYS,
    KEY_BITMAP,
    VALUE_ENDS,
    VALUES,
    VALUE_BITMAP,
    HEADER_ENDS,  # int32, the Arrow offsets of the list column
    HEADER_BITMAP,  # cleared where a record has no headers
    HEADER_KEY_ENDS,
    HEADER_KEYS,
    HEADER_VALUE_ENDS,
    HEADER_VALUES,
    HEADER_VALUE_BITMAP,
) = range(16)
ADDRESS_COUNT = 16

(
    ROWS,
    KEY_BYTES,
    NULL_KEYS,
    VALUE_BYTES,
    NULL_VALUES,
    HEADERS,
    NULL_HEADERS,  # rows without headers
    HEADER_KEY_BYTES,
    HEADER_VALUE_BYTES,
    NULL_HEADER_VALUES,
    UNFIT_TIMESTAMPS,
    STOPPED_BY,  # a Fault, 0 for none
    STOPPED_AT,  # index of the record in its batch, -1 when the fault is the batch's
) = range(13)
STATE_COUNT = 13

UNFIT_TIMESTAMP = np.iinfo(np.int64).min  # a time in ms whose microseconds exceed int64; no valid time has this value
LARGEST_MS = np.iinfo(np.int64).max // 1000


@inlined
def put_bytes(ends, data, bitmap, row, filled, source, length, source_end):
    """Append a value to a binary column, null if length is negative. Returns the bytes of the column so far."""
    set_int32(ends, row, filled)
    if length > 0:
        copy_bytes(data + filled, source, length, source_end)
        return filled + length
    if length < 0:
        clear_bit(bitmap, row)
    return filled


@inlined
def put_timestamp(timestamps, row, milliseconds):
    """Store a time in microseconds. Returns 0, or 1 if it does not fit and UNFIT_TIMESTAMP was stored instead."""
    if -LARGEST_MS <= milliseconds <= LARGEST_MS:
        set_int64(timestamps, row, milliseconds * 1000)
        return 0
    set_int64(timestamps, row, UNFIT_TIMESTAMP)
    return 1
