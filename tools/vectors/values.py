"""Values of message versions in Kafka's JSON form, each in a style: defaults, everything set, nulls, edges, random.

A style answers four questions about a field: is it null, is it tagged and present, how many elements, which value.
Values are few and short on purpose, so that the data set stays small; edges are all there.
"""

from __future__ import annotations

import base64
import json
import random
from typing import Any
from uuid import UUID

from kwire.schema.model import INTEGERS, STRUCT_DEFAULTS, Field, Message, Struct

__all__ = [
    "RECORDS",
    "Defaults",
    "Empty",
    "Extreme",
    "Full",
    "LongText",
    "ManyElements",
    "Nulls",
    "OneTag",
    "Random",
    "Style",
    "of",
]

Json = Any

RECORDS = "AAAAAAAAAAAAAABDAAAAAQJnIMkAAAAAAAAAAAAAAZlnDYAAAAABmWcNgAD//////////wAAAAAAAAAAAAABIgAAAAJrDnZhbHVlIDEAAA=="
"""Bytes of a `records` field; to a message they are bytes."""

TEXTS = ("", "a", "orders", "käse", "\u0000", "😀", "consumer-1", "x" * 126, "x" * 127, "__consumer_offsets", "日本語")


def uuid_text(value: UUID) -> str:
    """Return a uuid as Kafka writes it: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")


class Style:
    """Every field at its default, tagged fields absent."""

    def is_null(self, field: Field) -> bool:
        """Return whether a nullable field is null."""
        return field.default is None

    def has_tag(self, field: Field) -> bool:
        """Return whether a tagged field is present."""
        return False

    def count(self, field: Field, depth: int) -> int:
        """Return the number of elements of an array."""
        return 0

    def leaf(self, field: Field) -> Json:
        """Return a value that is neither null nor a struct."""
        return default_leaf(field)


class Defaults(Style):
    """The style's own name for cases."""


class Full(Style):
    """Every field set to a value that is not its default, tagged ones present, two elements in each array."""

    def __init__(self) -> None:
        self.number = 0

    def is_null(self, field: Field) -> bool:
        return False

    def has_tag(self, field: Field) -> bool:
        return True

    def count(self, field: Field, depth: int) -> int:
        return 2 if depth < 3 else 1

    def leaf(self, field: Field) -> Json:
        self.number += 1
        match field.type:
            case "bool":
                return field.default is not True
            case "float64":
                return self.number + 0.5
            case "string":
                return f"{field.json_name}-{self.number}"
            case "bytes":
                return base64.b64encode(bytes([self.number % 256, 255, 0])).decode()
            case "records":
                return RECORDS
            case "uuid":
                return uuid_text(UUID(int=(self.number << 64) + 1))
        return self.number % 100 + 1 + (self.number % 100 + 1 == field.default)


class Nulls(Full):
    """Every nullable field null, the others set."""

    def is_null(self, field: Field) -> bool:
        return True


class Empty(Style):
    """Empty strings, bytes and arrays in place of nulls; tagged fields present where that is not their default."""

    def is_null(self, field: Field) -> bool:
        return False

    def has_tag(self, field: Field) -> bool:
        return True

    def leaf(self, field: Field) -> Json:
        return "" if field.type in ("string", "bytes", "records") else default_leaf(field)


class Extreme(Full):
    """The smallest or the largest integers."""

    def __init__(self, largest: bool) -> None:
        super().__init__()
        self.largest = largest

    def count(self, field: Field, depth: int) -> int:
        return 1

    def leaf(self, field: Field) -> Json:
        if field.type in INTEGERS:
            return INTEGERS[field.type][self.largest]
        if field.type == "float64":
            return 1.7976931348623157e308 if self.largest else -0.0
        if field.type == "uuid":
            return uuid_text(UUID(int=2**128 - 1 if self.largest else 2**127))
        return super().leaf(field)


class LongText(Full):
    """Strings and bytes of one length."""

    def __init__(self, length: int, only: Field | None = None) -> None:
        super().__init__()
        self.length, self.only = length, only

    def count(self, field: Field, depth: int) -> int:
        return 1

    def leaf(self, field: Field) -> Json:
        if self.only is None or field is self.only:
            if field.type == "string":
                return "s" * self.length
            if field.type == "bytes":
                return base64.b64encode(b"b" * self.length).decode()
        return super().leaf(field)


class ManyElements(Style):
    """One array with many elements, in each place where it occurs; the arrays around it have one."""

    def __init__(self, only: Field, number: int, around: frozenset[str]) -> None:
        self.only, self.number, self.around = only, number, around

    def is_null(self, field: Field) -> bool:
        return field.default is None and field is not self.only and field.json_name not in self.around

    def has_tag(self, field: Field) -> bool:
        return field is self.only or field.json_name in self.around

    def count(self, field: Field, depth: int) -> int:
        return self.number if field is self.only else int(field.json_name in self.around)


class OneTag(Style):
    """Defaults, and one tagged field set wherever it occurs."""

    def __init__(self, only: Field, around: frozenset[str]) -> None:
        self.only, self.around, self.full = only, around, Full()

    def is_null(self, field: Field) -> bool:
        return field.default is None and field is not self.only and field.json_name not in self.around

    def has_tag(self, field: Field) -> bool:
        return field is self.only or field.json_name in self.around

    def count(self, field: Field, depth: int) -> int:
        return int(field is self.only or field.json_name in self.around)

    def leaf(self, field: Field) -> Json:
        return self.full.leaf(field) if field is self.only else default_leaf(field)


class Random(Style):
    """Values drawn from edges and common ones. seed: the same seed gives the same values."""

    def __init__(self, seed: str) -> None:
        self.draw = random.Random(seed)

    def is_null(self, field: Field) -> bool:
        return self.draw.random() < 0.25

    def has_tag(self, field: Field) -> bool:
        return self.draw.random() < 0.5

    def count(self, field: Field, depth: int) -> int:
        return self.draw.choice((0, 1, 1, 2, 3) if depth == 0 else (0, 1, 1, 2))

    def leaf(self, field: Field) -> Json:
        draw = self.draw
        match field.type:
            case "bool":
                return draw.random() < 0.5
            case "float64":
                return draw.choice((0.0, -0.0, 1.5, -1e10, 5e-324))
            case "string":
                return draw.choice(TEXTS)
            case "bytes":
                return base64.b64encode(draw.choice((b"", b"\0", b"\xff\xfe", b"bytes", b"b" * 127))).decode()
            case "records":
                return draw.choice(("", RECORDS))
            case "uuid":
                return uuid_text(UUID(int=draw.choice((0, 1, 2**64, 2**128 - 1, 0x1234567890ABCDEF << 32))))
        low, high = INTEGERS[field.type]
        return draw.choice((0, 1, low, high, draw.randint(0, 100), max(low, -1), min(high, 128), min(high, 1000)))


def default_leaf(field: Field) -> Json:
    """Return the default of a field as JSON; of a field whose default is null or an array, that of its type."""
    default = None if field.is_array else field.default
    match field.type:
        case "string":
            return default or ""
        case "bytes" | "records":
            return base64.b64encode(default or b"").decode() if isinstance(default, bytes) else ""
        case "uuid":
            return uuid_text(default if isinstance(default, UUID) else UUID(int=0))
        case "bool":
            return bool(default)
        case "float64":
            return float(default) if isinstance(default, int | float) else 0.0
    return default if isinstance(default, int) else 0


def of(message: Message, version: int, style: Style) -> dict[str, Json]:
    """Return a value of a message version."""
    return _struct(message, message.struct, version, style, 0)


def _struct(message: Message, struct: Struct, version: int, style: Style, depth: int) -> dict[str, Json]:
    value: dict[str, Json] = {}
    for field in struct.fields:
        if version not in field.versions or (version in field.tagged and not style.has_tag(field)):
            continue
        if version in field.nullable and style.is_null(field):
            value[field.json_name] = None
        elif field.is_array:
            number = style.count(field, depth)
            value[field.json_name] = [_element(message, field, version, style, depth + 1) for _ in range(number)]
        else:
            value[field.json_name] = _element(message, field, version, style, depth)
    return value


def _element(message: Message, field: Field, version: int, style: Style, depth: int) -> Json:
    if field.struct is None:
        return style.leaf(field)
    if not field.is_array and field.default is STRUCT_DEFAULTS and type(style) is Defaults:
        return _struct(message, field.struct, version, Defaults(), depth)
    return _struct(message, field.struct, version, style, depth)


def dumped(value: Json) -> str:
    """Return JSON text without blanks."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
