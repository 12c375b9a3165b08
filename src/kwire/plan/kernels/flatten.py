"""Wire -> columns, by the rows of a plan: many messages in, arrays of projected fields out, no object per value.

Every row of the plan has a row of the projection, PROJECTION bytes with int64 at these offsets:

    row of the plan          0                               8: FIRST_COLUMN          16: END_COLUMN
    FIXED, VARINTS           mask of the projected values    first of their columns
    STRING, BYTES            1 if projected                  its column
    LIST, VARLIST            1 if projected                  its column
    ARRAY                    its level, 0 if it has none
    NULLABLE                                                 first column below it    column after the last one
    ENTRY                    1 if anything in it is

A level is an array on the path to the projected fields; the messages themselves are level 0. The elements of the array
are the rows of its columns. The tables, of int64:

    parents    [MAX_LEVELS]       address of an array: for each row of the level, its row in the level above
    rows       [2, MAX_LEVELS]    rows written of each level; room for rows of each level
    columns    [columns, 4]       address of the values
                                  COLUMN_VALIDITY: address of the validity bytes, 0 for a column without nulls
                                  COLUMN_IS_NUMBER: 1 for numbers, 0 for slices
                                  COLUMN_DEFAULT: count of a slice that was not read, -1 or DEFAULT_SLICE

Columns of numbers have the machine's byte order, packed ones (VARINTS) are int64. Strings, bytes and lists are slices:
(position, count), from which `gather` makes Arrow's offsets and data; a count of -1 is null, DEFAULT_SLICE the field's
default. The elements of a VARLIST are read twice: checked here, and decoded by `gather`. The caller fills columns that
a message may omit with their default.
"""

from __future__ import annotations

from kwire.plan.kernels.lengths import read_packed
from kwire.plan.kernels.operands import FULL, UUID_BYTES
from kwire.plan.kernels.walk import SLICE_COUNT, make_walk, set_slice, slice_at, width_of
from kwire.plan.rows import FLOAT64, INT16, INT32, INT64, PACKED16, UINT16, UINT32, UUID
from kwire.wire.kernels.compiler import export, inlined, separate
from kwire.wire.kernels.memory import (
    copy_int64,
    copy_short,
    int64_at,
    load_big_int64,
    load_big_uint16,
    load_big_uint32,
    load_byte,
    load_int64,
    set_int32,
    set_int64,
    store_byte,
    store_int16,
    store_int64,
)
from kwire.wire.kernels.primitives import apart

FIRST_COLUMN, END_COLUMN = 8, 16  # in a row of the projection
COLUMN = 32  # bytes of a column's description
COLUMN_VALIDITY, COLUMN_IS_NUMBER, COLUMN_DEFAULT = 8, 16, 24  # in it, after the address of the values
MAX_LEVELS = 8
DEFAULT_SLICE = -2


@inlined
def column_at(columns: int, i: int) -> int:
    """Return the address of the description of column i."""
    return columns + COLUMN * i


@inlined
def store_number(code: int, p: int, values: int, row: int) -> None:
    """Store a number of the wire as value `row` of a column."""
    if code == INT32 or code == UINT32:
        set_int32(values, row, load_big_uint32(p))
    elif code == INT64 or code == FLOAT64:
        set_int64(values, row, load_big_int64(p))
    elif code == INT16 or code == UINT16:
        store_int16(values + 2 * row, load_big_uint16(p))
    elif code == UUID:
        uuid = values + UUID_BYTES * row
        copy_int64(uuid, p)
        copy_int64(uuid + 8, p + 8)
    else:
        store_byte(values + row, load_byte(p))


@inlined
def put_numbers(codes: int, count: int, projected: int, columns: int, p: int, row: int, filling: int) -> None:
    """Store the projected ones of a run of numbers."""
    mask = load_int64(projected)
    if mask:
        column = column_at(columns, load_int64(projected + FIRST_COLUMN))
        for _ in range(count):
            if mask & 1:
                store_number(codes & 15, p, load_int64(column), row)
                column += COLUMN
            p += width_of(codes & 15)
            codes >>= 4
            mask >>= 1


@separate
def put_packed(codes: int, count: int, projected: int, columns: int, p: int, end: int, row: int, filling: int) -> int:
    """Read a run of packed integers and store the projected ones, 8 bytes each; the address after it, 0 on failure."""
    apart()
    mask = load_int64(projected)
    column = column_at(columns, load_int64(projected + FIRST_COLUMN))
    for _ in range(count):
        v, p = read_packed(codes & 15, p, end)
        if p == 0:
            return 0
        if mask & 1:
            set_int64(load_int64(column), row, v)
            column += COLUMN
        codes >>= 4
        mask >>= 1
    return p


@inlined
def put_slice(op: int, n: int, p: int, source: int, projected: int, columns: int, row: int, filling: int) -> bool:
    """Store position and count of a string, bytes or list."""
    if load_int64(projected):
        column = column_at(columns, load_int64(projected + FIRST_COLUMN))
        set_slice(load_int64(column), row, p - source, n)
    return True


@inlined
def put_presence(projected: int, columns: int, row: int, is_present: bool, filling: int) -> None:
    """Make the columns of a struct null in this row, or set them to their defaults until they are read."""
    for c in range(load_int64(projected + FIRST_COLUMN), load_int64(projected + END_COLUMN)):
        column = column_at(columns, c)
        if load_int64(column + COLUMN_IS_NUMBER) == 0:
            set_slice(load_int64(column), row, 0, load_int64(column + COLUMN_DEFAULT) if is_present else -1)
        else:
            store_byte(load_int64(column + COLUMN_VALIDITY) + row, 1 if is_present else 0)


@inlined
def enter_array(
    n: int, projected: int, columns: int, rows: int, parents: int, row: int, filling: int
) -> tuple[int, int]:
    """Make room for n rows in the array's level, all children of `row`; FULL - level when there is none."""
    level = load_int64(projected)
    if level == 0 or n <= 0:
        return row, 0
    first = int64_at(rows, level)
    if first + n > int64_at(rows, MAX_LEVELS + level):
        return FULL - level, 0
    parent = int64_at(parents, level)
    for i in range(first, first + n):
        set_int64(parent, i, row)
    set_int64(rows, level, first + n)
    return first, 1


@inlined
def is_wanted(projected: int) -> bool:
    """Whether anything in a tagged field is projected."""
    wanted: bool = load_int64(projected) != 0
    return wanted


flatten_one = make_walk(put_numbers, put_packed, put_slice, put_presence, enter_array, is_wanted)


@separate
def store_packed(code: int, n: int, p: int, end: int, values: int) -> None:
    """Store n packed integers as int64. The walk has checked them: none fails unless the bytes have changed since."""
    apart()
    for j in range(n):
        v, p = read_packed(code, p, end)
        if p == 0:
            p = end
        set_int64(values, j, v)


@export
def flatten(
    source: int, starts: int, count: int, plan: int, projection: int, columns: int, parents: int, rows: int, frames: int
) -> int:
    """Read all messages: number i is at [starts[i], starts[i + 1]) of source.

    rows: rows written of each level, then the room of each; rows[0] is the message that failed, plus 1.
    Returns 0, FAILED, or FULL - level when that level has no room left.
    """
    for i in range(count):
        row = load_int64(rows)
        if row >= int64_at(rows, MAX_LEVELS):
            return FULL
        store_int64(rows, row + 1)
        p = source + int64_at(starts, i)
        last = source + int64_at(starts, i + 1)
        code = flatten_one(p, last, source, plan, projection, columns, rows, parents, frames, row, 1)
        if code != 0:
            return code
    return 0


@export
def gather(
    source: int, source_size: int, slices: int, count: int, offsets: int, data: int, code: int, default: int, size: int
) -> int:
    """Gather slices into Arrow's int32 offsets and data; returns the number of bytes, or of numbers, in the data.

    source_size: bytes of the source, past which no packed number is read.
    code: 0 for bytes, else that of the numbers, which are stored in the machine's byte order, packed ones as int64.
    data: has room for all of them.
    default, size: address and count of the value that DEFAULT_SLICE stands for.
    """
    o = 0
    for i in range(count):
        set_int32(offsets, i, o)
        slot = slice_at(slices, i)
        p = source + load_int64(slot)
        n = load_int64(slot + SLICE_COUNT)
        if n == DEFAULT_SLICE:
            p = default
            n = size
        if n > 0:
            if code == 0:
                copy_short(data + o, p, n)
            elif code >= PACKED16:
                store_packed(code, n, p, source + source_size, data + 8 * o)
            elif code == INT32:
                for j in range(n):
                    set_int32(data, o + j, load_big_uint32(p + 4 * j))
            else:
                for j in range(n):
                    store_number(code, p + j * width_of(code), data, o + j)
            o += n
    set_int32(offsets, count, o)
    return o
