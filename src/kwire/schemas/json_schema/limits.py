"""What a JSON schema says of one value that the kernel can check when it writes the value."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

__all__ = ["Limits", "has_only", "limits_of"]

BOUNDS = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")
KEYWORDS = {
    "object": {"type", "properties", "required", "additionalProperties"},
    "map": {"type", "additionalProperties"},
    "array": {"type", "items", "minItems", "maxItems"},
    "string": {"type", "enum", "const", "minLength", "maxLength", "format"},
    "integer": {"type", *BOUNDS},
    "number": {"type", *BOUNDS},
    "boolean": {"type"},
}
"""By the kind of a value. Formats are not checked by default, as in Confluent's serializers."""


@dataclass(slots=True, kw_only=True, frozen=True)
class Limits:
    """All that a schema says of a value apart from its type. bounds: numbers by BOUNDS. strings: the only ones.

    least, greatest: characters of a string, values of an array. required: properties of an object.
    """

    bounds: Mapping[str, int | float]
    least: int = 0
    greatest: int | None = None
    strings: tuple[str, ...] | None = None
    required: frozenset[str] = frozenset()


@cache
def _checked_keywords() -> frozenset[str]:
    from jsonschema import validators

    kinds = (
        *(validators.Draft3Validator, validators.Draft4Validator, validators.Draft6Validator),
        *(validators.Draft7Validator, validators.Draft201909Validator, validators.Draft202012Validator),
    )
    return frozenset(name for each in kinds for name in each.VALIDATORS)


def has_only(schema: Mapping[str, Any], keywords: set[str]) -> bool:
    """Return whether a schema has no other keywords that check a value, in any dialect."""
    return not (schema.keys() & _checked_keywords()) - keywords


def limits_of(schema: Mapping[str, Any], kind: str, takes_null: bool) -> Limits | None:
    """Return the limits of a value, or None if its schema says more. kind: of its node."""
    if kind not in KEYWORDS or not has_only(schema, KEYWORDS[kind]):
        return None
    sizes = [schema.get(name) for name in ("minLength", "maxLength", "minItems", "maxItems")]
    numbers = {name: schema[name] for name in BOUNDS if name in schema}
    required = schema.get("required", [])
    if any(isinstance(each, bool) or not isinstance(each, int | float) for each in numbers.values()):
        return None
    if not all(isinstance(each, int) or math.isfinite(each) for each in numbers.values()):
        return None
    if not all(each is None or type(each) is int for each in sizes) or not isinstance(required, list):
        return None
    if not all(isinstance(each, str) for each in required):
        return None
    strings = None
    for allowed in ([schema["const"]] if "const" in schema else None, schema.get("enum")):
        if allowed is not None:
            if strings is not None or (takes_null and None not in allowed):
                return None
            strings = tuple(each for each in allowed if isinstance(each, str))
    return Limits(
        bounds=numbers,
        least=sizes[0] or sizes[2] or 0,
        greatest=sizes[1] if sizes[1] is not None else sizes[3],
        strings=strings,
        required=frozenset(required),
    )
