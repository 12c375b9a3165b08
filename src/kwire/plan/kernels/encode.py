"""MessagePack -> wire, by the rows of a plan.

The input is what msgspec makes of a message object: well-formed, ints in their shortest form, every struct an array
in class order. What msgspec does not check is checked here: the type and range of every value, nulls, the number of
values of a struct.

A value is the default if its MessagePack is the default's, byte for byte: so a section in which nothing is set costs
one comparison, and so does a run of fields that this version lacks. Floats are the exception (W-21).

The size of a tagged value is known only after the value. One byte is reserved; if it needs more, the value moves.

    frame of an array           left
    frame of a tag section      next entry, unknown ones left, next unknown one, where the size of the open field goes
    frame of a MARK             address of the header, where to go BACK to
"""

from __future__ import annotations

from kwire.plan.kernels.decode import FAILED, FULL
from kwire.plan.kernels.memory import (
    copy,
    cp64,
    ld8,
    ld64,
    ldw,
    read_array_header,
    read_bytes_header,
    read_int,
    read_text_header,
    same,
    skip,
    st8,
    st16,
    st32,
    st64,
    stw,
    token,
    write_uvarint,
    write_uvarlong,
)
from kwire.plan.kernels.operands import (
    ABSENT_FLOATS,
    ABSENT_IGNORABLE,
    ABSENT_LENGTH,
    ABSENT_RUN_BYTES,
    ABSENT_RUN_ROWS,
    ARRAY_END,
    ELEMENTS_LEFT,
    ENTRY_FLOATS,
    ENTRY_IGNORABLE,
    ENTRY_LENGTH,
    ENTRY_OFFSET,
    ENTRY_STATE,
    ENTRY_SUB,
    ENTRY_TAG,
    FIRST,
    FIXED_COUNT,
    FRAME,
    LIST_CODE,
    LIST_WIDTH,
    NULLABLE_TAGGED,
    ROW,
    STEP_END,
    TAGS_END,
    TAGS_FLOATS,
    TAGS_LENGTH,
    TAGS_OFFSET,
)
from kwire.plan.rows import (
    ABSENT,
    ARRAY,
    BACK,
    BOOL,
    BYTES,
    COMPACT,
    ELSEWHERE,
    END,
    FIXED,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    LACKING,
    LENGTH,
    LIST,
    LIVE,
    MARK,
    MAX_STRING_BYTES,
    MAX_TAG,
    MAY_BE_NULL,
    NEXT,
    NULLABLE,
    PACKED16,
    PACKED32,
    PACKED64,
    PERMUTE,
    SEEK,
    SKIP,
    STRING,
    STRUCT,
    TAG_END,
    TAG_STEP,
    TAGS,
    UINT16,
    UPACKED32,
    UPACKED64,
    UUID,
    VARINTS,
    VARLIST,
)
from kwire.wire.kernels.compiler import export, inlined, kernel, separate
from kwire.wire.kernels.primitives import apart, double_bits, equal_doubles, move

SLACK = 320  # room that every step may use without asking: a FIXED row of 15 uuids takes 240
NULL = 0xC0
NO_TAG = MAX_TAG + 1

NEXT_ENTRY, UNKNOWN_LEFT, NEXT_UNKNOWN, SIZE_ADDRESS = range(0, 32, 8)  # in the frame of a tag section
MARK_HEADER, MARK_RETURN = 0, 8  # in the frame of a MARK


@inlined
def take_fixed(code: int, p: int, o: int) -> tuple[int, int]:
    """One value of fixed width; returns the addresses after it on both sides, the second 0 if it does not fit."""
    if code == BOOL:
        if ld8(p) & 0xFE != 0xC2:
            return p, 0
        st8(o, ld8(p) & 1)
        return p + 1, o + 1
    if code == FLOAT64 and ld8(p) == 0xCB:
        cp64(o, p + 1)
        return p + 9, o + 8
    if code == UUID:
        if ld8(p) != 0xC4 or ld8(p + 1) != 16:
            return p, 0
        cp64(o, p + 2)
        cp64(o + 8, p + 10)
        return p + 18, o + 16
    v, q = read_int(p)
    if q == 0:
        return p, 0
    if code == INT32:
        st32(o, v)
        return q, o + 4 if -0x80000000 <= v <= 0x7FFFFFFF else 0
    if code == INT16:
        st16(o, v)
        return q, o + 2 if -0x8000 <= v <= 0x7FFF else 0
    if code == INT64:
        st64(o, v)
        return q, o + 8
    if code == INT8:
        st8(o, v)
        return q, o + 1 if -0x80 <= v <= 0x7F else 0
    if code == UINT16:
        st16(o, v)
        return q, o + 2 if 0 <= v <= 0xFFFF else 0
    if code == FLOAT64:
        st64(o, double_bits(v))
        return q, o + 8
    st32(o, v)  # uint32
    return q, o + 4 if 0 <= v <= 0xFFFFFFFF else 0


@inlined
def take_packed(code: int, p: int, o: int) -> tuple[int, int]:
    """An integer as KIP-625 packs it; returns the addresses after it on both sides, the second 0 if it does not fit."""
    v, q = read_int(p)
    if q == 0:
        return p, 0
    if code == PACKED64:
        return q, write_uvarlong(o, v << 1 ^ v >> 63)
    if code == UPACKED64:
        return q, write_uvarlong(o, v)
    if code == PACKED32:
        return q, write_uvarlong(o, v << 1 ^ v >> 63) if -0x8000_0000 <= v <= 0x7FFF_FFFF else 0
    if code == UPACKED32:
        return q, write_uvarlong(o, v & 0xFFFF_FFFF) if -0x8000_0000 <= v <= 0x7FFF_FFFF else 0
    if v < -0x8000 or v > 0x7FFF:
        return q, 0
    return q, write_uvarlong(o, v << 1 ^ v >> 63) if code == PACKED16 else write_uvarlong(o, v & 0xFFFF)


@separate
def take_packed_run(codes: int, count: int, p: int, o: int) -> tuple[int, int]:
    """A run of packed integers; returns the addresses after it on both sides, the second 0 if one does not fit."""
    apart()
    for _ in range(count):
        p, o = take_packed(codes & 15, p, o)
        if o == 0:
            return p, 0
        codes >>= 4
    return p, o


@inlined
def write_length(op: int, flags: int, n: int, o: int) -> int:
    """The length or count n, -1 for null; address after it."""
    if flags & COMPACT:
        return write_uvarint(o, n + 1)
    if op == STRING:
        st16(o, n)
        return o + 2
    st32(o, n)
    return o + 4


@separate
def take_packed_list(flags: int, code: int, p: int, o: int, limit: int) -> tuple[int, int]:
    """An array of packed integers; returns the addresses after it on both sides: the second 0 on failure, or FULL."""
    apart()
    if ld8(p) == NULL:
        return (p + 1, write_length(LIST, flags, -1, o)) if flags & MAY_BE_NULL else (p, 0)
    n, p = read_array_header(p)
    if n < 0:
        return p, 0
    o = write_length(LIST, flags, n, o)
    for _ in range(n):
        p, o = take_packed(code, p, o)
        if o == 0:
            return p, 0
        if o > limit:
            return p, FULL
    return p, o


@kernel
def number_bits(p: int) -> int:
    """The bits of the double that a float or integer at p stands for; of NaN, which equals nothing, for all else."""
    if ld8(p) == 0xCB:
        bits: int = ld64(p + 1)
        return bits
    v, q = read_int(p)
    bits = double_bits(v)
    return bits if q else 0x7FF8000000000000


@kernel
def equal_with_floats(p: int, end: int, q: int, n: int) -> bool:
    """Whether the value at p equals the constant of n bytes at q, floats by value: 0 is 0.0 is -0.0, NaN is nothing."""
    last = q + n
    while q < last:
        if p >= end:
            return False
        q2, _ = token(q)
        p2, _ = token(p)
        if ld8(q) == 0xCB:
            if not equal_doubles(number_bits(p), ld64(q + 1)):
                return False
        elif p2 - p != q2 - q or not same(p, q, q2 - q):
            return False
        p, q = p2, q2
    return True


@inlined
def is_default(p: int, end: int, constant: int, n: int, floats: int) -> bool:
    """Whether the value at p (or the run of values) is the constant of n bytes."""
    if floats:
        return equal_with_floats(p, end, constant, n)
    return n <= end - p and same(p, constant, n)


@kernel
def count_tagged(p: int, end: int, pool: int, entries: int, count: int) -> tuple[int, int, int]:
    """How many known fields a section gets, how many unknown ones, and the address of the first of those.

    The number of known ones is FAILED when a field that this version lacks is set (W-31), and when the unknown ones
    are not what they have to be: pairs of a tag that no entry has (T-12), ascending (W-24), and bytes.
    """
    known = 0
    for j in range(count):
        entry = entries + ROW * j
        state = ldw(entry + ENTRY_STATE)
        if state != ELSEWHERE and not is_default(
            p, end, pool + ldw(entry + ENTRY_OFFSET), ldw(entry + ENTRY_LENGTH), ldw(entry + ENTRY_FLOATS)
        ):
            if state == LIVE:
                known += 1
            elif ldw(entry + ENTRY_IGNORABLE) == 0:
                return FAILED, 0, 0
        p = skip(p)
    unknown, first = read_array_header(p)
    if unknown < 0:
        return FAILED, 0, 0
    p = first
    previous = -1
    for _ in range(unknown):
        pair, p = read_array_header(p)
        if pair != 2:
            return FAILED, 0, 0
        tag, p = read_int(p)
        if p == 0 or tag <= previous or tag > MAX_TAG:
            return FAILED, 0, 0
        for j in range(count):
            if ldw(entries + ROW * j + ENTRY_TAG) == tag:
                return FAILED, 0, 0
        n, p = read_bytes_header(p)
        if n < 0:
            return FAILED, 0, 0
        p += n
        previous = tag
    return known, unknown, first


@kernel
def next_set(p: int, end: int, pool: int, entries: int, count: int, j: int) -> tuple[int, int]:
    """(entry, address of its value): the first live entry from j on that is not at its default; p: value of j."""
    while j < count:
        entry = entries + ROW * j
        if ldw(entry + ENTRY_STATE) == LIVE and not is_default(
            p, end, pool + ldw(entry + ENTRY_OFFSET), ldw(entry + ENTRY_LENGTH), ldw(entry + ENTRY_FLOATS)
        ):
            break
        p = skip(p)
        j += 1
    return j, p


@kernel
def put_unknown_below(top: int, tag: int, o: int, limit: int) -> int:
    """The unknown fields with tags below `tag`, already checked; address after them, or FULL."""
    left = ldw(top + UNKNOWN_LEFT)
    p = ldw(top + NEXT_UNKNOWN)
    while left > 0:
        _, q = read_array_header(p)
        unknown, q = read_int(q)
        if unknown > tag:
            break
        n, q = read_bytes_header(q)
        if o + n > limit:
            return FULL
        o = write_uvarint(o, unknown)
        o = write_uvarint(o, n)
        copy(o, q, n)
        o += n
        p = q + n
        left -= 1
    stw(top + UNKNOWN_LEFT, left)
    stw(top + NEXT_UNKNOWN, p)
    return o


@kernel
def close_tagged(at: int, o: int) -> int:
    """Write the size of the value in (at, o), for which one byte was kept; returns the end of the value."""
    n = o - at - 1
    if n < 0x80:
        st8(at, n)
        return o
    more = 1 if n < 1 << 14 else 2 if n < 1 << 21 else 3 if n < 1 << 28 else 4
    move(at + 1 + more, at + 1, n)
    write_uvarint(at, n)
    return o + more


@kernel
def seek(header: int, index: int) -> int:
    """The address of the value with that index in the array at header."""
    _, p = read_array_header(header)
    for _ in range(index):
        p = skip(p)
    return p


@export
def encode_message(source: int, size: int, out: int, capacity: int, plan: int, pool: int, frames: int) -> int:
    """Write one message; returns the bytes written, FAILED, or FULL when capacity is not enough.

    source, size: what msgspec made of the object. out, capacity: the output; capacity >= SLACK.
    plan, pool: the plan's rows and constants. frames: FRAME bytes for each level of plan.depth.
    Cost: benchmarks/messages/codec.py; about a third of a whole encode.
    """
    p = source
    end = source + size
    o = out
    limit = out + capacity - SLACK
    row = plan
    top = frames - FRAME
    while True:
        op = ldw(row)
        a = ldw(row + FIRST)
        if o > limit:
            return FULL
        if op == FIXED:
            for _ in range(ldw(row + FIXED_COUNT)):
                p, o = take_fixed(a & 15, p, o)
                if o == 0:
                    return FAILED
                a >>= 4
            row += ROW
        elif op == STRUCT:
            n, p = read_array_header(p)
            if n != a:
                return FAILED
            row += ROW
        elif op == TAGS:
            if is_default(p, end, pool + ldw(row + TAGS_OFFSET), ldw(row + TAGS_LENGTH), ldw(row + TAGS_FLOATS)):
                for _ in range(a + 1):
                    p = skip(p)
                st8(o, 0)
                o += 1
                row = plan + ROW * ldw(row + TAGS_END)
            else:
                known, unknown, q = count_tagged(p, end, pool, row + 2 * ROW, a)
                if known < 0:
                    return FAILED
                o = write_uvarint(o, known + unknown)
                top += FRAME
                stw(top + NEXT_ENTRY, 0)
                stw(top + UNKNOWN_LEFT, unknown)
                stw(top + NEXT_UNKNOWN, q)
                row += ROW
        elif op == STRING:
            if ld8(p) == NULL:
                if a & MAY_BE_NULL == 0:
                    return FAILED
                o = write_length(op, a, -1, o)
                p += 1
            else:
                n, p = read_text_header(p)
                if n < 0 or n > MAX_STRING_BYTES:
                    return FAILED
                if o + n > limit:
                    return FULL
                o = write_length(op, a, n, o)
                copy(o, p, n)
                o += n
                p += n
            row += ROW
        elif op == LIST:
            if ld8(p) == NULL:
                if a & MAY_BE_NULL == 0:
                    return FAILED
                o = write_length(op, a, -1, o)
                p += 1
            else:
                n, p = read_array_header(p)
                if n < 0:
                    return FAILED
                if o + n * ldw(row + LIST_WIDTH) > limit:
                    return FULL
                o = write_length(op, a, n, o)
                code = ldw(row + LIST_CODE)
                for _ in range(n):
                    p, o = take_fixed(code, p, o)
                    if o == 0:
                        return FAILED
            row += ROW
        elif op == ARRAY:
            if ld8(p) == NULL:
                if a & MAY_BE_NULL == 0:
                    return FAILED
                n = -1
                p += 1
            else:
                n, p = read_array_header(p)
                if n < 0:
                    return FAILED
            o = write_length(op, a, n, o)
            if n <= 0:
                row = plan + ROW * ldw(row + ARRAY_END)
            else:
                top += FRAME
                stw(top + ELEMENTS_LEFT, n)
                row += ROW
        elif op == NEXT:
            n = ldw(top + ELEMENTS_LEFT) - 1
            if n > 0:
                stw(top + ELEMENTS_LEFT, n)
                row = plan + ROW * a
            else:
                top -= FRAME
                row += ROW
        elif op == ABSENT:
            run = ldw(row + ABSENT_RUN_BYTES)
            if run and run <= end - p and same(p, pool + a, run) and ldw(row + ABSENT_FLOATS) == 0:
                p += run
                row += ROW * ldw(row + ABSENT_RUN_ROWS)
            else:
                if ldw(row + ABSENT_IGNORABLE) == 0 and not is_default(
                    p, end, pool + a, ldw(row + ABSENT_LENGTH), ldw(row + ABSENT_FLOATS)
                ):
                    return FAILED
                p = skip(p)
                row += ROW
        elif op == BYTES:
            if ld8(p) == NULL:
                if a & MAY_BE_NULL == 0:
                    return FAILED
                o = write_length(op, a, -1, o)
                p += 1
            else:
                n, p = read_bytes_header(p)
                if n < 0:
                    return FAILED
                if o + n > limit:
                    return FULL
                o = write_length(op, a, n, o)
                copy(o, p, n)
                o += n
                p += n
            row += ROW
        elif op == TAG_STEP:
            j, p = next_set(p, end, pool, row + ROW, a, ldw(top + NEXT_ENTRY))
            tag = ldw(row + ROW + ROW * j + ENTRY_TAG) if j < a else NO_TAG
            o = put_unknown_below(top, tag, o, limit)
            if o < 0:
                return FULL
            if j == a:
                p = ldw(top + NEXT_UNKNOWN)
                top -= FRAME
                row = plan + ROW * ldw(row + STEP_END)
            else:
                o = write_uvarint(o, tag)
                stw(top + NEXT_ENTRY, j + 1)
                stw(top + SIZE_ADDRESS, o)
                o += 1
                row = plan + ROW * ldw(row + ROW + ROW * j + ENTRY_SUB)
        elif op == TAG_END:
            o = close_tagged(ldw(top + SIZE_ADDRESS), o)
            row = plan + ROW * a
        elif op == NULLABLE:
            tagged = ldw(row + NULLABLE_TAGGED)
            if ld8(p) == NULL:
                st8(o, 0 if tagged else 0xFF)
                p += 1
                row = plan + ROW * a
            else:
                st8(o, 1)
                row += ROW
            o += 1
        elif op == VARINTS:
            p, o = take_packed_run(a, ldw(row + FIXED_COUNT), p, o)
            if o == 0:
                return FAILED
            row += ROW
        elif op == VARLIST:
            p, o = take_packed_list(a, ldw(row + LIST_CODE), p, o, limit)
            if o == 0:
                return FAILED
            if o == FULL:
                return FULL
            row += ROW
        elif op == LENGTH:
            o += 4
            row += ROW
        elif op == MARK:
            top += FRAME
            stw(top + MARK_HEADER, p)
            row += ROW
        elif op == SEEK:
            stw(top + MARK_RETURN, p)
            p = seek(ldw(top + MARK_HEADER), a)
            row += ROW
        elif op == BACK:
            p = ldw(top + MARK_RETURN)
            row += ROW
        elif op == SKIP:
            p = skip(p)
            row += ROW
        elif op == PERMUTE:
            top -= FRAME
            row += ROW
        else:  # END
            if ldw(plan) == LENGTH:
                st32(out, o - out - 4)
            return o - out


assert {END, LACKING} == {0, 2}  # the two that the branches above only name in comments
