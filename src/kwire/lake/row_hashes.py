"""Hashes of rows, to compare them without keeping them. They are those of this process: Python's are salted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

__all__ = ["are_comparable", "row_hashes"]

NULL, NAN = 0x9E3779B97F4A7C15, 0x7FF8000000000000
MULTIPLIER = 0x9FB21C651E98DF25


def are_comparable(left: pa.DataType, right: pa.DataType) -> bool:
    """Return whether two columns can have the same values: widened numbers, text as bytes, fields added to structs."""
    from pyarrow import types

    def is_bytes(kind: pa.DataType) -> bool:
        return bool(types.is_binary(kind) or types.is_large_binary(kind) or is_text(kind))

    def is_text(kind: pa.DataType) -> bool:
        return bool(types.is_string(kind) or types.is_large_string(kind))

    if left.equals(right):
        return True
    for is_kind in (types.is_integer, types.is_floating, types.is_timestamp, types.is_decimal, is_bytes):
        if is_kind(left) and is_kind(right):
            return True
    if types.is_struct(left) and types.is_struct(right):
        fields = {field.name: field.type for field in right}
        return all(field.name in fields and are_comparable(field.type, fields[field.name]) for field in left)
    if types.is_map(left) and types.is_map(right):
        return are_comparable(left.key_type, right.key_type) and are_comparable(left.item_type, right.item_type)
    is_list = [types.is_list(kind) or types.is_large_list(kind) for kind in (left, right)]
    return all(is_list) and are_comparable(left.value_type, right.value_type)


def row_hashes(rows: pa.RecordBatch, names: Sequence[str]) -> NDArray[np.uint64]:
    """Return a hash of 64 bits of each row's columns."""
    import numpy as np

    hashes = np.zeros(len(rows), np.uint64)
    for name in names:
        hashes = _combined(hashes, _hashes(rows.column(name)))
    return hashes


def _combined(left: NDArray[np.uint64], right: NDArray[np.uint64]) -> NDArray[np.uint64]:
    import numpy as np

    return _mixed(left * np.uint64(MULTIPLIER) + right)


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return splitmix64 of each number."""
    import numpy as np

    mixed = numbers + np.uint64(NULL)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _hashes(column: pa.Array) -> NDArray[np.uint64]:
    import numpy as np
    import pyarrow as pa
    from pyarrow import types

    kind = column.type
    if types.is_struct(kind):
        hashes = np.ones(len(column), np.uint64)
        for field in column.flatten():
            hashes = _combined(hashes, _hashes(field))
    elif types.is_binary(kind) or types.is_string(kind) or types.is_large_binary(kind) or types.is_large_string(kind):
        values = map(hash, column.cast(pa.large_binary()).to_pylist())
        hashes = _mixed(np.fromiter(values, np.int64, len(column)).view(np.uint64))
    elif types.is_floating(kind):
        numbers = column.cast(pa.float64()).fill_null(0).to_numpy(zero_copy_only=False)
        bits = np.where(np.isnan(numbers), np.uint64(NAN), np.ascontiguousarray(numbers).view(np.uint64))
        hashes = _mixed(bits)
    elif types.is_integer(kind) or types.is_boolean(kind) or types.is_temporal(kind):
        hashes = _mixed(_integers(column).view(np.uint64))
    else:
        hashes = _mixed(np.fromiter(map(hash, map(repr, column.to_pylist())), np.int64, len(column)).view(np.uint64))
    return np.where(column.is_null().to_numpy(zero_copy_only=False), np.uint64(NULL), hashes)


def _integers(column: pa.Array) -> NDArray[np.int64]:
    """Return the numbers of a column of at most 64 bits, 0 for null."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import types

    if types.is_temporal(column.type):
        column = column.view(pa.int64() if column.type.bit_width == 64 else pa.int32())
    elif types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    numbers = column.fill_null(0).to_numpy(zero_copy_only=False)
    return np.ascontiguousarray(numbers.astype(np.int64))
