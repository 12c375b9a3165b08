"""The walk over a message that reads columns: one loop over the rows of a plan, for `flatten` and for `nest`.

The walk reads and checks the bytes; visitors decide what becomes of each value. Beside every row of the plan is a row
of the projection, four int64, which only visitors read. Every visitor takes the address of its row of the projection
and the columns; what else it takes, and the other parameters it may need:

    put_numbers      (codes, count, projected, columns, p, row, filling)       a run of numbers of fixed width at p
    put_packed       (codes, count, projected, columns, p, end, row, filling)  a run of packed integers; returns the
                                                                               address after it, 0 on failure
    put_slice        (op, n, p, source, projected, columns, row, filling)      n bytes or numbers at p, -1 for null;
                                                                               returns False to refuse them
    put_presence     (projected, columns, row, is_present, filling)            a struct that may be null
    enter_array      (n, projected, columns, rows, room, row, filling)         an array of n structs, -1 for null;
                                                                               returns (row of its first element,
                                                                               how far an element moves the row), or
                                                                               an error below 0
    is_wanted        (projected)                                               whether a tagged field is read

    frame of an array           elements left, row of the struct that holds it, how far an element moves the row
    frame of a tag section      fields left, previous tag, end outside the field
"""

from __future__ import annotations

from collections.abc import Callable

from kwire.plan.kernels.decode import FAILED, find_entry, read_length, read_marker, read_packed
from kwire.plan.kernels.memory import ld32, ldw, read_uvarint, stw
from kwire.plan.kernels.operands import (
    ARRAY_END,
    ARRAY_MIN_BYTES,
    ELEMENTS_LEFT,
    ENTRY_SUB,
    FIRST,
    FIXED_BYTES,
    FIXED_COUNT,
    FRAME,
    LIST_CODE,
    LIST_WIDTH,
    NULLABLE_TAGGED,
    ROW,
    STEP_END,
    TAGS_END,
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
from kwire.wire.kernels.compiler import inlined, separate
from kwire.wire.kernels.primitives import apart

PROJECTION = 32
"""Bytes of a row of the projection."""

PARENT_ROW, ROW_STEP = 8, 16
TAGS_LEFT, PREVIOUS_TAG, OUTER_END = 0, 8, 16


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


@separate
def skip_packed(code: int, n: int, p: int, end: int) -> int:
    """Walk over n packed integers; returns the address after them, 0 on failure."""
    apart()
    for _ in range(n):
        _, p = read_packed(code, p, end)
        if p == 0:
            return 0
    return p


@inlined
def next_tag(top: int, entries: int, count: int, p: int, end: int) -> tuple[int, int, int]:
    """Read tag and size of the next tagged field: (its entry, its size, address of its value).

    The entry is `count` for a field that no entry has, -1 on failure.
    """
    tag, p = read_uvarint(p, end)
    if p == 0 or tag <= ldw(top + PREVIOUS_TAG) or tag > MAX_TAG:
        return -1, 0, 0
    n, p = read_uvarint(p, end)
    if p == 0 or n > end - p:
        return -1, 0, 0
    stw(top + TAGS_LEFT, ldw(top + TAGS_LEFT) - 1)
    stw(top + PREVIOUS_TAG, tag)
    return find_entry(entries, count, 0, tag), n, p


def make_walk(
    put_numbers: Callable[..., None],
    put_packed: Callable[..., int],
    put_slice: Callable[..., bool],
    put_presence: Callable[..., None],
    enter_array: Callable[..., tuple[int, int]],
    is_wanted: Callable[..., bool],
) -> Callable[..., int]:
    """Make the walk for these visitors."""

    @inlined
    def walk(
        p: int,
        last: int,
        source: int,
        plan: int,
        projection: int,
        columns: int,
        rows: int,
        room: int,
        frames: int,
        row: int,
        filling: int,
    ) -> int:
        """Read the message between p and last into row `row` of level 0. Returns 0, FAILED, or a visitor's error."""
        end = last
        line = plan
        projected = projection
        top = frames - FRAME
        while True:
            op = ldw(line)
            a = ldw(line + FIRST)
            step = 1
            if op == FIXED:
                n = ldw(line + FIXED_BYTES)
                if n > end - p:
                    return FAILED
                put_numbers(a, ldw(line + FIXED_COUNT), projected, columns, p, row, filling)
                p += n
            elif op == STRING or op == BYTES or op == LIST:
                n, p = read_length(op, a, p, end)
                if n == -2:
                    return FAILED
                size = n * ldw(line + LIST_WIDTH) if op == LIST else n
                if size > end - p or (op == STRING and n > MAX_STRING_BYTES):
                    return FAILED
                if not put_slice(op, n, p, source, projected, columns, row, filling):
                    return FAILED
                if n > 0:
                    p += size
            elif op == ARRAY:
                n, p = read_length(op, a, p, end)
                if n == -2 or (n > 0 and n * ldw(line + ARRAY_MIN_BYTES) > end - p):
                    return FAILED
                first, move = enter_array(n, projected, columns, rows, room, row, filling)
                if first < 0:
                    error: int = first
                    return error
                if n <= 0:
                    step = ldw(line + ARRAY_END) - ((line - plan) // ROW)
                else:
                    top += FRAME
                    stw(top + ELEMENTS_LEFT, n)
                    stw(top + PARENT_ROW, row)
                    stw(top + ROW_STEP, move)
                    row = first
            elif op == NEXT:
                n = ldw(top + ELEMENTS_LEFT) - 1
                if n > 0:
                    stw(top + ELEMENTS_LEFT, n)
                    row += ldw(top + ROW_STEP)
                    step = a - ((line - plan) // ROW)
                else:
                    row = ldw(top + PARENT_ROW)
                    top -= FRAME
            elif op == TAGS:
                n, p = read_uvarint(p, end)
                if p == 0 or 2 * n > end - p:
                    return FAILED
                if n == 0:
                    step = ldw(line + TAGS_END) - ((line - plan) // ROW)
                else:
                    top += FRAME
                    stw(top + TAGS_LEFT, n)
                    stw(top + PREVIOUS_TAG, -1)
                    stw(top + OUTER_END, end)
            elif op == TAG_STEP:
                if ldw(top + TAGS_LEFT) == 0:
                    top -= FRAME
                    step = ldw(line + STEP_END) - ((line - plan) // ROW)
                else:
                    j, n, p = next_tag(top, line + ROW, a, p, end)
                    if j < 0:
                        return FAILED
                    if j < a and is_wanted(projected + PROJECTION + PROJECTION * j):
                        end = p + n
                        step = ldw(line + ROW + ROW * j + ENTRY_SUB) - ((line - plan) // ROW)
                    else:
                        p += n
                        step = 0
            elif op == TAG_END:
                if p != end:
                    return FAILED
                end = ldw(top + OUTER_END)
                step = a - ((line - plan) // ROW)
            elif op == NULLABLE:
                n, p = read_marker(ldw(line + NULLABLE_TAGGED), p, end)
                if p == 0:
                    return FAILED
                put_presence(projected, columns, row, n >= 0, filling)
                if n < 0:
                    step = a - ((line - plan) // ROW)
            elif op == VARINTS:
                p = put_packed(a, ldw(line + FIXED_COUNT), projected, columns, p, end, row, filling)
                if p == 0:
                    return FAILED
            elif op == VARLIST:
                n, p = read_length(op, a, p, end)
                if n == -2 or n > end - p:
                    return FAILED
                put_slice(op, n, p, source, projected, columns, row, filling)
                if n > 0:
                    p = skip_packed(ldw(line + LIST_CODE), n, p, end)
                    if p == 0:
                        return FAILED
            elif op == LENGTH:
                if end - p < 4 or ld32(p) != end - p - 4:
                    return FAILED
                p += 4
            elif op == END:
                return 0 if p == last else FAILED
            line += ROW * step
            projected += PROJECTION * step

    return walk
