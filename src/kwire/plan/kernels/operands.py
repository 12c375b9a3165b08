"""Where kernels find the operands of a row and the fields of a frame: offsets in bytes, each of an int64.

The operands and their meaning are those of `kwire.plan.rows`. FIRST is operand `a` of any row; the others are named for
the operation that has them.
"""

from __future__ import annotations

ROW, FRAME = 64, 64  # bytes

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
"""In the frame of an array."""

MAX_DEPTH = 32
"""Frames that the codec's kernels have. A plan that needs more is left to the walker (Kafka's deepest needs 10)."""

PARTIAL, VIEWS, LARGE = 1, 2, 4
VIEW_BYTES = 16
LARGE_BYTES = 4096
"""Flags of the decoder, and when LARGE applies: see `kwire.plan.kernels.decode.decode_message`."""
