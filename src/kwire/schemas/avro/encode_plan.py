"""The plan that encodes Arrow values with a schema, and the arrays it reads.

The rows read arrays of the types that decoding makes (`columns`). `bind` converts what is given to these types: other
widths of integers and offsets, other units, dictionaries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from kwire.errors import EncodeError
from kwire.schemas.avro.columns import build_columns, null_free, numeric_union
from kwire.schemas.avro.defaults import default_bytes, zigzag
from kwire.schemas.avro.model import NO_DEFAULT, Field, Schema
from kwire.schemas.avro.parsing import fail, too_deep
from kwire.schemas.avro.resolution import Steps
from kwire.schemas.column_plan import Column, RowPlan
from kwire.wire.value_rows import ROW_WORDS, WRITE_OPERATIONS

__all__ = ["EncodePlan", "bind", "compile_encode_plan"]

OP = {name: index for index, name in enumerate(WRITE_OPERATIONS)}
KEY = Schema(type="string")
Test = Callable[[pa.DataType], bool]
FAMILIES: tuple[tuple[str, Test], ...] = (
    ("boolean", pa.types.is_boolean),
    ("integer", pa.types.is_integer),
    ("floating", pa.types.is_floating),
    ("text", lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)),
    (
        "bytes",
        lambda kind: (
            pa.types.is_binary(kind)
            or pa.types.is_large_binary(kind)
            or pa.types.is_fixed_size_binary(kind)
            or pa.types.is_binary_view(kind)
        ),
    ),
    ("decimal", pa.types.is_decimal),
    ("date", pa.types.is_date),
    ("time", pa.types.is_time),
    ("local timestamp", lambda kind: pa.types.is_timestamp(kind) and kind.tz is None),
    ("timestamp", pa.types.is_timestamp),
    ("null", pa.types.is_null),
)


@dataclass(slots=True, kw_only=True)
class EncodePlan(RowPlan):
    """Rows that encode. columns: of the schema. paths, types: of each row its field and type. root: the first row."""

    paths: list[str] = field(default_factory=list)
    types: list[Schema] = field(default_factory=list)
    root: int = 0


def compile_encode_plan(schema: Schema, kind: pa.DataType) -> EncodePlan:
    """Compile the plan for values of an Arrow type. Raises InvalidSchema if they do not fit the schema."""
    plan = EncodePlan(columns=build_columns(schema))
    with too_deep():
        plan.root = _Compiler(plan).value(schema, plan.columns[0], kind, "")
    return plan


def family(kind: pa.DataType) -> str:
    """Return the family of a type without types inside; values are converted inside a family only."""
    return next((name for name, test in FAMILIES if test(kind)), str(kind))


def is_list(kind: pa.DataType) -> bool:
    """Return whether a type is a list of any layout."""
    return bool(
        pa.types.is_list(kind)
        or pa.types.is_large_list(kind)
        or pa.types.is_fixed_size_list(kind)
        or pa.types.is_list_view(kind)
        or pa.types.is_large_list_view(kind)
    )


class _Compiler:
    def __init__(self, plan: EncodePlan) -> None:
        self.plan = plan
        self.steps = Steps()
        self.enums: dict[Schema, int] = {}

    def row(self, operation: str, path: str, schema: Schema, column: Column, *operands: int) -> int:
        row = [OP[f"WRITE_{operation}"], column.number, *operands]
        self.plan.rows.append(row + [0] * (ROW_WORDS - len(row)))
        self.plan.paths.append(path)
        self.plan.types.append(schema)
        return len(self.plan.rows) - 1

    def value(self, schema: Schema, column: Column, kind: pa.DataType, path: str) -> int:
        """Add the rows of a value; returns the first. kind: of the values that are given."""
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        if schema.type == "union":
            return self.union(schema, column, kind, path)
        if pa.types.is_null(kind) and schema.type != "null":
            return self.row("RECORD", path, schema, column, *self.plan.add_operands([]))  # fails for every row
        if schema.type == "record":
            return self.record(schema, column, kind, path)
        if schema.type == "array":
            if not is_list(kind):
                raise unfit(schema, kind, path)
            item = self.value(schema.items, column.children[0], kind.value_type, f"{path}[]")
            return self.row("ARRAY", path, schema, column, item)
        if schema.type == "map":
            if not pa.types.is_map(kind) or family(kind.key_type) != "text":
                raise unfit(schema, kind, path)
            keys, values = column.children[0].children
            key = self.row("BYTES", f"{path}[]", KEY, keys)
            value = self.value(schema.items, values, kind.item_type, f"{path}[]")
            return self.row("MAP", path, schema, column, value, key)
        return self.leaf(schema, column, kind, path)

    def union(self, schema: Schema, column: Column, kind: pa.DataType, path: str) -> int:
        index = {each: i for i, each in enumerate(schema.branches)}
        null = next((i for i, each in enumerate(schema.branches) if each.type == "null"), -1)
        members = null_free(schema)
        if column.kind == "NOTHING":
            return self.row("CONSTANT", path, schema, column, *self.plan.add_constant(zigzag(null)))
        if (number := numeric_union(members)) is not None:
            members = next(each for each in members.branches if each.type == number)
            value = self.leaf(Schema(type=number), column, kind, path)
        elif members.type == "union":
            return self.members(schema, members, column, kind, path)
        else:
            value = self.value(members, column, kind, path)
        if null < 0:
            return self.row("BRANCH", path, schema, column, value, 0, index[members])
        return self.row("NULLABLE", path, schema, column, value, null, index[members])

    def members(self, schema: Schema, members: Schema, column: Column, kind: pa.DataType, path: str) -> int:
        index = {each: i for i, each in enumerate(schema.branches)}
        null = next((i for each, i in index.items() if each.type == "null"), -1)
        if not pa.types.is_struct(kind):
            raise unfit(schema, kind, path)
        given = {each.name: each.type for each in kind}
        if extra := given.keys() - set(column.names):
            raise fail(f"column {sorted(extra)[0]!r} is not a member of the schema's {schema}", path)
        table: list[int] = []
        for name, child, branch in zip(column.names, column.children, members.branches, strict=True):
            if name in given:
                value = self.value(branch, child, given[name], f"{path}.{name}" if path else name)
                table += (index[branch], value, child.number)
        place, count = self.plan.add_operands(table)
        return self.row("MEMBERS", path, schema, column, place, count // 3, null)

    def record(self, schema: Schema, column: Column, kind: pa.DataType, path: str) -> int:
        if not pa.types.is_struct(kind):
            raise unfit(schema, kind, path)
        given = {each.name: each.type for each in kind}
        if extra := [name for name in given if name not in column.names]:
            raise fail(f"column {extra[0]!r} is not a field of the schema's {schema}; drop it or add the field", path)
        steps = []
        for each, child in zip(schema.fields, column.children, strict=True):
            below = f"{path}.{each.name}" if path else each.name
            if each.name in given:
                steps.append(self.value(each.schema, child, given[each.name], below))
            else:
                data = default(each, below, self.steps)
                steps.append(self.row("CONSTANT", below, each.schema, child, *self.plan.add_constant(data)))
        return self.row("RECORD", path, schema, column, *self.plan.add_operands(steps))

    def symbols(self, schema: Schema) -> int:
        """Add the symbols of an enum, once; returns their place in the operands."""
        if schema not in self.enums:
            table = [word for symbol in schema.symbols for word in self.plan.add_constant(symbol.encode())]
            self.enums[schema] = self.plan.add_operands(table)[0]
        return self.enums[schema]

    def leaf(self, schema: Schema, column: Column, kind: pa.DataType, path: str) -> int:
        if schema.type == "null":
            return self.row("NULL", path, schema, column)
        wanted = column.type
        if family(kind) not in (family(wanted), "null") or (pa.types.is_float32(wanted) and pa.types.is_float64(kind)):
            raise unfit(schema, kind, path)
        if pa.types.is_decimal(wanted):
            size = schema.size if schema.type == "fixed" else -1
            return self.row("DECIMAL", path, schema, column, size, column.width)
        if schema.type == "enum":
            return self.row("ENUM", path, schema, column, self.symbols(schema), len(schema.symbols))
        if schema.type == "fixed":
            return self.row("FIXED", path, schema, column, schema.size)
        if schema.type in ("bytes", "string"):
            return self.row("BYTES", path, schema, column)
        if schema.type in ("float", "double"):
            return self.row("PLAIN", path, schema, column, column.width)
        if schema.type == "long":
            name = schema.logical.name if schema.logical else ""
            return self.row("LONG", path, schema, column, 1000 if name.endswith("timestamp-millis") else 1)
        return self.row(schema.type.upper(), path, schema, column)


def unfit(schema: Schema, kind: pa.DataType, path: str) -> Exception:
    """Return the error for an Arrow type that cannot be written with a schema."""
    return fail(f"{kind} cannot be written as {schema}; cast the column", path)


def default(each: Field, path: str, steps: Steps) -> bytes:
    """Return the bytes of a field's default. Raises InvalidSchema without one."""
    if each.default is NO_DEFAULT:
        raise fail("the column is missing, and the schema has no default for it", path)
    try:
        return default_bytes(each.schema, each.default, steps)
    except ValueError as error:
        raise fail(str(error), path) from None


def bind(array: pa.Array, column: Column, bound: dict[int, pa.Array]) -> None:
    """Convert an array to the type of a column, and those inside; adds them to bound, by the columns' numbers.

    Raises EncodeError if a value does not fit, such as a number above 32 bits for an int.
    """
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_null(array.type) and column.kind != "NOTHING":
        array = pa.nulls(len(array), column.type)
    if column.kind == "STRUCT" and not pa.types.is_map(array.type):
        bound[column.number] = array
        for index, field in enumerate(array.type):
            bind(array.field(index), column.children[column.names[field.name]], bound)
        return
    if column.kind == "LIST":
        if pa.types.is_map(array.type):
            bound[column.number] = array
            keys, values = column.children[0].children
            bind(array.keys, keys, bound)
            bind(array.items, values, bound)
            return
        if not pa.types.is_list(array.type):
            array = array.cast(pa.list_(array.type.value_type))
        bound[column.number] = array
        bind(array.values, column.children[0], bound)
        return
    try:
        bound[column.number] = array if array.type == column.type else array.cast(column.type)
    except pa.ArrowInvalid as error:
        raise EncodeError(str(error).lower(), column.path) from None
