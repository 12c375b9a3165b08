"""Names for the operands of a plan's rows: their offsets in bytes. Each operand is an int64.

A row has ROW bytes: the operation at offset 0, then the operands a to g of `kwire.plan.rows`, which has their meaning:

    offset    8       16         24           32            40           48          56
    operand   a       b          c            d             e            f           g
    any row   FIRST
    FIXED             COUNT      BYTES
    LIST              CODE       WIDTH
    ARRAY             END        MIN_BYTES
    NULLABLE          TAGGED
    ABSENT            LENGTH     IGNORABLE    FLOATS        RUN_BYTES    RUN_ROWS
    TAGS              END                     OFFSET        LENGTH       FLOATS
    TAG_STEP          END
    ENTRY     TAG     STATE      SUB          OFFSET        LENGTH       FLOATS      IGNORABLE

These are the operands that kernels read; `native/messages.c` declares a row as a struct. A name here begins with the
operation: FIXED_COUNT, TAGS_END; with STEP for TAG_STEP. VARINTS and VARLIST have the operands of FIXED and LIST.
"""

from __future__ import annotations

from kwire.wire.kernels.compiler import inlined

ROW, FRAME = 64, 64  # bytes

UUID_BYTES = 16

FIRST = 8
FIXED_COUNT, FIXED_BYTES = 16, 24
LIST_CODE, LIST_WIDTH = 16, 24
ARRAY_END, ARRAY_MIN_BYTES = 16, 24
NULLABLE_TAGGED = 16
ABSENT_LENGTH, ABSENT_IGNORABLE, ABSENT_FLOATS, ABSENT_RUN_BYTES, ABSENT_RUN_ROWS = range(16, 56, 8)
TAGS_END, TAGS_OFFSET, TAGS_LENGTH, TAGS_FLOATS = 16, *range(32, 56, 8)
STEP_END = 16
ENTRY_TAG, ENTRY_STATE, ENTRY_SUB, ENTRY_OFFSET, ENTRY_LENGTH, ENTRY_FLOATS, ENTRY_IGNORABLE = range(8, 64, 8)

ELEMENTS_LEFT = 0
"""In the frame of an array: the first field, in every kernel that has frames."""

MAX_DEPTH = 320
"""Frames of the encoder: 3 for each level that definitions allow. Kafka's deepest message needs 10."""

MAX_FRAMES = 224
"""Open structs and arrays of the decoder: 2 for each level. Kafka's deepest message needs 13."""

FAILED, FULL = -1, -2
"""What kernels return: the input is not acceptable, the output has no room."""


@inlined
def row_at(rows: int, i: int) -> int:
    """Return the address of row i of a plan, or of the entries of a tag section."""
    return rows + ROW * i
