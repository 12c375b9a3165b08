"""Wire -> nested columns, by the rows of a plan: every field of many messages into its own array.

Runs twice over the same messages. The first run checks them and counts the rows of every level; the second one fills
arrays that have exactly that many rows. A level is an array of the definition, its elements being its rows; the
messages themselves are level 0. All elements of one array are side by side, in the order of the arrays around them, so
an array needs no more than its count.

Every row of the plan has a row of the projection, PROJECTION bytes with int64 at these offsets, -1 for a field that is
not projected:

    row of the plan          0                                                         8: LEVEL
    FIXED, VARINTS           column of the first value; those of the others follow
    STRING, BYTES            its column
    LIST, VARLIST            its column
    ARRAY                    its column                                                its level
    NULLABLE                 its column

The tables, of int64:

    bounds      [messages, 2]    start of the message in the source, -1 to skip it; BOUND_END: its end
    counters    [3, levels]      rows of each level so far; the same before the message; the maximum
    columns     [columns]        address of the column

The elements of a column:

    numbers                  in the machine's byte order; packed ones (VARINTS) as int64
    STRING, BYTES            two int64: position in the source, and bytes; -1 of these is null
    LIST, VARLIST            two int64: position in the source, and numbers; -1 of these is null
    ARRAY                    one int64: elements, -1 is null
    NULLABLE                 one byte: whether the struct is present

The caller fills what a message may omit (tagged fields, fields of a null struct) with defaults.
"""

from __future__ import annotations

from kwire.plan.kernels.flatten import store_number
from kwire.plan.kernels.lengths import read_packed
from kwire.plan.kernels.operands import FAILED
from kwire.plan.kernels.walk import make_walk, set_slice, width_of
from kwire.plan.rows import STRING
from kwire.wire.kernels.compiler import export, inlined, separate
from kwire.wire.kernels.memory import int64_at, load_byte, load_int64, set_int64, store_byte, store_int64
from kwire.wire.kernels.primitives import apart

LEVEL = 8  # in a row of the projection, after the column
COLUMN, COUNTER = 8, 8  # bytes of a column and of a counter
BOUND, BOUND_END = 16, 8  # bytes of the bounds of a message, and the end in them
HIGH_BITS = -0x7F7F7F7F7F7F7F80  # 0x8080808080808080


@inlined
def put_numbers(codes: int, count: int, projected: int, columns: int, p: int, row: int, filling: int) -> None:
    """Store a run of numbers."""
    if filling and load_int64(projected) >= 0:
        column = columns + COLUMN * load_int64(projected)
        for _ in range(count):
            store_number(codes & 15, p, load_int64(column), row)
            column += COLUMN
            p += width_of(codes & 15)
            codes >>= 4


@separate
def put_packed(codes: int, count: int, projected: int, columns: int, p: int, end: int, row: int, filling: int) -> int:
    """Read a run of packed integers and store them; returns the address after it, 0 on failure."""
    apart()
    column = columns + COLUMN * load_int64(projected) if filling and load_int64(projected) >= 0 else 0
    for _ in range(count):
        v, p = read_packed(codes & 15, p, end)
        if p == 0:
            return 0
        if column:
            set_int64(load_int64(column), row, v)
            column += COLUMN
        codes >>= 4
    return p


@separate
def is_utf8(p: int, n: int) -> bool:
    """Return whether n bytes are UTF-8 as Python reads it: shortest forms, no surrogates, up to U+10FFFF."""
    apart()
    end = p + n
    while p < end:
        if end - p >= 8 and load_int64(p) & HIGH_BITS == 0:
            p += 8
            continue
        lead = load_byte(p)
        p += 1
        if lead < 0x80:
            continue
        low = 0x80
        high = 0xBF
        if 0xC2 <= lead <= 0xDF:
            more = 1
        elif 0xE0 <= lead <= 0xEF:
            more = 2
            if lead == 0xE0:
                low = 0xA0
            elif lead == 0xED:
                high = 0x9F
        elif 0xF0 <= lead <= 0xF4:
            more = 3
            if lead == 0xF0:
                low = 0x90
            elif lead == 0xF4:
                high = 0x8F
        else:
            return False
        if more > end - p:
            return False
        for _ in range(more):
            follower = load_byte(p)
            if follower < low or follower > high:
                return False
            p += 1
            low = 0x80
            high = 0xBF
    return True


@inlined
def put_slice(op: int, n: int, p: int, source: int, projected: int, columns: int, row: int, filling: int) -> bool:
    """Check a string, or store position and count of a string, bytes or list; False when it is not UTF-8."""
    if not filling:
        return op != STRING or n <= 0 or is_utf8(p, n)
    if load_int64(projected) >= 0:
        set_slice(int64_at(columns, load_int64(projected)), row, p - source, n)
    return True


@inlined
def put_presence(projected: int, columns: int, row: int, is_present: bool, filling: int) -> None:
    """Store whether a struct is present."""
    if filling and load_int64(projected) >= 0:
        store_byte(int64_at(columns, load_int64(projected)) + row, 1 if is_present else 0)


@inlined
def enter_array(n: int, projected: int, columns: int, rows: int, room: int, row: int, filling: int) -> tuple[int, int]:
    """Store the count of an array and take n rows of its level; FAILED when the level has no room."""
    level = load_int64(projected + LEVEL)
    if level < 0:
        return row, 0
    if filling:
        set_int64(int64_at(columns, load_int64(projected)), row, n)
    if n <= 0:
        return row, 0
    first = int64_at(rows, level)
    if n > int64_at(room, level) - first:
        return FAILED, 0
    set_int64(rows, level, first + n)
    return first, 1


@inlined
def is_wanted(projected: int) -> bool:
    """Every tagged field is read."""
    return True


nest_one = make_walk(put_numbers, put_packed, put_slice, put_presence, enter_array, is_wanted)


@export
def nest(
    source: int,
    bounds: int,
    count: int,
    plan: int,
    projection: int,
    columns: int,
    levels: int,
    counters: int,
    frames: int,
    filling: int,
) -> int:
    """Read all messages: number i is at [bounds[i, 0], bounds[i, 1]) of source; a negative start skips it.

    filling: 0 in the run that counts, 1 in the one that fills the columns.
    A message that cannot be read adds no rows and is skipped from then on: its start becomes -1.
    Returns the number of such messages.
    """
    before = counters + COUNTER * levels
    room = before + COUNTER * levels
    bad = 0
    for i in range(count):
        bound = bounds + BOUND * i
        start = load_int64(bound)
        if start < 0:
            continue
        for level in range(levels):
            set_int64(before, level, int64_at(counters, level))
        last = source + load_int64(bound + BOUND_END)
        code = nest_one(source + start, last, source, plan, projection, columns, counters, room, frames, i, filling)
        if code != 0:
            for level in range(levels):
                set_int64(counters, level, int64_at(before, level))
            store_int64(bound, -1)
            bad += 1
    return bad
