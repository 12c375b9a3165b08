"""Parse a definition file object by object, and check the rules that concern single objects.

These are the rules that Kafka applies while parsing (E-01 to E-30, E-60 to E-66); `resolve` applies those that need the
whole message. Reading continues after an error, so all errors of a file are reported together.
Source: org.apache.kafka.message.MessageSpec, StructSpec, FieldSpec, FieldType, EntityType, HeaderVersions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, Literal, TypeVar

from kwire.errors import SchemaError
from kwire.schema.encodings import Ranges, logical_type, read_encodings, read_ranges, widest_type
from kwire.schema.json_text import JsonTextError, Node, Number, read_json_text
from kwire.schema.model import PRIMITIVES
from kwire.schema.names import NAME_RULE, attribute_name, is_name, wrong_class_name
from kwire.schema.versions import ALL, MAX_VERSION, NONE, Versions

KINDS: Final = ("request", "response", "header", "metadata", "data", "coordinator-key", "coordinator-value")
RPC: Final = ("request", "response")
LISTENERS: Final = ("zkBroker", "broker", "controller")
ENTITY_TYPES: Final = {
    "unknown": None,
    "transactionalId": "string",
    "producerId": "int64",
    "groupId": "string",
    "topicName": "string",
    "brokerId": "int32",
}
"""Entity types with the field type they require."""

Dialect = Literal["strict", "kafka", "kip"]
"""Choice of rules where the README, KIP-482 and Kafka's generator differ.

strict: the rules of this package. kip: the notation of KIP-482 and KIP-625: a tag without ranges is tagged in all
flexible versions (T-08), a tagged struct needs no versions, unsigned32 is upacked32 (I-40). kafka: accepts the
definitions of Kafka's own releases: the last of repeated keys counts (T-01), fields of an array of primitives (T-02)
and text after the object are ignored, flexibleVersions may be absent (before 3.0), and a struct's fields may take their
versions from taggedVersions (before 3.9).
"""

MESSAGE_ATTRIBUTES: Final = frozenset(
    {
        *("name", "type", "validVersions", "flexibleVersions", "deprecatedVersions", "fields", "apiKey"),
        *("commonStructs", "listeners", "latestVersionUnstable", "headerVersions"),
    }
)
STRUCT_ATTRIBUTES: Final = frozenset({"name", "versions", "deprecatedVersions", "fields"})
FIELD_ATTRIBUTES: Final = frozenset(
    {
        *("name", "type", "versions", "fields", "nullableVersions", "default", "ignorable", "mapKey", "entityType"),
        *("about", "tag", "taggedVersions", "flexibleVersions", "zeroCopy", "encoding"),
    }
)
_INTEGER = re.compile(r"[+-]?[0-9]{1,12}\Z")

T = TypeVar("T")


@dataclass(slots=True)
class FieldText:
    """A field object. Ranges are parsed, the default is still text; type is the element type."""

    name: str
    line: int
    type: str = ""
    is_array: bool = False
    versions: Versions = NONE
    own_versions: Versions | None = None
    nullable: Versions = NONE
    tag: int | None = None
    tagged: Versions = NONE
    flexible: Versions | None = None
    default: str = ""
    ignorable: bool = False
    map_key: bool = False
    entity_type: str = "unknown"
    zero_copy: bool = False
    about: str = ""
    encodings: tuple[tuple[Versions, str], ...] = ()
    fields: list[FieldText] = field(default_factory=list)

    @property
    def is_struct(self) -> bool:
        """Whether the type is a struct, and not a primitive."""
        return self.type not in PRIMITIVES


@dataclass(slots=True)
class StructText:
    """A struct object, or the fields of an inline struct under the name of the field's type."""

    name: str
    line: int
    versions: Versions
    fields: list[FieldText]


@dataclass(slots=True)
class MessageText:
    """A whole file."""

    name: str
    line: int
    kind: str
    api_key: int | None
    valid: Versions
    flexible: Versions
    deprecated: Versions
    fields: list[FieldText]
    common: list[StructText]
    listeners: tuple[str, ...]
    latest_version_unstable: bool
    header_versions: tuple[tuple[Versions, int], ...]


class Problems:
    """The errors of one file, in the order found."""

    def __init__(self, file: str | None) -> None:
        self.file = file
        self.found: list[SchemaError] = []

    def add(self, rule: str, what: str, line: int, struct: str | None = None, name: str | None = None) -> None:
        """Add an error; line 0 is unknown."""
        where = f" (line {line})" if line else ""
        self.found.append(SchemaError(what + where, rule, self.file, struct, name))


def read_message(text: str, problems: Problems, dialect: Dialect = "strict") -> MessageText | None:
    """Parse a definition and add its errors to problems. Returns None unless it is an object with a name and a type."""
    try:
        node = read_json_text(text, lenient=dialect == "kafka")
    except JsonTextError as error:
        problems.add("T-01" if error.repeated is not None else "E-01", str(error), error.line)
        return None
    if not isinstance(node.value, dict):
        problems.add("E-01", "a definition must be one JSON object", node.line)
        return None
    return _Reader(problems, dialect).message(node)


class _Object:
    """The attributes of one JSON object, by name and type; invalid ones are reported and read as missing."""

    def __init__(self, node: Node, known: frozenset[str], problems: Problems, struct: str | None, kind: str) -> None:
        assert isinstance(node.value, dict)
        self.line, self.problems, self.struct = node.line, problems, struct
        self.members = {k: v for k, v in node.value.items() if v.value is not None}
        self.name: str | None = None
        name = self.text("name", "")
        if kind == "field":
            self.name = name or None
        else:
            self.struct = name or None
        for unknown in node.value.keys() - known:
            self.problem("E-02", f"unknown attribute {unknown!r} of a {kind}", node.value[unknown].line)
        if "name" not in self.members:
            self.problem("E-05", "name is missing", node.line)
        elif scalar_text(self.members["name"]) is None:
            pass  # E-03 has been reported
        elif kind == "field" and not is_name(name):
            self.problem("E-08", f"invalid field name {name!r}: {NAME_RULE}")
        elif kind != "field" and (what := wrong_class_name(name)):
            self.problem("T-09", f"invalid {kind} name {name!r}: {what}")

    def problem(self, rule: str, what: str, line: int | None = None) -> None:
        self.problems.add(rule, what, self.line if line is None else line, self.struct, self.name)

    def wrong(self, attribute: str, wanted: str) -> None:
        self.problem("E-03", f"{attribute} must be {wanted}", self.members[attribute].line)

    def text(self, attribute: str, default: str) -> str:
        """Read a string; a number or a boolean is read as its text."""
        node = self.members.get(attribute)
        if node is None:
            return default
        text = scalar_text(node)
        if text is None:
            self.wrong(attribute, "a string")
            return default
        return text

    def flag(self, attribute: str) -> bool:
        """Read a boolean, or the text of one."""
        text = self.text(attribute, "false").strip().lower()
        if text not in ("true", "false"):
            self.wrong(attribute, "true or false")
        return text == "true"

    def integer(self, attribute: str, bits: int) -> int | None:
        """Read a signed integer of this width, or its text."""
        if attribute not in self.members:
            return None
        text = self.text(attribute, "").strip()
        if not _INTEGER.match(text) or isinstance(self.members[attribute].value, bool):
            self.wrong(attribute, "an integer")
            return None
        value = int(text)
        if not -(1 << bits - 1) <= value < 1 << bits - 1:
            self.wrong(attribute, f"an integer of {bits} bits")
            return None
        return value

    def versions(self, attribute: str) -> Versions | None:
        """Read a version range; None if missing, blank or invalid."""
        text = self.text(attribute, "").strip()
        if not text:
            return None
        try:
            return Versions.parse(text)
        except ValueError as error:
            self.problem("E-07", f"{attribute}: {error}", self.members[attribute].line)
            return None

    def is_blank(self, attribute: str) -> bool:
        """Whether the attribute is missing or blank; an invalid range is neither."""
        return not self.text(attribute, "").strip()

    def items(self, attribute: str, read: Callable[[Node], T | None]) -> list[T]:
        """Read a list, each element with `read`; a single value is a list of one."""
        node = self.members.get(attribute)
        if node is None:
            return []
        nodes = node.value if isinstance(node.value, list) else [node]
        return [item for item in map(read, nodes) if item is not None]


class _Reader:
    def __init__(self, problems: Problems, dialect: Dialect) -> None:
        self.problems, self.dialect = problems, dialect
        self.flexible: Versions = NONE

    def message(self, node: Node) -> MessageText | None:
        o = _Object(node, MESSAGE_ATTRIBUTES, self.problems, None, "message")
        kind = o.text("type", "")
        if kind not in KINDS:
            o.problem(
                "E-06", f"unknown type {kind!r}; expected one of {', '.join(KINDS)}" if kind else "type is missing"
            )
        valid = o.versions("validVersions")
        if o.is_blank("validVersions"):
            o.problem("E-04", "validVersions is missing")
        removed = kind in RPC and valid == NONE  # the API is gone, its key stays taken (E-66)
        flexible = NONE if removed else self.flexible_versions(o)
        self.flexible = flexible
        common = o.items("commonStructs", self.struct)
        message = MessageText(
            name=o.struct or "",
            line=node.line,
            kind=kind,
            api_key=o.integer("apiKey", 16),
            valid=valid or NONE,
            flexible=flexible,
            deprecated=o.versions("deprecatedVersions") or NONE,
            fields=self.fields(o, o.struct or ""),
            common=common,
            listeners=() if removed else self.listeners(o, kind),
            latest_version_unstable=o.flag("latestVersionUnstable") and not removed,
            header_versions=self.header_versions(o, kind, valid or NONE),
        )
        if message.latest_version_unstable and kind != "request":
            o.problem("E-30", "latestVersionUnstable is allowed in requests only")
        self.coordinator_rules(o, message)
        return message if o.struct and kind in KINDS and valid is not None else None

    def flexible_versions(self, o: _Object) -> Versions:
        if "flexibleVersions" not in o.members:
            if self.dialect == "kafka":
                return NONE
            o.problem("E-28", "flexibleVersions is missing; write 'none' if no version is flexible")
            return NONE
        flexible = o.versions("flexibleVersions") or NONE
        if flexible and not flexible.is_open:
            o.problem("E-29", f"flexibleVersions {flexible} must be 'none' or open-ended")
        return flexible

    def listeners(self, o: _Object, kind: str) -> tuple[str, ...]:
        names = o.items("listeners", scalar_text)
        if names and kind != "request":
            o.problem("E-30", "listeners are allowed in requests only")
        for name in names:
            if name not in LISTENERS:
                o.problem("E-03", f"unknown listener {name!r}; expected one of {', '.join(LISTENERS)}")
        return tuple(names)

    def coordinator_rules(self, o: _Object, message: MessageText) -> None:
        if message.kind == "coordinator-key":
            if message.api_key is None:
                o.problem("E-60", "apiKey is missing; a coordinator-key needs one")
            if message.valid != Versions(0, 0):
                o.problem("E-60", f"validVersions of a coordinator-key must be 0, not {message.valid}")
            if message.flexible:
                o.problem("E-60", "flexibleVersions of a coordinator-key must be 'none'")
        elif message.kind == "coordinator-value" and message.api_key is None:
            o.problem("E-61", "apiKey is missing; a coordinator-value needs one")

    def header_versions(self, o: _Object, kind: str, valid: Versions) -> tuple[tuple[Versions, int], ...]:
        node = o.members.get("headerVersions")
        if node is None:
            return ()
        if not isinstance(node.value, dict):
            o.wrong("headerVersions", "an object")
            return ()
        if kind not in RPC or not valid:
            o.problem("E-63", "headerVersions is allowed only in requests and responses with valid versions", node.line)
            return ()
        found: list[tuple[Versions, int]] = []
        for text, header in node.value.items():
            try:
                versions = Versions.parse(text)
            except ValueError as error:
                o.problem("E-64", f"headerVersions: {error}", header.line)
                continue
            number = (scalar_text(header) or "").strip()
            if not versions:
                o.problem("E-64", "headerVersions: empty range", header.line)
            elif not (number.isascii() and number.isdigit() and len(number) < 6 and int(number) <= MAX_VERSION):
                o.problem("E-64", f"headerVersions: invalid header version {number!r}", header.line)
            else:
                found.append((versions, int(number)))
        if len(found) < len(node.value):
            return ()
        found.sort(key=lambda item: item[0].lowest)
        self.check_header_versions(o, [versions for versions, _ in found], valid, node.line)
        if (o.integer("apiKey", 16), kind) == (18, "response") and any(header != 0 for _, header in found):
            o.problem("E-65", "headerVersions of an ApiVersions response must all be 0", node.line)
        return tuple(found)

    def check_header_versions(self, o: _Object, ranges: list[Versions], valid: Versions, line: int) -> None:
        if not ranges:
            o.problem("E-64", "headerVersions is empty", line)
            return
        if ranges[0].lowest != 0:
            o.problem("E-64", f"headerVersions must start at 0, not at {ranges[0].lowest}", line)
        for left, right in pairwise(ranges):
            if left.highest + 1 != right.lowest:
                o.problem("E-64", f"headerVersions: {right} must follow {left} without gap or overlap", line)
        if not ranges[-1].is_open:
            o.problem("E-64", f"headerVersions: the last range, {ranges[-1]}, must be open-ended", line)
        for versions in ranges:
            if versions.lowest > valid.highest:
                o.problem("E-64", f"headerVersions: {versions} starts above the highest valid version", line)

    def struct(self, node: Node) -> StructText | None:
        if not isinstance(node.value, dict):
            self.problems.add("E-03", "a common struct must be an object", node.line)
            return None
        o = _Object(node, STRUCT_ATTRIBUTES, self.problems, None, "struct")
        versions = o.versions("versions")
        if o.is_blank("versions"):
            o.problem("E-04", "versions is missing")
        o.versions("deprecatedVersions")
        fields = self.fields(o, o.struct or "")
        return StructText(o.struct, node.line, ALL if versions is None else versions, fields) if o.struct else None

    def fields(self, o: _Object, struct: str) -> list[FieldText]:
        fields = o.items("fields", lambda node: self.field(node, struct))
        self.check_names(fields, struct)
        self.check_tags(fields, struct)
        return fields

    def check_names(self, fields: list[FieldText], struct: str) -> None:
        names: dict[str, FieldText] = {}
        for item in fields:
            known = names.setdefault(attribute_name(item.name), item)
            if known is item:
                continue
            if known.name == item.name:
                self.problems.add("E-26", f"duplicate field {item.name} in {struct}", item.line, struct, item.name)
            else:
                what = f"{item.name} and {known.name} of {struct} would be the same attribute"
                self.problems.add("T-09", what, item.line, struct, item.name)

    def check_tags(self, fields: list[FieldText], struct: str) -> None:
        tags: dict[int, FieldText] = {}
        for item in fields:
            if item.tag is None:
                continue
            if item.tag in tags:
                what = f"tag {item.tag} is already used by {tags[item.tag].name}"
                self.problems.add("E-25", what, item.line, struct, item.name)
            tags.setdefault(item.tag, item)
        expected = 0
        for tag, item in sorted(tags.items()):
            if tag >= 0 and tag != expected:
                what = f"tag {tag} leaves a gap: the next tag of this struct is {expected}"
                self.problems.add("E-27", what, item.line, struct, item.name)
                return
            expected = tag + 1

    def field(self, node: Node, struct: str) -> FieldText | None:
        if not isinstance(node.value, dict):
            self.problems.add("E-03", "a field must be an object", node.line, struct)
            return None
        o = _Object(node, FIELD_ATTRIBUTES, self.problems, struct or None, "field")
        name = o.name or ""
        item = FieldText(name, node.line)
        types = self.types_by_version(o)
        typed = self.read_type(o, item, types)
        self.read_versions(o, item)
        item.default = o.text("default", "")
        item.ignorable, item.map_key, item.zero_copy = o.flag("ignorable"), o.flag("mapKey"), o.flag("zeroCopy")
        item.entity_type, item.about = o.text("entityType", "unknown"), o.text("about", "")
        inner = o.members.get("fields")
        if inner is not None:
            item.fields = self.fields(o, item.type)
        if typed:
            self.check_type_rules(o, item)
            item.encodings = read_encodings(o, item, types, self.dialect)
        self.check_tag_rules(o, item)
        return item if name and typed else None

    def types_by_version(self, o: _Object) -> Ranges | None:
        """Read a type that is an object (KIP-625); None if it is not an object, empty if it is invalid."""
        node = o.members.get("type")
        return None if node is None or not isinstance(node.value, dict) else read_ranges(o, "type")

    def read_type(self, o: _Object, item: FieldText, types: Ranges | None) -> bool:
        if types is not None:
            text = widest_type(o, types)
            if text is None:
                return False
        else:
            text = logical_type(o.text("type", "").strip())
        if not text:
            o.problem("E-10", "type is missing")
            return False
        item.is_array, item.type = text.startswith("[]"), text.removeprefix("[]").strip()
        if item.is_array and not item.type:
            o.problem("E-11", "array without an element type")
        elif item.is_array and item.type.startswith("[]"):
            o.problem("E-12", "arrays of arrays are not supported")
        elif item.type == "boolean":  # the word of the oldest README (T-05)
            item.type = "bool"
            return True
        elif item.type in PRIMITIVES:
            return True
        elif not item.type[0].isupper():
            o.problem("E-10", f"unknown type {item.type!r}; names of structs start with an upper-case letter")
        elif what := wrong_class_name(item.type):
            o.problem("T-09", f"invalid struct name {item.type!r}: {what}")
        else:
            return True
        return False

    def read_versions(self, o: _Object, item: FieldText) -> None:
        item.tag = o.integer("tag", 32)
        item.tagged = o.versions("taggedVersions") or NONE
        if self.dialect == "kip" and item.tag is not None and o.is_blank("taggedVersions"):
            item.tagged = self.flexible
        item.own_versions = o.versions("versions")
        item.versions = item.tagged if item.own_versions is None else item.own_versions
        if o.is_blank("versions") and not item.tagged:
            o.problem("E-09", "versions and taggedVersions are missing; a field needs one of them")
        item.nullable = o.versions("nullableVersions") or NONE
        if not o.is_blank("flexibleVersions"):
            item.flexible = o.versions("flexibleVersions")

    def check_type_rules(self, o: _Object, item: FieldText) -> None:
        primitive = not item.is_array and not item.is_struct
        if item.nullable and primitive and item.type not in ("string", "bytes", "records"):
            o.problem("E-13", f"nullableVersions is not allowed for {item.type}")
        if item.entity_type not in ENTITY_TYPES:
            o.problem("E-14", f"unknown entityType {item.entity_type!r}; expected one of {', '.join(ENTITY_TYPES)}")
        elif ENTITY_TYPES[item.entity_type] not in (None, item.type):
            o.problem(
                "E-14", f"entityType {item.entity_type} requires type {ENTITY_TYPES[item.entity_type]}, not {item.type}"
            )
        if item.fields and primitive:
            o.problem("E-15", f"fields are not allowed for type {item.type}")
        elif item.fields and not item.is_struct and self.dialect != "kafka":
            o.problem("T-02", f"fields are not allowed for type []{item.type}")
        no_versions = item.fields and item.is_struct and item.own_versions is None and o.is_blank("versions")
        if no_versions and not (item.tagged and self.dialect != "strict"):
            o.problem("E-04", "versions is missing; a field with nested fields needs it")
        if item.flexible is not None and (item.is_array or item.type not in ("string", "bytes")):
            o.problem("E-16", "flexibleVersions is allowed only for fields of type string and bytes")
        if item.zero_copy and (item.is_array or item.type != "bytes"):
            o.problem("E-24", "zeroCopy is allowed only for fields of type bytes")

    def check_tag_rules(self, o: _Object, item: FieldText) -> None:
        if item.tag is None:
            if item.tagged and "tag" not in o.members:
                o.problem("E-20", "taggedVersions without tag")
            return
        if item.map_key:
            o.problem("E-17", "a map key cannot be tagged")
        if item.tag < 0:
            o.problem("E-18", f"tag {item.tag} is negative")
        if not item.tagged:
            if o.is_blank("taggedVersions") or "none" in o.text("taggedVersions", ""):
                o.problem("E-19", "tag without taggedVersions")
            return
        both = item.tagged.intersect(item.nullable)
        if both and both != item.tagged:
            o.problem(
                "E-21", f"nullableVersions {item.nullable} must include all tagged versions ({item.tagged}) or none"
            )
        if not item.tagged.is_open:
            o.problem("E-22", f"taggedVersions {item.tagged} must be open-ended")
        if not item.versions.covers(item.tagged):
            o.problem("E-23", f"taggedVersions {item.tagged} must be within versions {item.versions}")


def scalar_text(node: Node) -> str | None:
    """Return a string, number or boolean as text; None for anything else."""
    if isinstance(node.value, Number):
        return node.value.text
    if isinstance(node.value, bool):
        return "true" if node.value else "false"
    return node.value if isinstance(node.value, str) else None
