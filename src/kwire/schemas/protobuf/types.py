"""The Arrow types of Protobuf messages.

double, float, bool, string, bytes        the same in Arrow
int32, sint32, sfixed32                   int32        uint32, fixed32    int64
int64, sint64, sfixed64                   int64        uint64, fixed64    decimal(20, 0)
enum                                      string: the name, or the number if the enum lacks it
message, group                            struct       repeated           list          map    map
google.protobuf.Timestamp                 timestamp[us, UTC]
google.protobuf.Duration                  duration[us]
google.protobuf.Int32Value and others     the type of their value
a message inside of itself                binary: the encoded message
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from kwire.errors import InvalidSchema, did_you_mean
from kwire.schemas.protobuf.model import DURATION, TIMESTAMP, WRAPPERS, Field, Message

__all__ = ["Node", "build_node", "is_time"]

ARROW = {
    "double": pa.float64(),
    "float": pa.float32(),
    "int32": pa.int32(),
    "sint32": pa.int32(),
    "sfixed32": pa.int32(),
    "uint32": pa.int64(),
    "fixed32": pa.int64(),
    "int64": pa.int64(),
    "sint64": pa.int64(),
    "sfixed64": pa.int64(),
    "uint64": pa.decimal128(20, 0),
    "fixed64": pa.decimal128(20, 0),
    "bool": pa.bool_(),
    "string": pa.string(),
    "bytes": pa.binary(),
    "enum": pa.string(),
}
SECONDS_AND_NANOS = [(1, "int64", "single"), (2, "int32", "single")]
MAX_NODES = 100_000
MAX_DEPTH = 100


@dataclass(slots=True, kw_only=True)
class Node:
    """A message as it is read in one place of a schema: the same message has another type inside of itself.

    fields: those that are read, in the order of the type. members: the nodes of fields that are structs, maps or lists
    of structs, by field number. raw: its field is binary.
    """

    message: Message
    type: pa.DataType
    fields: tuple[Field, ...]
    members: dict[int, Node]
    raw: bool = False


def build_node(message: Message, columns: tuple[str, ...] | None = None) -> Node:
    """Return the message with its Arrow type. columns: the fields at the top level that are read, in this order.

    Raises InvalidSchema.
    """
    if columns is None:
        return _Builder().build(message, message.fields, ())
    by_name = {each.name: each for each in message.fields}
    unknown = next((name for name in columns if name not in by_name), None)
    if unknown is not None:
        raise InvalidSchema(f"'{message.name}' has no field '{unknown}'{did_you_mean(unknown, by_name)}")
    return _Builder().build(message, tuple(by_name[name] for name in dict.fromkeys(columns)), ())


def is_time(node: Node) -> bool:
    """Return whether a message is seconds and nanoseconds, as one number."""
    return bool(pa.types.is_timestamp(node.type) or pa.types.is_duration(node.type))


class _Builder:
    def __init__(self) -> None:
        self.count = 0

    def build(self, message: Message, fields: tuple[Field, ...], path: tuple[Message, ...]) -> Node:
        self.count += len(fields) + 1
        if self.count > MAX_NODES:
            raise InvalidSchema(f"more than {MAX_NODES} fields, counting those of messages in each place")
        if len(path) >= MAX_DEPTH:
            raise InvalidSchema(f"messages nested more than {MAX_DEPTH} deep")
        node = Node(message=message, type=pa.null(), fields=fields, members={})
        node.type = pa.struct([pa.field(each.name, self._field_type(each, node, (*path, message))) for each in fields])
        return node

    def _field_type(self, field: Field, node: Node, path: tuple[Message, ...]) -> pa.DataType:
        if field.message is None:
            element = ARROW[field.type]
        elif field.shape == "map":
            entry = self.build(field.message, field.message.fields, path)
            node.members[field.number] = entry
            key, value = entry.type
            return pa.map_(key.type, pa.field("value", value.type))
        else:
            member = self._member(field.message, path)
            node.members[field.number] = member
            element = member.type
        return pa.list_(pa.field("element", element)) if field.shape == "list" else element

    def _member(self, message: Message, path: tuple[Message, ...]) -> Node:
        if message in path:
            return Node(message=message, type=pa.binary(), fields=(), members={}, raw=True)
        shape = [(field.number, field.type, field.shape) for field in message.fields]
        if message.name in (TIMESTAMP, DURATION) and shape == SECONDS_AND_NANOS:
            kind = pa.timestamp("us", "UTC") if message.name == TIMESTAMP else pa.duration("us")
            return Node(message=message, type=kind, fields=message.fields, members={})
        if shape == [(1, WRAPPERS.get(message.name), "single")]:
            kind = ARROW[WRAPPERS[message.name]]
            return Node(message=message, type=kind, fields=message.fields, members={})
        return self.build(message, message.fields, path)
