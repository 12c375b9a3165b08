"""Partitioning and order of a Delta table: columns, and `offset desc`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kwire.errors import OptionError, did_you_mean
from kwire.lake.evolution import type_name
from kwire.lake.table import Layout

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
            raise _unknown_column("partitionBy", name, schema)
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


def _unknown_column(option: str, name: str, schema: pa.Schema) -> OptionError:
    return OptionError(
        f"Option '{option}': unknown column '{name}'{did_you_mean(name, schema.names)}; available: "
        f"{', '.join(schema.names)}"
    )


def sort_terms(layout: Layout, schema: pa.Schema) -> tuple[tuple[str, str], ...]:
    """Return the columns that rows are sorted by, with the order. Raises OptionError."""
    return tuple(_sort_term(term, schema) for term in layout.sort_by)


def _sort_term(term: str, schema: pa.Schema) -> tuple[str, str]:
    from pyarrow import types

    name, _, order = term.strip().partition(" ")
    orders = {"": "ascending", "asc": "ascending", "desc": "descending"}
    if order.strip().lower() not in orders:
        raise OptionError(f"Option 'sortBy': expected a column, with asc or desc after it, got '{term}'")
    if name not in schema.names:
        raise _unknown_column("sortBy", name, schema)
    kind = schema.field(name).type
    if types.is_nested(kind):
        raise OptionError(
            f"Option 'sortBy': column '{name}' is of type {type_name(kind)}, which has no order; sort by another column"
        )
    return name, orders[order.strip().lower()]
