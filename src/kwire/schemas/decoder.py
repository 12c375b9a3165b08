"""What every format gives: values as Arrow arrays, and back."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["Bytes", "Int64Array", "RowError", "SchemaDecoder", "SchemaEncoder"]

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Int64Array = npt.NDArray[np.int64]


class RowError(NamedTuple):
    """A value that cannot be decoded or encoded.

    row: index of the value. position: in bytes from the start of the value after its prefix; -1 if there is none.
    what: path of the field and fault.
    """

    row: int
    position: int
    what: str


class SchemaDecoder(Protocol):
    """Decodes values of one writer's schema. arrow_type: of a value; fields are nullable."""

    @property
    def arrow_type(self) -> pa.DataType: ...

    def decode(self, source: Bytes, starts: Int64Array, ends: Int64Array) -> tuple[pa.Array, list[RowError]]:
        """Decode the values at source[starts[i]:ends[i]], without prefix.

        A start of -1 is a null. Values with errors are null in the array. Bytes lead to errors, not to exceptions.
        """
        ...


class SchemaEncoder(Protocol):
    """Encodes values with one schema. arrow_type: of a value."""

    @property
    def arrow_type(self) -> pa.DataType: ...

    def encode(self, values: pa.Array) -> tuple[pa.Array, list[RowError]]:
        """Encode values to binary without prefix; null to null. Values with errors are null in the array."""
        ...
