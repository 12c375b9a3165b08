"""Partitioning and order of an Iceberg table: `days(timestamp)`, `bucket(16, key)`; `key`, `offset desc`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kwire.errors import OptionError, did_you_mean
from kwire.lake.table import Layout, sort_term, unknown_column, without_order

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.table import Transaction
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.types import IcebergType

__all__ = ["layout_of", "partition_terms", "set_partitioning", "set_sort_order", "sort_terms"]

TERM = re.compile(r"\s*(\w+)\s*\(\s*([^()]+?)\s*\)\s*")
TIMES = {
    "years": "year",
    "year": "year",
    "months": "month",
    "month": "month",
    "days": "day",
    "day": "day",
    "date": "day",
    "hours": "hour",
    "hour": "hour",
}
SIZED = ("bucket", "truncate")
"""Transforms with a number before the column, as in Iceberg's SQL for Spark."""

TAKES = {
    "identity": "partition by a column of simple values",
    **dict.fromkeys(TIMES, "this transform requires a date or timestamp"),
    "bucket": "this transform requires an integer, decimal, date, time, string or binary",
    "truncate": "this transform requires an integer, decimal, string or binary",
}
"""What to do about a column of another type than a transform requires."""

MAX_INT32 = (1 << 31) - 1


def set_partitioning(transaction: Transaction, terms: Sequence[str]) -> None:
    """Add the partition fields of a new table. Raises OptionError."""
    from pyiceberg.transforms import parse_transform

    schema = transaction.table_metadata.schema()
    seen = dict[tuple[str, str], str]()
    with transaction.update_spec() as update:
        for term in terms:
            text, column = _parse(term)
            kind = _type_of("partitionBy", column, schema)
            family = text.partition("[")[0]
            if not parse_transform(text).can_transform(kind):
                raise OptionError(
                    f"Option 'partitionBy': {term}: column '{column}' is of type {_type_name(kind)}; {TAKES[family]}"
                )
            place = column, "time" if family in TIMES else family
            if place in seen:
                raise OptionError(f"Option 'partitionBy': {term} divides by the same column as {seen[place]}; keep one")
            seen[place] = term
            try:
                update.add_field(column, text)
            except ValueError as error:
                raise OptionError(f"Option 'partitionBy': {term}: {error}") from error


def set_sort_order(transaction: Transaction, terms: Sequence[str]) -> None:
    """Set the sort order of a new table. Raises OptionError."""
    from pyiceberg.table.sorting import NullOrder
    from pyiceberg.transforms import IdentityTransform

    schema = transaction.table_metadata.schema()
    with transaction.update_sort_order() as update:
        for term in terms:
            column, order = sort_term(term)
            add = update.asc if order == "ascending" else update.desc
            kind = _type_of("sortBy", column, schema)
            if not kind.is_primitive:
                raise without_order(column, _type_name(kind))
            add(column, IdentityTransform(), NullOrder.NULLS_LAST)  # as pyarrow sorts


def layout_of(metadata: TableMetadata) -> Layout:
    """Return the partitioning and order of a table, in the spelling of partition_terms() and sort_terms()."""
    from pyiceberg.transforms import VoidTransform

    name_of = metadata.schema().find_column_name
    return Layout(
        partition_by=tuple(
            _partition_term(str(each.transform), name_of(each.source_id) or "?")
            for each in metadata.spec().fields
            if not isinstance(each.transform, VoidTransform)  # what a table of format version 1 has dropped
        ),
        sort_by=tuple(
            _sort_term(
                _partition_term(str(each.transform), name_of(each.source_id) or "?"),
                "ascending" if each.direction.value == "asc" else "descending",
            )
            for each in metadata.sort_order().fields
        ),
    )


def partition_terms(terms: Sequence[str]) -> tuple[str, ...]:
    """Return terms to partition by in one spelling. Raises OptionError."""
    return tuple(_partition_term(*_parse(term)) for term in terms)


def sort_terms(terms: Sequence[str]) -> tuple[str, ...]:
    """Return terms to sort by in one spelling. Raises OptionError."""
    return tuple(_sort_term(*sort_term(term)) for term in terms)


def _partition_term(transform: str, column: str) -> str:
    """Return the term of a transform, by Iceberg's name: `days(timestamp)`, `bucket(16, key)`."""
    name, _, size = transform.rstrip("]").partition("[")
    if name == "identity":
        return column
    return f"{name}({size}, {column})" if size else f"{name}s({column})"


def _sort_term(column: str, order: str) -> str:
    return column if order == "ascending" else f"{column} desc"


def _type_of(option: str, column: str, schema: Schema) -> IcebergType:
    """Return the type of a column, or of a field of a struct: `value.country`. Raises OptionError."""
    try:
        return schema.find_type(column)
    except ValueError as error:
        raise unknown_column(option, column, [field.name for field in schema.fields]) from error


def _type_name(kind: IcebergType) -> str:
    """Return `list` for `list<struct<10: key: optional string, ...>>`."""
    return str(kind).partition("<")[0]


def _parse(term: str) -> tuple[str, str]:
    """Return the transform, by Iceberg's name, and the column of a partition field."""
    match = TERM.fullmatch(term)
    if match is None:
        if "(" in term or not term.strip():
            raise OptionError(f"Option 'partitionBy': expected a column or a transform of one, got '{term}'")
        return "identity", term.strip()
    name, column = match[1].lower(), match[2]
    if name in SIZED:
        return _parse_sized(term, name, column)
    if name not in TIMES:
        raise OptionError(
            f"Option 'partitionBy': unknown transform '{term}'{did_you_mean(name, [*TIMES, *SIZED])}; available: "
            "years, months, days and hours of a column, bucket(N, column), truncate(WIDTH, column)"
        )
    return TIMES[name], column


def _parse_sized(term: str, name: str, arguments: str) -> tuple[str, str]:
    """Return the transform with its number, by Iceberg's name, and the column of `bucket(16, key)`."""
    size, _, column = (each.strip() for each in arguments.partition(","))
    if not column or not (size.isascii() and size.isdecimal()) or not 0 < int(size) <= MAX_INT32:
        raise OptionError(
            f"Option 'partitionBy': expected {name}(NUMBER, column) with a number from 1 to {MAX_INT32}, got '{term}'"
        )
    return f"{name}[{int(size)}]", column
