"""Names for the operands of a plan's rows: their offsets in bytes. Each operand is an int64.

A row has ROW bytes: the operation at offset 0, then the operands a to g of `kwire.plan.rows`, which has their meaning:

    offset    8       16         24           32            40           48          56
    operand   a       b          c            d             e            f           g
    any row   FIRST
    STRUCT            PRESENT    FLEXIBLE
    FIXED             COUNT      BYTES
    LIST              CODE       WIDTH
    ARRAY             END        MIN_BYTES
    NULLABLE          TAGGED
    ABSENT            LENGTH     IGNORABLE    FLOATS        RUN_BYTES    RUN_ROWS    TRAILING
    TAGS              END        PRESENT      OFFSET        LENGTH       FLOATS
    TAG_STEP          END        OFFSET       LENGTH
    ENTRY     TAG     STATE      SUB          OFFSET        LENGTH       FLOATS      IGNORABLE
    PERMUTE           OFFSET

A name here begins with the operation: FIXED_COUNT, TAGS_END; with STEP for TAG_STEP. VARINTS and VARLIST have the
operands of FIXED and LIST.
"""

from __future__ import annotations

from kwire.wire.kernels.compiler import inlined

ROW, FRAME = 64, 64  # bytes

UUID_BYTES = 16

FIRST = 8
STRUCT_PRESENT, STRUCT_FLEXIBLE = 16, 24
FIXED_COUNT, FIXED_BYTES = 16, 24
LIST_CODE, LIST_WIDTH = 16, 24
ARRAY_END, ARRAY_MIN_BYTES = 16, 24
NULLABLE_TAGGED = 16
ABSENT_LENGTH, ABSENT_IGNORABLE, ABSENT_FLOATS, ABSENT_RUN_BYTES, ABSENT_RUN_ROWS, ABSENT_TRAILING = range(16, 64, 8)
TAGS_END, TAGS_PRESENT, TAGS_OFFSET, TAGS_LENGTH, TAGS_FLOATS = range(16, 56, 8)
STEP_END, STEP_OFFSET, STEP_LENGTH = range(16, 40, 8)
ENTRY_TAG, ENTRY_STATE, ENTRY_SUB, ENTRY_OFFSET, ENTRY_LENGTH, ENTRY_FLOATS, ENTRY_IGNORABLE = range(8, 64, 8)
PERMUTE_OFFSET = 16

ELEMENTS_LEFT = 0
"""In the frame of an array: the first field, in every kernel that has frames."""

MAX_DEPTH = 32
"""Frames of the codec's kernels. The walker reads and writes plans that need more; Kafka's deepest needs 10."""

PARTIAL, VIEWS, LARGE = 1, 2, 4
VIEW_BYTES = 16
LARGE_BYTES = 4096
"""Flags of the decoder, and when LARGE applies: see `kwire.plan.kernels.decode.decode_message`."""


@inlined
def row_at(rows: int, i: int) -> int:
    """Return the address of row i of a plan, or of the entries of a tag section."""
    return rows + ROW * i
