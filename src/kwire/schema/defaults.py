"""Parse the `default` of a field in a definition (E-46).

    bool      true, false, in any letter case
    integers  decimal with an optional sign; 0x and hex digits; 0 and octal digits; must fit the type
    float64   the forms of Java's Double.parseDouble: 1.5, 1e3, NaN, -Infinity, 0x1p3, 1d
    uuid      URL-safe base64 of 16 bytes, padding is optional
    string    any text; the word null is null
    bytes, struct, array   nothing, or null
    records   always null, for any text

Where Kafka's check differs from the Java source it generates, the Java value counts: `017` is 15, and `09` is an error
(T-06); large uint32 defaults keep their value (T-07).
Source: org.apache.kafka.message.FieldSpec.fieldDefault.
"""

from __future__ import annotations

import re
from typing import Final
from uuid import UUID

from kwire.identifiers import decode_base64url
from kwire.schema.model import INTEGERS, STRUCT_DEFAULTS, ZERO_UUID, Default

TYPE_DEFAULTS: Final[dict[str, Default]] = {
    **dict.fromkeys(INTEGERS, 0),
    "bool": False,
    "float64": 0.0,
    "uuid": ZERO_UUID,
    "string": "",
    "bytes": b"",
    "records": None,
}

_DECIMAL = re.compile(r"[+-]?[0-9]+\Z")
_OCTAL = re.compile(r"[+-]?0[0-9]+\Z")
_HEX = re.compile(r"0x[0-9a-fA-F]+\Z")
_DOUBLE = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?\Z")
_HEX_DOUBLE = re.compile(r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?\Z")
_NAMED_DOUBLES = {sign + name: float(sign + name) for sign in ("", "+", "-") for name in ("NaN", "Infinity")}


def parse_default(text: str, type_name: str, is_array: bool) -> Default:
    """Parse the default of a field of that type; an empty text is the default of the type.

    type_name: element type, one of PRIMITIVES or a struct's name. Raises ValueError with the reason.
    """
    if is_array or type_name not in TYPE_DEFAULTS or type_name == "bytes":
        if text == "null":
            return None
        if text:
            kind = "an array" if is_array else "bytes" if type_name == "bytes" else "a struct"
            raise ValueError(f"the default of {kind} must be empty or null, not {text!r}")
        return () if is_array else TYPE_DEFAULTS.get(type_name, STRUCT_DEFAULTS)
    if not text or type_name == "records":
        return TYPE_DEFAULTS[type_name]
    if type_name == "string":
        return _string(text)
    if type_name == "bool":
        if text.lower() not in ("true", "false"):
            raise ValueError(f"{text!r} must be true or false")
        return text.lower() == "true"
    if type_name == "uuid":
        return parse_uuid(text)
    return _double(text) if type_name == "float64" else _integer(text, type_name)


def _string(text: str) -> str | None:
    if text == "null":
        return None
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("a lone surrogate cannot be encoded as UTF-8") from None
    return text


def _integer(text: str, type_name: str) -> int:
    # Check the length first: Python raises a different error for numbers of thousands of digits.
    if len(text) > 64:
        raise ValueError(f"{text[:20]!r}... is not a valid {type_name}")
    if _HEX.match(text):
        value = int(text, 16)
    elif _OCTAL.match(text):
        try:
            value = int(text, 8)
        except ValueError:
            raise ValueError(f"{text!r} is octal because it starts with 0, and has other digits") from None
    elif _DECIMAL.match(text):
        value = int(text)
    else:
        raise ValueError(f"{text!r} is not a valid {type_name}")
    smallest, largest = INTEGERS[type_name]
    if not smallest <= value <= largest:
        raise ValueError(f"{text} does not fit {type_name}, {smallest} to {largest}")
    return value


def _double(text: str) -> float:
    stripped = text.strip()
    if stripped in _NAMED_DOUBLES:
        return _NAMED_DOUBLES[stripped]
    if match := _DOUBLE.match(stripped):
        return float(match[1])
    if match := _HEX_DOUBLE.match(stripped):
        try:
            return float.fromhex(match[1])
        except OverflowError:
            return float("-inf" if stripped.startswith("-") else "inf")
    raise ValueError(f"{text!r} is not a valid float64")


def parse_uuid(text: str) -> UUID:
    """Parse Kafka's text form of a uuid. Raises ValueError."""
    try:
        return UUID(bytes=decode_base64url(text.rstrip("=")) if len(text) <= 24 else b"")
    except ValueError:
        raise ValueError(f"{text[:40]!r} is not 16 bytes of URL-safe base64") from None
