"""The wire form of a definition in one version, without code of the evolution rules.

A struct without a tag section equals its fields, bytes and records have one form, names are ignored.
"""

from __future__ import annotations

from typing import Any

from kwire.schema.model import Message, Struct


def tokens(message: Message, struct: Struct, version: int) -> list[Any]:
    """Return positional fields in order, followed in a flexible version by the tagged ones by tag."""
    found: list[Any] = []
    tagged: dict[int, Any] = {}
    for field in struct.fields:
        if version not in field.versions:
            continue
        null, compact = version in field.nullable, field.is_flexible(message, version)
        if field.struct is not None:
            inner = tokens(message, field.struct, version)
        else:
            measured = field.type in ("string", "bytes", "records")
            name = "bytes" if field.type == "records" else field.type
            inner = [(name, null and not field.is_array, measured and compact)]
        if field.is_array:
            inner = [("array", null, compact, inner)]
        elif field.struct is not None and null:
            inner = [("nullable", inner)]
        if field.tag is not None and version in field.tagged:
            tagged[field.tag] = inner
        else:
            found += inner
    return [*found, tagged] if version in message.flexible else found


def agree(old: Any, new: Any) -> bool:
    """Return whether both are equal, except for tags of only one of them, at any depth."""
    if isinstance(old, dict) and isinstance(new, dict):
        return all(agree(old[tag], new[tag]) for tag in old.keys() & new.keys())
    if isinstance(old, list | tuple) and isinstance(new, list | tuple):
        return len(old) == len(new) and all(map(agree, old, new))
    return bool(old == new)
