"""Where the columns of one Arrow batch go, and how far they are filled.

`addresses`, int64[ADDRESS_COUNT]: where each buffer begins; 0 means that the column is not wanted, and nothing is done
for it. All have room for every row, and KEYS, VALUES, HEADER_KEYS, HEADER_VALUES for all bytes of the records and WIDE
more. The bitmaps come with all bits set.
`state`, int64[STATE_COUNT]: what is filled; kernels go on from there, so that several may write to one batch.
"""
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

from __future__ import annotations

import numpy as np

from kwire.wire.kernels.compiler import inlined
from kwire.wire.kernels.memory import clear_bit, copy_bytes, store_int32, store_int64

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

UNFIT_TIMESTAMP = np.iinfo(np.int64).min  # a time in ms that no number of microseconds can say; no other gives this one
LARGEST_MS = np.iinfo(np.int64).max // 1000


@inlined
def put_bytes(ends, data, bitmap, row, filled, source, length, source_end):
    """Append one value to a binary column, null if length is negative. Returns the bytes filled after it."""
    store_int32(ends + 4 * row, filled)
    if length > 0:
        copy_bytes(data + filled, source, length, source_end)
        return filled + length
    if length < 0:
        clear_bit(bitmap, row)
    return filled


@inlined
def put_timestamp(timestamps, row, milliseconds):
    """Store a time in microseconds. Returns 1 when it does not fit (UNFIT_TIMESTAMP stands there then), else 0."""
    if -LARGEST_MS <= milliseconds <= LARGEST_MS:
        store_int64(timestamps + 8 * row, milliseconds * 1000)
        return 0
    store_int64(timestamps + 8 * row, UNFIT_TIMESTAMP)
    return 1
