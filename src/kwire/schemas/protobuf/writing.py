"""Protobuf values from Python objects, as Arrow gives them. Fields are written in the order of their numbers."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from kwire.errors import EncodeError
from kwire.schemas.protobuf.model import DURATION, TIMESTAMP, Field
from kwire.schemas.protobuf.reading import END_GROUP, FIXED, GROUP, LEN, WIRE_TYPES
from kwire.schemas.protobuf.types import Node

__all__ = ["write_message"]

RANGES = {
    "int32": range(-(2**31), 2**31),
    "sint32": range(-(2**31), 2**31),
    "int64": range(-(2**63), 2**63),
    "sint64": range(-(2**63), 2**63),
    "uint32": range(2**32),
    "uint64": range(2**64),
}
ENUM_RANGE = RANGES["int32"]


def write_message(node: Node, value: Any) -> bytes:
    """Encode a value of the node's type: structs are mappings, times are microseconds. Raises EncodeError with path."""
    return _message(node, value, ())


def _message(node: Node, value: Any, path: tuple[str, ...]) -> bytes:
    if node.raw:
        return bytes(value)
    if pa.types.is_struct(node.type):
        if not isinstance(value, Mapping):
            raise EncodeError(f"expected a struct, got {type(value).__name__}", path)
        given = value
    elif node.message.name in (TIMESTAMP, DURATION):
        given = _seconds(value, keep_sign=node.message.name == DURATION)
    else:
        given = {"value": value}
    out = bytearray()
    oneofs: dict[str, str] = {}
    for field in sorted(node.fields, key=lambda f: f.number):
        each = given.get(field.name)
        if each is None:
            continue
        if field.oneof is not None and oneofs.setdefault(field.oneof, field.name) != field.name:
            raise EncodeError(
                f"oneof '{field.oneof}' has a value already, '{oneofs[field.oneof]}'", (*path, field.name)
            )
        _field(out, field, node, each, (*path, field.name))
    return bytes(out)


def _seconds(micros: int, *, keep_sign: bool) -> dict[str, int]:
    seconds, rest = divmod(micros, 1_000_000)
    if keep_sign and seconds < 0 and rest:  # seconds and nanos of a duration have one sign
        seconds, rest = seconds + 1, rest - 1_000_000
    return {"seconds": seconds, "nanos": rest * 1000}


def _field(out: bytearray, field: Field, node: Node, value: Any, path: tuple[str, ...]) -> None:
    if field.shape == "map":
        entry = node.members[field.number]
        for key, each in value:
            body = _message(entry, {"key": key, "value": each}, path)
            _put(out, field.number, LEN, body)
    elif field.shape == "list":
        if any(each is None for each in value):
            raise EncodeError("a list with null; Protobuf has no null elements", path)
        if field.packed:
            body = b"".join(_scalar(field, each, path) for each in value)
            if body:
                _put(out, field.number, LEN, body)
        else:
            for each in value:
                _single(out, field, node, each, path)
    elif field.message is not None or field.has_presence or not _is_default(field, value, path):
        _single(out, field, node, value, path)


def _is_default(field: Field, value: Any, path: tuple[str, ...]) -> bool:
    if field.enum is not None:
        return _enum_number(field, value, path) == 0
    if isinstance(value, float):
        return struct.pack("<d", value) == bytes(8)  # -0.0 is sent
    return not value


def _single(out: bytearray, field: Field, node: Node, value: Any, path: tuple[str, ...]) -> None:
    if field.message is None:
        wire_type = WIRE_TYPES.get(field.type, LEN)
        body = _scalar(field, value, path)
        if wire_type == LEN:
            _put(out, field.number, LEN, body)
        else:
            out += _varint(field.number << 3 | wire_type) + body
        return
    body = _message(node.members[field.number], value, path)
    if field.type == "group":
        out += _varint(field.number << 3 | GROUP) + body + _varint(field.number << 3 | END_GROUP)
    else:
        _put(out, field.number, LEN, body)


def _put(out: bytearray, number: int, wire_type: int, body: bytes) -> None:
    out += _varint(number << 3 | wire_type) + _varint(len(body)) + body


def _scalar(field: Field, value: Any, path: tuple[str, ...]) -> bytes:
    """Return the bytes of a value, without length."""
    kind = field.type
    if kind == "string":
        return str(value).encode("utf-8", "strict")
    if kind == "bytes":
        return bytes(value)
    if kind in FIXED:
        code, _ = FIXED[kind]
        try:
            return struct.pack(code, value if kind in ("float", "double") else int(value))
        except (struct.error, OverflowError):
            raise EncodeError(f"{value} is not in the range of {kind}", path) from None
    if kind == "bool":
        return b"\1" if value else b"\0"
    number = _enum_number(field, value, path) if field.enum is not None else int(value)
    if field.enum is None and number not in RANGES[kind]:
        raise EncodeError(f"{value} is not in the range of {kind}", path)
    if kind in ("sint32", "sint64"):
        return _varint(number << 1 ^ number >> 63)
    return _varint(number & 0xFFFFFFFFFFFFFFFF)


def _enum_number(field: Field, value: Any, path: tuple[str, ...]) -> int:
    assert field.enum is not None
    known = field.enum.numbers.get(value)
    if known is not None:
        return known
    try:
        number = int(value)
    except ValueError:
        number = -(2**63)
    if number not in ENUM_RANGE:
        raise EncodeError(f"'{str(value)[:80]}' is not a value of enum {field.enum.name}", path)
    return number


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
