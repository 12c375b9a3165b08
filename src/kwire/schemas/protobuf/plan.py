"""The plan that decodes messages into the columns of one message: see kwire.wire.protobuf_rows."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from kwire.schemas.column_plan import Column, ColumnPlan, storage
from kwire.schemas.protobuf.model import Enum, Field
from kwire.schemas.protobuf.reading import LEN, WIRE_TYPES
from kwire.schemas.protobuf.types import Node, is_time
from kwire.wire.protobuf_rows import FIELD, OPERATIONS

__all__ = ["compile_plan"]

OP = {name: index for index, name in enumerate(OPERATIONS)}
WORD = {name: index for index, name in enumerate(FIELD)}
COPIED = {"float": "COPY4", "sfixed32": "COPY4", "double": "COPY8", "sfixed64": "COPY8"}
MAX_DENSE = 256
"""Field numbers below this are looked up in a table, others by halving."""
Path = tuple[str, ...]


def compile_plan(node: Node) -> ColumnPlan:
    """Compile the plan; its row ROOT is that of the message."""
    compiler = _Compiler()
    compiler.message(compiler.column(node.type, "STRUCT", (), nullable=True), node, LEN, 0)
    compiler.plan.add_children()
    return compiler.plan


class _Compiler:
    def __init__(self) -> None:
        self.plan = ColumnPlan()
        self.names: dict[Enum, int] = {}

    def column(self, type: pa.DataType, kind: str, path: Path, *, nullable: bool) -> Column:
        """Add a column; without kind, that of a type without types inside."""
        column_kind, width = (kind, 0) if kind else storage(type)
        column = Column(
            type=type, kind=column_kind, number=len(self.plan.columns), path=path, nullable=nullable, width=width
        )
        self.plan.columns.append(column)
        return column

    def row(self, operation: str, column: Column | None, number: int, wire_type: int) -> int:
        """Add a row and return its number."""
        row = [0] * len(FIELD)
        row[WORD["OPERATION"]], row[WORD["COLUMN"]] = OP[operation], column.number if column else 0
        row[WORD["WIRE_TYPE"]], row[WORD["NUMBER"]], row[WORD["OTHERS"]] = wire_type, number, -1
        row[WORD["IS_NULLABLE"]] = int(column is not None and column.nullable)
        self.plan.rows.append(row)
        return len(self.plan.rows) - 1

    def set(self, row: int, **words: int) -> int:
        """Set words of a row and return its number."""
        for name, value in words.items():
            self.plan.rows[row][WORD[name]] = value
        return row

    def message(self, column: Column, node: Node, wire_type: int, number: int) -> int:
        """Add the rows of a message, and the columns of its fields."""
        row = self.row("MESSAGE", column, number, wire_type)
        field_rows: dict[int, int] = {}
        oneofs: dict[str, dict[int, int]] = {}
        for field, part in zip(node.fields, node.type, strict=True):
            child, field_rows[field.number] = self.field(field, node, part.type, (*column.path, field.name))
            column.add(field.name, child)
            if field.oneof is not None:
                oneofs.setdefault(field.oneof, {})[field.number] = child.number
        for field in node.message.fields:
            if field.oneof in oneofs and field.oneof is not None:
                if field.number not in field_rows:
                    field_rows[field.number] = self.row("SKIP", None, field.number, _wire_type(field))
                others = [each for key, each in oneofs[field.oneof].items() if key != field.number]
                self.set(field_rows[field.number], OTHERS=self.counted(others))
        dense = min(max(field_rows, default=0) + 1, MAX_DENSE)
        numbers = self.counted([field_rows.get(each, -1) for each in range(dense)])
        return self.set(row, A=numbers, B=self.counted([field_rows[each] for each in sorted(field_rows)]))

    def counted(self, numbers: Sequence[int]) -> int:
        """Add a count and numbers to the operands; returns their place."""
        return self.plan.add_operands([len(numbers), *numbers])[0]

    def field(self, field: Field, node: Node, type: pa.DataType, path: Path) -> tuple[Column, int]:
        """Add the columns and rows of a field; returns the first of both."""
        if field.shape == "single":
            return self.value(field, node, type, path, nullable=field.has_presence)
        column = self.column(type, "LIST", path, nullable=False)
        row = self.row(field.shape.upper(), column, field.number, _wire_type(field))
        if field.shape == "list":
            item, value = self.value(field, node, type.value_type, path, nullable=False)
        else:
            entry = node.members[field.number]
            parts = [pa.field("key", type.key_type, nullable=False), pa.field("value", type.item_type)]
            item = self.column(pa.struct(parts), "STRUCT", path, nullable=False)
            value = self.message(item, entry, LEN, field.number)
        column.children = [item]
        return column, self.set(row, A=value)

    def value(self, field: Field, node: Node, type: pa.DataType, path: Path, *, nullable: bool) -> tuple[Column, int]:
        """Add the columns and rows of one value of a field."""
        wire_type = _wire_type(field)
        if field.message is None:
            column = self.column(type, "", path, nullable=nullable)
            return column, self.scalar(field, column)
        member = node.members[field.number]
        if pa.types.is_struct(type):
            column = self.column(type, "STRUCT", path, nullable=nullable)
            return column, self.message(column, member, wire_type, field.number)
        column = self.column(type, "", path, nullable=nullable)
        if member.raw or is_time(member):
            row = self.row("RAW" if member.raw else "TIME", column, field.number, wire_type)
            return column, self.set(row, A=int(pa.types.is_duration(type)))
        row = self.row("BOXED", column, field.number, wire_type)
        inner = self.set(self.scalar(member.fields[0], column), IS_NULLABLE=0)
        return column, self.set(row, A=inner)

    def scalar(self, field: Field, column: Column) -> int:
        """Add the row of a number, enum, string or bytes."""
        row = self.row(COPIED.get(field.type, field.type.upper()), column, field.number, _wire_type(field))
        return row if field.enum is None else self.set(row, A=self.names_of(field.enum))

    def names_of(self, enum: Enum) -> int:
        """Add the names of an enum, once; returns their place."""
        if enum not in self.names:
            table = [
                word
                for number, name in sorted(enum.names.items())
                for word in (number, *self.plan.add_constant(name.encode()))
            ]
            self.names[enum] = self.plan.add_operands([len(enum.names), *table])[0]
        return self.names[enum]


def _wire_type(field: Field) -> int:
    return WIRE_TYPES.get(field.type, LEN)
