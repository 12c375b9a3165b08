"""Strings, bytes and lists of numbers as compiled code leaves them: a position in the source and a count.

A table of int64 with these two columns. A count of -1 is null, DEFAULT_SLICE the default of the field. Imports numpy
and pyarrow.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from kwire import native
from kwire.errors import OptionError
from kwire.plan import rows as r
from kwire.plan.rows import DEFAULT_SLICE

__all__ = ["MAX_ARROW_OFFSET", "NUMPY", "Bytes", "ColumnArray", "Int64Array", "bits", "cut", "gather_slices"]

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Int64Array = np.ndarray[Any, np.dtype[np.int64]]
ColumnArray = np.ndarray[Any, np.dtype[Any]]

NUMPY: dict[int, np.dtype[Any]] = {
    r.BOOL: np.dtype(np.uint8),
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
"""Numbers in the output of compiled code, by code."""
MAX_ARROW_OFFSET = 2**31 - 1


def bits(present: ColumnArray) -> pa.Buffer:
    """Return a validity bitmap of an array of booleans."""
    return pa.array(present, pa.bool_()).buffers()[1]


def gather_slices(
    slices: Int64Array, code: int, default: object, path: str, source: Bytes
) -> tuple[pa.Buffer | None, ColumnArray, ColumnArray]:
    """Copy slices out of the messages, with compiled code. Returns (validity, offsets, values) of an Arrow array.

    code: of the numbers in a list; 0 for strings and bytes, whose values are uint8. default: of the field; only that of
    a string may be other than empty. Raises OptionError, with path, for more values than an Arrow array can hold.
    """
    count, counts = len(slices), slices[:, 1]
    constant = default.encode() if isinstance(default, str) else b""
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
    values = np.empty(total, NUMPY[code] if code else np.uint8)
    native.gather(source, slices, constant, code, offsets, values.view(np.uint8))
    return validity, offsets, values


def cut(source: Bytes, slices: Int64Array, path: str) -> pa.BinaryArray:
    """Return the bytes of each slice; null for a count of -1. Raises OptionError as `gather_slices`."""
    if native.LEVEL is None:
        pieces = [None if n < 0 else source[at : at + n].tobytes() for at, n in slices.tolist()]
        return pa.array(pieces, pa.binary())
    validity, offsets, values = gather_slices(slices, 0, None, path, source)
    return pa.Array.from_buffers(pa.binary(), len(slices), [validity, pa.py_buffer(offsets), pa.py_buffer(values)])
