"""Wire -> nested columns, by the rows of a plan: every field of many messages into an array of its own.

Run twice over the same messages. The first run checks them and counts the rows of every level; the second one fills
arrays that have exactly that many rows. A level is an array of the definition, its elements being its rows; the
messages themselves are level 0. All elements of one array lie side by side, in the order of the arrays around them, so
an array needs no more than its count.

Beside every row of the plan stands a row of wishes, four int64; -1 where nobody wants the field:

    FIXED, VARINTS           the column of the first value; those of the others follow
    STRING, BYTES            its column
    LIST, VARLIST            its column
    ARRAY                    its column           its level
    NULLABLE                 its column

A column is an address:

    numbers                  in the machine's byte order; packed ones (VARINTS) as int64
    STRING, BYTES            two int64: position in the source, and bytes; -1 of these is null
    LIST, VARLIST            the same with numbers for bytes
    ARRAY                    one int64: elements, -1 is null
    NULLABLE                 one byte: whether the struct is there

What a message may leave out (tagged fields, fields of a struct that is null) is filled with defaults beforehand.
"""

from __future__ import annotations

from kwire.plan.kernels.decode import FAILED, ROW, find_entry, read_length, read_packed
from kwire.plan.kernels.flatten import skip_varints, store, width_of
from kwire.plan.kernels.memory import (
    apart,
    inlined,
    kernel,
    ld8,
    ld8s,
    ld32,
    ldw,
    read_uvarint,
    separate,
    st8,
    stw,
)
from kwire.plan.rows import (
    ARRAY,
    BYTES,
    END,
    FIXED,
    LENGTH,
    LIST,
    MAX_STRING_BYTES,
    MAX_TAG,
    NEXT,
    NULLABLE,
    STRING,
    TAG_END,
    TAG_STEP,
    TAGS,
    VARINTS,
    VARLIST,
)

WISH, FRAME = 32, 64  # bytes
HIGH_BITS = -0x7F7F7F7F7F7F7F80  # 0x8080808080808080


@inlined
def store_numbers(codes: int, count: int, column: int, p: int, row: int) -> None:
    """A run of numbers; column: where the address of the first one's column is."""
    for _ in range(count):
        store(codes & 15, p, ldw(column), row)
        column += 8
        p += width_of(codes & 15)
        codes >>= 4


@separate
def nest_varints(codes: int, count: int, column: int, p: int, end: int, row: int) -> int:
    """Walk a run of packed integers and store them unless column is 0; the address after them, 0 on failure."""
    apart()
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
def nest_one(
    p: int,
    last: int,
    source: int,
    plan: int,
    wishes: int,
    columns: int,
    rows: int,
    room: int,
    frames: int,
    row: int,
    filling: int,
) -> int:
    """One message between p and last, which is row `row` of level 0. Returns 0 or FAILED."""
    end = last
    line = plan
    wish = wishes
    top = frames - FRAME
    while True:
        op = ldw(line)
        a = ldw(line + 8)
        step = 1
        if op == FIXED:
            n = ldw(line + 24)
            if n > end - p:
                return FAILED
            if filling and ldw(wish) >= 0:
                store_numbers(a, ldw(line + 16), columns + 8 * ldw(wish), p, row)
            p += n
        elif op == STRING or op == BYTES or op == LIST:
            n, p = read_length(op, a, p, end)
            if n == -2:
                return FAILED
            size = n * ldw(line + 24) if op == LIST else n
            if size > end - p or (op == STRING and n > MAX_STRING_BYTES):
                return FAILED
            if filling:
                if ldw(wish) >= 0:
                    slot = ldw(columns + 8 * ldw(wish)) + 16 * row
                    stw(slot, p - source)
                    stw(slot + 8, n)
            elif op == STRING and n > 0 and not is_utf8(p, n):
                return FAILED
            if n > 0:
                p += size
        elif op == ARRAY:
            n, p = read_length(op, a, p, end)
            if n == -2 or (n > 0 and n * ldw(line + 24) > end - p):
                return FAILED
            level = ldw(wish + 8)
            if filling and level >= 0:
                stw(ldw(columns + 8 * ldw(wish)) + 8 * row, n)
            if n <= 0:
                step = ldw(line + 16) - ((line - plan) // ROW)
            else:
                top += FRAME
                stw(top, n)
                stw(top + 8, row)
                stw(top + 16, level)
                if level >= 0:
                    row = ldw(rows + 8 * level)
                    if n > ldw(room + 8 * level) - row:
                        return FAILED
                    stw(rows + 8 * level, row + n)
        elif op == NEXT:
            n = ldw(top) - 1
            if n > 0:
                stw(top, n)
                if ldw(top + 16) >= 0:
                    row += 1
                step = a - ((line - plan) // ROW)
            else:
                row = ldw(top + 8)
                top -= FRAME
        elif op == TAGS:
            n, p = read_uvarint(p, end)
            if p == 0 or 2 * n > end - p:
                return FAILED
            if n == 0:
                step = ldw(line + 16) - ((line - plan) // ROW)
            else:
                top += FRAME
                stw(top, n)
                stw(top + 8, -1)
                stw(top + 16, end)
        elif op == TAG_STEP:
            if ldw(top) == 0:
                top -= FRAME
                step = ldw(line + 16) - ((line - plan) // ROW)
            else:
                tag, p = read_uvarint(p, end)
                if p == 0 or tag <= ldw(top + 8) or tag > MAX_TAG:
                    return FAILED
                n, p = read_uvarint(p, end)
                if p == 0 or n > end - p:
                    return FAILED
                j = find_entry(line + ROW, a, 0, tag)
                if j < 0:
                    return FAILED
                stw(top, ldw(top) - 1)
                stw(top + 8, tag)
                if j < a:
                    end = p + n
                    step = ldw(line + ROW + ROW * j + 24) - ((line - plan) // ROW)
                else:
                    p += n
                    step = 0
        elif op == TAG_END:
            if p != end:
                return FAILED
            end = ldw(top + 16)
            step = a - ((line - plan) // ROW)
        elif op == NULLABLE:
            if ldw(line + 16):
                n, p = read_uvarint(p, end)
                if p == 0:
                    return FAILED
                n -= 1
            else:
                if p >= end:
                    return FAILED
                n = ld8s(p)
                p += 1
            if filling and ldw(wish) >= 0:
                st8(ldw(columns + 8 * ldw(wish)) + row, 1 if n >= 0 else 0)
            if n < 0:
                step = a - ((line - plan) // ROW)
        elif op == VARINTS:
            column = columns + 8 * ldw(wish) if filling and ldw(wish) >= 0 else 0
            p = nest_varints(a, ldw(line + 16), column, p, end, row)
            if p == 0:
                return FAILED
        elif op == VARLIST:
            n, p = read_length(op, a, p, end)
            if n == -2 or n > end - p:
                return FAILED
            if filling and ldw(wish) >= 0:
                slot = ldw(columns + 8 * ldw(wish)) + 16 * row
                stw(slot, p - source)
                stw(slot + 8, n)
            if n > 0:
                p = skip_varints(ldw(line + 16), n, p, end)
                if p == 0:
                    return FAILED
        elif op == LENGTH:
            if end - p < 4 or ld32(p) != end - p - 4:
                return FAILED
            p += 4
        elif op == END:
            return 0 if p == last else FAILED
        line += ROW * step
        wish += WISH * step


@kernel
def nest_all(
    source: int,
    bounds: int,
    count: int,
    plan: int,
    wishes: int,
    columns: int,
    levels: int,
    counters: int,
    frames: int,
    filling: int,
) -> int:
    """All messages: number i lies at [bounds[i, 0], bounds[i, 1]) of source, or is left out if that starts below 0.

    counters: `levels` int64 each: rows of a level so far, what they were before the message, the most there may be.
    A message that cannot be read counts no rows, and is left out from then on: its start becomes -1.
    Returns how many of these there were.
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
        code = nest_one(source + p, last, source, plan, wishes, columns, counters, room, frames, i, filling)
        if code != 0:
            for level in range(levels):
                stw(counters + 8 * level, ldw(before + 8 * level))
            stw(bounds + 16 * i, -1)
            bad += 1
    return bad
