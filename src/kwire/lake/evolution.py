"""Schema evolution: the difference between the columns of rows and a table's, by name.

new column, or new field of a struct    added to the table, nullable
missing column                          null
narrower type                           written with the table's type: int into long
wider type                              the column is widened, if the format can
any other type                          TableError with the column and both types
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kwire.errors import TableError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Evolution", "compare_schemas", "evolved", "nullable_fields", "type_name"]

ColumnPath = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evolution:
    """Changes of a table's schema. added, widened: columns with their new types, in the order of the rows' columns."""

    added: tuple[tuple[ColumnPath, pa.DataType], ...]
    widened: tuple[tuple[ColumnPath, pa.DataType], ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.widened)


def compare_schemas(
    rows: pa.Schema, of_table: pa.Schema, table: str, *, can_widen: Callable[[pa.DataType, pa.DataType], bool]
) -> Evolution:
    """Return how a table has to change for rows to fit.

    can_widen(from, to): whether the format widens a column. Raises TableError for types that do not fit, and for
    columns whose names differ in upper and lower case only.
    """
    comparison = _Comparison(table, can_widen)
    comparison.fields((), list(rows), list(of_table))
    return Evolution(added=tuple(comparison.added), widened=tuple(comparison.widened))


class _Comparison:
    def __init__(self, table: str, can_widen: Callable[[pa.DataType, pa.DataType], bool]) -> None:
        self.table, self.can_widen = table, can_widen
        self.added: list[tuple[ColumnPath, pa.DataType]] = []
        self.widened: list[tuple[ColumnPath, pa.DataType]] = []

    def fields(self, path: ColumnPath, rows: list[pa.Field], of_table: list[pa.Field]) -> None:
        known = {field.name: field for field in of_table}
        by_lower = {name.lower(): name for name in known}
        seen: dict[str, str] = {}
        for field in rows:
            lower = field.name.lower()
            if seen.setdefault(lower, field.name) != field.name or by_lower.get(lower, field.name) != field.name:
                other = seen[lower] if seen[lower] != field.name else by_lower[lower]
                raise TableError(
                    f"column '{'.'.join((*path, field.name))}' differs from column '{other}' in upper and lower case "
                    "only; rename the column of the rows",
                    self.table,
                )
            if field.name not in known:
                self.added.append(((*path, field.name), field.type))
            else:
                self.types((*path, field.name), field.type, known[field.name].type)

    def types(self, path: ColumnPath, given: pa.DataType, wanted: pa.DataType) -> None:
        from pyarrow import types

        if types.is_struct(given) and types.is_struct(wanted):
            self.fields(path, _fields(given), _fields(wanted))
        elif types.is_map(given) and types.is_map(wanted):
            self.types((*path, "key"), given.key_type, wanted.key_type)
            self.types((*path, "value"), given.item_type, wanted.item_type)
        elif types.is_list(given) and types.is_list(wanted):
            self.types((*path, "element"), given.value_type, wanted.value_type)
        elif type_name(given) == type_name(wanted) or types.is_null(given) or _is_narrower(given, wanted):
            pass
        elif _is_narrower(wanted, given) and self.can_widen(wanted, given):
            self.widened.append((path, given))
        else:
            raise TableError(
                f"column '{'.'.join(path)}' is of type {type_name(wanted)} in the table and {type_name(given)} in the "
                "rows; cast the column, or write it under another name",
                self.table,
            )


def _fields(struct: pa.DataType) -> list[pa.Field]:
    return [struct.field(index) for index in range(struct.num_fields)]


def _is_narrower(narrow: pa.DataType, wide: pa.DataType) -> bool:
    """Return whether every value of a type is one of another, too."""
    from pyarrow import types

    if types.is_signed_integer(narrow) and types.is_signed_integer(wide):
        return bool(narrow.bit_width <= wide.bit_width)
    if types.is_floating(narrow) and types.is_floating(wide):
        return bool(narrow.bit_width <= wide.bit_width)
    if types.is_decimal(narrow) and types.is_decimal(wide):
        return bool(narrow.scale == wide.scale and narrow.precision <= wide.precision)
    return False


def type_name(kind: pa.DataType) -> str:
    """Return a type's name as in SQL: bigint, timestamp, array<string>."""
    from pyarrow import types

    if types.is_struct(kind):
        return f"struct<{','.join(f'{field.name}:{type_name(field.type)}' for field in _fields(kind))}>"
    if types.is_map(kind):
        return f"map<{type_name(kind.key_type)},{type_name(kind.item_type)}>"
    if types.is_list(kind) or types.is_large_list(kind):
        return f"array<{type_name(kind.value_type)}>"
    if types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if types.is_timestamp(kind):
        return "timestamp_ntz" if kind.tz is None else "timestamp"
    names = {
        "int8": "tinyint",
        "int16": "smallint",
        "int32": "int",
        "int64": "bigint",
        "halffloat": "float",
        "bool": "boolean",
        "date32[day]": "date",
        "large_string": "string",
        "string_view": "string",
        "large_binary": "binary",
        "binary_view": "binary",
    }
    return names.get(str(kind), str(kind))


def evolved(of_table: pa.Schema, evolution: Evolution) -> pa.Schema:
    """Return a table's schema with the changes, and without the metadata of its fields. New columns are nullable."""
    import pyarrow as pa

    changes = {**dict(evolution.added), **dict(evolution.widened)}
    return pa.schema(_evolved_fields((), list(of_table), changes))


def _evolved_fields(path: ColumnPath, fields: list[pa.Field], changes: dict[ColumnPath, pa.DataType]) -> list[pa.Field]:
    import pyarrow as pa

    names = [field.name for field in fields]
    evolved = [
        pa.field(field.name, _evolved_type((*path, field.name), field.type, changes), field.nullable)
        for field in fields
    ]
    new = [column for column in changes if column[:-1] == path and column[-1] not in names]
    return evolved + [pa.field(column[-1], changes[column]) for column in new]


def _evolved_type(path: ColumnPath, kind: pa.DataType, changes: dict[ColumnPath, pa.DataType]) -> pa.DataType:
    import pyarrow as pa
    from pyarrow import types

    if path in changes:
        return changes[path]
    if types.is_struct(kind):
        return pa.struct(_evolved_fields(path, _fields(kind), changes))
    if types.is_map(kind):
        item = _evolved_type((*path, "value"), kind.item_type, changes)
        return pa.map_(_evolved_type((*path, "key"), kind.key_type, changes), kind.item_field.with_type(item))
    if types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_evolved_type((*path, "element"), kind.value_type, changes)))
    return kind


def nullable_fields(schema: pa.Schema) -> pa.Schema:
    """Return a schema for a new table: all columns nullable, as Spark makes them, and types that tables have.

    Without columns and fields that have no values, since files cannot have them: null, and structs without fields.
    """
    import pyarrow as pa

    return pa.schema(_nullable(list(schema)))


def _nullable(fields: list[pa.Field]) -> list[pa.Field]:
    import pyarrow as pa

    return [pa.field(field.name, _nullable_type(field.type)) for field in fields if _has_values(field.type)]


def _has_values(kind: pa.DataType) -> bool:
    from pyarrow import types

    if types.is_struct(kind):
        return any(_has_values(field.type) for field in _fields(kind))
    if types.is_map(kind):
        return _has_values(kind.item_type)
    if types.is_list(kind) or types.is_large_list(kind):
        return _has_values(kind.value_type)
    return not types.is_null(kind)


def _nullable_type(kind: pa.DataType) -> pa.DataType:
    import pyarrow as pa
    from pyarrow import types

    if types.is_struct(kind):
        return pa.struct(_nullable(_fields(kind)))
    if types.is_map(kind):
        return pa.map_(_nullable_type(kind.key_type), _nullable_type(kind.item_type))
    if types.is_list(kind) or types.is_large_list(kind):
        return pa.list_(_nullable_type(kind.value_type))
    if types.is_large_string(kind):
        return pa.string()
    if types.is_large_binary(kind):
        return pa.binary()
    if types.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    return kind
