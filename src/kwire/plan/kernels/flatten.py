"""Wire -> columns, by the rows of a plan: many messages in, arrays of projected fields out, no object per value.

Beside every row of the plan is a row of the projection, four int64:

    FIXED, VARINTS    mask of the projected values    first of their columns
    STRING, BYTES     1 if projected                  its column
    LIST, VARLIST     1 if projected                  its column
    ARRAY             its level, 0 if it has none     -
    NULLABLE          -                               first column below it         column after the last one
    ENTRY             1 if anything in it is

A level is an array on the path to the projected fields; the messages themselves are level 0. The elements of the array
are the rows of its columns, and `parents` maps each of them to its row in the level above. Columns are four int64 each:

    values            validity, 0 if always valid     1, 0 for slices               default of a slice: -1 or -2

Columns of numbers have the machine's byte order, packed ones (VARINTS) are int64. Strings, bytes and lists are slices:
(position, count), from which `gather` makes Arrow's offsets and data; a count of -1 is null, of -2 the field's
default. The elements of a VARLIST are read twice: checked here, and decoded by `gather`. The caller fills columns that
a message may omit with their default.
"""

from __future__ import annotations

from kwire.plan.kernels.decode import FULL, read_packed
from kwire.plan.kernels.memory import copy, cp64, ld8, ld16, ld32, ld64, ldw, st8, stn16, stn32, stw
from kwire.plan.kernels.walk import make_walk, width_of
from kwire.plan.rows import FLOAT64, INT16, INT32, INT64, PACKED16, UINT16, UINT32, UUID
from kwire.wire.kernels.compiler import export, inlined, separate
from kwire.wire.kernels.primitives import apart

COLUMN = 32  # bytes of a column's description
COLUMN_VALIDITY, COLUMN_IS_NUMBER, COLUMN_DEFAULT = 8, 16, 24  # in it, after the address of the values
FIRST_COLUMN, END_COLUMN = 8, 16  # in a row of the projection
MAX_LEVELS = 8
DEFAULT_SLICE = -2


@inlined
def store(code: int, p: int, values: int, row: int) -> None:
    """One number of the wire into a column."""
    if code == INT32 or code == UINT32:
        stn32(values + 4 * row, ld32(p))
    elif code == INT64 or code == FLOAT64:
        stw(values + 8 * row, ld64(p))
    elif code == INT16 or code == UINT16:
        stn16(values + 2 * row, ld16(p))
    elif code == UUID:
        cp64(values + 16 * row, p)
        cp64(values + 16 * row + 8, p + 8)
    else:
        st8(values + row, ld8(p))


@inlined
def put_numbers(codes: int, count: int, projected: int, columns: int, p: int, row: int, filling: int) -> None:
    """Store the projected ones of a run of numbers."""
    mask = ldw(projected)
    if mask:
        column = columns + COLUMN * ldw(projected + FIRST_COLUMN)
        for _ in range(count):
            if mask & 1:
                store(codes & 15, p, ldw(column), row)
                column += COLUMN
            p += width_of(codes & 15)
            codes >>= 4
            mask >>= 1


@separate
def put_packed(codes: int, count: int, projected: int, columns: int, p: int, end: int, row: int, filling: int) -> int:
    """Read a run of packed integers and store the projected ones, 8 bytes each; the address after it, 0 on failure."""
    apart()
    mask = ldw(projected)
    column = columns + COLUMN * ldw(projected + FIRST_COLUMN)
    for _ in range(count):
        v, p = read_packed(codes & 15, p, end)
        if p == 0:
            return 0
        if mask & 1:
            stw(ldw(column) + 8 * row, v)
            column += COLUMN
        codes >>= 4
        mask >>= 1
    return p


@inlined
def put_slice(op: int, n: int, p: int, source: int, projected: int, columns: int, row: int, filling: int) -> bool:
    """Store position and count of a string, bytes or list."""
    if ldw(projected):
        slot = ldw(columns + COLUMN * ldw(projected + FIRST_COLUMN)) + 16 * row
        stw(slot, p - source)
        stw(slot + 8, n)
    return True


@inlined
def put_presence(projected: int, columns: int, row: int, is_present: bool, filling: int) -> None:
    """Make the columns of a struct null in this row, or set them to their defaults until they are read."""
    for c in range(ldw(projected + FIRST_COLUMN), ldw(projected + END_COLUMN)):
        column = columns + COLUMN * c
        if ldw(column + COLUMN_IS_NUMBER) == 0:
            stw(ldw(column) + 16 * row, 0)
            stw(ldw(column) + 16 * row + 8, ldw(column + COLUMN_DEFAULT) if is_present else -1)
        else:
            st8(ldw(column + COLUMN_VALIDITY) + row, 1 if is_present else 0)


@inlined
def enter_array(
    n: int, projected: int, columns: int, rows: int, parents: int, row: int, filling: int
) -> tuple[int, int]:
    """Make room for n rows in the array's level, all children of `row`; FULL - level when there is none."""
    level = ldw(projected)
    if level == 0 or n <= 0:
        return row, 0
    first = ldw(rows + 8 * level)
    if first + n > ldw(rows + 8 * (MAX_LEVELS + level)):
        return FULL - level, 0
    parent = ldw(parents + 8 * level)
    for i in range(first, first + n):
        stw(parent + 8 * i, row)
    stw(rows + 8 * level, first + n)
    return first, 1


@inlined
def is_wanted(projected: int) -> bool:
    """Whether anything in a tagged field is projected."""
    wanted: bool = ldw(projected) != 0
    return wanted


flatten_one = make_walk(put_numbers, put_packed, put_slice, put_presence, enter_array, is_wanted)


@separate
def store_packed(code: int, n: int, p: int, end: int, values: int) -> None:
    """n packed integers as int64; they have been walked over, so that none fails unless the bytes have changed."""
    apart()
    for j in range(n):
        v, p = read_packed(code, p, end)
        if p == 0:
            p = end
        stw(values + 8 * j, v)


@export
def flatten(
    source: int, starts: int, count: int, plan: int, projection: int, columns: int, parents: int, rows: int, frames: int
) -> int:
    """Read all messages: number i is at [starts[i], starts[i + 1]) of source.

    rows: rows written of each level, then the room of each; rows[0] is the message that failed, plus 1.
    Returns 0, FAILED, or FULL - level when that level has no room left.
    """
    for i in range(count):
        row = ldw(rows)
        if row >= ldw(rows + 8 * MAX_LEVELS):
            return FULL
        stw(rows, row + 1)
        p = source + ldw(starts + 8 * i)
        last = source + ldw(starts + 8 * i + 8)
        code = flatten_one(p, last, source, plan, projection, columns, rows, parents, frames, row, 1)
        if code != 0:
            return code
    return 0


@export
def gather(
    source: int, source_size: int, slices: int, count: int, offsets: int, data: int, code: int, default: int, size: int
) -> int:
    """Slices into Arrow's int32 offsets and data; returns how many bytes, or numbers, the data has.

    source_size: bytes of the source, past which no packed number is read.
    code: 0 for bytes, else that of the numbers, which turn into the machine's order; packed ones become int64.
    data: room for all of them.
    default, size: what a slice of DEFAULT_SLICE stands for.
    """
    o = 0
    for i in range(count):
        stn32(offsets + 4 * i, o)
        p = source + ldw(slices + 16 * i)
        n = ldw(slices + 16 * i + 8)
        if n == DEFAULT_SLICE:
            p = default
            n = size
        if n > 0:
            if code == 0:
                copy(data + o, p, n)
            elif code >= PACKED16:
                store_packed(code, n, p, source + source_size, data + 8 * o)
            elif code == INT32:
                for j in range(n):
                    stn32(data + 4 * (o + j), ld32(p + 4 * j))
            else:
                for j in range(n):
                    store(code, p + j * width_of(code), data, o + j)
            o += n
    stn32(offsets + 4 * count, o)
    return o
