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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import pyarrow as pa

from kwire.errors import InvalidSchema
from kwire.extras import needing
from kwire.schemas.json_schema.limits import Limits, has_only, limits_of

__all__ = ["DATA_KEYWORDS", "JsonSchema", "Node", "parse"]

MAX_TEXT_CHARACTERS = 4 << 20
MAX_NODES = 100_000
MAX_DEPTH = 100
MAX_REFERENCES = 100
DATA_KEYWORDS = ("enum", "const", "default", "examples")
"""Those whose contents are values, not schemas."""
OLD_DIALECTS = tuple(f"http://json-schema.org/draft-0{number}/schema" for number in (3, 4))
"""Those in which `$id` is `id`."""
SIMPLE = {"boolean": pa.bool_(), "integer": pa.int64(), "number": pa.float64(), "string": pa.string()}


@dataclass(slots=True, kw_only=True, frozen=True)
class Node:
    """A value. members: of an object. element: of an array or map.

    kind: of SIMPLE, or object, array, map, any (as JSON text), string_or_text (JSON text of what is not a string),
    decimal (a number as it is written, or a string).
    limits: all that the schema says of the value apart from its type; None if it says more.
    """

    kind: str
    members: dict[str, Node] = field(default_factory=dict)
    element: Node | None = None
    takes_null: bool = False
    limits: Limits | None = None

    @property
    def type(self) -> pa.DataType:
        """The Arrow type."""
        if self.kind == "object":
            return pa.struct([pa.field(name, member.type) for name, member in self.members.items()])
        if self.kind in ("any", "string_or_text", "decimal"):
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
    with needing("JSON schemas"):
        from jsonschema import FormatChecker, SchemaError, validators
    if isinstance(document, bool):
        return
    if not isinstance(document, Mapping):
        raise InvalidSchema("a JSON schema has to be an object, true or false")
    try:
        kind = validators.validator_for(document, validators.Draft7Validator)
        kind.check_schema(document, format_checker=FormatChecker(formats=()))  # patterns are JavaScript's, not Python's
    except SchemaError as error:
        path = tuple(each if isinstance(each, int) else str(each) for each in error.absolute_path)
        raise InvalidSchema(error.message[:300], path=path) from None
    except RecursionError:
        raise InvalidSchema("nested too deep") from None


class _Builder:
    def __init__(self, document: Any, references: dict[str, Any]) -> None:
        self.references = references
        self.count = 0
        self.places: dict[str, tuple[Any, str]] = {}
        self.bases: dict[int, str] = {}
        self._add_places(document, "")
        own_url = self.bases.get(id(document), "")
        self.places[""] = document, own_url
        for name, each in references.items():
            self._add_places(each, name)
            for url in (name, _url(own_url, name)):
                self.places.setdefault(url, (each, self.bases.get(id(each), name)))

    def _add_places(self, document: Any, url: str) -> None:
        """Remember where the URLs of `$id` and `$anchor` lead, and what references inside are relative to."""
        dialect = document.get("$schema") if isinstance(document, Mapping) else None
        id_keyword = "id" if str(dialect).rstrip("#") in OLD_DIALECTS else "$id"
        pending = [(document, url)]
        while pending:
            value, base = pending.pop()
            if isinstance(value, list):
                pending += [(each, base) for each in value]
            if not isinstance(value, Mapping):
                continue
            own = value.get(id_keyword)
            if isinstance(own, str) and own.startswith("#"):  # an anchor of drafts 4 to 7
                self.places.setdefault(base + own, (value, base))
            elif isinstance(own, str):
                base = self.bases[id(value)] = _url(base, own)
                self.places.setdefault(base, (value, base))
            for word in ("$anchor", "$dynamicAnchor"):
                if isinstance(value.get(word), str):
                    self.places.setdefault(f"{base}#{value[word]}", (value, base))
            pending += [(each, base) for name, each in value.items() if name not in DATA_KEYWORDS]

    def build(self, schema: Any, base: str, path: tuple[int, ...], depth: int) -> Node:
        """Return the node of a schema. base: URL that references are relative to. path: ids of schemas around it."""
        self.count += 1
        if self.count > MAX_NODES:
            raise InvalidSchema(f"more than {MAX_NODES} schemas, counting those of references in each place")
        if depth > MAX_DEPTH:
            raise InvalidSchema(f"nested more than {MAX_DEPTH} deep")
        is_whole = self._has_no_siblings(schema, base)
        schema, base = self._resolve(schema, base)
        if not isinstance(schema, Mapping) or id(schema) in path:
            return ANY
        inside = (*path, id(schema))
        is_whole = is_whole and self._is_one_branch(schema, base)
        takes_null, schema, base = self._without_null(schema, base)
        if not isinstance(schema, Mapping) or id(schema) in path:
            return ANY
        if "allOf" in schema:
            schema, is_whole = self._merged(schema, base), False
        node = self._node(schema, base, (*inside, id(schema)), depth, takes_null)
        if node is not ANY and is_whole:
            return replace(node, limits=limits_of(schema, node.kind, takes_null))
        return node

    def _node(self, schema: Any, base: str, path: tuple[int, ...], depth: int, takes_null: bool) -> Node:
        match _kind(schema):
            case "object":
                return self._object(schema, base, path, depth, takes_null)
            case "array" if isinstance(schema.get("items"), Mapping) and "prefixItems" not in schema:
                element = self.build(schema["items"], base, path, depth + 1)
                return Node(kind="array", element=element, takes_null=takes_null)
            case "array":
                return Node(kind="array", element=ANY, takes_null=takes_null)
            case str(kind) if kind in SIMPLE:
                return Node(kind=kind, takes_null=takes_null)
        return ANY

    def _object(self, schema: Any, base: str, path: tuple[int, ...], depth: int, takes_null: bool) -> Node:
        properties = schema.get("properties")
        if isinstance(properties, Mapping) and properties:
            members = {_name(name): self.build(each, base, path, depth + 1) for name, each in properties.items()}
            return Node(kind="object", members=members, takes_null=takes_null)
        values = schema.get("additionalProperties")
        if isinstance(values, Mapping):
            return Node(kind="map", element=self.build(values, base, path, depth + 1), takes_null=takes_null)
        return ANY

    def _resolve(self, schema: Any, base: str) -> tuple[Any, str]:
        for _ in range(MAX_REFERENCES):
            base = self.bases.get(id(schema), base)
            if not isinstance(schema, Mapping) or not isinstance(schema.get("$ref"), str):
                return schema, base
            schema, base = self._find(schema["$ref"], base)
        raise InvalidSchema("circular references")

    def _has_no_siblings(self, schema: Any, base: str) -> bool:
        """Return whether no reference on the way to a schema has keywords beside it that check values."""
        for _ in range(MAX_REFERENCES):
            if not isinstance(schema, Mapping) or not isinstance(schema.get("$ref"), str):
                return True
            if not has_only(schema, {"$ref"}):
                return False
            schema, base = self._find(schema["$ref"], self.bases.get(id(schema), base))
        return False

    def _is_one_branch(self, schema: Mapping[str, Any], base: str) -> bool:
        """Return whether a schema is null or one other schema, or has no branches."""
        words = schema.keys() & {"oneOf", "anyOf"}
        if not words:
            return True
        word = next(iter(words))
        branches = schema[word]
        if not has_only(schema, {word}) or not isinstance(branches, list) or len(branches) != 2:
            return False
        others = [each for each in branches if not (isinstance(each, Mapping) and each.get("type") == "null")]
        if len(others) != 1 or not self._has_no_siblings(others[0], base):
            return False
        inner, _ = self._resolve(others[0], base)
        return isinstance(inner, Mapping) and isinstance(inner.get("type"), str)

    def _find(self, reference: str, base: str) -> tuple[Any, str]:
        try:
            name, fragment = urldefrag(reference)
        except ValueError as error:
            raise InvalidSchema(f"$ref '{reference[:80]}': {error}") from None
        url = _url(base, name) if name else base
        where = f"#{fragment}" if fragment and not fragment.startswith("/") else ""
        candidates = (f"{url}{where}", f"{name}{where}") if name else (f"{url}{where}",)
        place = next((self.places[each] for each in candidates if each in self.places), None) or _dialect(url)
        if place is None:
            missing = "nothing is there" if where or not name else "no reference has this name"
            raise InvalidSchema(f"$ref '{reference}': {missing}")
        if where:
            return place
        document, base = place
        for step in unquote(fragment).split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(document, Mapping) and key in document:
                document = document[key]
            elif isinstance(document, list) and key.isdecimal() and int(key) < len(document):
                document = document[int(key)]
            else:
                raise InvalidSchema(f"$ref '{reference}': nothing is there")
            base = self.bases.get(id(document), base)
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
        merged["properties"] = {name: each for part, _ in parts for name, each in _properties(part)}
        return merged


def _dialect(url: str) -> tuple[Any, str] | None:
    """Return the schema of a dialect of JSON Schema, to which every schema may refer, and its URL."""
    from jsonschema_specifications import REGISTRY

    return (REGISTRY[url].contents, url) if url in REGISTRY else None


def _url(base: str, relative: str) -> str:
    """Return a URL that may be relative to another one."""
    try:
        urlsplit(relative)  # urljoin leaves faults in it if the base is empty
        return urljoin(base, relative).removesuffix("#")
    except ValueError as error:
        raise InvalidSchema(f"'{relative[:80]}' is not a URL: {error}") from None


def _properties(schema: Any) -> Iterable[tuple[str, Any]]:
    """Return the properties of a schema, which is unchecked where only a reference leads."""
    properties = schema.get("properties")
    return properties.items() if isinstance(properties, Mapping) else ()


def _name(name: str) -> str:
    """Return the name of a property if it can be that of a column."""
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InvalidSchema(f"the property {name[:80]!a} has half a surrogate pair in its name") from None
    return name


def _kind(schema: Any) -> str:
    """Return the JSON type of a schema's values, or an empty string."""
    kind = schema.get("type")
    if isinstance(kind, list):
        kinds = {str(each) for each in kind}
        kind = "number" if kinds == {"integer", "number"} else next(iter(kinds)) if len(kinds) == 1 else ""
    if kind is None:
        values = schema.get("enum", [schema["const"]] if "const" in schema else [])
        if isinstance(values, list) and values and all(isinstance(each, str) for each in values):
            return "string"
        kind = "object" if "properties" in schema else ""
    return str(kind)
