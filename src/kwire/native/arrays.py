"""The array types in the signatures of exported kernels: C-contiguous numpy arrays, or other buffers of this kind.

A kernel only writes to its Writable parameters; calls refuse a read-only array for them.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = [
    "WIDE",
    "Bytes",
    "Int32s",
    "Int64Table",
    "Int64s",
    "UInt64Table",
    "UInt64s",
    "WritableBytes",
    "WritableInt32s",
    "WritableInt64Table",
    "WritableInt64s",
    "WritableUInt32s",
    "WritableUInt64Table",
]

Bytes: TypeAlias = bytes | bytearray | memoryview | npt.NDArray[np.uint8]
"""uint8, one dimension."""
Int32s: TypeAlias = npt.NDArray[np.int32]
Int64s: TypeAlias = npt.NDArray[np.int64]
UInt64s: TypeAlias = npt.NDArray[np.uint64]
"""One dimension."""
Int64Table: TypeAlias = npt.NDArray[np.int64]
UInt64Table: TypeAlias = npt.NDArray[np.uint64]
"""Two dimensions."""
WritableBytes: TypeAlias = npt.NDArray[np.uint8]
WritableInt32s: TypeAlias = npt.NDArray[np.int32]
WritableUInt32s: TypeAlias = npt.NDArray[np.uint32]
WritableInt64s: TypeAlias = npt.NDArray[np.int64]
WritableInt64Table: TypeAlias = npt.NDArray[np.int64]
WritableUInt64Table: TypeAlias = npt.NDArray[np.uint64]
WIDE = 32
"""Bytes that a kernel may write beyond the end of its output: it copies short values by moves of this size."""
