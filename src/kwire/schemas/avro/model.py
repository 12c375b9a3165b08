"""Avro schemas as objects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

__all__ = ["NO_DEFAULT", "PRIMITIVES", "Default", "Field", "Logical", "NoDefault", "Schema"]

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")

SHOWN_BRANCHES = 10
"""Of a union in messages."""


class NoDefault:
    """The type of NO_DEFAULT: null is a default like any other."""


NO_DEFAULT = NoDefault()
Default = None | bool | int | float | str | list[object] | dict[str, object] | NoDefault
"""A default as JSON has it."""


@dataclass(slots=True, kw_only=True, frozen=True)
class Logical:
    """A logical type. precision, scale: of decimals."""

    name: str
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        return f"decimal({self.precision}, {self.scale})" if self.name == "decimal" else self.name


@dataclass(slots=True, kw_only=True, eq=False)
class Schema:
    """An Avro schema.

    type: of PRIMITIVES, or record, enum, fixed, array, map, union. name: full name of a record, enum or fixed; aliases
    are full names too. items: of an array, values of a map. default: of an enum. A record that contains itself is a
    reference to the same object.
    """

    type: str
    name: str = ""
    aliases: tuple[str, ...] = ()
    fields: tuple[Field, ...] = ()
    symbols: tuple[str, ...] = ()
    default: str | None = None
    size: int = 0
    branches: tuple[Schema, ...] = ()
    logical: Logical | None = None
    element: Schema | None = None

    @property
    def items(self) -> Schema:
        """The items of an array, or the values of a map."""
        assert self.element is not None
        return self.element

    @property
    def short_name(self) -> str:
        """The name without its namespace."""
        return self.name.rpartition(".")[2]

    def __str__(self) -> str:
        if self.type == "union":
            shown = ", ".join(map(str, self.branches[:SHOWN_BRANCHES])) or "nothing"
            more = len(self.branches) - SHOWN_BRANCHES
            return f"union of {shown} and {more} more" if more > 0 else f"union of {shown}"
        text = f"{self.type} {self.name}" if self.name else self.type
        return f"{text} ({self.logical})" if self.logical else text

    def children(self) -> Iterator[Schema]:
        """Yield the schemas of fields, branches, items or values."""
        yield from (each.schema for each in self.fields)
        yield from self.branches
        if self.element is not None:
            yield self.element


@dataclass(slots=True, kw_only=True, eq=False)
class Field:
    """A field of a record. default: as JSON has it."""

    name: str
    schema: Schema
    aliases: tuple[str, ...] = ()
    default: Default = field(default=NO_DEFAULT)
