"""Wire -> columns, by the rows of a plan: many messages in, arrays of wanted fields out, no Python object per value.

Beside every row of the plan stands a row of wishes, four int64:

    FIXED, VARINTS    mask of the wanted values       first of their columns
    STRING, BYTES     1 if wanted                     its column
    LIST, VARLIST     1 if wanted                     its column
    ARRAY             level, 0 if nothing in it is    -
    NULLABLE          -                               first column below it         column behind the last
    ENTRY             1 if anything in it is

A level is an array on the way to the wanted fields, the messages themselves being level 0. Its elements are the rows
of its columns; `parents` says to which row of the level above each one belongs. Columns are four int64 each:

    values            validity, 0 if always valid     1, 0 for slices               default of a slice: -1 or -2

A column of numbers holds them in the machine's byte order, packed ones (VARINTS) as int64. Strings, bytes and lists are
slices: (position, count), of which `gather` makes Arrow's offsets and data; a count of -1 is null, of -2 the field's
default. Elements of a VARLIST are read twice: walked over here, and decoded by `gather`. Columns that a message may
leave out are filled with their default beforehand.
"""

from __future__ import annotations

from kwire.plan.kernels.decode import FAILED, FULL, ROW, find_entry, read_length, read_packed
from kwire.plan.kernels.memory import (
    apart,
    copy,
    cp64,
    inlined,
    kernel,
    ld8,
    ld8s,
    ld16,
    ld32,
    ld64,
    ldw,
    read_uvarint,
    separate,
    st8,
    stn16,
    stn32,
    stw,
)
from kwire.plan.rows import (
    ARRAY,
    BYTES,
    END,
    FIXED,
    FLOAT64,
    INT16,
    INT32,
    INT64,
    LENGTH,
    LIST,
    MAX_STRING_BYTES,
    MAX_TAG,
    NEXT,
    NULLABLE,
    PACKED16,
    STRING,
    TAG_END,
    TAG_STEP,
    TAGS,
    UINT16,
    UINT32,
    UUID,
    VARINTS,
    VARLIST,
)

WISH, COLUMN, FRAME = 32, 32, 64  # bytes
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
def width_of(code: int) -> int:
    """Bytes of a number on the wire."""
    if code == INT32 or code == UINT32:
        return 4
    if code == INT64 or code == FLOAT64:
        return 8
    if code == INT16 or code == UINT16:
        return 2
    return 16 if code == UUID else 1


@inlined
def store_wanted(codes: int, count: int, mask: int, column: int, p: int, row: int) -> None:
    """The wanted ones of a run of numbers; column: address of the first wanted one's description."""
    for _ in range(count):
        if mask & 1:
            store(codes & 15, p, ldw(column), row)
            column += COLUMN
        p += width_of(codes & 15)
        codes >>= 4
        mask >>= 1


@separate
def store_varints(codes: int, count: int, mask: int, column: int, p: int, end: int, row: int) -> int:
    """Walk a run of packed integers and store the wanted ones, 8 bytes each; the address after them, 0 on failure."""
    apart()
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


@separate
def skip_varints(code: int, n: int, p: int, end: int) -> int:
    """Walk over n packed integers; the address after them, 0 on failure."""
    apart()
    for _ in range(n):
        _, p = read_packed(code, p, end)
        if p == 0:
            return 0
    return p


@inlined
def mark_struct(columns: int, first: int, last: int, row: int, present: bool) -> None:
    """A struct that may be null: its columns are null in this row, or at their defaults until they are read."""
    for c in range(first, last):
        column = columns + COLUMN * c
        if ldw(column + 16) == 0:
            stw(ldw(column) + 16 * row, 0)
            stw(ldw(column) + 16 * row + 8, ldw(column + 24) if present else -1)
        else:
            st8(ldw(column + 8) + row, 1 if present else 0)


@separate
def store_packed(code: int, n: int, p: int, end: int, values: int) -> None:
    """n packed integers as int64; they have been walked over, so that none fails unless the bytes have changed."""
    apart()
    for j in range(n):
        v, p = read_packed(code, p, end)
        if p == 0:
            p = end
        stw(values + 8 * j, v)


@inlined
def enter_level(rows: int, parents: int, level: int, n: int, row: int) -> int:
    """Make room for n rows in a level, all children of `row` above; returns the first, or FULL."""
    first: int = ldw(rows + 8 * level)
    if first + n > ldw(rows + 8 * (MAX_LEVELS + level)):
        return FULL
    parent = ldw(parents + 8 * level)
    for i in range(first, first + n):
        stw(parent + 8 * i, row)
    stw(rows + 8 * level, first + n)
    return first


@inlined
def flatten_one(
    p: int, last: int, source: int, plan: int, wishes: int, columns: int, parents: int, rows: int, frames: int
) -> int:
    """One message between p and last. Returns 0, FAILED, or FULL - level when that level has no room left."""
    end = last
    line = plan
    wish = wishes
    top = frames - FRAME
    row = ldw(rows)
    if row >= ldw(rows + 8 * MAX_LEVELS):
        return FULL
    stw(rows, row + 1)
    while True:
        op = ldw(line)
        a = ldw(line + 8)
        step = 1
        if op == FIXED:
            n = ldw(line + 24)
            if n > end - p:
                return FAILED
            if ldw(wish):
                store_wanted(a, ldw(line + 16), ldw(wish), columns + COLUMN * ldw(wish + 8), p, row)
            p += n
        elif op == STRING or op == BYTES or op == LIST:
            n, p = read_length(op, a, p, end)
            if n == -2:
                return FAILED
            size = n * ldw(line + 24) if op == LIST else n
            if size > end - p or (op == STRING and n > MAX_STRING_BYTES):
                return FAILED
            if ldw(wish):
                slot = ldw(columns + COLUMN * ldw(wish + 8)) + 16 * row
                stw(slot, p - source)
                stw(slot + 8, n)
            if n > 0:
                p += size
        elif op == ARRAY:
            n, p = read_length(op, a, p, end)
            if n == -2 or (n > 0 and n * ldw(line + 24) > end - p):
                return FAILED
            if n <= 0:
                step = ldw(line + 16) - ((line - plan) // ROW)
            else:
                level = ldw(wish)
                top += FRAME
                stw(top, n)
                stw(top + 8, row)
                stw(top + 16, level)
                if level:
                    row = enter_level(rows, parents, level, n, row)
                    if row == FULL:
                        no_room: int = FULL - level
                        return no_room
        elif op == NEXT:
            n = ldw(top) - 1
            if n > 0:
                stw(top, n)
                if ldw(top + 16):
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
                if j < a and ldw(wish + WISH + WISH * j):
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
            mark_struct(columns, ldw(wish + 8), ldw(wish + 16), row, n >= 0)
            if n < 0:
                step = a - ((line - plan) // ROW)
        elif op == VARINTS:
            p = store_varints(a, ldw(line + 16), ldw(wish), columns + COLUMN * ldw(wish + 8), p, end, row)
            if p == 0:
                return FAILED
        elif op == VARLIST:
            n, p = read_length(op, a, p, end)
            if n == -2 or n > end - p:
                return FAILED
            if ldw(wish):
                slot = ldw(columns + COLUMN * ldw(wish + 8)) + 16 * row
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
def flatten_all(
    source: int, starts: int, count: int, plan: int, wishes: int, columns: int, parents: int, rows: int, frames: int
) -> int:
    """All messages: number i lies at [starts[i], starts[i + 1]) of source. Returns 0, or what flatten_one returned.

    rows: rows written of each level, then the room of each; rows[0] is the message that failed, plus 1.
    """
    for i in range(count):
        p = source + ldw(starts + 8 * i)
        last = source + ldw(starts + 8 * i + 8)
        code = flatten_one(p, last, source, plan, wishes, columns, parents, rows, frames)
        if code != 0:
            return code
    return 0


@kernel
def gather_all(
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
