"""Partitioning and order of a Delta table: columns, and `offset desc`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kwire.errors import OptionError
from kwire.lake.evolution import type_name
from kwire.lake.table import Layout, sort_term, unknown_column, without_order

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["can_partition", "check_partitioning", "sort_terms"]


def check_partitioning(columns: Sequence[str], schema: pa.Schema) -> None:
    """Raise OptionError unless a new table can be partitioned by columns."""
    for number, name in enumerate(columns):
        if "(" in name:
            raise OptionError(
                f"Option 'partitionBy': Delta tables are partitioned by columns, not by '{name}'; add a column, "
                "such as withColumn('day', to_date('timestamp')), and partition by it"
            )
        if name not in schema.names:
            raise unknown_column("partitionBy", name, schema.names)
        if not can_partition(schema.field(name).type):
            raise OptionError(
                f"Option 'partitionBy': column '{name}' is of type {type_name(schema.field(name).type)}, and Delta "
                "tables are partitioned by strings, numbers, dates and times; add a column of such a type"
            )
        if name in columns[:number]:
            raise OptionError(f"Option 'partitionBy': names column '{name}' twice")
    if len(columns) == len(schema):
        raise OptionError("Option 'partitionBy': names all columns; Delta requires one that is not")


def can_partition(kind: pa.DataType) -> bool:
    """Return whether readers of Delta tables agree on the partition values of a type.

    Binary values are escaped in the log, which delta-rs does when it writes, and does not undo when it reads.
    """
    from pyarrow import types

    return not (types.is_nested(kind) or types.is_binary(kind))


def sort_terms(layout: Layout, schema: pa.Schema) -> tuple[tuple[str, str], ...]:
    """Return the columns that rows are sorted by, with the order. Raises OptionError."""
    return tuple(_sort_term(term, schema) for term in layout.sort_by)


def _sort_term(term: str, schema: pa.Schema) -> tuple[str, str]:
    from pyarrow import types

    name, order = sort_term(term)
    if name not in schema.names:
        raise unknown_column("sortBy", name, schema.names)
    kind = schema.field(name).type
    if types.is_nested(kind):
        raise without_order(name, type_name(kind))
    return name, order
