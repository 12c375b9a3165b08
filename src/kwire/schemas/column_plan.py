"""Columns, rows and lists of a plan, the same for all formats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

__all__ = ["ROOT", "Column", "ColumnPlan", "RowPlan", "storage"]

ROOT = 0
"""The row and the column of a whole value."""


@dataclass(slots=True, kw_only=True, eq=False)
class Column:
    """A column of a tree. number: in the plan.

    kind, width: as in kwire.wire.value_rows. children: of a struct its fields, of a list its items, of a map a struct
    of keys and values. names: of a struct's children, with their places.
    """

    type: pa.DataType
    kind: str
    number: int
    path: tuple[str, ...]
    nullable: bool
    width: int = 0
    names: dict[str, int] = field(default_factory=dict)
    children: list[Column] = field(default_factory=list)

    def add(self, name: str, child: Column) -> None:
        """Add a child of a struct."""
        self.names[name] = len(self.children)
        self.children.append(child)


def storage(kind: pa.DataType) -> tuple[str, int]:
    """Return the kind of the column of a type without types inside, and its width."""
    if pa.types.is_null(kind):
        return "NOTHING", 0
    if pa.types.is_boolean(kind):
        return "BITS", 0
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return "BINARY", 0
    return "WIDE", kind.bit_width // 8


@dataclass(slots=True, kw_only=True)
class RowPlan:
    """Rows, and the lists they refer to: see kwire.wire.value_rows. columns: the first is the root."""

    columns: list[Column] = field(default_factory=list)
    rows: list[list[int]] = field(default_factory=list)
    operands: list[int] = field(default_factory=list)
    constants: bytearray = field(default_factory=bytearray)

    def add_operands(self, numbers: Sequence[int]) -> tuple[int, int]:
        """Add numbers to the operands; returns their place and count."""
        self.operands += numbers
        return len(self.operands) - len(numbers), len(numbers)

    def add_constant(self, data: bytes) -> tuple[int, int]:
        """Add bytes to the constants; returns their place and size."""
        self.constants += data
        return len(self.constants) - len(data), len(data)


@dataclass(slots=True, kw_only=True)
class ColumnPlan(RowPlan):
    """Rows that fill columns. children: the place of each column's children in the operands."""

    children: dict[int, int] = field(default_factory=dict)

    def add_children(self) -> None:
        """Add the children of all columns to the operands."""
        for column in self.columns:
            self.children[column.number], _ = self.add_operands([each.number for each in column.children])
