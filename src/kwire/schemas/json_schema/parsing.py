"""The Arrow type of a JSON schema.

    boolean, integer, number, string          bool, int64, float64, string
    object with properties                    struct of them; others are not read
    object with additionalProperties only     map<string, ...>
    array with items                          list
    one of several types, or any              string: the JSON text of the value

null may stand for every value. Values of the schema inside of itself are JSON text too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

import pyarrow as pa

from kwire.errors import InvalidSchema, OptionError

__all__ = ["JsonSchema", "Node", "parse"]

MAX_TEXT_CHARACTERS = 4 << 20
MAX_NODES = 100_000
MAX_DEPTH = 100
MAX_REFERENCES = 100
SIMPLE = {"boolean": pa.bool_(), "integer": pa.int64(), "number": pa.float64(), "string": pa.string()}


@dataclass(slots=True, kw_only=True, frozen=True)
class Node:
    """A value. kind: of SIMPLE, or object, array, map, any. members: of an object. element: of an array or map."""

    kind: str
    members: dict[str, Node] = field(default_factory=dict)
    element: Node | None = None
    takes_null: bool = False

    @property
    def type(self) -> pa.DataType:
        """The Arrow type."""
        if self.kind == "object":
            return pa.struct([pa.field(name, member.type) for name, member in self.members.items()])
        if self.kind == "any":
            return pa.string()
        if self.element is None:
            return SIMPLE[self.kind]
        if self.kind == "array":
            return pa.list_(pa.field("element", self.element.type))
        return pa.map_(pa.string(), self.element.type)


@dataclass(slots=True, kw_only=True, eq=False)
class JsonSchema:
    """A schema, the documents it refers to by name, and its node."""

    document: Any
    references: dict[str, Any]
    root: Node


ANY = Node(kind="any", takes_null=True)


def parse(text: str, references: Mapping[str, str] | None = None) -> JsonSchema:
    """Parse a JSON schema. references: texts of other schemas, by the name that `$ref` has. Raises InvalidSchema."""
    document = _parse_text(text, "")
    others = {name: _parse_text(each, f"{name}: ") for name, each in (references or {}).items()}
    _check(document)
    return JsonSchema(document=document, references=others, root=_Builder(document, others).build(document, "", (), 0))


def _parse_text(text: str, where: str) -> Any:
    if len(text) > MAX_TEXT_CHARACTERS:
        raise InvalidSchema(f"{where}{len(text)} characters, the limit is {MAX_TEXT_CHARACTERS}")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidSchema(f"{where}not JSON: {error}") from None


def _check(document: Any) -> None:
    try:
        from jsonschema import SchemaError, validators
    except ImportError:
        raise OptionError("JSON schemas need jsonschema: pip install 'kwire[registry]'") from None
    if isinstance(document, bool):
        return
    if not isinstance(document, Mapping):
        raise InvalidSchema("a JSON schema has to be an object, true or false")
    try:
        validators.validator_for(document, validators.Draft7Validator).check_schema(document)
    except SchemaError as error:
        path = tuple(each if isinstance(each, int) else str(each) for each in error.absolute_path)
        raise InvalidSchema(error.message[:300], path=path) from None
    except RecursionError:
        raise InvalidSchema("nested too deep") from None


class _Builder:
    def __init__(self, document: Any, references: dict[str, Any]) -> None:
        self.root, self.references = document, references
        self.count = 0

    def build(self, schema: Any, base: str, path: tuple[int, ...], depth: int) -> Node:
        """Return the node of a schema. base: name of its document. path: ids of the schemas around it."""
        self.count += 1
        if self.count > MAX_NODES:
            raise InvalidSchema(f"more than {MAX_NODES} schemas, counting those of references in each place")
        if depth > MAX_DEPTH:
            raise InvalidSchema(f"nested more than {MAX_DEPTH} deep")
        schema, base = self._resolve(schema, base)
        if not isinstance(schema, Mapping) or id(schema) in path:
            return ANY
        inside = (*path, id(schema))
        takes_null, schema, base = self._without_null(schema, base)
        if not isinstance(schema, Mapping) or id(schema) in path:
            return ANY
        if "allOf" in schema:
            schema = self._merged(schema, base)
        match _kind(schema):
            case "object":
                return self._object(schema, base, (*inside, id(schema)), depth, takes_null)
            case "array" if isinstance(schema.get("items"), Mapping) and "prefixItems" not in schema:
                element = self.build(schema["items"], base, (*inside, id(schema)), depth + 1)
                return Node(kind="array", element=element, takes_null=takes_null)
            case "array":
                return Node(kind="array", element=ANY, takes_null=takes_null)
            case str(kind) if kind in SIMPLE:
                return Node(kind=kind, takes_null=takes_null)
        return ANY

    def _object(self, schema: Any, base: str, path: tuple[int, ...], depth: int, takes_null: bool) -> Node:
        properties = schema.get("properties")
        if isinstance(properties, Mapping) and properties:
            members = {name: self.build(each, base, path, depth + 1) for name, each in properties.items()}
            return Node(kind="object", members=members, takes_null=takes_null)
        values = schema.get("additionalProperties")
        if isinstance(values, Mapping):
            return Node(kind="map", element=self.build(values, base, path, depth + 1), takes_null=takes_null)
        return ANY

    def _resolve(self, schema: Any, base: str) -> tuple[Any, str]:
        for _ in range(MAX_REFERENCES):
            if not isinstance(schema, Mapping) or not isinstance(schema.get("$ref"), str):
                return schema, base
            schema, base = self._find(schema["$ref"], base)
        raise InvalidSchema("circular references")

    def _find(self, reference: str, base: str) -> tuple[Any, str]:
        name, fragment = urldefrag(reference)
        document: Any = self.references[base] if base else self.root
        if name:
            own_id = document.get("$id", "") if isinstance(document, Mapping) else ""
            candidates = (name, urljoin(str(own_id), name), urljoin(base, name))
            found = next((each for each in candidates if each in self.references), None)
            if found is None:
                raise InvalidSchema(f"$ref '{reference}': no reference has this name")
            base, document = found, self.references[found]
        for step in filter(None, unquote(fragment).split("/")):
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(document, Mapping) and key in document:
                document = document[key]
            elif isinstance(document, list) and key.isdecimal() and int(key) < len(document):
                document = document[int(key)]
            else:
                raise InvalidSchema(f"$ref '{reference}': nothing is there")
        return document, base

    def _without_null(self, schema: Any, base: str) -> tuple[bool, Any, str]:
        """Return whether null is allowed, and the schema of other values."""
        kinds = schema.get("type")
        if isinstance(kinds, list):
            return "null" in kinds, {**schema, "type": [kind for kind in kinds if kind != "null"]}, base
        for word in ("oneOf", "anyOf"):
            branches = schema.get(word)
            if isinstance(branches, list) and branches:
                others = [each for each in branches if not (isinstance(each, Mapping) and each.get("type") == "null")]
                if len(others) == 1:
                    takes_null, inner, inner_base = len(others) < len(branches), *self._resolve(others[0], base)
                    return takes_null, inner, inner_base
                return len(others) < len(branches), {}, base
        return False, schema, base

    def _merged(self, schema: Any, base: str) -> Any:
        """Return a schema with the properties of all its parts."""
        parts = [self._resolve(each, base) for each in schema["allOf"]]
        parts.append(({name: each for name, each in schema.items() if name != "allOf"}, base))
        if any(where != base for _, where in parts) or not all(isinstance(part, Mapping) for part, _ in parts):
            return {}  # the references of its parts have different bases
        merged: dict[str, Any] = {}
        for part, _ in parts:
            merged |= {name: each for name, each in part.items() if name != "properties"}
        merged["properties"] = {name: each for part, _ in parts for name, each in part.get("properties", {}).items()}
        return merged


def _kind(schema: Any) -> str:
    """Return the JSON type of a schema's values, or an empty string."""
    kind = schema.get("type")
    if isinstance(kind, list):
        kinds = set(kind)
        kind = "number" if kinds == {"integer", "number"} else kind[0] if len(kinds) == 1 else ""
    if kind is None:
        values = schema.get("enum", [schema["const"]] if "const" in schema else [])
        if values and all(isinstance(each, str) for each in values):
            return "string"
        kind = "object" if "properties" in schema else ""
    return str(kind)
