"""Protobuf messages as objects."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

__all__ = ["SCALARS", "WELL_KNOWN", "WRAPPERS", "Enum", "Field", "File", "Message", "Shape"]

Shape = Literal["single", "list", "map"]
SCALARS = (
    *("double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64"),
    *("fixed32", "fixed64", "sfixed32", "sfixed64", "bool", "string", "bytes"),
)
TIMESTAMP, DURATION = "google.protobuf.Timestamp", "google.protobuf.Duration"
WRAPPERS = {
    "google.protobuf.DoubleValue": "double",
    "google.protobuf.FloatValue": "float",
    "google.protobuf.Int64Value": "int64",
    "google.protobuf.UInt64Value": "uint64",
    "google.protobuf.Int32Value": "int32",
    "google.protobuf.UInt32Value": "uint32",
    "google.protobuf.BoolValue": "bool",
    "google.protobuf.StringValue": "string",
    "google.protobuf.BytesValue": "bytes",
}
WELL_KNOWN = (TIMESTAMP, DURATION, *WRAPPERS)
"""Messages that are columns of a simple type."""


@dataclass(slots=True, kw_only=True, eq=False)
class Enum:
    """An enum. numbers: the numbers of its names. names: the first name of each number."""

    name: str
    numbers: dict[str, int]
    names: dict[int, str]


@dataclass(slots=True, kw_only=True, eq=False)
class Field:
    """A field of a message.

    type: of SCALARS, "message", "group" or "enum". shape: of a map, the field's type is that of its entries, which are
    messages with the fields 1 and 2. has_presence: a field that was not sent is null, else it has the type's default.
    packed: how it is written; both forms are read.
    """

    name: str
    number: int
    type: str
    shape: Shape = "single"
    has_presence: bool = False
    packed: bool = False
    oneof: str | None = None
    message: Message | None = None
    enum: Enum | None = None


@dataclass(slots=True, kw_only=True, eq=False)
class Message:
    """A message. nested: messages inside of it, in order, as indexes in values count them."""

    name: str
    fields: tuple[Field, ...] = ()
    nested: list[Message] = field(default_factory=list)

    def by_number(self) -> dict[int, Field]:
        """Return the fields by number."""
        return {each.number: each for each in self.fields}


@dataclass(slots=True, kw_only=True, eq=False)
class File:
    """A .proto file. messages: those at its top level, in order. types: all messages and enums, by full name."""

    messages: list[Message]
    types: dict[str, Message | Enum]
