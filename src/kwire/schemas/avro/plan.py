"""The plan that decodes values of several writers' schemas into the columns of one reader's schema."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from kwire.errors import InvalidSchema
from kwire.schemas.avro.columns import build_columns, null_free
from kwire.schemas.avro.defaults import default_bytes
from kwire.schemas.avro.model import NO_DEFAULT, Field, Schema
from kwire.schemas.avro.parsing import fail, too_deep
from kwire.schemas.avro.resolution import Branches, Names, Steps, field_of, mismatch
from kwire.schemas.avro.sizes import Sizes
from kwire.schemas.column_plan import Column, ColumnPlan
from kwire.wire.value_rows import NUMBERS, OPERATIONS, ROW_WORDS

__all__ = ["Plan", "compile_plan"]

MAX_ROWS = 1_000_000
OP = {name: index for index, name in enumerate(OPERATIONS)}
NUMBER = {name: index for index, name in enumerate(NUMBERS)}
SOURCES = {"int": "INT32", "long": "INT64", "float": "FLOAT32", "double": "FLOAT64"}
LEAST, GREATEST = -(2**63), 2**63 - 1
MILLISECONDS_A_DAY = 86_400_000
NANOSECONDS = {"millis": 10**6, "micros": 10**3, "nanos": 1, "us": 10**3, "ns": 1}


@dataclass(slots=True, kw_only=True)
class Plan(ColumnPlan):
    """Rows that decode. paths, types: the field of each row, and the writer's type. roots: the row for each writer."""

    paths: list[str] = field(default_factory=list)
    types: list[Schema] = field(default_factory=list)
    roots: list[int] = field(default_factory=list)


def compile_plan(
    writers: Sequence[Schema],
    reader: Schema,
    asked: Sequence[str] | None = None,
    names: Names = "any",
    depth: int | None = 0,
) -> Plan:
    """Compile the plan. asked: dotted paths of the columns, None for all. depth: of records, see build_columns.

    Raises InvalidSchema if a writer's values cannot be read as the reader's, OptionError for unknown columns.
    """
    plan = Plan(columns=build_columns(reader, asked, depth))
    plan.add_children()
    compiler = _Compiler(plan, names)
    with too_deep():
        plan.roots = [compiler.value(writer, reader, plan.columns[0], "") for writer in writers]
    return plan


class _Union:
    """A reader's union: its branches, and the place of each one among the members of its column."""

    def __init__(self, schema: Schema, names: Names) -> None:
        self.branches = Branches(schema, names)
        members = null_free(schema)
        self.places = {each: f"member{place}" for place, each in enumerate(members.branches)}
        self.is_struct = members.type == "union"


class _Compiler:
    def __init__(self, plan: Plan, names: Names) -> None:
        self.plan = plan
        self.names = names
        self.sizes = Sizes()
        self.steps = Steps()
        self.skips: dict[Schema, int] = {}
        self.unions: dict[Schema, _Union] = {}
        self.enums: dict[tuple[Schema, Schema], int] = {}

    def row(self, operation: str, path: str, schema: Schema, column: Column | None, *operands: int) -> int:
        """Add a row and return its number."""
        if len(self.plan.rows) >= MAX_ROWS:
            raise fail(f"more than {MAX_ROWS} rows; ask for fewer columns", path)
        row = [OP[operation], column.number if column else 0, *operands]
        self.plan.rows.append(row + [0] * (ROW_WORDS - len(row)))
        self.plan.paths.append(path)
        self.plan.types.append(schema)
        return len(self.plan.rows) - 1

    def value(self, writer: Schema, reader: Schema, column: Column, path: str) -> int:
        """Add the rows of a value; returns the first."""
        if writer.type == "union":
            return self.writer_union(writer, reader, column, path)
        if reader.type == "union":
            return self.reader_union(writer, reader, column, path)
        if writer.name != reader.name:
            self.steps.take(len(reader.aliases))
        if (problem := mismatch(writer, reader, self.names)) is not None:
            raise fail(problem, path)
        if writer.type == "record":
            return self.record(writer, reader, column, path)
        if writer.type == "array":
            item = self.value(writer.items, reader.items, column.children[0], f"{path}[]")
            return self.row("ARRAY", path, writer, column, item, *self.item_sizes(writer.items))
        if writer.type == "map":
            return self.map(writer, reader, column, path)
        return self.leaf(writer, reader, column, path)

    def writer_union(self, writer: Schema, reader: Schema, column: Column, path: str) -> int:
        branches: list[int] = []
        first: InvalidSchema | None = None
        for branch in writer.branches:
            try:
                branches.append(self.value(branch, reader, column, path))
            except InvalidSchema as error:
                if self.steps.left < 0:
                    raise
                first = first or error
                branches.append(self.row("UNRESOLVED", path, branch, None))
        if first is not None and all(self.plan.rows[each][0] == OP["UNRESOLVED"] for each in branches):
            raise first
        return self.row("UNION", path, writer, None, *self.plan.add_operands(branches))

    def reader_union(self, writer: Schema, reader: Schema, column: Column, path: str) -> int:
        if reader not in self.unions:
            self.unions[reader] = _Union(reader, self.names)
        union = self.unions[reader]
        index = union.branches.find(writer, self.steps)
        if index is None:
            raise fail(f"the writer's {writer} is not in the reader's {reader}", path)
        branch = reader.branches[index]
        if branch.type == "null" and column.kind != "NOTHING":
            return self.row("NULL", path, writer, column)
        if not union.is_struct or column.kind != "STRUCT":
            return self.value(writer, branch, column, path)
        name = union.places[branch]
        place = column.names.get(name)
        if place is None:  # not asked for
            inner = self.skip(writer, path)
            return self.row("MEMBER", path, writer, column, inner, -1)
        inner = self.value(writer, branch, column.children[place], f"{path}.{name}" if path else name)
        return self.row("MEMBER", path, writer, column, inner, place)

    def record(self, writer: Schema, reader: Schema, column: Column, path: str) -> int:
        self.steps.take(len(writer.fields) + len(reader.fields))
        sources = field_of(reader, writer)
        targets: dict[str, Field] = {}
        for each in reader.fields:
            if each.name in sources:
                targets.setdefault(sources[each.name], each)
        steps: list[int] = []
        for written in writer.fields:
            target = targets.get(written.name)
            place = None if target is None else column.names.get(target.name)
            if target is None or place is None:
                self.add_skip(steps, written.schema, _below(path, written.name))
            else:
                child = column.children[place]
                steps.append(self.value(written.schema, target.schema, child, _below(path, target.name)))
        for each in reader.fields:
            place = column.names.get(each.name)
            if place is not None and targets.get(sources.get(each.name, "")) is not each:
                steps.append(self.default(each, column.children[place], _below(path, each.name), writer))
        return self.row("RECORD", path, writer, column, *self.plan.add_operands(steps))

    def default(self, target: Field, column: Column, path: str, writer: Schema) -> int:
        if target.default is NO_DEFAULT:
            raise fail(f"the writer's {writer} lacks this field, and the reader's schema has no default for it", path)
        try:
            data = default_bytes(target.schema, target.default, self.steps)
        except ValueError as error:
            raise fail(str(error), path) from None
        value = self.value(target.schema, target.schema, column, path)
        return self.row("CONSTANT", path, target.schema, None, value, *self.plan.add_constant(data))

    def item_sizes(self, schema: Schema) -> tuple[int, int]:
        size = self.sizes.fixed(schema)
        return -1 if size is None else size, self.sizes.least(schema)

    def map(self, writer: Schema, reader: Schema, column: Column, path: str) -> int:
        key_column, value_column = column.children[0].children
        key = self.row("BYTES", f"{path}[]", Schema(type="string"), key_column, 1)
        value = self.value(writer.items, reader.items, value_column, f"{path}[]")
        least = 1 + self.sizes.least(writer.items)
        return self.row("MAP", path, writer, column, value, -1, least, key)

    # Values without values inside

    def leaf(self, writer: Schema, reader: Schema, column: Column, path: str) -> int:
        kind = writer.type
        if kind in SOURCES:
            return self.number(writer, reader, column, path)
        if kind in ("null", "boolean"):
            return self.row(kind.upper(), path, writer, column)
        if kind == "enum":
            return self.enum(writer, reader, column, path)
        if pa.types.is_decimal(column.type):
            limit = (10**column.type.precision).to_bytes(column.width, "little")
            size = writer.size if kind == "fixed" else -1
            return self.row("DECIMAL", path, writer, column, size, self.plan.add_constant(limit)[0])
        if kind == "fixed":
            return self.row("FIXED", path, writer, column, writer.size)
        return self.row("BYTES", path, writer, column, int(pa.types.is_string(column.type)))

    def enum(self, writer: Schema, reader: Schema, column: Column, path: str) -> int:
        if (writer, reader) not in self.enums:
            self.steps.take(len(writer.symbols) + len(reader.symbols))
            table: list[int] = []
            known = set(reader.symbols)
            for symbol in writer.symbols:
                read_as = symbol if symbol in known else reader.default
                table += (-1, 0) if read_as is None else self.plan.add_constant(read_as.encode())
            self.enums[writer, reader] = self.plan.add_operands(table)[0]
        return self.row("ENUM", path, writer, column, self.enums[writer, reader], len(writer.symbols))

    def number(self, writer: Schema, reader: Schema, column: Column, path: str) -> int:
        kind = writer.type
        if kind in ("float", "double"):
            if column.width == 4 or kind == "double":
                return self.row(kind.upper(), path, writer, column)
            return self.row("NUMBER", path, writer, column, NUMBER["FLOAT32"], NUMBER["FLOAT64"])
        if pa.types.is_floating(column.type):
            target = "FLOAT32" if column.width == 4 else "FLOAT64"
            via = int(reader.type == "float")
            return self.row("NUMBER", path, writer, column, NUMBER[SOURCES[kind]], NUMBER[target], via)
        if column.width == 4:
            return self.row("INT", path, writer, column)
        limits = self.unit(writer, reader, column, path)
        if kind == "long":
            return self.row("LONG", path, writer, column, *limits)
        return self.row("NUMBER", path, writer, column, NUMBER["INT32"], NUMBER["INT64"], 0, *limits)

    def unit(self, writer: Schema, reader: Schema, column: Column, path: str) -> tuple[int, int, int]:
        """Return the factor from the writer's unit of time to the column's, and the limits of a value."""
        is_time = pa.types.is_time(column.type)
        if not is_time and not pa.types.is_timestamp(column.type):
            return 1, LEAST, GREATEST
        logical = writer.logical or reader.logical
        assert logical is not None
        unit = NANOSECONDS[logical.name.rpartition("-")[2]]
        factor, rest = divmod(unit, NANOSECONDS[column.type.unit])
        if rest or not factor:
            raise fail(f"the writer's {writer} cannot be read as {reader} without loss", path)
        if is_time:
            return factor, 0, MILLISECONDS_A_DAY * 10**6 // unit - 1
        return factor, -(GREATEST // factor) - (factor == 1), GREATEST // factor

    # Values that are not asked for

    def add_skip(self, steps: list[int], schema: Schema, path: str) -> None:
        """Add the row that skips a value to the rows of a record; sizes of neighbours are added."""
        size = self.sizes.fixed(schema)
        if size == 0:
            return
        if size is not None and steps and self.plan.rows[steps[-1]][0] == OP["SKIP_FIXED"]:
            size += self.plan.rows[steps[-1]][2]
            steps.pop()
        steps.append(self.skip(schema, path) if size is None else self.row("SKIP_FIXED", path, schema, None, size))

    def skip(self, schema: Schema, path: str) -> int:
        """Return the row that skips a value."""
        if schema in self.skips:
            return self.skips[schema]
        if (size := self.sizes.fixed(schema)) is not None:
            return self.row("SKIP_FIXED", path, schema, None, size)
        kind = schema.type
        if kind in ("int", "long"):
            return self.row("SKIP_NUMBER", path, schema, None, 5 if kind == "int" else 10)
        if kind in ("bytes", "string"):
            return self.row("SKIP_BYTES", path, schema, None)
        if kind == "enum":
            return self.row("SKIP_ENUM", path, schema, None, 0, len(schema.symbols))
        number = self.skips[schema] = self.row(f"SKIP_{kind.upper()}", path, schema, None)
        operands: tuple[int, ...]
        if kind == "record":
            steps: list[int] = []
            for each in schema.fields:
                self.add_skip(steps, each.schema, _below(path, each.name))
            operands = self.plan.add_operands(steps)
        elif kind == "union":
            operands = self.plan.add_operands([self.skip(each, path) for each in schema.branches])
        else:
            item_bytes, least = self.item_sizes(schema.items)
            if kind == "map":
                item_bytes, least = -1, 1 + least
            operands = (self.skip(schema.items, f"{path}[]"), item_bytes, least)
        self.plan.rows[number][2 : 2 + len(operands)] = operands
        return number


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
