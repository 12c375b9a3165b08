"""JSON with `//` and `/* */` comments, and the line of every value.

The standard parser supports neither comments nor lines, which error messages need. Numbers stay text: the language
accepts a number where a string is expected, and Python refuses very long ones.
Source: the Jackson settings of org.apache.kafka.message.MessageGenerator.
"""

from __future__ import annotations

import json
import re

import msgspec

MAX_DEPTH = 100
"""Maximum nesting; the deepest real definition has 11 levels."""

_TOKEN = re.compile(
    r"""
      (?P<blank>[\x20\t\r\n]+)
    | (?P<comment>//[^\n]*|/\*.*?\*/)
    | (?P<string>"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")
    | (?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![0-9A-Za-z_.+-]))
    | (?P<word>(?:true|false|null)\b)
    | (?P<mark>[{}\[\]:,])
    """,
    re.VERBOSE | re.DOTALL,
)


class JsonTextError(ValueError):
    """The text is not JSON. line: from 1. repeated: the duplicate key, if that is the error."""

    def __init__(self, what: str, line: int, repeated: str | None = None) -> None:
        super().__init__(what)
        self.line, self.repeated = line, repeated


class Node(msgspec.Struct, frozen=True):
    """A JSON value and its line. value: dict, list, str (a string), bool, None; a number is a Number."""

    value: dict[str, Node] | list[Node] | str | bool | Number | None
    line: int


class Number(msgspec.Struct, frozen=True):
    """A JSON number as written in the file."""

    text: str


def read_json_text(text: str, lenient: bool = False) -> Node:
    """Parse the value in text. Raises JsonTextError: not JSON, text after the value, duplicate key, nesting too deep.

    lenient: ignore text after the value; the last of several duplicate keys counts.
    """
    scanner = _Scanner(text, lenient)
    node = scanner.value(0)
    if not lenient and scanner.next()[0]:
        line = scanner.line
        raise JsonTextError("text after the end of the definition", line)
    return node


class _Scanner:
    def __init__(self, text: str, lenient: bool) -> None:
        self.lenient = lenient
        self.text, self.pos, self.line = text.removeprefix("\ufeff"), 0, 1
        self.ahead: tuple[str, str, int] | None = None

    def next(self) -> tuple[str, str, int]:
        """The next token as (kind, text, line); kind is empty at the end."""
        if self.ahead is not None:
            token, self.ahead = self.ahead, None
            return token
        while self.pos < len(self.text):
            match = _TOKEN.match(self.text, self.pos)
            if match is None:
                raise JsonTextError(f"not JSON: {self.text[self.pos : self.pos + 20].splitlines()[0]!r}", self.line)
            kind, text, line = match.lastgroup or "", match.group(), self.line
            self.pos = match.end()
            self.line += text.count("\n")
            if kind not in ("blank", "comment"):
                return kind, text, line
        return "", "", self.line

    def value(self, depth: int) -> Node:
        kind, token, line = self.next()
        if depth > MAX_DEPTH:
            raise JsonTextError(f"nested deeper than {MAX_DEPTH} levels", line)
        if kind == "string":
            return Node(json.loads(token), line)
        if kind == "number":
            return Node(Number(token), line)
        if kind == "word":
            return Node({"true": True, "false": False, "null": None}[token], line)
        if token == "{":
            return Node(self.members(depth), line)
        if token == "[":
            return Node(self.elements(depth), line)
        raise self.unexpected("a value", token, line)

    def members(self, depth: int) -> dict[str, Node]:
        members: dict[str, Node] = {}
        if self.closes("}"):
            return members
        while True:
            kind, token, line = self.next()
            if kind != "string":
                raise self.unexpected("a name in double quotes", token, line)
            name = json.loads(token)
            if self.next()[1] != ":":
                raise JsonTextError(f"expected a colon after {token}", line)
            if name in members and not self.lenient:
                raise JsonTextError(f"duplicate key {token}", line, repeated=name)
            members[name] = self.value(depth + 1)
            if self.ends("}"):
                return members

    def elements(self, depth: int) -> list[Node]:
        elements: list[Node] = []
        if self.closes("]"):
            return elements
        while True:
            elements.append(self.value(depth + 1))
            if self.ends("]"):
                return elements

    def closes(self, mark: str) -> bool:
        token = self.next()
        if token[1] == mark and token[0] == "mark":
            return True
        self.ahead = token
        return False

    def ends(self, mark: str) -> bool:
        kind, token, line = self.next()
        if kind == "mark" and token in (mark, ","):
            return token == mark
        raise self.unexpected(f"a comma or {mark!r}", token, line)

    def unexpected(self, wanted: str, actual: str, line: int) -> JsonTextError:
        """Return the error for a token, or for the end of the text."""
        where = f"before {actual!r}" if actual else "at the end of the file"
        return JsonTextError(f"expected {wanted} {where}", line)
