"""The attributes of one JSON object of a definition, read by name and type.

An invalid attribute is reported and read as missing, so that all errors of a file are found in one pass.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from kwire.errors import SchemaError
from kwire.schema.json_text import Node, Number
from kwire.schema.names import NAME_RULE, is_name, wrong_class_name
from kwire.schema.versions import Versions

__all__ = ["Attributes", "Dialect", "Problems", "scalar_text"]

Dialect = Literal["strict", "kafka", "kip"]
"""Choice of rules where the README, KIP-482 and Kafka's generator differ.

strict: the rules of this package. kip: the notation of KIP-482 and KIP-625: a tag without ranges is tagged in all
flexible versions (T-08), a tagged struct needs no versions, unsigned32 is upacked32 (I-40). kafka: accepts the
definitions of Kafka's own releases: the last of repeated keys counts (T-01), fields of an array of primitives (T-02)
and text after the object are ignored, flexibleVersions may be absent (before 3.0), and a struct's fields may take their
versions from taggedVersions (before 3.9).
"""

KNOWN: Final = {
    "message": frozenset(
        {
            *("name", "type", "validVersions", "flexibleVersions", "deprecatedVersions", "fields", "apiKey"),
            *("commonStructs", "listeners", "latestVersionUnstable", "headerVersions"),
        }
    ),
    "struct": frozenset({"name", "versions", "deprecatedVersions", "fields"}),
    "field": frozenset(
        {
            *("name", "type", "versions", "fields", "nullableVersions", "default", "ignorable", "mapKey", "entityType"),
            *("about", "tag", "taggedVersions", "flexibleVersions", "zeroCopy", "encoding"),
        }
    ),
}
"""Kinds of objects, with the attributes of each."""

_INTEGER = re.compile(r"[+-]?[0-9]{1,12}\Z")


class Problems:
    """The errors of one file, in the order found."""

    def __init__(self, file: str | None) -> None:
        self.file = file
        self.errors: list[SchemaError] = []

    def add(self, rule: str, what: str, line: int, struct: str | None = None, name: str | None = None) -> None:
        """Add an error; line 0 is unknown."""
        where = f" (line {line})" if line else ""
        self.errors.append(SchemaError(what + where, rule, self.file, struct, name))


class Attributes:
    """The attributes of one object. kind: a key of KNOWN.

    struct, name: the place in errors. Of a field, its struct and its name; of a struct or message, its name and None.
    """

    def __init__(self, node: Node, kind: str, problems: Problems, struct: str | None = None) -> None:
        assert isinstance(node.value, dict)
        self.line, self.problems, self.struct = node.line, problems, struct
        self.members = {k: v for k, v in node.value.items() if v.value is not None}
        self.name: str | None = None
        name = self.text("name", "")
        if kind == "field":
            self.name = name or None
        else:
            self.struct = name or None
        for unknown in node.value.keys() - KNOWN[kind]:
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
        """Add an error about this object. line: of the object by default."""
        self.problems.add(rule, what, self.line if line is None else line, self.struct, self.name)

    def wrong(self, attribute: str, wanted: str) -> None:
        """Report the wrong type of an attribute."""
        self.problem("E-03", f"{attribute} must be {wanted}", self.members[attribute].line)

    def text(self, attribute: str, default: str = "") -> str:
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
        text = self.text(attribute).strip()
        if not _INTEGER.match(text) or isinstance(self.members[attribute].value, bool):
            self.wrong(attribute, "an integer")
            return None
        value = int(text)
        largest = (1 << bits - 1) - 1
        if not ~largest <= value <= largest:
            self.wrong(attribute, f"at most {largest}" if value > 0 else f"at least {~largest}")
            return None
        return value

    def versions(self, attribute: str) -> Versions | None:
        """Read a version range; None if missing, blank or invalid."""
        text = self.text(attribute).strip()
        if not text:
            return None
        try:
            return Versions.parse(text)
        except ValueError as error:
            self.problem("E-07", f"{attribute}: {error}", self.members[attribute].line)
            return None

    def is_blank(self, attribute: str) -> bool:
        """Whether the attribute is missing or blank; an invalid range is neither."""
        return not self.text(attribute).strip()

    def nodes(self, attribute: str) -> list[Node]:
        """Return the elements of a list; a single value is a list of one."""
        node = self.members.get(attribute)
        if node is None:
            return []
        return node.value if isinstance(node.value, list) else [node]


def scalar_text(node: Node) -> str | None:
    """Return a string, number or boolean as text; None for anything else."""
    if isinstance(node.value, Number):
        return node.value.text
    if isinstance(node.value, bool):
        return "true" if node.value else "false"
    return node.value if isinstance(node.value, str) else None
