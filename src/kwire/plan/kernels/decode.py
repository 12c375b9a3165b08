"""Wire -> MessagePack, by the rows of a plan.

The output is what msgspec decodes to the message's class: every struct an array in class order, every number of fixed
width after its type byte, in the wire's own byte order (no swap, no branch on its size).

A struct's trailing values may be omitted; msgspec then takes the defaults of the class. So an empty tag section costs
one byte of input, no output, and a smaller count in the struct's header, which is written first and patched.

    frame of an array     left
    frame of a struct     header, left, previous tag, next entry, end outside the field, start of the section,
                          unknown ones, all         (the words after header are set by a section that is not empty)
    frame of a MARK       address of the header
"""

from __future__ import annotations

from kwire.plan.kernels.memory import (
    copy,
    cp16,
    cp32,
    cp64,
    ld8,
    ld8s,
    ld16s,
    ld32s,
    ldw,
    read_uvarint,
    read_uvarlong,
    skip,
    st8,
    st16,
    st32,
    st64,
    stw,
    write_array_header,
    write_int,
)
from kwire.plan.kernels.operands import (
    ABSENT_RUN_BYTES,
    ABSENT_RUN_ROWS,
    ABSENT_TRAILING,
    ARRAY_END,
    ARRAY_MIN_BYTES,
    ELEMENTS_LEFT,
    ENTRY_LENGTH,
    ENTRY_OFFSET,
    ENTRY_STATE,
    ENTRY_SUB,
    ENTRY_TAG,
    FIRST,
    FIXED_BYTES,
    FIXED_COUNT,
    FRAME,
    LARGE,
    LARGE_BYTES,
    LIST_CODE,
    LIST_WIDTH,
    NULLABLE_TAGGED,
    PARTIAL,
    PERMUTE_OFFSET,
    ROW,
    STEP_END,
    STEP_LENGTH,
    STEP_OFFSET,
    STRUCT_FLEXIBLE,
    STRUCT_PRESENT,
    TAGS_END,
    TAGS_PRESENT,
    VIEW_BYTES,
    VIEWS,
)
from kwire.plan.rows import (
    ABSENT,
    ARRAY,
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
    STRING,
    STRUCT,
    TAG_END,
    TAG_STEP,
    TAGS,
    UINT16,
    UINT32,
    UPACKED32,
    UPACKED64,
    VARINTS,
    VARLIST,
)
from kwire.wire.kernels.compiler import export, inlined, kernel, separate
from kwire.wire.kernels.primitives import apart

FAILED, FULL = -1, -2
SLACK = 96  # room that every step may use without asking; more than that is asked for

# in the frame of a struct
HEADER, TAGS_LEFT, PREVIOUS_TAG, NEXT_ENTRY, OUTER_END, SECTION_START, UNKNOWN_COUNT, TAG_COUNT = range(0, 64, 8)


@inlined
def put_fixed(code: int, p: int, o: int) -> tuple[int, int]:
    """One value of fixed width; returns the addresses after it on both sides. Writes at most twice what it reads."""
    if code == INT32:
        st8(o, 0xD2)
        cp32(o + 1, p)
        return p + 4, o + 5
    if code == INT16:
        st8(o, 0xD1)
        cp16(o + 1, p)
        return p + 2, o + 3
    if code == INT64:
        st8(o, 0xD3)
        cp64(o + 1, p)
        return p + 8, o + 9
    if code == BOOL:
        st8(o, 0xC3 if ld8(p) != 0 else 0xC2)
        return p + 1, o + 1
    if code == INT8:
        st8(o, 0xD0)
        st8(o + 1, ld8(p))
        return p + 1, o + 2
    if code == UINT16:
        st8(o, 0xCD)
        cp16(o + 1, p)
        return p + 2, o + 3
    if code == UINT32:
        st8(o, 0xCE)
        cp32(o + 1, p)
        return p + 4, o + 5
    if code == FLOAT64:
        st8(o, 0xCB)
        cp64(o + 1, p)
        return p + 8, o + 9
    st16(o, 0xC410)  # uuid: 16 bytes
    cp64(o + 2, p)
    cp64(o + 10, p + 8)
    return p + 16, o + 18


@inlined
def read_packed(code: int, p: int, end: int) -> tuple[int, int]:
    """An integer as KIP-625 packs it: (value, address after it); address 0 when it is cut, too long or too large."""
    if code == PACKED64 or code == UPACKED64:
        v, p = read_uvarlong(p, end)
        if code == PACKED64:
            v = (v >> 1 & 0x7FFF_FFFF_FFFF_FFFF) ^ -(v & 1)
        return v, p
    v, p = read_uvarint(p, end)
    if code == PACKED32:
        return (v >> 1) ^ -(v & 1), p
    if code == UPACKED32:
        return (v ^ 0x8000_0000) - 0x8000_0000, p
    if v > 0xFFFF:
        return 0, 0
    if code == PACKED16:
        return (v >> 1) ^ -(v & 1), p
    return (v ^ 0x8000) - 0x8000, p


@separate
def put_packed(codes: int, count: int, p: int, end: int, o: int) -> tuple[int, int]:
    """A run of packed integers; returns the addresses after it on both sides, the first 0 on failure."""
    apart()
    for _ in range(count):
        v, p = read_packed(codes & 15, p, end)
        if p == 0:
            return 0, o
        o = write_int(o, v)
        codes >>= 4
    return p, o


@inlined
def read_length(op: int, flags: int, p: int, end: int) -> tuple[int, int]:
    """(length or count, address after it): -1 is null where it may be, -2 is a failure."""
    if flags & COMPACT:
        if p < end and ld8(p) < 0x80:
            n = ld8(p) - 1
            p += 1
        else:
            n, p = read_uvarint(p, end)
            if p == 0:
                return -2, 0
            n -= 1
    elif op == STRING:
        if end - p < 2:
            return -2, 0
        n = ld16s(p)
        p += 2
    else:
        if end - p < 4:
            return -2, 0
        n = ld32s(p)
        p += 4
    if n < 0:
        return -1 if flags & MAY_BE_NULL else -2, p  # W-14: any negative length is null
    return n, p


@inlined
def read_marker(tagged: int, p: int, end: int) -> tuple[int, int]:
    """Read the marker before a struct that may be null: (below 0 for null, address after it); address 0 on failure."""
    if tagged:  # a varint, 0 is null (W-16)
        n, p = read_uvarint(p, end)
        return n - 1, p
    if p >= end:
        return 0, 0
    return ld8s(p), p + 1  # a signed byte, negative is null (W-15)


@separate
def put_packed_list(flags: int, code: int, p: int, end: int, o: int, limit: int) -> tuple[int, int]:
    """An array of packed integers; returns the addresses after it on both sides: the first 0 on failure, or FULL.

    A byte may become nine, so room is asked for one by one: what most lists need is far from what they could.
    """
    apart()
    n, p = read_length(LIST, flags, p, end)
    if n == -2 or n > end - p:  # each takes a byte at least
        return 0, o
    if n < 0:
        st8(o, 0xC0)
        return p, o + 1
    o = write_array_header(o, n)
    for _ in range(n):
        v, p = read_packed(code, p, end)
        if p == 0:
            return 0, o
        o = write_int(o, v)
        if o > limit:
            return p, FULL
    return p, o


@inlined
def put_fixed_list(code: int, n: int, p: int, o: int) -> tuple[int, int]:
    """n values of one width, side by side; int32 is what nearly all lists hold."""
    if code == INT32:
        for _ in range(n):
            st8(o, 0xD2)
            cp32(o + 1, p)
            p += 4
            o += 5
        return p, o
    for _ in range(n):
        p, o = put_fixed(code, p, o)
    return p, o


@kernel
def find_entry(entries: int, count: int, first: int, tag: int) -> int:
    """The live entry of a tag from `first` on; count when no entry has the tag; -1 when it may not be here (W-27)."""
    for j in range(first, count):
        if ldw(entries + ROW * j + ENTRY_TAG) == tag and ldw(entries + ROW * j + ENTRY_STATE) == LIVE:
            return j
    for j in range(count):
        if ldw(entries + ROW * j + ENTRY_TAG) == tag:
            return -1
    return count


@kernel
def put_defaults(entries: int, first: int, last: int, pool: int, o: int, limit: int) -> int:
    """The defaults of entries first to last, which are not on the wire; returns the address after them, or FULL."""
    for j in range(first, last):
        entry = entries + ROW * j
        if ldw(entry + ENTRY_STATE) == ELSEWHERE:  # the value is among the positional ones
            continue
        n = ldw(entry + ENTRY_LENGTH)
        if o + n > limit:
            return FULL
        copy(o, pool + ldw(entry + ENTRY_OFFSET), n)
        o += n
    return o


@kernel
def put_unknown(top: int, entries: int, count: int, end: int, o: int, limit: int) -> int:
    """The section's unknown fields as an array of [tag, bytes]: a second pass, made only when there are some."""
    o = write_array_header(o, ldw(top + UNKNOWN_COUNT))
    if ldw(top + UNKNOWN_COUNT) == 0:
        return o
    p = ldw(top + SECTION_START)
    for _ in range(ldw(top + TAG_COUNT)):
        tag, p = read_uvarint(p, end)
        n, p = read_uvarint(p, end)
        if find_entry(entries, count, 0, tag) == count:
            if o + n > limit:
                return FULL
            st16(o, 0x92CE)
            st32(o + 2, tag)
            st8(o + 6, 0xC6)
            st32(o + 7, n)
            copy(o + 11, p, n)
            o += 11 + n
        p += n
    return o


@kernel
def permute(header: int, count: int, inverse: int, o: int) -> None:
    """Put the values of a struct into class order; value i is the inverse[i]-th in [after header, o).

    Needs room after o for a copy of the values. Cost: count times a walk over them; no released message needs it.
    """
    begin = header + (1 if count < 16 else 3)
    size = o - begin
    copy(o, begin, size)
    target = begin
    for i in range(count):
        p = o
        for _ in range(ld8(inverse + i)):
            p = skip(p)
        n = skip(p) - p
        copy(target, p, n)
        target += n


@export
def decode_message(
    source: int, size: int, start: int, out: int, capacity: int, plan: int, pool: int, frames: int, flags: int
) -> int:
    """Read one message at source + start; returns the bytes written, FAILED, or FULL when capacity is not enough.

    source, size: the input; nothing outside is read. out, capacity: the output; capacity >= SLACK.
    plan, pool: the plan's rows and constants. frames: FRAME bytes for each level of plan.depth.
    flags: PARTIAL: bytes may remain, and the output is the pair of message and position after it;
    VIEWS: bytes are (int64 position, int64 size) in 16 bytes, to be replaced by a view;
    LARGE: so are those from LARGE_BYTES up, and those of 16, so that 16 bytes are never anything else.
    Cost: benchmarks/messages/codec.py; about a tenth of a whole decode.
    """
    p = source + start
    last = source + size
    end = last
    o = out
    limit = out + capacity - SLACK
    row = plan
    top = frames - FRAME
    if flags & PARTIAL:
        st8(o, 0x92)
        o += 1
    while True:
        op = ldw(row)
        a = ldw(row + FIRST)
        if o > limit:
            return FULL
        if op == FIXED:
            n = ldw(row + FIXED_BYTES)
            if n > end - p:
                return FAILED
            if o + 2 * n > limit:
                return FULL
            for _ in range(ldw(row + FIXED_COUNT)):
                p, o = put_fixed(a & 15, p, o)
                a >>= 4
            row += ROW
        elif op == STRUCT:
            if ldw(row + STRUCT_FLEXIBLE):
                top += FRAME
                stw(top + HEADER, o)
                o = write_array_header(o, a)
            else:
                o = write_array_header(o, ldw(row + STRUCT_PRESENT))
            row += ROW
        elif op == TAGS:
            present = ldw(row + TAGS_PRESENT)
            if p < end and ld8(p) == 0 and present >= 0:
                p += 1
                header = ldw(top + HEADER)
                top -= FRAME
                if ld8(header) == 0xDC:
                    st16(header + 1, present)
                else:
                    st8(header, 0x90 | present)
                row = plan + ROW * ldw(row + TAGS_END)
            else:
                n, p = read_uvarint(p, end)
                if p == 0 or 2 * n > end - p:  # a field takes two bytes at least
                    return FAILED
                m = ldw(row + ROW + STEP_LENGTH)
                if o + m > limit:
                    return FULL
                copy(o, pool + ldw(row + ROW + STEP_OFFSET), m)
                o += m
                stw(top + TAGS_LEFT, n)
                stw(top + PREVIOUS_TAG, -1)
                stw(top + NEXT_ENTRY, 0)
                stw(top + SECTION_START, p)
                stw(top + UNKNOWN_COUNT, 0)
                stw(top + TAG_COUNT, n)
                row += ROW
        elif op == STRING:
            n, p = read_length(op, a, p, end)
            if n < 0:
                if n == -2:
                    return FAILED
                st8(o, 0xC0)
                o += 1
            else:
                if n > end - p or n > MAX_STRING_BYTES:
                    return FAILED
                if o + n > limit:
                    return FULL
                if n < 32:
                    st8(o, 0xA0 | n)
                    o += 1
                else:
                    st8(o, 0xDA)
                    st16(o + 1, n)
                    o += 3
                copy(o, p, n)
                o += n
                p += n
            row += ROW
        elif op == LIST:
            n, p = read_length(op, a, p, end)
            if n < 0:
                if n == -2:
                    return FAILED
                st8(o, 0xC0)
                o += 1
            else:
                m = n * ldw(row + LIST_WIDTH)
                if m > end - p:
                    return FAILED
                if o + 2 * m > limit:
                    return FULL
                p, o = put_fixed_list(ldw(row + LIST_CODE), n, p, write_array_header(o, n))
            row += ROW
        elif op == ARRAY:
            n, p = read_length(op, a, p, end)
            if n == -2 or (n > 0 and n * ldw(row + ARRAY_MIN_BYTES) > end - p):
                return FAILED
            if n < 0:
                st8(o, 0xC0)
                o += 1
            else:
                o = write_array_header(o, n)
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
            if ldw(row + ABSENT_TRAILING) == 0:  # a trailing run is left to the class
                n = ldw(row + ABSENT_RUN_BYTES)
                if o + n > limit:
                    return FULL
                copy(o, pool + a, n)
                o += n
            row += ROW * ldw(row + ABSENT_RUN_ROWS)
        elif op == BYTES:
            n, p = read_length(op, a, p, end)
            if n < 0:
                if n == -2:
                    return FAILED
                st8(o, 0xC0)
                o += 1
            elif n > end - p:
                return FAILED
            elif flags & VIEWS or (flags & LARGE and (n >= LARGE_BYTES or n == VIEW_BYTES)):
                st16(o, 0xC400 | VIEW_BYTES)
                st64(o + 2, p - source)
                st64(o + 10, n)
                o += 2 + VIEW_BYTES
                p += n
            else:
                if o + n > limit:
                    return FULL
                st8(o, 0xC6)
                st32(o + 1, n)
                copy(o + 5, p, n)
                o += 5 + n
                p += n
            row += ROW
        elif op == TAG_STEP:
            entries = row + ROW
            if ldw(top + TAGS_LEFT) == 0:
                o = put_defaults(entries, ldw(top + NEXT_ENTRY), a, pool, o, limit)
                if o >= 0:
                    o = put_unknown(top, entries, a, end, o, limit)
                if o < 0:
                    return FULL
                top -= FRAME
                row = plan + ROW * ldw(row + STEP_END)
            else:
                tag, p = read_uvarint(p, end)
                if p == 0 or tag <= ldw(top + PREVIOUS_TAG) or tag > MAX_TAG:
                    return FAILED
                n, p = read_uvarint(p, end)
                if p == 0 or n > end - p:
                    return FAILED
                stw(top + TAGS_LEFT, ldw(top + TAGS_LEFT) - 1)
                stw(top + PREVIOUS_TAG, tag)
                j = find_entry(entries, a, ldw(top + NEXT_ENTRY), tag)
                if j < 0:
                    return FAILED
                if j == a:
                    stw(top + UNKNOWN_COUNT, ldw(top + UNKNOWN_COUNT) + 1)
                    p += n
                else:
                    o = put_defaults(entries, ldw(top + NEXT_ENTRY), j, pool, o, limit)
                    if o < 0:
                        return FULL
                    stw(top + NEXT_ENTRY, j + 1)
                    stw(top + OUTER_END, end)
                    end = p + n
                    row = plan + ROW * ldw(entries + ROW * j + ENTRY_SUB)
        elif op == TAG_END:
            if p != end:
                return FAILED
            end = ldw(top + OUTER_END)
            row = plan + ROW * a
        elif op == NULLABLE:
            n, p = read_marker(ldw(row + NULLABLE_TAGGED), p, end)
            if p == 0:
                return FAILED
            if n < 0:
                st8(o, 0xC0)
                o += 1
                row = plan + ROW * a
            else:
                row += ROW
        elif op == VARINTS:
            n = ldw(row + FIXED_COUNT)
            if o + 9 * n > limit + SLACK:
                return FULL
            p, o = put_packed(a, n, p, end, o)
            if p == 0:
                return FAILED
            row += ROW
        elif op == VARLIST:
            p, o = put_packed_list(a, ldw(row + LIST_CODE), p, end, o, limit)
            if p == 0:
                return FAILED
            if o == FULL:
                return FULL
            row += ROW
        elif op == LENGTH:
            if end - p < 4:
                return FAILED
            n = ld32s(p)
            p += 4
            if n < 0 or n > end - p:
                return FAILED
            end = p + n
            row += ROW
        elif op == MARK:
            top += FRAME
            stw(top + HEADER, o)
            row += ROW
        elif op == PERMUTE:
            header = ldw(top + HEADER)
            if o + (o - header) > limit:
                return FULL
            permute(header, a, pool + ldw(row + PERMUTE_OFFSET), o)
            top -= FRAME
            row += ROW
        elif op == END:
            if (ldw(plan) == LENGTH and p != end) or (flags & PARTIAL == 0 and p != last):
                return FAILED
            if flags & PARTIAL:
                st8(o, 0xD3)
                st64(o + 1, p - source)
                o += 9
            return o - out
        else:  # SEEK, BACK and SKIP are for encoders
            row += ROW
