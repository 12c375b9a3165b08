"""Avro schemas from their JSON text.

Names follow the specification: a name without dots is in the namespace of its definition, else in that of the
definition around it. Attributes that Avro does not define are ignored, and so are logical types that do not fit their
type, as the specification says. Source: Avro 1.12, "Schema Declaration"; org.apache.avro.Schema.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from kwire.errors import InvalidSchema, did_you_mean
from kwire.schemas.avro.model import NO_DEFAULT, PRIMITIVES, Field, Logical, Schema

__all__ = ["MAX_NESTING", "fail", "parse", "too_deep"]

MAX_NESTING = 150
"""Maximum depth of a schema; Arrow's own code recurses too."""
MAX_PRECISION = 76
NAMED = ("record", "error", "enum", "fixed")
LOGICAL_TYPES = {
    "int": {"date", "time-millis"},
    "long": {
        *("time-micros", "timestamp-millis", "timestamp-micros", "timestamp-nanos"),
        *("local-timestamp-millis", "local-timestamp-micros", "local-timestamp-nanos"),
    },
    "string": {"uuid"},
    "fixed": {"duration", "uuid"},
}
FIXED_SIZES = {"duration": 12, "uuid": 16}

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


def parse(text: str, references: Mapping[str, str | Schema] | None = None) -> Schema:
    """Parse a schema.

    references: schemas that this one uses, by name: parsed ones, or texts, which may use each other.
    Raises InvalidSchema with the name of the type and field.
    """
    parser = _Parser(references or {})
    with too_deep():
        return parser.text(text)


@contextmanager
def too_deep() -> Iterator[None]:
    """Refuse schemas that are nested deeper than Python's stack: named types refer to others without end."""
    try:
        yield
    except RecursionError:
        raise fail(f"nested too deep; the limit for types without names is {MAX_NESTING} levels") from None


def fail(what: str, where: str = "") -> InvalidSchema:
    """Return the error for a schema; where: type and field."""
    return InvalidSchema(what, path=(where,) if where else ())


def _quoted(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


class _Parser:
    def __init__(self, references: Mapping[str, str | Schema]) -> None:
        self.known: dict[str, Schema] = {}
        self.texts: dict[str, str] = {}
        for name, each in references.items():
            if isinstance(each, str):
                self.texts[name] = each
            else:
                self.keep(each)

    def keep(self, schema: Schema) -> None:
        """Add the named types of a parsed schema."""
        pending, seen = [schema], set()
        while pending:
            each = pending.pop()
            if id(each) not in seen:
                seen.add(id(each))
                if each.name:
                    self.known.setdefault(each.name, each)
                pending.extend(each.children())

    def text(self, text: str) -> Schema:
        try:
            value: Json = json.loads(text)
        except ValueError as error:
            raise fail(f"the schema is not JSON: {error}") from None
        return self.schema(value, "", "", 0)

    def schema(self, value: Json, namespace: str, where: str, depth: int) -> Schema:
        """Return the schema of a JSON value; namespace: of the definition around it."""
        if depth > MAX_NESTING:
            raise fail(f"nested more than {MAX_NESTING} levels deep", where)
        if isinstance(value, str):
            return Schema(type=value) if value in PRIMITIVES else self.reference(value, namespace, where)
        if isinstance(value, list):
            return self.union(value, namespace, where, depth)
        if not isinstance(value, dict):
            raise fail(f"expected a type: a name, an array or an object, got {_quoted(value)}", where)
        if "type" not in value:
            raise fail(f"type missing in {_quoted(value)}", where)
        kind = value["type"]
        if not isinstance(kind, str):
            return self.schema(kind, namespace, where, depth + 1)
        if kind in NAMED:
            return self.named(value, kind, namespace, where, depth)
        if kind in ("array", "map"):
            part = "items" if kind == "array" else "values"
            if part not in value:
                raise fail(f"{part} missing in {_quoted(value)}", where)
            return Schema(type=kind, element=self.schema(value[part], namespace, where, depth + 1))
        if kind in PRIMITIVES:
            return Schema(type=kind, logical=logical(value, kind, 0))
        return self.reference(kind, namespace, where)

    def reference(self, name: str, namespace: str, where: str) -> Schema:
        """Return the named type; a name without dots is in the namespace if it is defined there."""
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        for each in (full, name):
            if (schema := self.lookup(each)) is not None:
                return schema
        close = did_you_mean(name, [*PRIMITIVES, *self.known, *self.texts])
        raise fail(f"unknown type {_quoted(full)}{close}; pass schemas that are defined elsewhere as references", where)

    def lookup(self, name: str) -> Schema | None:
        if name not in self.known and name in self.texts:
            self.text(self.texts.pop(name))
        while name not in self.known and self.texts:  # a text may define several types
            self.text(self.texts.pop(next(iter(self.texts))))
        return self.known.get(name)

    def union(self, value: list[Json], namespace: str, where: str, depth: int) -> Schema:
        branches = tuple(self.schema(each, namespace, where, depth + 1) for each in value)
        seen = set()
        for each in branches:
            if each.type == "union":
                raise fail("a union in a union; list the types in one union", where)
            if (key := each.name or each.type) in seen:
                raise fail(f"union has {key} twice", where)
            seen.add(key)
        return Schema(type="union", branches=branches)

    def named(self, value: dict[str, Json], kind: str, around: str, where: str, depth: int) -> Schema:
        name = value.get("name")
        if not isinstance(name, str) or not name.strip("."):
            raise fail(f"name of a {kind} missing", where)
        given = value.get("namespace", around)
        if given is not None and not isinstance(given, str):
            raise fail(f"namespace of {kind} {name}: expected a string, got {_quoted(given)}", where)
        namespace = name.rpartition(".")[0] if "." in name else given or ""
        full = _encodable(_full_name(name, namespace))
        if full in PRIMITIVES:
            raise fail(f"{kind} {full} has the name of a primitive type", where)
        schema = Schema(type="record" if kind == "error" else kind, name=full)
        schema.aliases = tuple(_full_name(each, namespace) for each in _texts(value, "aliases", full))
        if kind == "enum":
            self.symbols(schema, value)
        elif kind == "fixed":
            size = value.get("size")
            if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size < 2**31:
                raise fail(f"size of a fixed: expected a number of bytes, got {_quoted(size)}", full)
            schema.size, schema.logical = size, logical(value, kind, size)
        earlier = self.known.get(full)
        if kind == "record" or kind == "error":
            self.known[full] = schema  # its fields may refer to it
            schema.fields = self.fields(value, full, namespace, depth)
        if earlier is not None and not same_definition(earlier, schema):
            raise fail("defined twice, with different contents", full)
        self.known[full] = earlier or schema
        return self.known[full]

    def symbols(self, schema: Schema, value: dict[str, Json]) -> None:
        schema.symbols = _texts(value, "symbols", schema.name)
        if len(set(schema.symbols)) < len(schema.symbols):
            raise fail("symbols: one is listed twice", schema.name)
        default = value.get("default")
        if default is not None:
            if default not in schema.symbols:
                raise fail(f"default {_quoted(default)} is not one of the symbols", schema.name)
            schema.default = str(default)

    def fields(self, value: dict[str, Json], full: str, namespace: str, depth: int) -> tuple[Field, ...]:
        listed = value.get("fields")
        if not isinstance(listed, list):
            raise fail("fields missing: expected an array", full)
        by_name: dict[str, Field] = {}
        for each in listed:
            if not isinstance(each, dict) or not isinstance(each.get("name"), str) or not each["name"]:
                raise fail(f"field without a name: {_quoted(each)}", full)
            name = _encodable(str(each["name"]))
            where = f"{full}.{name}"
            if name in by_name:
                raise fail("field defined twice", where)
            if "type" not in each:
                raise fail("type of the field missing", where)
            schema = self.schema(each["type"], namespace, where, depth + 1)
            default = each.get("default", NO_DEFAULT)
            aliases = _texts(each, "aliases", where)
            by_name[name] = Field(name=name, schema=schema, aliases=aliases, default=default)  # type: ignore[arg-type]
        return tuple(by_name.values())


def _full_name(name: str, namespace: str) -> str:
    return name.strip(".") if "." in name or not namespace else f"{namespace}.{name}"


def _texts(value: dict[str, Json], key: str, where: str) -> tuple[str, ...]:
    """Return an attribute that is an array of strings; only symbols are required."""
    names = value.get(key, [] if key == "aliases" else None)
    if not isinstance(names, list) or not all(isinstance(each, str) and each for each in names):
        raise fail(f"{key}: expected an array of names, got {_quoted(names)}", where)
    return tuple(_encodable(str(each)) for each in names)


def _encodable(name: str) -> str:
    """Return a name if it is one in UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        raise fail(f"the name {name[:60]!a} has half a surrogate pair") from None
    return name


def logical(value: dict[str, Json], kind: str, size: int) -> Logical | None:
    """Return the logical type of a definition, None if it has none that fits the type."""
    name = value.get("logicalType")
    if name == "decimal" and kind in ("bytes", "fixed"):
        precision, scale = value.get("precision"), value.get("scale", 0)
        if not isinstance(precision, int) or not isinstance(scale, int) or isinstance(precision, bool):
            return None
        if not 0 < precision <= MAX_PRECISION or not 0 <= scale <= precision:
            return None
        if kind == "fixed" and 2 * 10**precision > 256**size:
            return None
        return Logical(name="decimal", precision=precision, scale=scale)
    if isinstance(name, str) and name in LOGICAL_TYPES.get(kind, ()):
        return Logical(name=name) if kind != "fixed" or size == FIXED_SIZES[name] else None
    return None


def same_definition(one: Schema, other: Schema) -> bool:
    """Return whether two definitions of a name are equal; types inside are compared by name."""

    def outline(schema: Schema) -> list[object]:
        parts: list[object] = [replace_children(schema)]
        for each in schema.fields:
            parts += [each.name, each.aliases, str(each.default), shape(each.schema)]
        return parts

    return outline(one) == outline(other)


def replace_children(schema: Schema) -> tuple[object, ...]:
    """Return what a schema is apart from the schemas inside."""
    return schema.type, schema.name, schema.aliases, schema.symbols, schema.default, schema.size, schema.logical


def shape(schema: Schema) -> object:
    """Return a value that is equal for equal schemas, with names for named types."""
    if schema.name:
        return schema.name
    return schema.type, schema.logical, tuple(shape(each) for each in schema.children())
