"""Which columns of a data file get a dictionary: those whose values repeat.

Parquet's writer looks up each value in a hash table until a dictionary has a mebibyte, and only then writes values as
they are. For columns of mostly different values, such as ids, times and amounts, that takes most of the time of
writing, and the file becomes larger. A sample of the first rows decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["repeating_columns"]

SAMPLE = 4096
"""Number of rows that are looked at, in slices from all parts of the rows."""

SLICES = 16
MOSTLY_DIFFERENT = 0.5
"""Share of different values in the sample, above which a column has no dictionary."""


def repeating_columns(rows: pa.Table) -> list[str]:
    """Return the paths in Parquet's schema of the columns whose values repeat."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if len(rows) > SAMPLE:
        step, size = len(rows) // SLICES, SAMPLE // SLICES
        rows = pa.concat_tables(rows.slice(number * step, size) for number in range(SLICES))
    found = []
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        for path, values in _leaves(name, column.combine_chunks()):
            count = len(values) - values.null_count
            if not count or pc.count_distinct(values).as_py() <= MOSTLY_DIFFERENT * count:
                found.append(path)
    return found


def _leaves(path: str, values: pa.Array) -> Iterator[tuple[str, pa.Array]]:
    """Return the columns of Parquet that an array has, by their paths."""
    from pyarrow import types

    kind = values.type
    if types.is_struct(kind):
        for field, child in zip(kind, values.flatten(), strict=True):
            yield from _leaves(f"{path}.{field.name}", child)
    elif types.is_map(kind):
        yield from _leaves(f"{path}.key_value.key", values.keys)
        yield from _leaves(f"{path}.key_value.value", values.items)
    elif types.is_list(kind) or types.is_large_list(kind):
        yield from _leaves(f"{path}.list.element", values.flatten())
    elif not (types.is_boolean(kind) or types.is_null(kind) or types.is_dictionary(kind)):
        yield path, values
