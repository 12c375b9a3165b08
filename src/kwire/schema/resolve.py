"""Resolve declarations into the model: look up structs, clip versions, parse defaults, check whole-message rules.

Rules E-31 to E-48. The effective versions of a struct are those that it and all enclosing structs have.
Source: org.apache.kafka.message.StructRegistry, SchemaGenerator, MessageDataGenerator, VersionConditional.
"""

from __future__ import annotations

from collections.abc import Callable

from kwire.schema.declarations import FieldText, MessageText, Problems, StructText
from kwire.schema.defaults import parse_default
from kwire.schema.model import Default, Field, Message, Struct
from kwire.schema.names import attribute_name
from kwire.schema.versions import NONE, Versions
from kwire.wire.integer_encoding import ENCODINGS

_Report = Callable[[str, str], None]

MAX_STRUCT_DEPTH = 100
MAX_FIELDS = 100_000
"""Fields of a message with every struct written out at each of its uses; the largest real one has 200."""

# Attributes of every message class; a struct of such a name would hide them.
TAKEN = frozenset({"API_KEY", "DEFINITION", "FLEXIBLE_VERSIONS", "FORMER_NAMES", "MAP_KEYS", "SPEC", "VALID_VERSIONS"})


def resolve(text: MessageText, problems: Problems) -> Message:
    """Return the model of a definition; with errors, the valid part of it."""
    return _Resolver(text, problems).message()


class _Resolver:
    def __init__(self, text: MessageText, problems: Problems) -> None:
        self.text, self.problems = text, problems
        self.common: dict[str, StructText] = {}
        self.inline: dict[str, FieldText] = {}
        self.built: dict[str, Struct] = {}

    def message(self) -> Message:
        text = self.text
        for struct in text.common:
            self.register(struct)
        root = self.struct_of(text.name, text.valid, text.fields, text.valid, within=())
        for struct in text.common:  # those that nothing uses get a class and their checks, too
            if struct.name not in self.built and self.common[struct.name] is struct:
                self.use_common(struct, ())
        self.top_level_rules()
        if self.written_out(root, {}) > MAX_FIELDS:
            what = f"more than {MAX_FIELDS} fields, counting each struct at every use"
            self.problems.add("E-36", what, text.line, text.name)
        common = [s for s in self.built.values() if s.is_common]
        inline = [s for s in self.built.values() if not s.is_common]
        return Message(
            name=text.name,
            kind=text.kind,
            api_key=text.api_key,
            valid=text.valid,
            flexible=text.flexible,
            deprecated=text.deprecated,
            struct=root,
            structs=(*common, *inline),
            listeners=text.listeners,
            latest_version_unstable=text.latest_version_unstable,
            header_versions=text.header_versions,
            file=self.problems.file,
        )

    def written_out(self, struct: Struct, known: dict[str, int]) -> int:
        """Fields of a struct and of those in it, counted at each use: what codecs and default values grow with."""
        if struct.name not in known:
            known[struct.name] = sum(1 + self.written_out(f.struct, known) if f.struct else 1 for f in struct.fields)
        return known[struct.name]

    def register(self, struct: StructText) -> None:
        if "a" <= struct.name[0] <= "z":  # T-09 has been reported of what is not a letter
            self.problems.add("E-31", "names of structs start with an upper-case letter", struct.line, struct.name)
        if struct.name in self.common:
            self.problems.add("E-34", f"duplicate common struct {struct.name}", struct.line, struct.name)
        self.check_class_name(struct.name, struct.line)
        self.common.setdefault(struct.name, struct)

    def check_class_name(self, name: str, line: int) -> None:
        if name in (self.text.name, f"{self.text.name}Data"):
            self.problems.add(
                "T-09", f"invalid struct name {name!r}: it is the name of the message's class", line, name
            )
        elif name in TAKEN:
            self.problems.add(
                "T-09", f"invalid struct name {name!r}: every message class has this attribute", line, name
            )

    def top_level_rules(self) -> None:
        text = self.text
        if text.valid.is_open:
            self.problems.add("E-40", f"validVersions {text.valid} must have an upper bound", text.line, text.name)
        for item in text.fields:
            if item.map_key:
                what = "mapKey is allowed only in structs of an array, not in the message itself"
                self.problems.add("E-41", what, item.line, text.name, item.name)

    def struct_of(
        self, name: str, versions: Versions, fields: list[FieldText], around: Versions, within: tuple[str, ...]
    ) -> Struct:
        """Build a struct. around: its effective versions; within: common structs that are being built."""
        if versions and not around:
            around = versions  # an error already reported; do not report it for each field inside
        built = tuple(self.field(item, name, around, within) for item in fields)
        return Struct(name=name, versions=versions, fields=built, is_common=bool(within) and within[-1] == name)

    def field(self, item: FieldText, struct: str, around: Versions, within: tuple[str, ...]) -> Field:
        def problem(rule: str, what: str) -> None:
            self.problems.add(rule, what, item.line, struct, item.name)

        nested = self.nested(item, struct, around, within, problem) if item.is_struct else None
        flexible = self.text.flexible
        if item.flexible is not None:
            if not flexible.covers(item.flexible):
                problem("E-43", f"flexibleVersions {item.flexible} must be within the message's, {flexible}")
            flexible = item.flexible
        if item.tag is not None and not flexible.covers(item.tagged):
            problem("E-44", f"taggedVersions {item.tagged} must be within flexibleVersions {flexible}")
        if item.type == "records" and item.is_array:
            problem("E-47", "arrays of records are not supported")
        elif item.type == "records" and item.tag is not None:
            problem("E-45", "records cannot be tagged")
        return Field(
            name=item.name,
            attr=attribute_name(item.name),
            type=item.type,
            is_array=item.is_array,
            struct=nested,
            versions=item.versions,
            nullable=item.nullable,
            tag=item.tag,
            tagged=item.tagged,
            flexible=item.flexible,
            default=self.default(item, problem),
            ignorable=item.ignorable,
            map_key=item.map_key,
            entity_type=item.entity_type,
            zero_copy=item.zero_copy,
            encodings=item.encodings,
            about=item.about,
        )

    def default(self, item: FieldText, problem: _Report) -> Default:
        try:
            default = parse_default(item.default, item.type, item.is_array)
        except ValueError as error:
            problem("E-46", f"default: {error}")
            return parse_default("", item.type, item.is_array)
        if default is None and item.type != "records" and not item.nullable.covers(item.versions):
            problem("E-48", f"default: null needs nullableVersions {item.versions}, not {item.nullable}")
        for versions, name in item.encodings:
            encoding = ENCODINGS[name]
            if isinstance(default, int) and not encoding.smallest <= default <= encoding.largest:
                problem("I-23", f"default: {encoding.refusal(str(default))}, in versions {versions}")
        return default

    def nested(
        self, item: FieldText, struct: str, around: Versions, within: tuple[str, ...], problem: _Report
    ) -> Struct:
        effective = around.intersect(item.versions)
        if not effective and around and item.versions:
            problem("E-42", f"versions {item.versions} are outside those of {struct}, {around}")
        if item.type in self.common:
            if item.fields:
                problem("E-32", f"{item.type} is a common struct; remove the fields here")
            if item.type in within:
                problem("E-36", f"{item.type} contains itself")
                return Struct(name=item.type, versions=NONE, fields=())
            if len(within) >= MAX_STRUCT_DEPTH:
                problem("E-36", f"structs nested deeper than {MAX_STRUCT_DEPTH} levels")
                return Struct(name=item.type, versions=NONE, fields=())
            common = self.common[item.type]
            if not common.versions.covers(effective):
                problem("E-37", f"versions {effective} are outside those of {item.type}, {common.versions}")
            return self.use_common(common, within)
        if within:
            problem("E-35", f"{item.type} is not a common struct; fields of common structs can use only those")
            return Struct(name=item.type, versions=item.versions, fields=())
        known = self.inline.setdefault(item.type, item)
        if known is not item:
            # A struct that holds itself shows as a second definition, too: Kafka has no other test for it.
            problem("E-33", f"{item.type} is already defined by {known.name}; move it to commonStructs to use it twice")
            return Struct(name=item.type, versions=item.versions, fields=())
        self.check_class_name(item.type, item.line)
        built = self.struct_of(item.type, item.versions, item.fields, effective, within)
        # A struct goes behind those inside it, so that each class is defined after those it uses.
        return self.built.setdefault(item.type, built)

    def use_common(self, struct: StructText, within: tuple[str, ...]) -> Struct:
        known = self.built.get(struct.name)
        if known is not None:
            return known
        around = struct.versions.intersect(self.text.valid)
        built = self.struct_of(struct.name, struct.versions, struct.fields, around, (*within, struct.name))
        return self.built.setdefault(struct.name, built)
