"""The fields of messages of magic 0 and 1, for kernels of numba."""
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

from __future__ import annotations

import numpy as np

from kwire.records.batch_header import (
    LEGACY_TIMESTAMP,
    LEGACY_TIMESTAMP_POSITION,
)
from kwire.wire.kernels.compiler import inlined
from kwire.wire.kernels.memory import (
    load_big_int32,
)

__all__ = ["legacy_key_position", "read_field"]

LENGTH_BYTES = 4
"""Of the int32 before a key or a value."""
KEY_POSITION_0 = LEGACY_TIMESTAMP_POSITION
KEY_POSITION_1 = LEGACY_TIMESTAMP_POSITION + LEGACY_TIMESTAMP.size


@inlined
def legacy_key_position(magic):
    """Return the position in a message of the length of its key, where the fields common to all messages end."""
    return KEY_POSITION_0 if magic == 0 else KEY_POSITION_1


@inlined
def read_field(at, end):
    """Read the length of a key or value: (length, address of the bytes); address 0 if they end beyond `end`."""
    if end - at < LENGTH_BYTES:
        return np.int64(0), np.int64(0)
    length = load_big_int32(at)
    if length > end - at - LENGTH_BYTES:
        return np.int64(0), np.int64(0)
    return length, at + LENGTH_BYTES
