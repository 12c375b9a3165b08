"""Protobuf files as serialized descriptors in base64, as Confluent's Python and .NET serializers register them.

They become the syntax tree of a .proto file. They are read with their own definition: the facts of descriptor.proto
that matter here.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from kwire.errors import DecodeError, InvalidSchema
from kwire.schemas.protobuf.model import File, Message
from kwire.schemas.protobuf.reading import read_message
from kwire.schemas.protobuf.types import Node, build_node

if TYPE_CHECKING:
    from proto_schema_parser import ast

__all__ = ["DescriptorReader", "is_descriptor"]

BASE64 = re.compile(r"[A-Za-z0-9+/\s]+={0,2}\s*")
MAX_DEPTH = 100
DEFINITION = """
    syntax = "proto2";
    message FileDescriptor { optional string package = 2; repeated string dependency = 3;
        repeated Descriptor message_type = 4; repeated Enum enum_type = 5; optional Options options = 8;
        optional string syntax = 12; optional int32 edition = 14; }
    message Descriptor { optional string name = 1; repeated Field field = 2; repeated bytes nested_type = 3;
        repeated Enum enum_type = 4; optional MessageOptions options = 7; repeated Oneof oneof_decl = 8; }
    message Field { optional string name = 1; optional int32 number = 3; optional int32 label = 4;
        optional int32 type = 5; optional string type_name = 6; optional FieldOptions options = 8;
        optional int32 oneof_index = 9; optional bool proto3_optional = 17; }
    message Oneof { optional string name = 1; }
    message Enum { optional string name = 1; repeated Value value = 2; }
    message Value { optional string name = 1; optional int32 number = 2; }
    message Options { optional Features features = 50; }
    message MessageOptions { optional bool map_entry = 7; }
    message FieldOptions { optional bool packed = 2; optional Features features = 21; }
    message Features { optional int32 field_presence = 1; optional int32 repeated_field_encoding = 3;
        optional int32 message_encoding = 5; }
"""
TYPES = (
    *("", "double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string", "group", "message"),
    *("bytes", "uint32", "enum", "sfixed32", "sfixed64", "sint32", "sint64"),
)
GROUP = TYPES.index("group")
REPEATED = 3
FEATURES = {
    "field_presence": ("EXPLICIT", "IMPLICIT", "LEGACY_REQUIRED"),
    "repeated_field_encoding": ("PACKED", "EXPANDED"),
    "message_encoding": ("LENGTH_PREFIXED", "DELIMITED"),
}
"""Their values, from 1 on."""
EDITION_2023 = 1000
Value = dict[str, Any]


def is_descriptor(text: str) -> bool:
    """Return whether a text is base64 rather than a .proto file."""
    return BASE64.fullmatch(text) is not None


class DescriptorReader:
    """Reads descriptors. parse: of .proto files."""

    def __init__(self, parse: Callable[[str], File]) -> None:
        types = parse(DEFINITION).types
        self._file, self._message = (_node(types[name]) for name in ("FileDescriptor", "Descriptor"))

    def read(self, text: str) -> ast.File:
        """Return the syntax tree of a file. Raises InvalidSchema."""
        from proto_schema_parser import ast

        try:
            descriptor = read_message(self._file, base64.b64decode(text))
            elements: list[ast.FileElement] = [ast.Import(name=name) for name in descriptor["dependency"]]
            if descriptor["package"]:
                elements.insert(0, ast.Package(name=descriptor["package"]))
            elements += _features(descriptor)
            elements += [_enum(each) for each in descriptor["enum_type"]]
            edition = "2023" if (descriptor["edition"] or 0) >= EDITION_2023 else None
            self._syntax = "editions" if edition else descriptor["syntax"] or "proto2"
            elements += [self._convert(each, 0) for each in descriptor["message_type"]]
        except (DecodeError, binascii.Error) as error:
            raise InvalidSchema(f"neither a .proto file nor a serialized descriptor: {error}") from None
        return ast.File(syntax=None if edition else self._syntax, edition=edition, file_elements=elements)

    def _convert(self, message: Value, depth: int) -> ast.Message:
        from proto_schema_parser import ast

        if depth > MAX_DEPTH:
            raise InvalidSchema(f"messages nested more than {MAX_DEPTH} deep")
        nested = [read_message(self._message, each) for each in message["nested_type"]]
        maps = {each["name"]: each for each in nested if (each["options"] or {}).get("map_entry")}
        elements: list[ast.MessageElement] = [_enum(each) for each in message["enum_type"]]
        elements += [self._convert(each, depth + 1) for each in nested if each["name"] not in maps]
        return ast.Message(name=message["name"] or "", elements=[*elements, *self._fields(message, maps)])

    def _fields(self, message: Value, maps: dict[str, Value]) -> Iterator[ast.MessageElement]:
        from proto_schema_parser import ast

        oneofs = [each["name"] or "" for each in message["oneof_decl"]]
        for field in message["field"]:
            entry = maps.get((field["type_name"] or "").rpartition(".")[2])
            if entry is not None:
                key, value = sorted(entry["field"], key=lambda each: each["number"] or 0)[:2]
                yield ast.MapField(field["name"], field["number"], _type(key), _type(value))
                continue
            made = self._field(field)
            index = field["oneof_index"]
            if index is None or field["proto3_optional"]:
                yield made
            elif 0 <= index < len(oneofs):
                yield ast.OneOf(name=oneofs[index], elements=[made])  # here, so that fields keep their order
            else:
                raise InvalidSchema(f"no oneof {index}", path=(message["name"], field["name"]))

    def _field(self, field: Value) -> ast.Field:
        from proto_schema_parser import ast

        options = _features(field)
        if (packed := (field["options"] or {}).get("packed")) is not None:
            options.append(ast.Option("packed", packed))
        if field["type"] == GROUP:
            options.append(_feature("message_encoding", "DELIMITED"))
        cardinality = None
        if field["label"] == REPEATED:
            cardinality = ast.FieldCardinality.REPEATED
        elif field["proto3_optional"] or self._syntax == "proto2":
            cardinality = ast.FieldCardinality.OPTIONAL
        return ast.Field(field["name"] or "", field["number"] or 0, _type(field), cardinality, options)


def _node(message: object) -> Node:
    assert isinstance(message, Message)
    return build_node(message)


def _features(element: Value) -> list[ast.Option]:
    """Return the features that a file or field sets."""
    given = (element["options"] or {}).get("features") or {}
    return [
        _feature(name, texts[number - 1])
        for name, texts in FEATURES.items()
        if (number := given.get(name)) is not None and 0 < number <= len(texts)
    ]


def _feature(name: str, value: str) -> ast.Option:
    from proto_schema_parser import ast

    return ast.Option(f"features.{name}", ast.Identifier(value))


def _enum(value: Value) -> ast.Enum:
    from proto_schema_parser import ast

    elements: list[ast.EnumElement] = [
        ast.EnumValue(each["name"] or "", each["number"] or 0) for each in value["value"]
    ]
    return ast.Enum(name=value["name"] or "", elements=elements)


def _type(field: Value) -> str:
    number = field["type"] or 0
    if field["type_name"]:
        return str(field["type_name"])
    if not 0 < number < len(TYPES):
        raise InvalidSchema(f"unknown type {number}", path=(field["name"] or "",))
    return TYPES[number]
