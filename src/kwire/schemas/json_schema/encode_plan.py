"""The plan that encodes Arrow values as JSON: see kwire.wire.json_rows."""

from __future__ import annotations

import math
import struct
import sys

import msgspec
import pyarrow as pa

from kwire.schemas.column_plan import Column, RowPlan
from kwire.schemas.json_schema.limits import Limits
from kwire.schemas.json_schema.parsing import Node
from kwire.wire.json_rows import TEXT, TEXT_OPERATIONS
from kwire.wire.value_rows import ROW_WORDS

__all__ = ["compile_encode_plan", "written_type"]

OP = {name.removeprefix("TEXT_"): index for index, name in enumerate(TEXT_OPERATIONS)}
WORD = {name.removeprefix("TEXT_"): index for index, name in enumerate(TEXT)}
LEAST, GREATEST = -(2**63), 2**63 - 1
OMITTED, WRITTEN, LEFT = range(3)


def written_type(node: Node, given: pa.DataType) -> pa.DataType:
    """Return the type that values of a given type are converted to before they are written; the given one if not."""
    if pa.types.is_dictionary(given):
        given = given.value_type
    if node.kind == "object" and pa.types.is_struct(given):
        return pa.struct([pa.field(each.name, written_type(node.members[each.name], each.type)) for each in given])
    if node.element is not None and node.kind == "map" and pa.types.is_map(given):
        return pa.map_(_text(given.key_type), written_type(node.element, given.item_type))
    if node.element is not None and node.kind == "array" and _is_list(given):
        return pa.list_(pa.field("element", written_type(node.element, given.value_type)))
    if node.kind in ("integer", "number") and pa.types.is_integer(given):
        return pa.int64()
    if node.kind == "number" and pa.types.is_floating(given):
        return pa.float64()
    return _text(given) if node.kind == "string" else given


def _text(kind: pa.DataType) -> pa.DataType:
    is_text = pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    return pa.string() if is_text else kind


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def compile_encode_plan(node: Node, kind: pa.DataType) -> RowPlan:
    """Compile the plan, whose first row writes the value. kind: as written_type returns it."""
    compiler = _Compiler()
    compiler.value(node, kind)
    return compiler.plan


class _Compiler:
    def __init__(self) -> None:
        self.plan = RowPlan()

    def column(self, kind: pa.DataType) -> Column:
        """Add a column."""
        column = Column(type=kind, kind="", number=len(self.plan.columns), path=(), nullable=True)
        self.plan.columns.append(column)
        return column

    def value(self, node: Node, kind: pa.DataType) -> tuple[Column, int]:
        """Add the columns and rows of a value; returns the first of both."""
        column, row = self.column(kind), [0] * ROW_WORDS
        number = len(self.plan.rows)
        self.plan.rows.append(row)
        row[WORD["OPERATION"]], row[WORD["SOURCE"]] = OP["LEFT"], column.number
        row[WORD["TAKES_NULL"]] = LEFT
        if node.limits is not None:
            row[WORD["TAKES_NULL"]] = WRITTEN if node.takes_null else OMITTED
            self.known(node, node.limits, column, row)
        return column, number

    def known(self, node: Node, limits: Limits, column: Column, row: list[int]) -> None:
        """Set the row of a value whose limits the kernel checks; it is left if the type is another one."""
        kind = column.type
        words: dict[str, int] = {"LEAST": limits.least, "GREATEST": _or_most(limits.greatest)}
        match node.kind:
            case "object" if pa.types.is_struct(kind) and limits.required <= {each.name for each in kind}:
                words["A"], words["B"] = self.members(node, limits, column)
            case "array" if pa.types.is_list(kind) and node.element is not None:
                item, words["A"] = self.value(node.element, kind.value_type)
                column.children = [item]
            case "map" if pa.types.is_map(kind) and pa.types.is_string(kind.key_type) and node.element is not None:
                names = self.column(kind.key_type)
                value, words["A"] = self.value(node.element, kind.item_type)
                column.children, words["B"] = [names, value], names.number
            case "integer" | "number" if pa.types.is_int64(kind):
                words["LEAST"], words["GREATEST"] = _integers(limits)
                row[WORD["OPERATION"]] = OP["INTEGER"]
            case "number" if pa.types.is_float64(kind):
                words["LEAST"], words["GREATEST"] = _floats(limits)
            case "string" if pa.types.is_string(kind):
                words["A"] = -1
                if limits.strings is not None:
                    table = [word for each in limits.strings for word in self.plan.add_constant(each.encode())]
                    words["A"], words["B"] = self.plan.add_operands(table)[0], len(limits.strings)
            case "boolean" if pa.types.is_boolean(kind):
                pass
            case _:
                return
        row[WORD["OPERATION"]] = row[WORD["OPERATION"]] if pa.types.is_int64(kind) else OP[node.kind.upper()]
        for name, word in words.items():
            row[WORD[name]] = word

    def members(self, node: Node, limits: Limits, column: Column) -> tuple[int, int]:
        """Add the columns and rows of the properties that are given; returns the place of their table and its size."""
        table = list[int]()
        for part in column.type:
            child, row = self.value(node.members[part.name], part.type)
            column.add(part.name, child)
            name = self.plan.add_constant(msgspec.json.encode(part.name) + b":")
            table += [*name, row, int(part.name in limits.required)]
        return self.plan.add_operands(table)[0], len(column.children)


def _or_most(number: int | None) -> int:
    return GREATEST if number is None else min(max(number, LEAST), GREATEST)


def _integers(limits: Limits) -> tuple[int, int]:
    """Return the least and greatest integer."""
    least, greatest = LEAST, GREATEST
    for name, bound in limits.bounds.items():
        match name:
            case "minimum":
                least = max(least, math.ceil(bound))
            case "exclusiveMinimum":
                least = max(least, math.floor(bound) + 1)
            case "maximum":
                greatest = min(greatest, math.floor(bound))
            case "exclusiveMaximum":
                greatest = min(greatest, math.ceil(bound) - 1)
    return (least, greatest) if least <= greatest else (0, -1)


def _floats(limits: Limits) -> tuple[int, int]:
    """Return the bits of the least and greatest float."""
    least, greatest = -sys.float_info.max, sys.float_info.max
    for name, bound in limits.bounds.items():
        near = float(min(max(bound, -sys.float_info.max), sys.float_info.max))
        is_exclusive = name.startswith("exclusive")
        if name.lower().endswith("minimum"):
            if near < bound or (is_exclusive and near == bound):  # an exact comparison, also with a large integer
                near = math.nextafter(near, math.inf)
            least = max(least, near)
        else:
            if near > bound or (is_exclusive and near == bound):
                near = math.nextafter(near, -math.inf)
            greatest = min(greatest, near)
    return struct.unpack("<qq", struct.pack("<dd", least, greatest))
