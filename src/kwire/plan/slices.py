"""Strings, bytes and lists of numbers as the kernels leave them: a position and a count in the messages.

Shared by `columns` and `nested_columns`, and as costly to import: numba, numpy and pyarrow.
"""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np
import pyarrow as pa

from kwire import native
from kwire.errors import OptionError
from kwire.plan import rows as r
from kwire.plan.kernels.flatten import DEFAULT_SLICE
from kwire.schema.model import Field

__all__ = [
    "DEFAULT_SLICE",
    "MAX_ARROW_OFFSET",
    "NUMPY",
    "SLICE",
    "ColumnArray",
    "Int64Array",
    "bits",
    "gather_slices",
    "stored_default",
]

Int64Array = np.ndarray[Any, np.dtype[np.int64]]
ColumnArray = np.ndarray[Any, np.dtype[Any]]
"""Numbers of any type, or slices."""

NUMPY: dict[int, np.dtype[Any]] = {
    r.BOOL: np.dtype(np.bool_),
    r.INT8: np.dtype(np.int8),
    r.INT16: np.dtype(np.int16),
    r.UINT16: np.dtype(np.uint16),
    r.INT32: np.dtype(np.int32),
    r.UINT32: np.dtype(np.uint32),
    r.INT64: np.dtype(np.int64),
    r.FLOAT64: np.dtype(np.float64),
    r.UUID: np.dtype("V16"),
    **dict.fromkeys(r.PACKED_NAMES, np.dtype(np.int64)),
}
"""Numbers in the output of the kernels, by code."""
SLICE = np.dtype([("position", np.int64), ("count", np.int64)])
"""count: -1 is null, DEFAULT_SLICE the default of the field."""
MAX_ARROW_OFFSET = 2**31 - 1


def stored_default(default: object) -> object:
    """Return the default of a number as numpy stores it."""
    return np.void(default.bytes) if isinstance(default, uuid.UUID) else default


def bits(present: ColumnArray) -> pa.Buffer:
    """Return a validity bitmap of an array of booleans."""
    return pa.array(present, pa.bool_()).buffers()[1]


def gather_slices(
    slices: ColumnArray, code: int, field: Field, path: str, source: ColumnArray
) -> tuple[pa.Buffer | None, ColumnArray, ColumnArray]:
    """Copy slices out of the messages. Returns (validity, offsets, values) of an Arrow array.

    code: of the numbers in a list; 0 for strings and bytes, whose values are uint8. source: the bytes of the messages.
    Raises OptionError, with path, for more values than an Arrow array can hold.
    """
    slices = np.ascontiguousarray(slices)
    count, counts = len(slices), slices["count"]
    constant = field.default.encode() if isinstance(field.default, str) else b""
    held = np.frombuffer(constant + b"\0", np.uint8)
    validity, total = None, int(counts.sum())
    if count and counts.min() < 0:
        present = counts != -1
        total = int(np.maximum(counts, 0).sum()) + int((counts == DEFAULT_SLICE).sum()) * len(constant)
        validity = None if present.all() else bits(present)
    if total > MAX_ARROW_OFFSET:
        raise OptionError(
            f"{path}: {total} bytes in one column, {MAX_ARROW_OFFSET} at most; read fewer messages per call"
        )
    offsets = np.empty(count + 1, np.int32)
    values = np.empty(total, np.uint8 if code in (0, r.BOOL) else NUMPY[code])
    native.gather(
        source.ctypes.data,
        len(source),
        slices.ctypes.data,
        count,
        offsets.ctypes.data,
        values.ctypes.data,
        code,
        held.ctypes.data,
        len(constant),
    )
    return validity, offsets, values
