"""Interfaces that every format implements: decoding values into Arrow arrays, and encoding them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kwire.errors import DecodeError, EncodeError, render_path

__all__ = [
    "Bytes",
    "Decoded",
    "Int32Array",
    "Int64Array",
    "RowError",
    "SchemaDecoder",
    "SchemaEncoder",
    "encode_error",
    "row_errors",
]

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]


class RowError(NamedTuple):
    """A value that cannot be decoded or encoded.

    row: its index. position: in bytes, from the start of the value after its prefix; 0 when encoding.
    what: path of the field and fault.
    """

    row: int
    position: int
    what: str


def row_errors(errors: Iterable[tuple[int, DecodeError]]) -> list[RowError]:
    """Return the errors of rows with their paths."""
    paths = ((row, error, render_path(error.path)) for row, error in errors)
    return [
        RowError(row, error.position, f"{path}: {error.what}" if path else error.what) for row, error, path in paths
    ]


def encode_error(row: int, error: EncodeError) -> RowError:
    """Return the error of a row that cannot be encoded."""
    return RowError(row, 0, str(error))


@dataclass(slots=True, frozen=True)
class Decoded:
    """Values, and the errors of those that are null because of one, in row order."""

    array: pa.Array
    errors: list[RowError]


class SchemaDecoder(Protocol):
    """Decodes values of several writers' schemas to one reader's schema. type: of the result; fields are nullable."""

    @property
    def type(self) -> pa.DataType: ...

    def decode(self, values: pa.Array, skip: Int64Array, writer: Int32Array | None = None) -> Decoded:
        """Decode an array of binary or large_binary. Bytes lead to errors, not to exceptions.

        skip: bytes before each value. writer: index of its schema, by default the first for all; -1 gives a null.
        """
        ...


class SchemaEncoder(Protocol):
    """Encodes values with one schema."""

    def encode(self, values: pa.Array, prefix: bytes) -> Decoded:
        """Encode values to binary, each after the prefix; null to null."""
        ...
