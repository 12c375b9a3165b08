"""The plan that encodes structs as messages: see kwire.wire.protobuf_rows."""

from __future__ import annotations

import pyarrow as pa

from kwire.schemas.column_plan import Column, RowPlan
from kwire.schemas.protobuf.model import Enum, Field
from kwire.schemas.protobuf.reading import LEN, WIRE_TYPES
from kwire.schemas.protobuf.types import Node, is_time
from kwire.wire.protobuf_rows import MAX_ONEOFS, PUT, PUT_OPERATIONS
from kwire.wire.value_rows import ROW_WORDS

__all__ = ["compile_encode_plan"]

OP = {name.removeprefix("PUT_"): index for index, name in enumerate(PUT_OPERATIONS)}
WORD = {name.removeprefix("PUT_"): index for index, name in enumerate(PUT)}
OPERATION = {"float": "COPY4", "sfixed32": "COPY4", "double": "COPY8", "sfixed64": "COPY8"}
OPERATION |= {"string": "BYTES", "bytes": "BYTES"}
WIDTHS = {"COPY4": 4, "FIXED32": 4, "COPY8": 8, "FIXED64": 8}


def compile_encode_plan(node: Node, kind: pa.DataType) -> RowPlan:
    """Compile the plan, whose first row writes the message. kind: of the structs, with times as microseconds."""
    compiler = _Compiler()
    compiler.message(node, compiler.column(kind), tag=0)
    return compiler.plan


class _Compiler:
    def __init__(self) -> None:
        self.plan = RowPlan()
        self.names: dict[Enum, int] = {}

    def column(self, kind: pa.DataType) -> Column:
        """Add a column."""
        column = Column(type=kind, kind="", number=len(self.plan.columns), path=(), nullable=True)
        self.plan.columns.append(column)
        return column

    def row(self, operation: str, column: Column, tag: int, **words: int) -> int:
        """Add a row; returns its number."""
        row = [0] * ROW_WORDS
        self.plan.rows.append(row)
        row[WORD["ONEOF"]], row[WORD["WIDTH"]] = -1, WIDTHS.get(operation, 0)
        for name, value in {"OPERATION": OP[operation], "SOURCE": column.number, "TAG": tag, **words}.items():
            row[WORD[name]] = value
        return len(self.plan.rows) - 1

    def set(self, row: int, **words: int) -> int:
        """Set words of a row and return its number."""
        for name, value in words.items():
            self.plan.rows[row][WORD[name]] = value
        return row

    def message(self, node: Node, column: Column, tag: int, operation: str = "MESSAGE") -> int:
        """Add the rows of a message, and the columns of its fields."""
        row = self.row(operation, column, tag)
        fields = {field.name: field for field in node.fields}
        rows, oneofs = list[tuple[int, int]](), dict[str, int]()
        for part in column.type:
            field = fields[part.name]
            child = self.column(part.type)
            column.add(part.name, child)
            number = self.field(field, node, child)
            if field.oneof is not None:
                self.set(number, ONEOF=min(oneofs.setdefault(field.oneof, len(oneofs)), MAX_ONEOFS - 1))
            rows.append((field.number, number))
        steps, count = self.plan.add_operands([number for _, number in sorted(rows)])
        return self.set(row, A=steps, B=count)

    def field(self, field: Field, node: Node, column: Column) -> int:
        """Add the rows and columns of a field; returns the first row."""
        kind, tag = column.type, field.number << 3 | WIRE_TYPES.get(field.type, LEN)
        if field.shape == "single":
            return self.value(field, node, column, tag)
        if field.shape == "list":
            item = self.column(kind.value_type)
            column.children = [item]
            value = self.value(field, node, item, tag)
            is_packed = field.packed and field.message is None
            tag = field.number << 3 | LEN if is_packed else tag
            return self.row("PACKED" if is_packed else "LIST", column, tag, A=value)
        entry = node.members[field.number]
        column.children = [self.column(kind.key_type), self.column(kind.item_type)]
        parts = [self.field(each, entry, child) for each, child in zip(entry.fields, column.children, strict=True)]
        return self.row("MAP", column, field.number << 3 | LEN, A=parts[0], B=parts[1])

    def value(self, field: Field, node: Node, column: Column, tag: int) -> int:
        """Add the rows of one value of a field."""
        if field.message is None:
            return self.scalar(field, column, tag)
        member = node.members[field.number]
        if pa.types.is_struct(column.type):
            return self.message(member, column, tag, "GROUP" if field.type == "group" else "MESSAGE")
        if member.raw:
            return self.row("BYTES", column, tag)
        if is_time(member):
            presence = sum(1 << index for index, each in enumerate(member.fields) if each.has_presence)
            return self.row("TIME", column, tag, A=int(pa.types.is_duration(member.type)), B=presence)
        inner = member.fields[0]
        return self.row("BOXED", column, tag, A=self.scalar(inner, column, 1 << 3 | WIRE_TYPES.get(inner.type, LEN)))

    def scalar(self, field: Field, column: Column, tag: int) -> int:
        """Add the row of a number, enum, string or bytes."""
        operation = OPERATION.get(field.type, field.type.upper())
        row = self.row(operation, column, tag, IS_IMPLICIT=int(not field.has_presence))
        if field.enum is not None:
            return self.set(row, A=self.numbers_of(field.enum))
        return self.set(row, A=int(field.type == "string"))

    def numbers_of(self, enum: Enum) -> int:
        """Add the numbers of an enum's names, once; returns their place."""
        if enum not in self.names:
            names = sorted((len(name.encode()), name.encode(), number) for name, number in enum.numbers.items())
            table = [word for size, name, number in names for word in (size, self.plan.add_constant(name)[0], number)]
            self.names[enum] = self.plan.add_operands([len(names), *table])[0]
        return self.names[enum]
