"""Wire -> MessagePack, by the rows of a plan.

The output is what msgspec decodes to the message's class: every struct an array in class order, every number of fixed
width after its type byte, in the wire's own byte order (no swap, no branch on its size).

A struct's trailing values may be omitted; msgspec then takes the defaults of the class. So an empty tag section costs
one byte of input, no output, and a smaller count in the struct's header, which is written first and patched.

There is a frame of FRAME bytes for each array, flexible struct and MARK that is open, with int64 at these offsets:

          array            flexible struct                                              MARK
     0    ELEMENTS_LEFT    HEADER: address of the array header in the output            HEADER
     8                     TAGS_LEFT: tagged fields that remain in the section
    16                     PREVIOUS_TAG: -1 before the first
    24                     NEXT_ENTRY: the first entry whose value has not been written
    32                     OUTER_END: end of the input around the tagged field
    40                     SECTION_START: address of the first tagged field
    48                     UNKNOWN_COUNT: fields whose tag has no entry
    56                     TAG_COUNT: all fields of the section

A tag section that is empty sets none of the fields after HEADER.
"""

from __future__ import annotations

from kwire.plan.kernels.lengths import read_length, read_marker, read_packed
from kwire.plan.kernels.messagepack import (
    MP_ARRAY,
    MP_ARRAY16,
    MP_BIN8,
    MP_BIN32,
    MP_FALSE,
    MP_FLOAT64,
    MP_INT8,
    MP_INT16,
    MP_INT32,
    MP_INT64,
    MP_NIL,
    MP_STRING,
    MP_STRING16,
    MP_TRUE,
    MP_UINT16,
    MP_UINT32,
    SHORT_ARRAY,
    SHORT_STRING,
    skip,
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
    UUID_BYTES,
    VIEW_BYTES,
    VIEWS,
    row_at,
)
from kwire.plan.rows import (
    ABSENT,
    ARRAY,
    BOOL,
    BYTES,
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
    NEXT,
    NULLABLE,
    PERMUTE,
    STRING,
    STRUCT,
    TAG_END,
    TAG_STEP,
    TAGS,
    UINT16,
    UINT32,
    VARINTS,
    VARLIST,
)
from kwire.wire.kernels.compiler import export, inlined, kernel, separate
from kwire.wire.kernels.memory import (
    copy_int16,
    copy_int32,
    copy_int64,
    copy_short,
    load_big_int32,
    load_byte,
    load_int64,
    store_big_int16,
    store_big_int32,
    store_big_int64,
    store_byte,
    store_int64,
)
from kwire.wire.kernels.primitives import apart
from kwire.wire.kernels.varints import read_uvarint

FAILED, FULL = -1, -2
SLACK = 96  # bytes that any step may write without a check; one that needs more checks first

# in the frame of a flexible struct
HEADER, TAGS_LEFT, PREVIOUS_TAG, NEXT_ENTRY, OUTER_END, SECTION_START, UNKNOWN_COUNT, TAG_COUNT = range(0, 64, 8)


@inlined
def put_fixed(code: int, p: int, o: int) -> tuple[int, int]:
    """Write one value of fixed width: (input address, output address) after it. Writes at most twice what it reads."""
    if code == INT32:
        store_byte(o, MP_INT32)
        copy_int32(o + 1, p)
        return p + 4, o + 5
    if code == INT16:
        store_byte(o, MP_INT16)
        copy_int16(o + 1, p)
        return p + 2, o + 3
    if code == INT64:
        store_byte(o, MP_INT64)
        copy_int64(o + 1, p)
        return p + 8, o + 9
    if code == BOOL:
        store_byte(o, MP_TRUE if load_byte(p) != 0 else MP_FALSE)
        return p + 1, o + 1
    if code == INT8:
        store_byte(o, MP_INT8)
        store_byte(o + 1, load_byte(p))
        return p + 1, o + 2
    if code == UINT16:
        store_byte(o, MP_UINT16)
        copy_int16(o + 1, p)
        return p + 2, o + 3
    if code == UINT32:
        store_byte(o, MP_UINT32)
        copy_int32(o + 1, p)
        return p + 4, o + 5
    if code == FLOAT64:
        store_byte(o, MP_FLOAT64)
        copy_int64(o + 1, p)
        return p + 8, o + 9
    store_big_int16(o, MP_BIN8 << 8 | UUID_BYTES)
    copy_int64(o + 2, p)
    copy_int64(o + 10, p + 8)
    return p + 16, o + 18


@separate
def put_packed(codes: int, count: int, p: int, end: int, o: int) -> tuple[int, int]:
    """Write a run of packed integers: (input address, output address) after it; the first is 0 on failure."""
    apart()
    for _ in range(count):
        v, p = read_packed(codes & 15, p, end)
        if p == 0:
            return 0, o
        o = write_int(o, v)
        codes >>= 4
    return p, o


@separate
def put_packed_list(flags: int, code: int, p: int, end: int, o: int, limit: int) -> tuple[int, int]:
    """Write an array of packed integers: (input address, output address) after it.

    The first is 0 on failure; the second is FULL if there is no room. A byte may become nine, so the room is checked
    for each value: most lists need far less than the maximum.
    """
    apart()
    n, p = read_length(LIST, flags, p, end)
    if n == -2 or n > end - p:  # each takes a byte at least
        return 0, o
    if n < 0:
        store_byte(o, MP_NIL)
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
    """Write n values of one width: (input address, output address) after them. Nearly all lists are of int32."""
    if code == INT32:
        for _ in range(n):
            store_byte(o, MP_INT32)
            copy_int32(o + 1, p)
            p += 4
            o += 5
        return p, o
    for _ in range(n):
        p, o = put_fixed(code, p, o)
    return p, o


@kernel
def find_entry(entries: int, count: int, first: int, tag: int) -> int:
    """Return the live entry of a tag from `first` on; count if no entry has the tag; -1 if it is misplaced (W-27)."""
    for j in range(first, count):
        if load_int64(row_at(entries, j) + ENTRY_TAG) == tag and load_int64(row_at(entries, j) + ENTRY_STATE) == LIVE:
            return j
    for j in range(count):
        if load_int64(row_at(entries, j) + ENTRY_TAG) == tag:
            return -1
    return count


@kernel
def put_defaults(entries: int, first: int, last: int, pool: int, o: int, limit: int) -> int:
    """Write the defaults of entries [first, last), which are not on the wire; returns the address after, or FULL."""
    for j in range(first, last):
        entry = row_at(entries, j)
        if load_int64(entry + ENTRY_STATE) == ELSEWHERE:  # the value is among the positional ones
            continue
        n = load_int64(entry + ENTRY_LENGTH)
        if o + n > limit:
            return FULL
        copy_short(o, pool + load_int64(entry + ENTRY_OFFSET), n)
        o += n
    return o


@kernel
def put_unknown(top: int, entries: int, count: int, end: int, o: int, limit: int) -> int:
    """Write the section's unknown fields as an array of [tag, bytes]; returns the address after, or FULL.

    Reads the section a second time if it has any.
    """
    o = write_array_header(o, load_int64(top + UNKNOWN_COUNT))
    if load_int64(top + UNKNOWN_COUNT) == 0:
        return o
    p = load_int64(top + SECTION_START)
    for _ in range(load_int64(top + TAG_COUNT)):
        tag, p = read_uvarint(p, end)
        n, p = read_uvarint(p, end)
        if find_entry(entries, count, 0, tag) == count:
            if o + n > limit:
                return FULL
            store_big_int16(o, (MP_ARRAY | 2) << 8 | MP_UINT32)
            store_big_int32(o + 2, tag)
            store_byte(o + 6, MP_BIN32)
            store_big_int32(o + 7, n)
            copy_short(o + 11, p, n)
            o += 11 + n
        p += n
    return o


@kernel
def permute(header: int, count: int, inverse: int, o: int) -> None:
    """Put the values of a struct into class order; value i is the inverse[i]-th in [after header, o).

    Needs room after o for a copy of the values. Walks over them count times: no message of Kafka needs that.
    """
    begin = header + (1 if count < SHORT_ARRAY else 3)
    size = o - begin
    copy_short(o, begin, size)
    target = begin
    for i in range(count):
        p = o
        for _ in range(load_byte(inverse + i)):
            p = skip(p)
        n = skip(p) - p
        copy_short(target, p, n)
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
        store_byte(o, MP_ARRAY | 2)
        o += 1
    while True:
        op = load_int64(row)
        a = load_int64(row + FIRST)
        if o > limit:
            return FULL
        if op == FIXED:
            n = load_int64(row + FIXED_BYTES)
            if n > end - p:
                return FAILED
            if o + 2 * n > limit:
                return FULL
            for _ in range(load_int64(row + FIXED_COUNT)):
                p, o = put_fixed(a & 15, p, o)
                a >>= 4
            row += ROW
        elif op == STRUCT:
            if load_int64(row + STRUCT_FLEXIBLE):
                top += FRAME
                store_int64(top + HEADER, o)
                o = write_array_header(o, a)
            else:
                o = write_array_header(o, load_int64(row + STRUCT_PRESENT))
            row += ROW
        elif op == TAGS:
            present = load_int64(row + TAGS_PRESENT)
            if p < end and load_byte(p) == 0 and present >= 0:
                p += 1
                header = load_int64(top + HEADER)
                top -= FRAME
                if load_byte(header) == MP_ARRAY16:
                    store_big_int16(header + 1, present)
                else:
                    store_byte(header, MP_ARRAY | present)
                row = row_at(plan, load_int64(row + TAGS_END))
            else:
                n, p = read_uvarint(p, end)
                if p == 0 or 2 * n > end - p:  # a field takes two bytes at least
                    return FAILED
                row += ROW  # the TAG_STEP
                m = load_int64(row + STEP_LENGTH)
                if o + m > limit:
                    return FULL
                copy_short(o, pool + load_int64(row + STEP_OFFSET), m)
                o += m
                store_int64(top + TAGS_LEFT, n)
                store_int64(top + PREVIOUS_TAG, -1)
                store_int64(top + NEXT_ENTRY, 0)
                store_int64(top + SECTION_START, p)
                store_int64(top + UNKNOWN_COUNT, 0)
                store_int64(top + TAG_COUNT, n)
        elif op == STRING:
            n, p = read_length(op, a, p, end)
            if n < 0:
                if n == -2:
                    return FAILED
                store_byte(o, MP_NIL)
                o += 1
            else:
                if n > end - p or n > MAX_STRING_BYTES:
                    return FAILED
                if o + n > limit:
                    return FULL
                if n < SHORT_STRING:
                    store_byte(o, MP_STRING | n)
                    o += 1
                else:
                    store_byte(o, MP_STRING16)
                    store_big_int16(o + 1, n)
                    o += 3
                copy_short(o, p, n)
                o += n
                p += n
            row += ROW
        elif op == LIST:
            n, p = read_length(op, a, p, end)
            if n < 0:
                if n == -2:
                    return FAILED
                store_byte(o, MP_NIL)
                o += 1
            else:
                m = n * load_int64(row + LIST_WIDTH)
                if m > end - p:
                    return FAILED
                if o + 2 * m > limit:
                    return FULL
                p, o = put_fixed_list(load_int64(row + LIST_CODE), n, p, write_array_header(o, n))
            row += ROW
        elif op == ARRAY:
            n, p = read_length(op, a, p, end)
            if n == -2 or (n > 0 and n * load_int64(row + ARRAY_MIN_BYTES) > end - p):
                return FAILED
            if n < 0:
                store_byte(o, MP_NIL)
                o += 1
            else:
                o = write_array_header(o, n)
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
            if load_int64(row + ABSENT_TRAILING) == 0:  # a trailing run is left to the class
                n = load_int64(row + ABSENT_RUN_BYTES)
                if o + n > limit:
                    return FULL
                copy_short(o, pool + a, n)
                o += n
            row = row_at(row, load_int64(row + ABSENT_RUN_ROWS))
        elif op == BYTES:
            n, p = read_length(op, a, p, end)
            if n < 0:
                if n == -2:
                    return FAILED
                store_byte(o, MP_NIL)
                o += 1
            elif n > end - p:
                return FAILED
            elif flags & VIEWS or (flags & LARGE and (n >= LARGE_BYTES or n == VIEW_BYTES)):
                store_big_int16(o, MP_BIN8 << 8 | VIEW_BYTES)
                store_big_int64(o + 2, p - source)
                store_big_int64(o + 10, n)
                o += 2 + VIEW_BYTES
                p += n
            else:
                if o + n > limit:
                    return FULL
                store_byte(o, MP_BIN32)
                store_big_int32(o + 1, n)
                copy_short(o + 5, p, n)
                o += 5 + n
                p += n
            row += ROW
        elif op == TAG_STEP:
            entries = row + ROW
            if load_int64(top + TAGS_LEFT) == 0:
                o = put_defaults(entries, load_int64(top + NEXT_ENTRY), a, pool, o, limit)
                if o >= 0:
                    o = put_unknown(top, entries, a, end, o, limit)
                if o < 0:
                    return FULL
                top -= FRAME
                row = row_at(plan, load_int64(row + STEP_END))
            else:
                tag, p = read_uvarint(p, end)
                if p == 0 or tag <= load_int64(top + PREVIOUS_TAG) or tag > MAX_TAG:
                    return FAILED
                n, p = read_uvarint(p, end)
                if p == 0 or n > end - p:
                    return FAILED
                store_int64(top + TAGS_LEFT, load_int64(top + TAGS_LEFT) - 1)
                store_int64(top + PREVIOUS_TAG, tag)
                j = find_entry(entries, a, load_int64(top + NEXT_ENTRY), tag)
                if j < 0:
                    return FAILED
                if j == a:
                    store_int64(top + UNKNOWN_COUNT, load_int64(top + UNKNOWN_COUNT) + 1)
                    p += n
                else:
                    o = put_defaults(entries, load_int64(top + NEXT_ENTRY), j, pool, o, limit)
                    if o < 0:
                        return FULL
                    store_int64(top + NEXT_ENTRY, j + 1)
                    store_int64(top + OUTER_END, end)
                    end = p + n
                    row = row_at(plan, load_int64(row_at(entries, j) + ENTRY_SUB))
        elif op == TAG_END:
            if p != end:
                return FAILED
            end = load_int64(top + OUTER_END)
            row = row_at(plan, a)
        elif op == NULLABLE:
            n, p = read_marker(load_int64(row + NULLABLE_TAGGED), p, end)
            if p == 0:
                return FAILED
            if n < 0:
                store_byte(o, MP_NIL)
                o += 1
                row = row_at(plan, a)
            else:
                row += ROW
        elif op == VARINTS:
            n = load_int64(row + FIXED_COUNT)
            if o + 9 * n > limit + SLACK:
                return FULL
            p, o = put_packed(a, n, p, end, o)
            if p == 0:
                return FAILED
            row += ROW
        elif op == VARLIST:
            p, o = put_packed_list(a, load_int64(row + LIST_CODE), p, end, o, limit)
            if p == 0:
                return FAILED
            if o == FULL:
                return FULL
            row += ROW
        elif op == LENGTH:
            if end - p < 4:
                return FAILED
            n = load_big_int32(p)
            p += 4
            if n < 0 or n > end - p:
                return FAILED
            end = p + n
            row += ROW
        elif op == MARK:
            top += FRAME
            store_int64(top + HEADER, o)
            row += ROW
        elif op == PERMUTE:
            header = load_int64(top + HEADER)
            if o + (o - header) > limit:
                return FULL
            permute(header, a, pool + load_int64(row + PERMUTE_OFFSET), o)
            top -= FRAME
            row += ROW
        elif op == END:
            if (load_int64(plan) == LENGTH and p != end) or (flags & PARTIAL == 0 and p != last):
                return FAILED
            if flags & PARTIAL:
                store_byte(o, MP_INT64)
                store_big_int64(o + 1, p - source)
                o += 9
            return o - out
        else:  # SEEK, BACK and SKIP are for encoders
            row += ROW
