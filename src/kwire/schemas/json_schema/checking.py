"""Checks values against a whole JSON schema, in bounded time.

A schema comes from outside and is run like a program: patterns and references can make a check of one short value
endless. Patterns run in RE2, whose time is linear, and the keywords that are applied to a value are counted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urljoin

import pyarrow as pa
import pyarrow.compute as pc

from kwire.errors import EncodeError
from kwire.schemas.json_schema.parsing import DATA_KEYWORDS, JsonSchema

__all__ = ["Checker"]

MAX_STEPS = 100_000
STEPS_A_BYTE = 4
"""Keywords applied to one value, a second or so; large values may take more."""
CHARACTERS_A_STEP = 64
CODE_POINT = re.compile(r"((?<!\\)(?:\\\\)*)\\u(?:\{([0-9A-Fa-f]+)\}|([0-9A-Fa-f]{4}))")
Errors = Iterator[Any]
Keyword = Callable[[Any, Any, Any, Any], Errors | None]


class Checker:
    """Checks values against one schema, as Confluent's serializers do."""

    def __init__(self, schema: JsonSchema) -> None:
        from jsonschema import validators
        from jsonschema_specifications import REGISTRY
        from referencing import Registry, Resource
        from referencing.exceptions import NoSuchResource
        from referencing.jsonschema import DRAFT7

        documents = {
            name: Resource.from_contents(each, default_specification=DRAFT7)._specification.create_resource(
                _without_dialect(each)
            )
            for name, each in schema.references.items()
        }
        own_id = str(schema.document.get("$id", "")) if isinstance(schema.document, dict) else ""
        by_url = {urljoin(own_id, name): each for name, each in documents.items()}

        def retrieve(url: str) -> Any:
            if url in by_url:
                return by_url[url]
            if url in REGISTRY:
                return REGISTRY[url]
            raise NoSuchResource(ref=url)  # type: ignore[call-arg]  # a class of attrs

        kind = validators.validator_for(schema.document, validators.Draft7Validator)
        every = [schema.document, *schema.references.values()]
        has_patterns = any('"patternProperties"' in json.dumps(each) for each in every)
        own = {"pattern": _pattern, "patternProperties": self._pattern_properties, "uniqueItems": _unique_items}
        own |= {"additionalProperties": self._additional_properties}
        if "unevaluatedProperties" in kind.VALIDATORS and has_patterns:
            own["unevaluatedProperties"] = _unchecked
        keywords = {name: self._counted(own.get(name, each)) for name, each in kind.VALIDATORS.items()}
        registry = Registry(retrieve=retrieve)  # type: ignore[call-arg]  # a class of attrs
        self._validator = validators.extend(kind, keywords)(
            _without_dialect(schema.document), registry=registry.with_resources(documents.items())
        )
        self._limit = self._left = MAX_STEPS

    def check(self, value: Any, n_bytes: int) -> None:
        """Check a value of this size as JSON. Raises EncodeError."""
        from referencing.exceptions import Unresolvable

        self._limit = self._left = max(MAX_STEPS, STEPS_A_BYTE * n_bytes)
        try:
            fault = next(iter(self._validator.iter_errors(value)), None)
        except RecursionError:
            raise EncodeError("the schema refers to itself without end, or the value is nested too deep") from None
        except Unresolvable as error:
            raise EncodeError(f"the schema's $ref '{error.ref}' leads nowhere; register it as a reference") from None
        if fault is not None:
            raise EncodeError(fault.message[:300], tuple(fault.absolute_path))

    def _counted(self, keyword: Keyword) -> Keyword:
        """Return a keyword that counts its use, and the errors that it renders."""

        def apply(validator: Any, value: Any, instance: Any, schema: Any) -> Errors:
            self._take(1)
            for each in keyword(validator, value, instance, schema) or ():
                self._take(len(each.message) // CHARACTERS_A_STEP)
                yield each

        return apply

    def _take(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise EncodeError(f"the check against the schema takes more than {self._limit} steps")

    def _pattern_properties(self, validator: Any, patterns: Any, instance: Any, schema: Any) -> Errors:
        if validator.is_type(instance, "object"):
            for pattern, inner in patterns.items():
                for name, value in instance.items():
                    self._take(1)
                    if _finds(pattern, name):
                        yield from validator.descend(value, inner, path=name, schema_path=pattern)

    def _additional_properties(self, validator: Any, allowed: Any, instance: Any, schema: Any) -> Errors:
        from jsonschema import ValidationError

        if not validator.is_type(instance, "object"):
            return
        known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        for name, value in instance.items():
            self._take(1 + len(patterns))
            if name in known or any(_finds(each, name) for each in patterns):
                continue
            if allowed is False:
                yield ValidationError(f"Additional properties are not allowed ({name!r} was unexpected)")
            else:
                yield from validator.descend(value, allowed, path=name)


def _finds(pattern: str, text: str) -> bool:
    """Return whether RE2 finds a pattern, which is JavaScript's, in a text. Raises EncodeError."""
    spelled = CODE_POINT.sub(lambda escape: f"{escape[1]}\\x{{{escape[2] or escape[3]}}}", pattern)
    try:
        return bool(pc.match_substring_regex(pa.array([text], pa.string()), spelled)[0].as_py())
    except pa.ArrowInvalid as error:
        raise EncodeError(f"the schema's pattern {pattern!r} cannot be checked: {error}") from None


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Errors:
    from jsonschema import ValidationError

    if validator.is_type(instance, "string") and not _finds(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _unique_items(validator: Any, is_unique: Any, instance: Any, schema: Any) -> Errors:
    from jsonschema import ValidationError

    if is_unique and validator.is_type(instance, "array") and len(set(map(_hashable, instance))) < len(instance):
        yield ValidationError(f"{instance!r} has non-unique elements")


def _unchecked(validator: Any, value: Any, instance: Any, schema: Any) -> Errors:
    raise EncodeError("unevaluatedProperties cannot be checked in a schema with patternProperties")


def _without_dialect(schema: Any) -> Any:
    """Return a schema without `$schema`, which would exchange the counted keywords for jsonschema's own ones."""
    if isinstance(schema, list):
        return [_without_dialect(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: each if name in DATA_KEYWORDS else _without_dialect(each)
        for name, each in schema.items()
        if name != "$schema" or not isinstance(each, str)
    }


def _hashable(value: Any) -> object:
    """Return what is equal for equal JSON values: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, dict):
        return frozenset((name, _hashable(each)) for name, each in value.items())
    return tuple(map(_hashable, value)) if isinstance(value, list) else (isinstance(value, bool), value)
