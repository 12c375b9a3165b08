"""The arrays of int64 that the encoder of columns shares with its kernels (native/encoding.c).

columns    a Column each      addresses and sizes of the Arrow buffers, 0 for missing ones
table      a NewBatch each    one row for each batch
state      a State each       where the kernel stopped (at a fault: the row that has it), and why
"""

from __future__ import annotations

from enum import IntEnum

__all__ = ["Column", "NewBatch", "State", "Stop"]


class Column(IntEnum):
    """An address in memory, unless it says otherwise. Ends are Arrow's offsets of binary columns and of lists."""

    KEY_ENDS = 0  # int32, from the first row on
    KEYS = 1
    KEYS_SIZE = 2  # bytes
    KEY_BITMAP = 3  # validity; 0: no nulls
    KEY_BIT = 4  # number of the first row's bit
    VALUE_ENDS = 5
    VALUES = 6
    VALUES_SIZE = 7
    VALUE_BITMAP = 8
    VALUE_BIT = 9
    TIMESTAMPS = 10  # int64
    TIMESTAMP_BITMAP = 11
    TIMESTAMP_BIT = 12
    TIMESTAMP_UNIT = 13  # ticks in a millisecond: 1, 1000 or 1000000
    OFFSETS = 14  # int64; 0: rows are numbered
    HEADER_ENDS = 15  # int32
    HEADER_BITMAP = 16
    HEADER_BIT = 17
    HEADER_COUNT = 18  # headers of all rows
    HEADER_KEY_ENDS = 19
    HEADER_KEYS = 20
    HEADER_KEYS_SIZE = 21
    HEADER_KEY_BITMAP = 22
    HEADER_KEY_BIT = 23
    HEADER_VALUE_ENDS = 24
    HEADER_VALUES = 25
    HEADER_VALUES_SIZE = 26
    HEADER_VALUE_BITMAP = 27
    HEADER_VALUE_BIT = 28
    ORDER = 29  # int64: the rows to write, one after another; 0: all rows in their order


class NewBatch(IntEnum):
    """A batch in the room. Checksums need the first two columns."""

    POSITION = 0
    SIZE = 1  # header included
    COUNT = 2
    BASE_OFFSET = 3
    LAST_OFFSET = 4
    BASE_TIMESTAMP = 5
    MAX_TIMESTAMP = 6


class State(IntEnum):
    """Where the kernel stopped."""

    ROW = 0  # the next one
    USED = 1  # bytes of the room
    BATCHES = 2  # rows of the table
    STOP = 3
    NEEDED = 4  # bytes of the room that NO_ROOM asks for


class Stop(IntEnum):
    """Why the kernel stopped; from BAD_TIMESTAMP on, a fault of a row."""

    DONE = 0
    NO_ROOM = 1
    TABLE_FULL = 2
    BAD_TIMESTAMP = 3
    BAD_OFFSET = 4
    BAD_ARROW = 5
    NULL_HEADER_KEY = 6
    TOO_LARGE = 7
    HAS_HEADERS = 8
