"""Minimum sizes of the parts of a message on the wire, from the definition alone.

The smallest form of a value: an empty or null string, bytes, records or array; a struct with all its positional fields
in their smallest form and an empty tag section; no tagged fields. Fixed-width values have one size; packed integers
(KIP-625) take one byte.
"""

from __future__ import annotations

from typing import Final

from kwire.schema.model import Field, Message, Struct
from kwire.wire.integer_encoding import ENCODINGS

FIXED_BYTES: Final = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "float64": 8,
    "uuid": 16,
}
"""Types of one width."""


def smallest_message(message: Message, version: int) -> int:
    """Bytes of the smallest body that the version allows."""
    return smallest_struct(message, message.struct, version)


def smallest_struct(message: Message, struct: Struct, version: int) -> int:
    """Bytes of the smallest form of a struct, its tag section included."""
    size = sum(
        smallest_field(message, field, version)
        for field in struct.fields
        if version in field.versions and version not in field.tagged
    )
    return size + (version in message.flexible)


def smallest_field(message: Message, field: Field, version: int) -> int:
    """Bytes of the smallest form of a positional field."""
    if field.is_array:
        return 1 if field.is_flexible(message, version) else 4
    return smallest_element(message, field, version, nullable=version in field.nullable)


def smallest_element(message: Message, field: Field, version: int, *, nullable: bool = False) -> int:
    """Bytes of the smallest value of the field's element type."""
    if field.struct is not None:
        return 1 if nullable else smallest_struct(message, field.struct, version)
    encoding = field.encoding(version)
    if encoding is not None:
        return ENCODINGS[encoding].least_bytes
    if field.type in FIXED_BYTES:
        return FIXED_BYTES[field.type]
    if field.is_flexible(message, version):
        return 1
    return 2 if field.type == "string" else 4
