"""The rows of plans that decode values of Avro into Arrow columns, and the layout of those columns.

A plan is a list of rows of eight int64: the operation, the column, and six operands. The kernel `native/values.c` and
the walker in plain Python (`kwire.schemas.avro.walker`) run the same rows.

    operation      column  a         b          c          d         the value, and what is appended to the column
    NULL           yes                                               no bytes: a null
    BOOLEAN        yes                                               one byte, 0 or 1
    INT            yes                                               int, as 4 bytes
    LONG           yes     factor    least      greatest             long within limits, times the factor, as 8 bytes
    FLOAT          yes                                               4 bytes
    DOUBLE         yes                                               8 bytes
    NUMBER         yes     source    target     via       factor    a number of one type as one of another (NUMBERS)
    BYTES          yes     text                                      length and bytes; text: must be UTF-8
    FIXED          yes     size                                      bytes, as binary
    ENUM           yes     table     count                           index of a symbol: (offset, size) in the constants
    DECIMAL        yes     size      limit                           big-endian number below 10^precision; -1: of bytes
    RECORD         yes     steps     count                           fields in the writer's order, then defaults
    ARRAY          yes     item      item_bytes min_bytes            blocks of items
    MAP            yes     value     item_bytes min_bytes  key       blocks of keys and values
    UNION                  table     count                           index of a branch: its row
    MEMBER         yes     value     index                           a struct with one field that is not null
    CONSTANT               value     offset     size                 a default: its bytes are among the constants
    UNRESOLVED                                                       an error: the reader's schema has no such type
    SKIP_FIXED             size                                      bytes
    SKIP_NUMBER            bytes                                     a varint of at most this many bytes
    SKIP_BYTES                                                       length and bytes
    SKIP_ENUM                        count                           index of a symbol
    SKIP_RECORD            steps     count                           fields
    SKIP_ARRAY             item      item_bytes min_bytes            blocks of items
    SKIP_MAP               value     item_bytes min_bytes            blocks of keys and values
    SKIP_UNION             table     count                           index of a branch

item, value, key, steps, table    rows, or places in the list of operands that holds row numbers
item_bytes, min_bytes             size of an item if all have the same, else -1; the least size of an item
offset, limit                     places in the constants; a limit is as wide as the column

It is part of `kwire.wire` because the build of the kernels imports it, without pyarrow.
"""

from __future__ import annotations

__all__ = [
    "COLUMN",
    "COLUMN_WORDS",
    "FAULTS",
    "JOB",
    "KINDS",
    "MAX_DEPTH",
    "MAX_OFFSET",
    "NUMBERS",
    "OPERATIONS",
    "ROW_WORDS",
    "SPARE_ITEMS",
    "STATUSES",
]

OPERATIONS = (
    *("NULL", "BOOLEAN", "INT", "LONG", "FLOAT", "DOUBLE", "NUMBER", "BYTES", "FIXED", "ENUM", "DECIMAL"),
    *("RECORD", "ARRAY", "MAP", "UNION", "MEMBER", "CONSTANT", "UNRESOLVED"),
    *("SKIP_FIXED", "SKIP_NUMBER", "SKIP_BYTES", "SKIP_ENUM", "SKIP_RECORD", "SKIP_ARRAY", "SKIP_MAP", "SKIP_UNION"),
)
ROW_WORDS = 8

NUMBERS = ("INT32", "INT64", "FLOAT32", "FLOAT64")
"""Types of NUMBER: on the wire, and in the column. via: 1 if the number is rounded to a float in between. An INT64
target has the factor and the limits of LONG, as the operands after via."""

KINDS = ("NOTHING", "BITS", "WIDE", "BINARY", "STRUCT", "LIST")
"""Kinds of columns: no buffers, one bit a value, `width` bytes a value, offsets and bytes, children, offsets and a
child."""

COLUMN = (
    *("KIND", "WIDTH", "LENGTH", "CAPACITY", "DATA", "DATA_BYTES", "DATA_CAPACITY", "OFFSETS", "VALIDITY"),
    *("CHILDREN", "CHILD_COUNT"),
)
"""The words of a column. DATA, OFFSETS and VALIDITY are addresses, 0 if there is none. CHILDREN is a place in the list
of operands, with column numbers."""
COLUMN_WORDS = 12

JOB = (
    *("ROWS", "OPERANDS", "CONSTANTS", "COLUMNS", "BYTES", "STARTS", "ENDS", "ROOTS", "ROOT_COLUMN"),
    *("COUNT", "DONE", "ALLOW_TRAILING", "FAULTS", "FAULT_CAPACITY", "FAULT_COUNT", "ROOM_COLUMN", "ROOM_NEEDED"),
    "ROOM_IS_DATA",
)
"""The words of a job. ROOTS: for each input row the first row of its plan, -1 for a null. DONE: input rows that are
finished. FAULTS: a table of (input row, fault, position in the value, row of the plan). ROOM_*: the column that is
full, and how many values or, if it is data, bytes it has to hold."""
STATUSES = ("FINISHED", "NO_ROOM", "TOO_LARGE", "FAULTS_FULL")

FAULTS = (
    *("NONE", "TRUNCATED", "INT_TOO_LONG", "LONG_TOO_LONG", "BAD_BOOLEAN", "NEGATIVE_LENGTH", "LENGTH_TOO_LARGE"),
    *("BAD_UTF8", "BAD_SYMBOL", "NO_SYMBOL", "BAD_BRANCH", "NO_BRANCH", "BAD_DECIMAL", "OUT_OF_RANGE"),
    *("TOO_MANY_ITEMS", "TOO_MANY_EMPTY", "BAD_BLOCK", "TOO_DEEP", "TRAILING", "ROOM", "COLUMN_FULL"),
)

MAX_DEPTH = 640
"""Maximum depth of rows within rows. Only skipped values of recursive types reach it."""

SPARE_ITEMS = 64
"""Items that take no bytes: a value may have as many as it has bytes, and this many more."""

MAX_OFFSET = 2**31 - 1
