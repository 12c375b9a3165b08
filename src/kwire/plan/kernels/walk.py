"""The walk over a message that reads columns: one loop over the rows of a plan, for `flatten` and for `nest`.

The walk reads and checks the bytes; visitors store the values. Every row of the plan has a row of the projection, four
int64 that only visitors read. The visitors, each of which takes the address of its row of the projection:

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

Frames, FRAME bytes for each array or tag section that is open (int64 at these offsets):

                 0                8                                      16
    array        ELEMENTS_LEFT    PARENT_ROW: of the struct around it    ROW_STEP: how far an element moves the row
    tag section  TAGS_LEFT        PREVIOUS_TAG                           OUTER_END: end of the input around the field
"""

from __future__ import annotations

from collections.abc import Callable

from kwire.plan.kernels.lengths import read_length, read_marker, read_packed
from kwire.plan.kernels.operands import (
    ARRAY_END,
    ARRAY_MIN_BYTES,
    ELEMENTS_LEFT,
    ENTRY_STATE,
    ENTRY_SUB,
    ENTRY_TAG,
    FAILED,
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
    row_at,
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
    LIVE,
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
from kwire.wire.kernels.compiler import inlined, kernel, separate
from kwire.wire.kernels.memory import load_big_uint32, load_int64, store_int64
from kwire.wire.kernels.primitives import apart
from kwire.wire.kernels.varints import read_uvarint

PROJECTION = 32
"""Bytes of a row of the projection."""
SLICE, SLICE_COUNT = 16, 8
"""Bytes of a slice, (position in the source, count), and where in them the count is."""

PARENT_ROW, ROW_STEP = 8, 16  # in the frame of an array, after ELEMENTS_LEFT
TAGS_LEFT, PREVIOUS_TAG, OUTER_END = 0, 8, 16  # in the frame of a tag section
LENGTH_BYTES = 4  # the int32 of LENGTH


@inlined
def projected_at(projection: int, i: int) -> int:
    """Return the address of row i of a projection."""
    return projection + PROJECTION * i


@inlined
def rows_between(plan: int, line: int, target: int) -> int:
    """Return the number of rows from the row at `line` to row number `target`."""
    return target - (line - plan) // ROW


@inlined
def slice_at(slices: int, i: int) -> int:
    """Return the address of slice i."""
    return slices + SLICE * i


@inlined
def set_slice(slices: int, i: int, position: int, count: int) -> None:
    """Set slice i."""
    at = slice_at(slices, i)
    store_int64(at, position)
    store_int64(at + SLICE_COUNT, count)


@inlined
def width_of(code: int) -> int:
    """Return the bytes of a number on the wire."""
    if code == INT32 or code == UINT32:
        return 4
    if code == INT64 or code == FLOAT64:
        return 8
    if code == INT16 or code == UINT16:
        return 2
    return 16 if code == UUID else 1


@separate
def skip_packed(code: int, n: int, p: int, end: int) -> int:
    """Skip n packed integers; returns the address after them, 0 on failure."""
    apart()
    for _ in range(n):
        _, p = read_packed(code, p, end)
        if p == 0:
            return 0
    return p


@kernel
def find_entry(entries: int, count: int, tag: int) -> int:
    """Return the live entry of a tag; count if no entry has the tag; -1 if it is misplaced (W-27)."""
    for j in range(count):
        if load_int64(row_at(entries, j) + ENTRY_TAG) == tag and load_int64(row_at(entries, j) + ENTRY_STATE) == LIVE:
            return j
    for j in range(count):
        if load_int64(row_at(entries, j) + ENTRY_TAG) == tag:
            return -1
    return count


@inlined
def next_tag(top: int, entries: int, count: int, p: int, end: int) -> tuple[int, int, int]:
    """Read tag and size of the next tagged field: (its entry, its size, address of its value).

    The entry is `count` for a field that no entry has, -1 on failure.
    """
    tag, p = read_uvarint(p, end)
    if p == 0 or tag <= load_int64(top + PREVIOUS_TAG) or tag > MAX_TAG:
        return -1, 0, 0
    n, p = read_uvarint(p, end)
    if p == 0 or n > end - p:
        return -1, 0, 0
    store_int64(top + TAGS_LEFT, load_int64(top + TAGS_LEFT) - 1)
    store_int64(top + PREVIOUS_TAG, tag)
    return find_entry(entries, count, tag), n, p


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
            op = load_int64(line)
            a = load_int64(line + FIRST)
            step = 1
            if op == FIXED:
                n = load_int64(line + FIXED_BYTES)
                if n > end - p:
                    return FAILED
                put_numbers(a, load_int64(line + FIXED_COUNT), projected, columns, p, row, filling)
                p += n
            elif op == STRING or op == BYTES or op == LIST:
                n, p = read_length(op, a, p, end)
                if n == -2:
                    return FAILED
                size = n * load_int64(line + LIST_WIDTH) if op == LIST else n
                if size > end - p or (op == STRING and n > MAX_STRING_BYTES):
                    return FAILED
                if not put_slice(op, n, p, source, projected, columns, row, filling):
                    return FAILED
                if n > 0:
                    p += size
            elif op == ARRAY:
                n, p = read_length(op, a, p, end)
                if n == -2 or (n > 0 and n * load_int64(line + ARRAY_MIN_BYTES) > end - p):
                    return FAILED
                first, move = enter_array(n, projected, columns, rows, room, row, filling)
                if first < 0:
                    error: int = first
                    return error
                if n <= 0:
                    step = rows_between(plan, line, load_int64(line + ARRAY_END))
                else:
                    top += FRAME
                    store_int64(top + ELEMENTS_LEFT, n)
                    store_int64(top + PARENT_ROW, row)
                    store_int64(top + ROW_STEP, move)
                    row = first
            elif op == NEXT:
                n = load_int64(top + ELEMENTS_LEFT) - 1
                if n > 0:
                    store_int64(top + ELEMENTS_LEFT, n)
                    row += load_int64(top + ROW_STEP)
                    step = rows_between(plan, line, a)
                else:
                    row = load_int64(top + PARENT_ROW)
                    top -= FRAME
            elif op == TAGS:
                n, p = read_uvarint(p, end)
                if p == 0 or 2 * n > end - p:
                    return FAILED
                if n == 0:
                    step = rows_between(plan, line, load_int64(line + TAGS_END))
                else:
                    top += FRAME
                    store_int64(top + TAGS_LEFT, n)
                    store_int64(top + PREVIOUS_TAG, -1)
                    store_int64(top + OUTER_END, end)
            elif op == TAG_STEP:
                if load_int64(top + TAGS_LEFT) == 0:
                    top -= FRAME
                    step = rows_between(plan, line, load_int64(line + STEP_END))
                else:
                    j, n, p = next_tag(top, line + ROW, a, p, end)
                    if j < 0:
                        return FAILED
                    if j < a and is_wanted(projected_at(projected + PROJECTION, j)):
                        end = p + n
                        step = rows_between(plan, line, load_int64(row_at(line + ROW, j) + ENTRY_SUB))
                    else:
                        p += n
                        step = 0
            elif op == TAG_END:
                if p != end:
                    return FAILED
                end = load_int64(top + OUTER_END)
                step = rows_between(plan, line, a)
            elif op == NULLABLE:
                n, p = read_marker(load_int64(line + NULLABLE_TAGGED), p, end)
                if p == 0:
                    return FAILED
                put_presence(projected, columns, row, n >= 0, filling)
                if n < 0:
                    step = rows_between(plan, line, a)
            elif op == VARINTS:
                p = put_packed(a, load_int64(line + FIXED_COUNT), projected, columns, p, end, row, filling)
                if p == 0:
                    return FAILED
            elif op == VARLIST:
                n, p = read_length(op, a, p, end)
                if n == -2 or n > end - p:
                    return FAILED
                put_slice(op, n, p, source, projected, columns, row, filling)
                if n > 0:
                    p = skip_packed(load_int64(line + LIST_CODE), n, p, end)
                    if p == 0:
                        return FAILED
            elif op == LENGTH:
                if end - p < LENGTH_BYTES or load_big_uint32(p) != end - p - LENGTH_BYTES:
                    return FAILED
                p += LENGTH_BYTES
            elif op == END:
                return 0 if p == last else FAILED
            line = row_at(line, step)
            projected = projected_at(projected, step)

    return walk
