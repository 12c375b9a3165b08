"""The plan that decodes JSON into the columns of one schema: see kwire.wire.json_rows."""

from __future__ import annotations

import pyarrow as pa

from kwire.schemas.column_plan import Column, ColumnPlan, storage
from kwire.schemas.json_schema.parsing import Node
from kwire.wire.json_rows import OPERATIONS, VALUE
from kwire.wire.value_rows import ROW_WORDS

__all__ = ["compile_plan"]

OP = {name: index for index, name in enumerate(OPERATIONS)}
WORD = {name: index for index, name in enumerate(VALUE)}
Path = tuple[str, ...]


def compile_plan(node: Node) -> ColumnPlan:
    """Compile the plan; its row ROOT is that of the whole value."""
    compiler = _Compiler()
    compiler.value(node, ())
    compiler.plan.add_children()
    return compiler.plan


class _Compiler:
    def __init__(self) -> None:
        self.plan = ColumnPlan()

    def column(self, type: pa.DataType, path: Path, *, nullable: bool = True) -> Column:
        """Add a column."""
        if pa.types.is_struct(type):
            kind, width = "STRUCT", 0
        elif pa.types.is_nested(type):
            kind, width = "LIST", 0
        else:
            kind, width = storage(type)
        number = len(self.plan.columns)
        self.plan.columns.append(Column(type=type, kind=kind, number=number, path=path, nullable=nullable, width=width))
        return self.plan.columns[number]

    def value(self, node: Node, path: Path) -> tuple[Column, int]:
        """Add the columns and rows of a value; returns the first of both."""
        column = self.column(node.type, path)
        row = [0] * ROW_WORDS
        row[WORD["OPERATION"]] = OP["TEXT" if node.kind == "any" else node.kind.upper()]
        row[WORD["COLUMN"]] = column.number
        number = len(self.plan.rows)
        self.plan.rows.append(row)
        if node.kind == "object":
            row[WORD["A"]] = self.members(column, node)
        elif node.kind == "array":
            assert node.element is not None
            item, row[WORD["A"]] = self.value(node.element, path)
            column.children = [item]
        elif node.kind == "map":
            assert node.element is not None
            parts = [pa.field("key", pa.string(), nullable=False), pa.field("value", node.element.type)]
            entries = self.column(pa.struct(parts), path, nullable=False)
            column.children = [entries]
            names = self.column(pa.string(), path, nullable=False)
            value, row[WORD["A"]] = self.value(node.element, path)
            entries.add("key", names)
            entries.add("value", value)
        return column, number

    def members(self, column: Column, node: Node) -> int:
        """Add the columns and rows of properties; returns the place of their table in the operands."""
        table = list[tuple[bytes, int]]()
        for name, member in node.members.items():
            child, row = self.value(member, (*column.path, name))
            column.add(name, child)
            table.append((name.encode(), row))
        table.sort(key=lambda each: (len(each[0]), each[0]))
        words = [word for name, row in table for word in (*self.plan.add_constant(name), row)]
        return self.plan.add_operands([len(table), *words])[0]
