"""Defaults of fields as Avro bytes.

A default is JSON text of the field's type: bytes and fixed are strings of the code points 0 to 255; a default of a
union is of its first type that it fits. Source: Avro 1.12, "Complex Types", "Records"; org.apache.avro.util.internal.
"""

from __future__ import annotations

import reprlib
import struct
from collections.abc import Callable, Mapping

from kwire.schemas.avro.model import NO_DEFAULT, Schema
from kwire.schemas.avro.resolution import Steps

__all__ = ["default_bytes", "zigzag"]

INT, LONG = range(-(2**31), 2**31), range(-(2**63), 2**63)
SYMBOLS_A_STEP = 64
STEPS_A_VALUE = 4


def zigzag(value: int) -> bytes:
    """Return a number as a varint."""
    bits, out = (value << 1) ^ (value >> 63), bytearray()
    bits &= 2**64 - 1
    while bits > 0x7F:
        out.append(bits & 0x7F | 0x80)
        bits >>= 7
    out.append(bits)
    return bytes(out)


def default_bytes(schema: Schema, value: object, steps: Steps) -> bytes:
    """Return the Avro bytes of a default. Raises ValueError, which says what does not fit, and InvalidSchema."""
    if schema.type in WRITERS:
        data = WRITERS[schema.type](schema, value)
        steps.take(STEPS_A_VALUE + len(data) + len(schema.symbols) // SYMBOLS_A_STEP)
        return data
    steps.take(STEPS_A_VALUE)
    if schema.type == "union":
        for index, branch in enumerate(schema.branches):
            try:
                return zigzag(index) + default_bytes(branch, value, steps)
            except ValueError:
                continue
        raise unfit(schema, value)
    if schema.type == "record":
        return _record(schema, value, steps)
    if schema.type == "array":
        if not isinstance(value, list):
            raise unfit(schema, value)
        items = [default_bytes(schema.items, each, steps) for each in value]
        return b"".join((zigzag(len(items)), *items, b"\0")) if items else b"\0"
    if not isinstance(value, dict):
        raise unfit(schema, value)
    pairs = [_text(name) + default_bytes(schema.items, each, steps) for name, each in value.items()]
    return b"".join((zigzag(len(pairs)), *pairs, b"\0")) if pairs else b"\0"


def unfit(schema: Schema, value: object) -> ValueError:
    """Return the error for a default of another type."""
    return ValueError(f"the default {reprlib.repr(value)} does not fit {schema}")


def _record(schema: Schema, value: object, steps: Steps) -> bytes:
    if not isinstance(value, dict):
        raise unfit(schema, value)
    out = []
    for each in schema.fields:
        given = value.get(each.name, each.default)
        if given is NO_DEFAULT:
            raise ValueError(f"the default of {schema} lacks {each.name}")
        out.append(default_bytes(each.schema, given, steps))
    return b"".join(out)


def _text(value: object) -> bytes:
    assert isinstance(value, str)
    data = value.encode("utf-8", "surrogatepass")
    data.decode()  # lone surrogates are ValueErrors
    return zigzag(len(data)) + data


def _null(schema: Schema, value: object) -> bytes:
    if value is not None:
        raise unfit(schema, value)
    return b""


def _boolean(schema: Schema, value: object) -> bytes:
    if not isinstance(value, bool):
        raise unfit(schema, value)
    return bytes([value])


def _whole(schema: Schema, value: object) -> bytes:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value not in (INT if schema.type == "int" else LONG):
        raise unfit(schema, value)
    return zigzag(value)


SPECIAL = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


def _real(schema: Schema, value: object) -> bytes:
    if isinstance(value, str):
        value = SPECIAL.get(value)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise unfit(schema, value)
    try:
        return struct.pack("<f" if schema.type == "float" else "<d", value)
    except OverflowError:
        raise unfit(schema, value) from None


def _string(schema: Schema, value: object) -> bytes:
    if not isinstance(value, str):
        raise unfit(schema, value)
    return _text(value)


def _bytes(schema: Schema, value: object) -> bytes:
    if not isinstance(value, str) or any(ord(each) > 0xFF for each in value):
        raise unfit(schema, value)
    data = value.encode("latin-1")
    if schema.type == "bytes":
        return zigzag(len(data)) + data
    if len(data) != schema.size:
        raise unfit(schema, value)
    return data


def _symbol(schema: Schema, value: object) -> bytes:
    if value not in schema.symbols:
        raise unfit(schema, value)
    return zigzag(schema.symbols.index(str(value)))


WRITERS: Mapping[str, Callable[[Schema, object], bytes]] = {
    "null": _null,
    "boolean": _boolean,
    "int": _whole,
    "long": _whole,
    "float": _real,
    "double": _real,
    "bytes": _bytes,
    "string": _string,
    "fixed": _bytes,
    "enum": _symbol,
}
