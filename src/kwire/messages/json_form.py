"""Conversion between messages and Kafka's JSON form (rules J-01 to J-19).

Keys are the definition's names with the first letter lowered, in the definition's order. bytes are standard base64,
uuids URL-safe base64 without padding, int64 plain numbers. Tagged fields are present if they differ from their default;
unknown tagged fields never are. Records are base64 like bytes, where Kafka's converter omits them (J-08). NaN and the
infinities are the strings that Kafka's tools print, because JSON has no such numbers; both forms are read.

Where Kafka stores or changes what the version cannot hold, this raises an error: a key of a field that the version lacks
(T-17), int8 from 128 (T-18). `lenient` does as Kafka does. Keys by which other releases call a field in that version
are read as well (Struct.FORMER_NAMES); written are the newest ones. An integer must fit its type, and its encoding in that
version where KIP-625 has made that narrower (I-20).
Source: org.apache.kafka.message.JsonConverterGenerator.
"""

from __future__ import annotations

import base64
import binascii
import functools
import math
from collections.abc import Callable
from typing import Any, TypeVar
from uuid import UUID

from kwire.errors import EncodeError, Path
from kwire.identifiers import render_uuid
from kwire.schema.defaults import parse_uuid
from kwire.schema.model import INTEGERS, STRUCT_DEFAULTS, Field, Message, Struct
from kwire.wire.integer_encoding import ENCODINGS

T = TypeVar("T")
Json = Any
"""A decoded JSON value."""
JsonObject = dict[str, Any]
FieldValue = Any
"""The value of a field; its type is the definition's."""


def write_message(spec: Message, message: FieldValue, version: int) -> JsonObject:
    """Convert a message of a definition to its JSON form, a dict.

    version: one that the definition has. Raises EncodeError with the path of what the version cannot hold.
    """
    return _write_struct(spec.struct, message, version, ())


def read_message(spec: Message, cls: type[T], obj: Json, version: int, lenient: bool = False) -> T:
    """Create a message, an object of the class of a definition, from its JSON form; version as above.

    Raises EncodeError with the path of what is missing or invalid.
    """
    message: T = _Reader(cls, version, lenient).struct(spec.struct, cls, obj, ())
    return message


def is_default(field: Field, value: FieldValue) -> bool:
    """Whether a value is the field's default, as the codec judges it (W-21).

    float64 compares as IEEE does: NaN never is the default, -0.0 equals 0.0.
    """
    if field.default is STRUCT_DEFAULTS:
        assert field.struct is not None
        return (
            value is not None
            and not value.unknown_tagged_fields
            and all(is_default(inner, getattr(value, inner.attr)) for inner in field.struct.fields)
        )
    if field.default == ():
        return value is not None and len(value) == 0
    if value is None or field.default is None:
        return value is field.default
    return bool(value == field.default)


@functools.lru_cache(maxsize=4096)
def _rows(struct: Struct, version: int) -> tuple[tuple[Field, str, str, bool, bool], ...]:
    """Return a struct's fields in a version: (field, attribute, JSON key, is in the version, is tagged there)."""
    return tuple((f, f.attr, f.json_name, version in f.versions, version in f.tagged) for f in struct.fields)


def _write_struct(struct: Struct, value: FieldValue, version: int, path: Path) -> JsonObject:
    out: JsonObject = {}
    for field, attr, key, present, tagged in _rows(struct, version):
        item = getattr(value, attr)
        if not present:
            if not field.ignorable and not is_default(field, item):
                what = f"version {version} does not have this field, and {_short(item)} would be lost"
                raise EncodeError(what, (*path, attr))
        elif not tagged or not is_default(field, item):
            out[key] = _write_value(field, item, version, (*path, attr))
    return out


def _write_value(field: Field, value: FieldValue, version: int, path: Path) -> Json:
    if value is None:
        if version not in field.nullable and field.type != "records":
            raise EncodeError(f"null is not allowed in version {version}", path)
        return None
    if not field.is_array:
        return _write_element(field, value, version, path)
    if not isinstance(value, list | tuple):
        raise EncodeError(f"{_short(value)} is not a list", path)
    return [_write_element(field, element, version, (*path, i)) for i, element in enumerate(value)]


def _write_element(field: Field, value: FieldValue, version: int, path: Path) -> Json:
    if field.struct is not None:
        if not hasattr(value, "unknown_tagged_fields"):
            raise EncodeError(f"{_short(value)} is not a valid {field.type} value", path)
        return _write_struct(field.struct, value, version, path)
    if field.type in INTEGERS:
        return _integer(field.type, value, path, field.encoding(version))
    write, wanted = _WRITERS[field.type]
    if not isinstance(value, wanted) or (isinstance(value, bool) and field.type == "float64"):
        raise EncodeError(f"{_short(value)} is not a valid {field.type} value", path)
    return write(value)


def _integer(type_name: str, value: FieldValue, path: Path, encoding: str | None = None) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise EncodeError(f"{_short(value)} is not a valid {type_name} value", path)
    smallest, largest = INTEGERS[type_name]
    if not smallest <= value <= largest:
        raise EncodeError(f"{value} does not fit {type_name}, {smallest} to {largest}", path)
    if encoding is not None and not ENCODINGS[encoding].smallest <= value <= ENCODINGS[encoding].largest:
        raise EncodeError(ENCODINGS[encoding].refusal(str(value)), path)
    return int(value)


def _float(value: float) -> float | str:
    number = float(value)
    return number if math.isfinite(number) else _SPECIAL.get(number, "NaN")


def _base64(value: bytes | bytearray | memoryview) -> str:
    return base64.b64encode(value).decode()


_BYTES = (bytes, bytearray, memoryview)
_SPECIAL = {math.inf: "Infinity", -math.inf: "-Infinity"}
_SPECIAL_NAMES = ("NaN", *_SPECIAL.values())
_WRITERS: dict[str, tuple[Callable[[Any], Any], type | tuple[type, ...]]] = {
    "bool": (bool, bool),
    "float64": (_float, (float, int)),
    "string": (str, str),
    "uuid": (render_uuid, UUID),
    "bytes": (_base64, _BYTES),
    "records": (_base64, _BYTES),
}


class _Reader:
    def __init__(self, message: type[FieldValue], version: int, lenient: bool) -> None:
        self.message, self.version, self.lenient = message, version, lenient

    def struct(self, struct: Struct, cls: type[FieldValue], obj: Json, path: Path) -> FieldValue:
        """Read a struct of class cls."""
        if not isinstance(obj, dict):
            raise EncodeError(f"{_short(obj)} is not a JSON object", path)
        values: dict[str, Any] = {}
        former = {attr: key for key, attr, low, high in cls.FORMER_NAMES if low <= self.version <= high and key in obj}
        for field, attr, key, present, tagged in _rows(struct, self.version):
            here = (*path, attr)
            if present and key not in obj:
                key = former.get(attr, key)
            if key not in obj:
                if present and not tagged:
                    raise EncodeError(f"{key!r} is missing; version {self.version} requires it", here)
                continue
            if not present and key in former.values():
                continue  # in this version it was the name of another field
            if not present and not self.lenient:
                raise EncodeError(
                    f"version {self.version} does not have this field (its versions are {field.versions})", here
                )
            values[attr] = self.value(field, obj[key], here)
        return cls(**values)

    def value(self, field: Field, obj: Json, path: Path) -> FieldValue:
        """Read the value of a field."""
        # Nullable in any version is enough, as in Kafka (J-13); encoding knows which.
        if obj is None and field.may_be_null:
            return None
        if not field.is_array:
            return self.element(field, obj, path)
        if not isinstance(obj, list):
            raise EncodeError(f"{_short(obj)} is not a JSON array", path)
        return [self.element(field, element, (*path, i)) for i, element in enumerate(obj)]

    def element(self, field: Field, obj: Json, path: Path) -> FieldValue:
        """Read a value that is not an array, or an element of one."""
        if field.struct is not None:
            return self.struct(field.struct, getattr(self.message, field.struct.name), obj, path)
        if field.type in INTEGERS:
            if self.lenient and field.type == "int8" and type(obj) is int and 128 <= obj <= 256:
                return obj - 128 if obj < 256 else -128
            return _integer(field.type, obj, path, field.encoding(self.version))
        wanted, read = _READERS[field.type]
        if field.type == "float64" and obj in _SPECIAL_NAMES:
            return float(obj)
        if type(obj) is not wanted:
            more = "; write 1.0 instead of 1" if field.type == "float64" and type(obj) is int else ""
            raise EncodeError(f"{_short(obj)} is not a valid {field.type} value{more}", path)
        try:
            return read(obj)
        except ValueError as error:
            raise EncodeError(f"{_short(obj)} is not a valid {field.type} value: {error}", path) from error


def _decode_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(f"not base64: {error}") from error


_READERS: dict[str, tuple[type, Callable[[Any], Any]]] = {
    "bool": (bool, bool),
    "float64": (float, float),
    "string": (str, str),
    "uuid": (str, parse_uuid),
    "bytes": (str, _decode_base64),
    "records": (str, _decode_base64),
}


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
