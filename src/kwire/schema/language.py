"""Kafka's definition language: the text of one definition -> a checked Message, or its errors.

One pass over the JSON objects applies the rules of a field as it is read (E-01 to E-30, E-60 to E-66) and those that
depend on the structs around it: lookup, effective versions, defaults (E-31 to E-48). The effective versions of a struct
are those that it and all enclosing structs have. A common struct is read at its first use.

Reading continues after an error, so all errors of a file are reported together. Rules across definitions are in
`definition_files`.
Source: org.apache.kafka.message.MessageSpec, StructSpec, FieldSpec, FieldType, EntityType, HeaderVersions,
StructRegistry, SchemaGenerator, MessageDataGenerator, VersionConditional.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Final

from kwire.errors import SchemaError
from kwire.schema.attributes import Attributes, Dialect, Problems, scalar_text
from kwire.schema.defaults import parse_default
from kwire.schema.encodings import VARINTS, Ranges, read_encodings, read_ranges, widest_type
from kwire.schema.json_text import JsonTextError, Node, read_json_text
from kwire.schema.model import PRIMITIVES, Default, Field, Message, Struct
from kwire.schema.names import attribute_name, wrong_class_name
from kwire.schema.versions import ALL, MAX_VERSION, NONE, Versions
from kwire.wire.integer_encoding import ENCODINGS

__all__ = ["StrPath", "check", "load", "parse", "read_text"]

StrPath = str | PathLike[str]

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

TYPE_NAMES: Final = {"boolean": "bool", **VARINTS}
"""Other names of types: that of the oldest README (T-05), and those of KIP-625 (I-31)."""

MAX_STRUCT_DEPTH = 100
MAX_FIELDS = 100_000
"""Fields of a message, counting each struct at every use; the largest real one has 200."""

CLASS_ATTRIBUTES: Final = frozenset(
    {"API_KEY", "DEFINITION", "FLEXIBLE_VERSIONS", "FORMER_NAMES", "MAP_KEYS", "SPEC", "VALID_VERSIONS"}
)
"""Attributes of every message class; a struct of such a name would hide them."""


def parse(text: str, file: str | None = None, *, dialect: Dialect = "strict") -> Message:
    """Parse the text of a definition.

    file: the name of the text in errors.
    dialect: "strict", "kip" (a tag needs no ranges) or "kafka" (accepts the definitions of Kafka's own releases).
    Raises SchemaError for the first error; `check` returns all of them.
    """
    message, errors = check(text, file, dialect=dialect)
    if errors or message is None:
        raise errors[0]
    return message


def load(path: StrPath, *, dialect: Dialect = "strict") -> Message:
    """Load a definition file. Raises SchemaError for an invalid or unreadable file."""
    return parse(read_text(Path(path)), str(path), dialect=dialect)


def check(
    text: str, file: str | None = None, *, dialect: Dialect = "strict"
) -> tuple[Message | None, list[SchemaError]]:
    """Return the message and all errors of a definition.

    With errors, the message has the valid part, or is None; without errors, it is not None.
    """
    problems = Problems(file)
    try:
        node = read_json_text(text, lenient=dialect == "kafka")
    except JsonTextError as error:
        problems.add("T-01" if error.repeated is not None else "E-01", str(error), error.line)
        return None, problems.errors
    if not isinstance(node.value, dict):
        problems.add("E-01", "a definition must be one JSON object", node.line)
        return None, problems.errors
    return _Reader(problems, dialect).message(node), problems.errors


def read_text(path: Path) -> str:
    """Read a definition file. Raises SchemaError if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise SchemaError(f"cannot be read: {error.strerror or error}", "E-01", str(path)) from error
    except UnicodeDecodeError as error:
        raise SchemaError(f"not valid UTF-8: {error.reason} at byte {error.start}", "E-01", str(path)) from error


class _Reader:
    """Reads one definition. In its methods, o has the attributes of the object that is read.

    around: the effective versions of the struct; within: the common structs that are being read, outermost first.
    """

    def __init__(self, problems: Problems, dialect: Dialect) -> None:
        self.problems, self.dialect = problems, dialect
        self.name = ""
        self.valid = self.flexible = NONE
        self.common: dict[str, tuple[Attributes, Versions]] = {}
        self.inline: dict[str, str] = {}  # struct -> the field that defines it
        self.structs: dict[str, Struct] = {}  # each after those in it, so that its class can use theirs

    # The message

    def message(self, node: Node) -> Message | None:
        o = Attributes(node, "message", self.problems)
        kind = o.text("type")
        if kind not in KINDS:
            o.problem(
                "E-06", f"unknown type {kind!r}; expected one of {', '.join(KINDS)}" if kind else "type is missing"
            )
        valid = o.versions("validVersions")
        if o.is_blank("validVersions"):
            o.problem("E-04", "validVersions is missing")
        removed = kind in RPC and valid == NONE  # an API that no longer exists; its key stays reserved (E-66)
        self.name, self.valid = o.struct or "", valid or NONE
        self.flexible = NONE if removed else self.flexible_versions(o)
        for common in o.nodes("commonStructs"):
            self.declare(common)
        root = self.struct(o, self.name, self.valid, self.valid, ())
        for name in self.common:  # unused ones are checked, too, and have a class
            self.use_common(name, ())
        message = Message(
            name=self.name,
            kind=kind,
            api_key=o.integer("apiKey", 16),
            valid=self.valid,
            flexible=self.flexible,
            deprecated=o.versions("deprecatedVersions") or NONE,
            struct=root,
            structs=tuple(sorted(self.structs.values(), key=lambda struct: not struct.is_common)),
            listeners=() if removed else _listeners(o, kind),
            latest_version_unstable=o.flag("latestVersionUnstable") and not removed,
            header_versions=_header_versions(o, kind, self.valid),
            file=self.problems.file,
            line=o.line,
        )
        if message.latest_version_unstable and kind != "request":
            o.problem("E-30", "latestVersionUnstable is allowed in requests only")
        _check_coordinator(o, message)
        self.check_root(o, root)
        return message if o.struct and kind in KINDS and valid is not None else None

    def flexible_versions(self, o: Attributes) -> Versions:
        if "flexibleVersions" not in o.members:
            if self.dialect != "kafka":
                o.problem("E-28", "flexibleVersions is missing; write 'none' if no version is flexible")
            return NONE
        flexible = o.versions("flexibleVersions") or NONE
        if flexible and not flexible.is_open:
            o.problem("E-29", f"flexibleVersions {flexible} must be 'none' or open-ended")
        return flexible

    def check_root(self, o: Attributes, root: Struct) -> None:
        if self.valid.is_open:
            o.problem("E-40", f"validVersions {self.valid} must have an upper bound")
        for field in root.fields:
            if field.map_key:
                what = "mapKey is allowed only in structs of an array, not in the message itself"
                self.problems.add("E-41", what, field.line, self.name, field.name)
        if _count_fields(root, {}) > MAX_FIELDS:
            o.problem("E-36", f"more than {MAX_FIELDS} fields, counting each struct at every use")

    # Structs

    def declare(self, node: Node) -> None:
        """Add a common struct, without its fields."""
        if not isinstance(node.value, dict):
            self.problems.add("E-03", "a common struct must be an object", node.line)
            return
        o = Attributes(node, "struct", self.problems)
        versions = o.versions("versions")
        if o.is_blank("versions"):
            o.problem("E-04", "versions is missing")
        o.versions("deprecatedVersions")
        if not o.struct:
            return
        if "a" <= o.struct[0] <= "z":  # T-09 has been reported for other characters
            o.problem("E-31", "names of structs start with an upper-case letter")
        if o.struct in self.common:
            o.problem("E-34", f"duplicate common struct {o.struct}")
        self.check_class_name(o.struct, o.line)
        self.common.setdefault(o.struct, (o, ALL if versions is None else versions))

    def use_common(self, name: str, within: tuple[str, ...]) -> Struct:
        if name not in self.structs:
            o, versions = self.common[name]
            around = versions.intersect(self.valid)
            self.structs[name] = self.struct(o, name, versions, around, (*within, name))
        return self.structs[name]

    def struct(self, o: Attributes, name: str, versions: Versions, around: Versions, within: tuple[str, ...]) -> Struct:
        if versions and not around:
            around = versions  # an error already reported; do not report it for each field inside
        checked = [self.field(node, name, around, within) for node in o.nodes("fields")]
        fields = tuple(field for field in checked if field is not None)
        self.check_names(fields, name)
        self.check_tags(fields, name)
        return Struct(name=name, versions=versions, fields=fields, is_common=within[-1:] == (name,))

    def check_class_name(self, name: str, line: int) -> None:
        what = "it is the name of the message's class" if name in (self.name, f"{self.name}Data") else ""
        what = what or ("every message class has this attribute" if name in CLASS_ATTRIBUTES else "")
        if what:
            self.problems.add("T-09", f"invalid struct name {name!r}: {what}", line, name)

    def check_names(self, fields: Sequence[Field], struct: str) -> None:
        names: dict[str, Field] = {}
        for field in fields:
            known = names.setdefault(field.attr, field)
            if known is field:
                continue
            if known.name == field.name:
                self.problems.add("E-26", f"duplicate field {field.name} in {struct}", field.line, struct, field.name)
            else:
                what = f"{field.name} and {known.name} of {struct} would be the same attribute"
                self.problems.add("T-09", what, field.line, struct, field.name)

    def check_tags(self, fields: Sequence[Field], struct: str) -> None:
        tags: dict[int, Field] = {}
        for field in fields:
            if field.tag is None:
                continue
            if field.tag in tags:
                what = f"tag {field.tag} is already used by {tags[field.tag].name}"
                self.problems.add("E-25", what, field.line, struct, field.name)
            tags.setdefault(field.tag, field)
        expected = 0
        for tag, field in sorted(tags.items()):
            if tag >= 0 and tag != expected:
                what = f"tag {tag} leaves a gap: the next tag of this struct is {expected}"
                self.problems.add("E-27", what, field.line, struct, field.name)
                return
            expected = tag + 1

    # Fields

    def field(self, node: Node, struct: str, around: Versions, within: tuple[str, ...]) -> Field | None:
        if not isinstance(node.value, dict):
            self.problems.add("E-03", "a field must be an object", node.line, struct)
            return None
        o = Attributes(node, "field", self.problems, struct or None)
        types = self.types_by_version(o)
        type_text = self.type_text(o, types)
        field = self.facts(o, type_text or "")
        if type_text is not None:
            self.check_type(o, field)
            if types is not None or "encoding" in o.members or "varint" in o.text("type"):  # KIP-625
                field = replace(field, encodings=read_encodings(o, field, types, self.dialect))
        self.check_tag(o, field)
        if type_text is None or o.name is None:
            return None
        nested = None if field.type in PRIMITIVES else self.nested(o, field, around, within)
        self.check_flexible(o, field)
        return replace(field, struct=nested, default=_default(o, field))

    def types_by_version(self, o: Attributes) -> Ranges | None:
        """Read a type that is an object (KIP-625); None if it is not an object, empty if it is invalid."""
        node = o.members.get("type")
        return None if node is None or not isinstance(node.value, dict) else read_ranges(o, "type")

    def type_text(self, o: Attributes, types: Ranges | None) -> str | None:
        """Read the type, as `int32` or `[]int32`; None after reporting an error."""
        text = o.text("type").strip() if types is None else widest_type(o, types)
        if text is None:
            return None
        array, element = text[:2] == "[]", text.removeprefix("[]").strip()
        element = TYPE_NAMES.get(element, element)
        if not text:
            o.problem("E-10", "type is missing")
        elif not element:
            o.problem("E-11", "array without an element type")
        elif array and element.startswith("[]"):
            o.problem("E-12", "arrays of arrays are not supported")
        elif element in PRIMITIVES:
            return "[]" * array + element
        elif not element[0].isupper():
            o.problem("E-10", f"unknown type {element!r}; names of structs start with an upper-case letter")
        elif what := wrong_class_name(element):
            o.problem("T-09", f"invalid struct name {element!r}: {what}")
        else:
            return "[]" * array + element
        return None

    def facts(self, o: Attributes, type_text: str) -> Field:
        """Read the attributes that need no other field or struct."""
        tag, tagged = o.integer("tag", 32), o.versions("taggedVersions") or NONE
        if self.dialect == "kip" and tag is not None and o.is_blank("taggedVersions"):
            tagged = self.flexible
        versions = o.versions("versions")
        if o.is_blank("versions") and not tagged:
            o.problem("E-09", "versions and taggedVersions are missing; a field needs one of them")
        return Field(
            name=o.name or "",
            attr=attribute_name(o.name or ""),
            type=type_text.removeprefix("[]"),
            is_array=type_text.startswith("[]"),
            versions=tagged if versions is None else versions,
            nullable=o.versions("nullableVersions") or NONE,
            tag=tag,
            tagged=tagged,
            flexible=None if o.is_blank("flexibleVersions") else o.versions("flexibleVersions"),
            default_text=o.text("default"),
            ignorable=o.flag("ignorable"),
            map_key=o.flag("mapKey"),
            zero_copy=o.flag("zeroCopy"),
            entity_type=o.text("entityType", "unknown"),
            about=o.text("about"),
            line=o.line,
        )

    def check_type(self, o: Attributes, field: Field) -> None:
        is_primitive, has_fields = field.type in PRIMITIVES, bool(o.nodes("fields"))
        if field.nullable and field.type_text in PRIMITIVES and field.type not in ("string", "bytes", "records"):
            o.problem("E-13", f"nullableVersions is not allowed for {field.type}")
        if field.entity_type not in ENTITY_TYPES:
            o.problem("E-14", f"unknown entityType {field.entity_type!r}; expected one of {', '.join(ENTITY_TYPES)}")
        elif (required := ENTITY_TYPES[field.entity_type]) not in (None, field.type):
            o.problem("E-14", f"entityType {field.entity_type} requires type {required}, not {field.type}")
        if has_fields and field.type_text in PRIMITIVES:
            o.problem("E-15", f"fields are not allowed for type {field.type}")
        elif has_fields and is_primitive and self.dialect != "kafka":
            o.problem("T-02", f"fields are not allowed for type []{field.type}")
        no_versions = has_fields and not is_primitive and o.is_blank("versions")
        if no_versions and not (field.tagged and self.dialect != "strict"):
            o.problem("E-04", "versions is missing; a field with nested fields needs it")
        if field.flexible is not None and field.type_text not in ("string", "bytes"):
            o.problem("E-16", "flexibleVersions is allowed only for fields of type string and bytes")
        if field.zero_copy and field.type_text != "bytes":
            o.problem("E-24", "zeroCopy is allowed only for fields of type bytes")
        if field.type == "records" and field.is_array:
            o.problem("E-47", "arrays of records are not supported")
        elif field.type == "records" and field.tag is not None:
            o.problem("E-45", "records cannot be tagged")

    def check_tag(self, o: Attributes, field: Field) -> None:
        if field.tag is None:
            if field.tagged and "tag" not in o.members:
                o.problem("E-20", "taggedVersions without tag")
            return
        if field.map_key:
            o.problem("E-17", "a map key cannot be tagged")
        if field.tag < 0:
            o.problem("E-18", f"tag {field.tag} is negative")
        if not field.tagged:
            if o.is_blank("taggedVersions") or "none" in o.text("taggedVersions"):
                o.problem("E-19", "tag without taggedVersions")
            return
        both = field.tagged.intersect(field.nullable)
        if both and both != field.tagged:
            o.problem(
                "E-21", f"nullableVersions {field.nullable} must include all tagged versions ({field.tagged}) or none"
            )
        if not field.tagged.is_open:
            o.problem("E-22", f"taggedVersions {field.tagged} must be open-ended")
        if not field.versions.covers(field.tagged):
            o.problem("E-23", f"taggedVersions {field.tagged} must be within versions {field.versions}")

    def check_flexible(self, o: Attributes, field: Field) -> None:
        flexible = self.flexible
        if field.flexible is not None:
            if not flexible.covers(field.flexible):
                o.problem("E-43", f"flexibleVersions {field.flexible} must be within the message's, {flexible}")
            flexible = field.flexible
        if field.tag is not None and not flexible.covers(field.tagged):
            o.problem("E-44", f"taggedVersions {field.tagged} must be within flexibleVersions {flexible}")

    def nested(self, o: Attributes, field: Field, around: Versions, within: tuple[str, ...]) -> Struct:
        """Return the struct of a field, without fields after an error that makes them useless."""
        name, effective = field.type, around.intersect(field.versions)
        if not effective and around and (field.versions or name not in self.common):
            o.problem("E-42", f"versions {field.versions} are outside those of {o.struct}, {around}")
        if name in self.common:
            if o.nodes("fields"):
                o.problem("E-32", f"{name} is a common struct; remove the fields here")
            if name in within:
                o.problem("E-36", f"{name} contains itself")
                return Struct(name=name, versions=NONE, fields=())
            if len(within) >= MAX_STRUCT_DEPTH:
                o.problem("E-36", f"structs nested deeper than {MAX_STRUCT_DEPTH} levels")
                return Struct(name=name, versions=NONE, fields=())
            versions = self.common[name][1]
            if not versions.covers(effective):
                o.problem("E-37", f"versions {effective} are outside those of {name}, {versions}")
            return self.use_common(name, within)
        if within:
            o.problem("E-35", f"{name} is not a common struct; fields of common structs can use only those")
            return Struct(name=name, versions=field.versions, fields=())
        if name in self.inline:
            # A struct that contains itself shows as a second definition, too: Kafka has no other check for it.
            known = self.inline[name]
            o.problem("E-33", f"{name} is already defined by {known}; move it to commonStructs to use it twice")
            return Struct(name=name, versions=field.versions, fields=())
        self.inline[name] = field.name
        self.check_class_name(name, o.line)
        return self.structs.setdefault(name, self.struct(o, name, field.versions, effective, within))


def _default(o: Attributes, field: Field) -> Default:
    try:
        default = parse_default(field.default_text, field.type, field.is_array)
    except ValueError as error:
        o.problem("E-46", f"default: {error}")
        return parse_default("", field.type, field.is_array)
    if default is None and field.type != "records" and not field.nullable.covers(field.versions):
        o.problem("E-48", f"default: null needs nullableVersions {field.versions}, not {field.nullable}")
    for versions, name in field.encodings:
        encoding = ENCODINGS[name]
        if isinstance(default, int) and not encoding.smallest <= default <= encoding.largest:
            o.problem("I-23", f"default: {encoding.refusal(str(default))}, in versions {versions}")
    return default


def _count_fields(struct: Struct, known: dict[str, int]) -> int:
    """Count the fields of a struct and of those in it, at each use: codecs and default values grow with them."""
    if struct.name not in known:
        known[struct.name] = sum(1 + _count_fields(f.struct, known) if f.struct else 1 for f in struct.fields)
    return known[struct.name]


# Attributes of the message


def _listeners(o: Attributes, kind: str) -> tuple[str, ...]:
    names = tuple(name for name in map(scalar_text, o.nodes("listeners")) if name is not None)
    if names and kind != "request":
        o.problem("E-30", "listeners are allowed in requests only")
    for name in names:
        if name not in LISTENERS:
            o.problem("E-03", f"unknown listener {name!r}; expected one of {', '.join(LISTENERS)}")
    return names


def _check_coordinator(o: Attributes, message: Message) -> None:
    if message.kind == "coordinator-key":
        if message.api_key is None:
            o.problem("E-60", "apiKey is missing; a coordinator-key needs one")
        if message.valid != Versions(0, 0):
            o.problem("E-60", f"validVersions of a coordinator-key must be 0, not {message.valid}")
        if message.flexible:
            o.problem("E-60", "flexibleVersions of a coordinator-key must be 'none'")
    elif message.kind == "coordinator-value" and message.api_key is None:
        o.problem("E-61", "apiKey is missing; a coordinator-value needs one")


def _header_versions(o: Attributes, kind: str, valid: Versions) -> tuple[tuple[Versions, int], ...]:
    node = o.members.get("headerVersions")
    if node is None:
        return ()
    if not isinstance(node.value, dict):
        o.wrong("headerVersions", "an object")
        return ()
    if kind not in RPC or not valid:
        o.problem("E-63", "headerVersions is allowed only in requests and responses with valid versions", node.line)
        return ()
    ranges: list[tuple[Versions, int]] = []
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
            ranges.append((versions, int(number)))
    if len(ranges) < len(node.value):
        return ()
    ranges.sort(key=lambda item: item[0].lowest)
    _check_header_versions(o, [versions for versions, _ in ranges], valid, node.line)
    if (o.integer("apiKey", 16), kind) == (18, "response") and any(header != 0 for _, header in ranges):
        o.problem("E-65", "headerVersions of an ApiVersions response must all be 0", node.line)
    return tuple(ranges)


def _check_header_versions(o: Attributes, ranges: list[Versions], valid: Versions, line: int) -> None:
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
