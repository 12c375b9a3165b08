"""Names for the operands of a plan's rows: their offsets in bytes. Each operand is an int64.

A row has ROW bytes: the operation at offset 0, then the operands a to g of `kwire.plan.rows`, which has their meaning:

    offset    8       16         24
    operand   a       b          c
    any row   FIRST
    FIXED             COUNT      BYTES
    LIST              CODE       WIDTH
    ARRAY             END        MIN_BYTES
    NULLABLE          TAGGED
    TAGS              END
    TAG_STEP          END
    ENTRY     TAG     STATE      SUB

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
TAGS_END = STEP_END = 16
ENTRY_TAG, ENTRY_STATE, ENTRY_SUB = 8, 16, 24

ELEMENTS_LEFT = 0
"""In the frame of an array: the first field, in every kernel that has frames."""

MAX_FRAMES = 224
"""Open structs and arrays of a message: 2 for each level. Kafka's deepest message needs 13."""

FAILED, FULL = -1, -2
"""What kernels return: the input is not acceptable, the output has no room."""


@inlined
def row_at(rows: int, i: int) -> int:
    """Return the address of row i of a plan, or of the entries of a tag section."""
    return rows + ROW * i
