"""The rows of plans that decode values of Avro into Arrow columns and encode them, and the layout of those columns.

A plan is a list of rows of eight int64: the operation, the column, and six operands. The kernel
`native/avro_reading.c` and `kwire.schemas.avro.reading` in plain Python follow the same rows.

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

Encoding has rows of its own, run by `native/avro_writing.c` and `kwire.schemas.avro.writing`. Their source is an array
of the type that decoding makes:

    operation      source  a         b          c          d         what is written
    WRITE_NULL                                                       nothing
    WRITE_BOOLEAN  yes                                               one byte
    WRITE_INT      yes                                               a varint of 4 bytes
    WRITE_LONG     yes     divisor                                   a varint of 8 bytes divided by this, rounded down
    WRITE_PLAIN    yes     size                                      float or double
    WRITE_BYTES    yes                                               length and bytes
    WRITE_FIXED    yes     size                                      bytes, which must be as many
    WRITE_ENUM     yes     table     count                           index of a symbol: (offset, size) in the constants
    WRITE_DECIMAL  yes     size      width                           big-endian number; size -1: length and bytes
    WRITE_RECORD   yes     steps     count                           fields
    WRITE_ARRAY    yes     item                                      one block of items
    WRITE_MAP      yes     value     key                             one block of keys and values
    WRITE_NULLABLE yes     value     null       index                index of a branch, and the value if it is not null
    WRITE_MEMBERS  yes     table     count      null                 the one member that is not null: (index, row)
    WRITE_BRANCH           value                index                index of a branch, and the value
    WRITE_CONSTANT         offset    size                            a default: bytes among the constants

null           the index of null in the union; -1 if it has none

It is part of `kwire.wire` because the build of the kernels imports it, without pyarrow.
"""

from __future__ import annotations

__all__ = [
    "COLUMN",
    "COLUMN_WORDS",
    "JOB",
    "KINDS",
    "LEFT",
    "MAX_DEPTH",
    "MAX_OFFSET",
    "NO_COLUMN",
    "NUMBERS",
    "OPERATIONS",
    "ROW_IS_LEFT",
    "ROW_WORDS",
    "SOURCE",
    "SPARE_ITEMS",
    "STATUSES",
    "WRITE_JOB",
    "WRITE_OPERATIONS",
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
    *("CHILDREN", "CHILD_COUNT", "SECONDS", "NANOS"),
)
"""The words of a column. DATA, OFFSETS and VALIDITY are addresses, 0 if there is none. CHILDREN is a place in the list
of operands, with column numbers. SECONDS, NANOS: of the value of Protobuf that is being read."""
COLUMN_WORDS = 14

JOB = (
    *("ROWS", "OPERANDS", "CONSTANTS", "COLUMNS", "BYTES", "STARTS", "ENDS", "ROOTS", "ROOT_COLUMN"),
    *("COUNT", "DONE", "ALLOW_TRAILING", "LEFT_COUNT", "ROOM_COLUMN", "ROOM_NEEDED", "ROOM_IS_DATA"),
    *("SCRATCH", "SCRATCH_CAPACITY"),
)
"""The words of a job. ROOTS: for each input row the first row of its plan, -1 for a null; the kernel sets it to LEFT
where it leaves the row. DONE: input rows that are finished. LEFT_COUNT: rows that were left. ROOM_*: the column that is
full, and how many values or, if it is data, bytes it has to hold. SCRATCH: memory of int32 for what a kernel has to
remember of one row; ROOM_COLUMN is NO_COLUMN if it is too small."""
NO_COLUMN = -1
LEFT = -2
"""A row that is null in the columns: plain Python reads it, or says what is wrong with it."""
STATUSES = ("FINISHED", "NO_ROOM", "TOO_LARGE")

MAX_DEPTH = 640
"""Maximum depth of rows within rows. Only skipped values of recursive types reach it."""

SPARE_ITEMS = 64
"""Items that take no bytes: a value may have as many as it has bytes, and this many more."""

MAX_OFFSET = 2**31 - 1

WRITE_OPERATIONS = (
    *("WRITE_NULL", "WRITE_BOOLEAN", "WRITE_INT", "WRITE_LONG", "WRITE_PLAIN", "WRITE_BYTES", "WRITE_FIXED"),
    *("WRITE_ENUM", "WRITE_DECIMAL", "WRITE_RECORD", "WRITE_ARRAY", "WRITE_MAP", "WRITE_NULLABLE", "WRITE_MEMBERS"),
    *("WRITE_BRANCH", "WRITE_CONSTANT"),
)

SOURCE = ("SOURCE_VALIDITY", "SOURCE_FIRST", "SOURCE_DATA", "SOURCE_OFFSETS")
"""The words of an array that is written: address of its validity, 0 if nothing is null; index of the first value in the
bitmaps; addresses of data (of bitmaps: the first byte, else the first value) and of offsets."""

WRITE_JOB = (
    *("WRITE_JOB_ROWS", "WRITE_JOB_OPERANDS", "WRITE_JOB_CONSTANTS", "WRITE_JOB_SOURCES", "WRITE_JOB_ROOT"),
    *("WRITE_JOB_COUNT", "WRITE_JOB_DONE", "WRITE_JOB_NULLS", "WRITE_JOB_OUT", "WRITE_JOB_CAPACITY", "WRITE_JOB_USED"),
    *("WRITE_JOB_ENDS", "WRITE_JOB_PREFIX", "WRITE_JOB_PREFIX_SIZE"),
)
"""The words of a job that encodes. NULLS: one byte for each row, 1 if it is null; the kernel sets it to ROW_IS_LEFT
where it leaves the row to plain Python. ENDS: int32 offsets of the values. PREFIX: bytes before each value."""
ROW_IS_LEFT = 2
