"""MessagePack -> wire, by the rows of a plan.

The input is what msgspec makes of a message object: well-formed, ints in their shortest form, every struct an array
in class order. What msgspec does not check is checked here: the type and range of every value, nulls, the number of
values of a struct.

A value is the default if its MessagePack is the default's, byte for byte: so a section in which nothing is set costs
one comparison, and so does a run of fields that this version lacks. Floats are the exception (W-21).

The size of a tagged value is known only after the value. One byte is reserved; if it needs more, the value moves.

There is a frame of FRAME bytes for each array, tag section and MARK that is open, with int64 at these offsets:

          array            tag section                                         MARK
     0    ELEMENTS_LEFT    NEXT_ENTRY: the entry to write next                 MARK_HEADER: address of the struct
     8                     UNKNOWN_LEFT: unknown fields still to be written    MARK_RETURN: where BACK continues
    16                     NEXT_UNKNOWN: address of the next of them
    24                     SIZE_ADDRESS: where the size of the open field goes
"""

from __future__ import annotations

from kwire.plan.kernels.messagepack import (
    MP_BIN8,
    MP_FALSE,
    MP_FLOAT64,
    MP_NIL,
    read_array_header,
    read_bytes_header,
    read_int,
    read_text_header,
    skip,
    token,
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
    FAILED,
    FIRST,
    FIXED_COUNT,
    FRAME,
    FULL,
    LIST_CODE,
    LIST_WIDTH,
    NULLABLE_TAGGED,
    ROW,
    STEP_END,
    TAGS_END,
    TAGS_FLOATS,
    TAGS_LENGTH,
    TAGS_OFFSET,
    UUID_BYTES,
    row_at,
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
from kwire.wire.kernels.memory import (
    copy_int64,
    copy_short,
    equal_bytes,
    load_big_int64,
    load_byte,
    load_int64,
    store_big_int16,
    store_big_int32,
    store_big_int64,
    store_byte,
    store_int64,
)
from kwire.wire.kernels.primitives import apart, double_bits, equal_doubles, move
from kwire.wire.kernels.varints import write_uvarint, write_uvarlong, zigzag

SLACK = 320  # bytes that any step may write without a check: a FIXED row of 15 uuids takes 240
NO_TAG = MAX_TAG + 1

NEXT_ENTRY, UNKNOWN_LEFT, NEXT_UNKNOWN, SIZE_ADDRESS = range(0, 32, 8)  # in the frame of a tag section
MARK_HEADER, MARK_RETURN = 0, 8  # in the frame of a MARK


@inlined
def take_fixed(code: int, p: int, o: int) -> tuple[int, int]:
    """Write one value of fixed width: (input address, output address) after it; the second is 0 if it does not fit."""
    if code == BOOL:
        if load_byte(p) & 0xFE != MP_FALSE:
            return p, 0
        store_byte(o, load_byte(p) & 1)
        return p + 1, o + 1
    if code == FLOAT64 and load_byte(p) == MP_FLOAT64:
        copy_int64(o, p + 1)
        return p + 9, o + 8
    if code == UUID:
        if load_byte(p) != MP_BIN8 or load_byte(p + 1) != UUID_BYTES:
            return p, 0
        copy_int64(o, p + 2)
        copy_int64(o + 8, p + 10)
        return p + 18, o + 16
    v, q = read_int(p)
    if q == 0:
        return p, 0
    if code == INT32:
        store_big_int32(o, v)
        return q, o + 4 if -0x80000000 <= v <= 0x7FFFFFFF else 0
    if code == INT16:
        store_big_int16(o, v)
        return q, o + 2 if -0x8000 <= v <= 0x7FFF else 0
    if code == INT64:
        store_big_int64(o, v)
        return q, o + 8
    if code == INT8:
        store_byte(o, v)
        return q, o + 1 if -0x80 <= v <= 0x7F else 0
    if code == UINT16:
        store_big_int16(o, v)
        return q, o + 2 if 0 <= v <= 0xFFFF else 0
    if code == FLOAT64:
        store_big_int64(o, double_bits(v))
        return q, o + 8
    store_big_int32(o, v)  # uint32
    return q, o + 4 if 0 <= v <= 0xFFFFFFFF else 0


@inlined
def take_packed(code: int, p: int, o: int) -> tuple[int, int]:
    """Pack an integer as in KIP-625: (input address, output address) after it; the second is 0 if it does not fit."""
    v, q = read_int(p)
    if q == 0:
        return p, 0
    if code == PACKED64:
        return q, write_uvarlong(o, zigzag(v))
    if code == UPACKED64:
        return q, write_uvarlong(o, v)
    if code == PACKED32:
        return q, write_uvarlong(o, zigzag(v)) if -0x8000_0000 <= v <= 0x7FFF_FFFF else 0
    if code == UPACKED32:
        return q, write_uvarlong(o, v & 0xFFFF_FFFF) if -0x8000_0000 <= v <= 0x7FFF_FFFF else 0
    if v < -0x8000 or v > 0x7FFF:
        return q, 0
    return q, write_uvarlong(o, zigzag(v)) if code == PACKED16 else write_uvarlong(o, v & 0xFFFF)


@separate
def take_packed_run(codes: int, count: int, p: int, o: int) -> tuple[int, int]:
    """Pack a run of integers: (input address, output address) after it; the second is 0 if one does not fit."""
    apart()
    for _ in range(count):
        p, o = take_packed(codes & 15, p, o)
        if o == 0:
            return p, 0
        codes >>= 4
    return p, o


@inlined
def write_length(op: int, flags: int, n: int, o: int) -> int:
    """Write the length or count n, -1 for null; returns the address after it."""
    if flags & COMPACT:
        return write_uvarint(o, n + 1)
    if op == STRING:
        store_big_int16(o, n)
        return o + 2
    store_big_int32(o, n)
    return o + 4


@separate
def take_packed_list(flags: int, code: int, p: int, o: int, limit: int) -> tuple[int, int]:
    """Pack an array of integers: (input address, output address) after it; the second is 0 on failure, or FULL."""
    apart()
    if load_byte(p) == MP_NIL:
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
    """Return the bits of a float or integer at p as a double; those of NaN, which equals nothing, for other values."""
    if load_byte(p) == MP_FLOAT64:
        bits: int = load_big_int64(p + 1)
        return bits
    v, q = read_int(p)
    bits = double_bits(v)
    return bits if q else 0x7FF8000000000000


@kernel
def equal_with_floats(p: int, end: int, q: int, n: int) -> bool:
    """Return whether the value at p equals the constant of n bytes at q, floats by value (0 == 0.0 == -0.0 != NaN)."""
    last = q + n
    while q < last:
        if p >= end:
            return False
        q2, _ = token(q)
        p2, _ = token(p)
        if load_byte(q) == MP_FLOAT64:
            if not equal_doubles(number_bits(p), load_big_int64(q + 1)):
                return False
        elif p2 - p != q2 - q or not equal_bytes(p, q, q2 - q):
            return False
        p, q = p2, q2
    return True


@inlined
def is_default(p: int, end: int, constant: int, n: int, floats: int) -> bool:
    """Return whether the value, or run of values, at p is the constant of n bytes."""
    if floats:
        return equal_with_floats(p, end, constant, n)
    return n <= end - p and equal_bytes(p, constant, n)


@kernel
def count_tagged(p: int, end: int, pool: int, entries: int, count: int) -> tuple[int, int, int]:
    """Count the fields of a section: (known ones, unknown ones, address of the first unknown one).

    The first is FAILED if a field that this version lacks is set (W-31), or if the unknown ones are not pairs of a tag,
    ascending (W-24) and without entry (T-12), and bytes.
    """
    known = 0
    for j in range(count):
        entry = row_at(entries, j)
        state = load_int64(entry + ENTRY_STATE)
        if state != ELSEWHERE and not is_default(
            p,
            end,
            pool + load_int64(entry + ENTRY_OFFSET),
            load_int64(entry + ENTRY_LENGTH),
            load_int64(entry + ENTRY_FLOATS),
        ):
            if state == LIVE:
                known += 1
            elif load_int64(entry + ENTRY_IGNORABLE) == 0:
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
            if load_int64(row_at(entries, j) + ENTRY_TAG) == tag:
                return FAILED, 0, 0
        n, p = read_bytes_header(p)
        if n < 0:
            return FAILED, 0, 0
        p += n
        previous = tag
    return known, unknown, first


@kernel
def next_set(p: int, end: int, pool: int, entries: int, count: int, j: int) -> tuple[int, int]:
    """Find the first live entry from j on that is not at its default: (entry, address of its value). p: value of j."""
    while j < count:
        entry = row_at(entries, j)
        if load_int64(entry + ENTRY_STATE) == LIVE and not is_default(
            p,
            end,
            pool + load_int64(entry + ENTRY_OFFSET),
            load_int64(entry + ENTRY_LENGTH),
            load_int64(entry + ENTRY_FLOATS),
        ):
            break
        p = skip(p)
        j += 1
    return j, p


@kernel
def put_unknown_below(top: int, tag: int, o: int, limit: int) -> int:
    """Write the unknown fields with tags below `tag`, already checked; returns the address after them, or FULL."""
    left = load_int64(top + UNKNOWN_LEFT)
    p = load_int64(top + NEXT_UNKNOWN)
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
        copy_short(o, q, n)
        o += n
        p = q + n
        left -= 1
    store_int64(top + UNKNOWN_LEFT, left)
    store_int64(top + NEXT_UNKNOWN, p)
    return o


@kernel
def close_tagged(at: int, o: int) -> int:
    """Write the size of the value in (at, o), for which one byte is reserved; returns the end of the value."""
    n = o - at - 1
    if n < 0x80:
        store_byte(at, n)
        return o
    more = 1 if n < 1 << 14 else 2 if n < 1 << 21 else 3 if n < 1 << 28 else 4
    move(at + 1 + more, at + 1, n)
    write_uvarint(at, n)
    return o + more


@kernel
def seek(header: int, index: int) -> int:
    """Return the address of value number `index` of the array at header."""
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
        op = load_int64(row)
        a = load_int64(row + FIRST)
        if o > limit:
            return FULL
        if op == FIXED:
            for _ in range(load_int64(row + FIXED_COUNT)):
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
            if is_default(
                p,
                end,
                pool + load_int64(row + TAGS_OFFSET),
                load_int64(row + TAGS_LENGTH),
                load_int64(row + TAGS_FLOATS),
            ):
                for _ in range(a + 1):
                    p = skip(p)
                store_byte(o, 0)
                o += 1
                row = row_at(plan, load_int64(row + TAGS_END))
            else:
                known, unknown, q = count_tagged(p, end, pool, row_at(row, 2), a)  # after TAGS and TAG_STEP
                if known < 0:
                    return FAILED
                o = write_uvarint(o, known + unknown)
                top += FRAME
                store_int64(top + NEXT_ENTRY, 0)
                store_int64(top + UNKNOWN_LEFT, unknown)
                store_int64(top + NEXT_UNKNOWN, q)
                row += ROW
        elif op == STRING:
            if load_byte(p) == MP_NIL:
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
                copy_short(o, p, n)
                o += n
                p += n
            row += ROW
        elif op == LIST:
            if load_byte(p) == MP_NIL:
                if a & MAY_BE_NULL == 0:
                    return FAILED
                o = write_length(op, a, -1, o)
                p += 1
            else:
                n, p = read_array_header(p)
                if n < 0:
                    return FAILED
                if o + n * load_int64(row + LIST_WIDTH) > limit:
                    return FULL
                o = write_length(op, a, n, o)
                code = load_int64(row + LIST_CODE)
                for _ in range(n):
                    p, o = take_fixed(code, p, o)
                    if o == 0:
                        return FAILED
            row += ROW
        elif op == ARRAY:
            if load_byte(p) == MP_NIL:
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
                row = row_at(plan, load_int64(row + ARRAY_END))
            else:
                top += FRAME
                store_int64(top + ELEMENTS_LEFT, n)
                row += ROW
        elif op == NEXT:
            n = load_int64(top + ELEMENTS_LEFT) - 1
            if n > 0:
                store_int64(top + ELEMENTS_LEFT, n)
                row = row_at(plan, a)
            else:
                top -= FRAME
                row += ROW
        elif op == ABSENT:
            run = load_int64(row + ABSENT_RUN_BYTES)
            if run and run <= end - p and equal_bytes(p, pool + a, run) and load_int64(row + ABSENT_FLOATS) == 0:
                p += run
                row = row_at(row, load_int64(row + ABSENT_RUN_ROWS))
            else:
                if load_int64(row + ABSENT_IGNORABLE) == 0 and not is_default(
                    p, end, pool + a, load_int64(row + ABSENT_LENGTH), load_int64(row + ABSENT_FLOATS)
                ):
                    return FAILED
                p = skip(p)
                row += ROW
        elif op == BYTES:
            if load_byte(p) == MP_NIL:
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
                copy_short(o, p, n)
                o += n
                p += n
            row += ROW
        elif op == TAG_STEP:
            j, p = next_set(p, end, pool, row + ROW, a, load_int64(top + NEXT_ENTRY))
            tag = load_int64(row_at(row + ROW, j) + ENTRY_TAG) if j < a else NO_TAG
            o = put_unknown_below(top, tag, o, limit)
            if o < 0:
                return FULL
            if j == a:
                p = load_int64(top + NEXT_UNKNOWN)
                top -= FRAME
                row = row_at(plan, load_int64(row + STEP_END))
            else:
                o = write_uvarint(o, tag)
                store_int64(top + NEXT_ENTRY, j + 1)
                store_int64(top + SIZE_ADDRESS, o)
                o += 1
                row = row_at(plan, load_int64(row_at(row + ROW, j) + ENTRY_SUB))
        elif op == TAG_END:
            o = close_tagged(load_int64(top + SIZE_ADDRESS), o)
            row = row_at(plan, a)
        elif op == NULLABLE:
            tagged = load_int64(row + NULLABLE_TAGGED)
            if load_byte(p) == MP_NIL:
                store_byte(o, 0 if tagged else 0xFF)
                p += 1
                row = row_at(plan, a)
            else:
                store_byte(o, 1)
                row += ROW
            o += 1
        elif op == VARINTS:
            p, o = take_packed_run(a, load_int64(row + FIXED_COUNT), p, o)
            if o == 0:
                return FAILED
            row += ROW
        elif op == VARLIST:
            p, o = take_packed_list(a, load_int64(row + LIST_CODE), p, o, limit)
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
            store_int64(top + MARK_HEADER, p)
            row += ROW
        elif op == SEEK:
            store_int64(top + MARK_RETURN, p)
            p = seek(load_int64(top + MARK_HEADER), a)
            row += ROW
        elif op == BACK:
            p = load_int64(top + MARK_RETURN)
            row += ROW
        elif op == SKIP:
            p = skip(p)
            row += ROW
        elif op == PERMUTE:
            top -= FRAME
            row += ROW
        else:  # END
            if load_int64(plan) == LENGTH:
                store_big_int32(out, o - out - 4)
            return o - out


assert {END, LACKING} == {0, 2}  # the two that the branches above only name in comments
