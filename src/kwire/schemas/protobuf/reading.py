"""Protobuf values as Python objects that Arrow takes.

As Protobuf's own parsers: fields in any order; the last of several values counts, and messages are merged; packed and
unpacked numbers; unknown fields and fields with another wire type are skipped; the last member of a oneof counts.
"""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa

from kwire.errors import Malformed, Truncated
from kwire.schemas.protobuf.model import Field
from kwire.schemas.protobuf.types import Node, is_time

__all__ = ["read_message"]

VARINT, I64, LEN, GROUP, END_GROUP, I32 = range(6)
FIXED = {
    "double": ("<d", I64),
    "fixed64": ("<Q", I64),
    "sfixed64": ("<q", I64),
    "float": ("<f", I32),
    "fixed32": ("<I", I32),
    "sfixed32": ("<i", I32),
}
VARINTS = ("int32", "int64", "uint32", "uint64", "sint32", "sint64", "bool", "enum")
DEFAULTS: dict[str, object] = {"string": "", "bytes": b"", "bool": False, "double": 0.0, "float": 0.0}
WIRE_TYPES = {name: kind for name, (_, kind) in FIXED.items()} | dict.fromkeys(VARINTS, VARINT) | {"group": GROUP}
MAX_TAG_BYTES, MAX_VARINT_BYTES = 5, 10
MAX_DEPTH = 100
INT64_RANGE = range(-(2**63), 2**63)
Span = tuple[bytes, int, int]
FieldValues = dict[str, Any]


def read_message(node: Node, data: bytes) -> Any:
    """Return a message as its node's type has it. Raises Truncated, Malformed, with position and path."""
    values: FieldValues = {}
    _merge(node, values, (data, 0, len(data)), 0, ())
    return _finish(node, values)


def _merge(node: Node, given: FieldValues, span: Span, depth: int, path: tuple[str, ...]) -> None:
    """Read the fields of a message into the values that were read before."""
    data, pos, end = span
    if depth > MAX_DEPTH:
        raise Malformed(f"messages nested more than {MAX_DEPTH} deep", pos, path)
    fields = node.message.by_number()
    while pos < end:
        number, wire_type, pos = _read_tag(data, pos, end, path)
        field = fields.get(number)
        if field is None or not _accepts(field, wire_type):
            pos = _skip(data, pos, end, number, wire_type, depth, path)
            continue
        here = (*path, field.name)
        if field.oneof is not None:
            for other in node.fields:
                if other.oneof == field.oneof and other is not field:
                    given.pop(other.name, None)
        if field not in node.fields:
            pos = _skip(data, pos, end, number, wire_type, depth, path)
        elif field.message is None:
            pos = _read_scalar(field, wire_type, (data, pos, end), given, here)
        else:
            body, pos = _body(data, pos, end, number, wire_type, depth, here)
            _read_member(field, node.members[number], given, body, depth + 1, here)
    if is_time(node) and _micros(node, given) not in INT64_RANGE:
        raise Malformed("out of range", span[1], path)


def _read_member(field: Field, member: Node, given: FieldValues, body: Span, depth: int, path: tuple[str, ...]) -> None:
    """Read a message, or an entry of a map, into the values of its message."""
    data, start, end = body
    if member.raw:
        if field.shape == "list":
            given.setdefault(field.name, []).append(data[start:end])
        else:  # bytes of messages that follow each other are one message
            given[field.name] = given.get(field.name, b"") + data[start:end]
        return
    if field.shape == "single":
        _merge(member, given.setdefault(field.name, {}), body, depth, path)
        return
    inner: FieldValues = {}
    _merge(member, inner, body, depth, path)
    value = _finish(member, inner)
    if field.shape == "map":
        given.setdefault(field.name, {})[value["key"]] = value["value"]
    else:
        given.setdefault(field.name, []).append(value)


def _finish(node: Node, given: FieldValues) -> Any:
    """Return a message's values as the type that its place has."""
    if is_time(node):
        return _micros(node, given)
    values = {field.name: _value(field, node, given) for field in node.fields}
    return values if pa.types.is_struct(node.type) else values["value"]


def _micros(node: Node, given: FieldValues) -> int:
    seconds, nanos = given.get("seconds", 0), given.get("nanos", 0)
    if pa.types.is_duration(node.type) and nanos < 0:  # rounded towards zero
        return int(seconds * 1_000_000 - -nanos // 1_000)
    return int(seconds * 1_000_000 + nanos // 1_000)


def _value(field: Field, node: Node, values: FieldValues) -> object:
    """Return the value of a field, which may be absent."""
    given = values.get(field.name)
    if field.shape == "map":
        return list((given or {}).items())
    if field.shape == "list":
        return given or []
    if given is None and field.has_presence:
        return None
    if field.message is None:
        return _default(field) if given is None else given
    member = node.members[field.number]  # absent: the value of a map's entry
    return (given or b"") if member.raw else _finish(member, given or {})


def _default(field: Field) -> object:
    if field.enum is not None:
        return field.enum.names.get(0, "0")
    return Decimal(0) if field.type in ("uint64", "fixed64") else DEFAULTS.get(field.type, 0)


def _accepts(field: Field, wire_type: int) -> bool:
    expected = WIRE_TYPES.get(field.type, LEN)
    return wire_type == expected or (wire_type == LEN and field.shape == "list" and expected != GROUP)


def _read_scalar(field: Field, wire_type: int, span: Span, given: FieldValues, path: tuple[str, ...]) -> int:
    data, pos, end = span
    if field.shape == "single":
        given[field.name], pos = _read_value(field, data, pos, end, path)
        return pos
    values = given.setdefault(field.name, [])
    if wire_type != LEN or field.type in ("string", "bytes"):
        value, pos = _read_value(field, data, pos, end, path)
        values.append(value)
        return pos
    size, pos = _read_length(data, pos, end, path)
    last = pos + size
    while pos < last:
        value, pos = _read_value(field, data, pos, last, path)
        values.append(value)
    return pos


def _read_value(field: Field, data: bytes, pos: int, end: int, path: tuple[str, ...]) -> tuple[object, int]:
    kind = field.type
    if kind in ("string", "bytes"):
        size, pos = _read_length(data, pos, end, path)
        value = data[pos : pos + size]
        if kind == "bytes":
            return value, pos + size
        try:
            return value.decode("utf-8"), pos + size
        except UnicodeDecodeError:
            raise Malformed("not UTF-8", pos, path) from None
    if kind in FIXED:
        code, wire_type = FIXED[kind]
        size = 8 if wire_type == I64 else 4
        if end - pos < size:
            raise Truncated(f"{size} bytes expected, {end - pos} remaining", pos, path)
        (number,) = struct.unpack_from(code, data, pos)
        return Decimal(number) if kind == "fixed64" else number, pos + size
    number, pos = _read_varint(data, pos, end, path)
    return _convert(field, number), pos


def _convert(field: Field, number: int) -> object:
    """Return the value of a varint of 64 bits; narrower types keep their low bits."""
    match field.type:
        case "bool":
            return number != 0
        case "uint64":
            return Decimal(number)
        case "uint32":
            return number & 0xFFFFFFFF
        case "int64":
            return number - (number >> 63 << 64)
        case "sint64":
            return (number >> 1) ^ -(number & 1)
        case "sint32":
            number &= 0xFFFFFFFF
            return (number >> 1) ^ -(number & 1)
    number &= 0xFFFFFFFF
    number -= number >> 31 << 32
    return number if field.enum is None else field.enum.names.get(number, str(number))


def _read_varint(
    data: bytes, pos: int, end: int, path: tuple[str, ...], limit: int = MAX_VARINT_BYTES
) -> tuple[int, int]:
    value = 0
    for index in range(limit):
        if pos >= end:
            raise Truncated("a varint continues after the end", pos, path)
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, pos
    raise Malformed(f"a varint of more than {limit} bytes", pos - limit, path)


def _read_tag(data: bytes, pos: int, end: int, path: tuple[str, ...]) -> tuple[int, int, int]:
    tag, after = _read_varint(data, pos, end, path, MAX_TAG_BYTES)
    if tag > 0xFFFFFFFF or tag >> 3 == 0 or tag & 7 > I32:
        raise Malformed(f"not a field's tag: number {tag >> 3}, wire type {tag & 7}", pos, path)
    return tag >> 3, tag & 7, after


def _read_length(data: bytes, pos: int, end: int, path: tuple[str, ...]) -> tuple[int, int]:
    size, after = _read_varint(data, pos, end, path)
    if size > end - after:
        raise Truncated(f"{size} bytes expected, {end - after} remaining", pos, path)
    return size, after


def _body(
    data: bytes, pos: int, end: int, number: int, wire_type: int, depth: int, path: tuple[str, ...]
) -> tuple[Span, int]:
    """Return the bytes of a message, and where the next field starts."""
    if wire_type == LEN:
        size, pos = _read_length(data, pos, end, path)
        return (data, pos, pos + size), pos + size
    last, after = _end_of_group(data, pos, end, number, depth, path)
    return (data, pos, last), after


def _skip(data: bytes, pos: int, end: int, number: int, wire_type: int, depth: int, path: tuple[str, ...]) -> int:
    """Return where the field after this one starts."""
    if wire_type == VARINT:
        return _read_varint(data, pos, end, path)[1]
    if wire_type == LEN:
        size, pos = _read_length(data, pos, end, path)
        return pos + size
    if wire_type in (I64, I32):
        size = 8 if wire_type == I64 else 4
        if end - pos < size:
            raise Truncated(f"{size} bytes expected, {end - pos} remaining", pos, path)
        return pos + size
    if wire_type == END_GROUP:
        raise Malformed(f"the end of a group without its start, number {number}", pos, path)
    return _end_of_group(data, pos, end, number, depth, path)[1]


def _end_of_group(data: bytes, pos: int, end: int, number: int, depth: int, path: tuple[str, ...]) -> tuple[int, int]:
    """Return the end of a group's fields, and where the field after the group starts."""
    if depth >= MAX_DEPTH:
        raise Malformed(f"messages nested more than {MAX_DEPTH} deep", pos, path)
    while True:
        inner, kind, after = _read_tag(data, pos, end, path)
        if kind == END_GROUP:
            if inner != number:
                raise Malformed(f"the end of group {inner} inside of group {number}", pos, path)
            return pos, after
        pos = _skip(data, after, end, inner, kind, depth + 1, path)
