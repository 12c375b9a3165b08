"""Wire -> nested columns, by the rows of a plan: every field of many messages into its own array.

Runs twice over the same messages. The first run checks them and counts the rows of every level; the second one fills
arrays that have exactly that many rows. A level is an array of the definition, its elements being its rows; the
messages themselves are level 0. All elements of one array are side by side, in the order of the arrays around them, so
an array needs no more than its count.

Beside every row of the plan is a row of the projection, four int64, -1 for a field that is not projected:

    FIXED, VARINTS           the column of the first value; those of the others follow
    STRING, BYTES            its column
    LIST, VARLIST            its column
    ARRAY                    its column           its level
    NULLABLE                 its column

A column is an address:

    numbers                  in the machine's byte order; packed ones (VARINTS) as int64
    STRING, BYTES            two int64: position in the source, and bytes; -1 of these is null
    LIST, VARLIST            two int64: position in the source, and numbers; -1 of these is null
    ARRAY                    one int64: elements, -1 is null
    NULLABLE                 one byte: whether the struct is present

The caller fills what a message may omit (tagged fields, fields of a null struct) with defaults.
"""

from __future__ import annotations

from kwire.plan.kernels.decode import FAILED, read_packed
from kwire.plan.kernels.flatten import store
from kwire.plan.kernels.memory import ld8, ldw, st8, stw
from kwire.plan.kernels.walk import make_walk, width_of
from kwire.plan.rows import STRING
from kwire.wire.kernels.compiler import export, inlined, separate
from kwire.wire.kernels.primitives import apart

LEVEL = 8  # in a row of the projection
HIGH_BITS = -0x7F7F7F7F7F7F7F80  # 0x8080808080808080


@inlined
def put_numbers(codes: int, count: int, projected: int, columns: int, p: int, row: int, filling: int) -> None:
    """Store a run of numbers."""
    if filling and ldw(projected) >= 0:
        column = columns + 8 * ldw(projected)
        for _ in range(count):
            store(codes & 15, p, ldw(column), row)
            column += 8
            p += width_of(codes & 15)
            codes >>= 4


@separate
def put_packed(codes: int, count: int, projected: int, columns: int, p: int, end: int, row: int, filling: int) -> int:
    """Read a run of packed integers and store them; returns the address after it, 0 on failure."""
    apart()
    column = columns + 8 * ldw(projected) if filling and ldw(projected) >= 0 else 0
    for _ in range(count):
        v, p = read_packed(codes & 15, p, end)
        if p == 0:
            return 0
        if column:
            stw(ldw(column) + 8 * row, v)
            column += 8
        codes >>= 4
    return p


@separate
def is_utf8(p: int, n: int) -> bool:
    """Whether n bytes are UTF-8 as Python reads it: shortest forms, no surrogates, up to U+10FFFF."""
    apart()
    end = p + n
    while p < end:
        if end - p >= 8 and ldw(p) & HIGH_BITS == 0:
            p += 8
            continue
        lead = ld8(p)
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
            follower = ld8(p)
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
    if ldw(projected) >= 0:
        slot = ldw(columns + 8 * ldw(projected)) + 16 * row
        stw(slot, p - source)
        stw(slot + 8, n)
    return True


@inlined
def put_presence(projected: int, columns: int, row: int, is_present: bool, filling: int) -> None:
    """Store whether a struct is present."""
    if filling and ldw(projected) >= 0:
        st8(ldw(columns + 8 * ldw(projected)) + row, 1 if is_present else 0)


@inlined
def enter_array(n: int, projected: int, columns: int, rows: int, room: int, row: int, filling: int) -> tuple[int, int]:
    """Store the count of an array and take n rows of its level; FAILED when the level has no room."""
    level = ldw(projected + LEVEL)
    if level < 0:
        return row, 0
    if filling:
        stw(ldw(columns + 8 * ldw(projected)) + 8 * row, n)
    if n <= 0:
        return row, 0
    first = ldw(rows + 8 * level)
    if n > ldw(room + 8 * level) - first:
        return FAILED, 0
    stw(rows + 8 * level, first + n)
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

    counters: three times `levels` int64: the rows of each level so far, the same before the message, the maximum.
    A message that cannot be read adds no rows and is skipped from then on: its start becomes -1.
    Returns the number of such messages.
    """
    before = counters + 8 * levels
    room = before + 8 * levels
    bad = 0
    for i in range(count):
        p = ldw(bounds + 16 * i)
        if p < 0:
            continue
        for level in range(levels):
            stw(before + 8 * level, ldw(counters + 8 * level))
        last = source + ldw(bounds + 16 * i + 8)
        code = nest_one(source + p, last, source, plan, projection, columns, counters, room, frames, i, filling)
        if code != 0:
            for level in range(levels):
                stw(counters + 8 * level, ldw(before + 8 * level))
            stw(bounds + 16 * i, -1)
            bad += 1
    return bad
