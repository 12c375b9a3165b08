"""The columns of one Arrow batch, as the kernels that read records fill them (`native/record_columns.h`).

    addresses    int64[len(ADDRESSES)]    of the buffers; 0 for columns that are not projected
    state        int64[len(STATE)]        rows and bytes written so far, from where the next kernel continues

All buffers have room for every row; KEYS, VALUES, HEADER_KEYS and HEADER_VALUES for all bytes of the records and WIDE
more. The bits of the bitmaps are set beforehand.
"""

from __future__ import annotations

__all__ = ["ADDRESSES", "LARGEST_MS", "STATE", "UNFIT_TIMESTAMP"]

ADDRESSES = (
    "OFFSETS",  # int64
    "TIMESTAMPS",  # int64, microseconds
    "TIMESTAMP_TYPES",  # int32
    "KEY_ENDS",  # int32, the Arrow offsets of a binary column
    "KEYS",
    "KEY_BITMAP",
    "VALUE_ENDS",
    "VALUES",
    "VALUE_BITMAP",
    "HEADER_ENDS",  # int32, the Arrow offsets of the list column
    "HEADER_BITMAP",  # cleared where a record has no headers
    "HEADER_KEY_ENDS",
    "HEADER_KEYS",
    "HEADER_VALUE_ENDS",
    "HEADER_VALUES",
    "HEADER_VALUE_BITMAP",
)
OFFSETS, TIMESTAMPS, TIMESTAMP_TYPES, KEY_ENDS, KEYS, KEY_BITMAP, VALUE_ENDS, VALUES, VALUE_BITMAP = range(9)
HEADER_ENDS, HEADER_BITMAP, HEADER_KEY_ENDS, HEADER_KEYS = range(9, 13)
HEADER_VALUE_ENDS, HEADER_VALUES, HEADER_VALUE_BITMAP = range(13, 16)

STATE = (
    "ROWS",
    "KEY_BYTES",
    "NULL_KEYS",
    "VALUE_BYTES",
    "NULL_VALUES",
    "HEADERS",
    "NULL_HEADERS",  # rows without headers
    "HEADER_KEY_BYTES",
    "HEADER_VALUE_BYTES",
    "NULL_HEADER_VALUES",
    "UNFIT_TIMESTAMPS",
    "STOPPED_BY",  # a Fault, 0 for none
    "STOPPED_AT",  # index of the record in its batch, -1 when the fault is the batch's
)
ROWS, KEY_BYTES, NULL_KEYS, VALUE_BYTES, NULL_VALUES, HEADERS, NULL_HEADERS = range(7)
HEADER_KEY_BYTES, HEADER_VALUE_BYTES, NULL_HEADER_VALUES, UNFIT_TIMESTAMPS, STOPPED_BY, STOPPED_AT = range(7, 13)

UNFIT_TIMESTAMP = -(2**63)
"""A time in ms whose microseconds exceed int64; no valid time has this value."""
LARGEST_MS = (2**63 - 1) // 1000
