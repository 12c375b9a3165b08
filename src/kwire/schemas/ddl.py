"""Spark's DDL as Arrow types, and back: `id BIGINT, lines ARRAY<STRUCT<sku: STRING>>`. Needs no Spark."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyarrow as pa

from kwire.errors import OptionError, did_you_mean

__all__ = ["ddl_of", "parse_ddl", "parse_type"]

MAX_DEPTH = 50
MAX_PRECISION = 38
SIMPLE = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
    "TIMESTAMP_NTZ": pa.timestamp("us"),
}
SYNONYMS = {
    "BYTE": "TINYINT",
    "SHORT": "SMALLINT",
    "INTEGER": "INT",
    "LONG": "BIGINT",
    "REAL": "FLOAT",
    "TIMESTAMP_LTZ": "TIMESTAMP",
}
NESTED = ("ARRAY", "MAP", "STRUCT")
NAMES = {kind: name for name, kind in SIMPLE.items()}
TOKEN = re.compile(r"\s*(?:(`(?:[^`]|``)+`)|(\w+)|('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")|(.))", re.DOTALL)
PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def parse_ddl(text: str) -> pa.StructType:
    """Return the struct of a list of columns, or of one STRUCT<...>. Raises OptionError that says where it is wrong."""
    parser = _Parser(text)
    if parser.is_struct():
        kind = parser.type(0)
    else:
        kind = pa.struct(parser.fields("", 0))
    parser.end()
    return kind


def parse_type(text: str) -> pa.DataType:
    """Return a single type, such as array<struct<name:string>>. Raises OptionError."""
    parser = _Parser(text)
    kind = parser.type(0)
    parser.end()
    return kind


def ddl_of(kind: pa.DataType) -> str:
    """Return a type as DDL; a struct as a list of columns. Raises OptionError for a type that SIMPLE does not have."""
    if pa.types.is_struct(kind):
        return ", ".join(f"{_quoted(field.name)} {_type_ddl(field.type)}" for field in kind)
    return _type_ddl(kind)


def _type_ddl(kind: pa.DataType) -> str:
    if pa.types.is_struct(kind):
        return f"STRUCT<{', '.join(f'{_quoted(field.name)}: {_type_ddl(field.type)}' for field in kind)}>"
    if pa.types.is_list(kind):
        return f"ARRAY<{_type_ddl(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"MAP<{_type_ddl(kind.key_type)}, {_type_ddl(kind.item_type)}>"
    if pa.types.is_decimal128(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if kind not in NAMES:
        raise OptionError(f"{kind}: has no name in DDL")
    return NAMES[kind]


def _quoted(name: str) -> str:
    if PLAIN_NAME.fullmatch(name):
        return name
    escaped = name.replace("`", "``")
    return f"`{escaped}`"


@dataclass(slots=True, frozen=True)
class _Token:
    """A name (quoted or not), a text in quotes, or one other character. kind: quoted, word, text, sign or end."""

    kind: str
    text: str
    at: int


class _Parser:
    """Recursive descent; `position` is that of the next token."""

    def __init__(self, text: str) -> None:
        self._tokens = []
        for found in TOKEN.finditer(text.rstrip()):
            kind = ("quoted", "word", "text", "sign")[(found.lastindex or 1) - 1]
            self._tokens.append(_Token(kind, found[found.lastindex or 1], found.start(found.lastindex or 1)))
        self._tokens.append(_Token("end", "the end", len(text)))
        self._next = 0

    @property
    def token(self) -> _Token:
        """The next token."""
        return self._tokens[self._next]

    def is_struct(self) -> bool:
        """Return whether the text begins with STRUCT<, and not with a column of that name."""
        first, second = self._tokens[0], self._tokens[min(1, len(self._tokens) - 1)]
        return first.kind == "word" and first.text.upper() == "STRUCT" and second.text == "<"

    def end(self) -> None:
        """Raise OptionError unless all is read."""
        if self.token.kind != "end":
            raise self._fault("',' or the end")

    def fields(self, close: str, depth: int) -> list[pa.Field]:
        """Read columns or fields up to a closing bracket, which is not read; "" for the end."""
        fields: dict[str, pa.Field] = {}
        while True:
            token = self.token
            name = self._name()
            if name in fields:
                raise OptionError(f"DDL: the name '{name}' is there twice, at character {token.at + 1}")
            self._skip(":")
            fields[name] = pa.field(name, self.type(depth))
            self._field_options(name)
            if self._skip(","):
                continue
            if (close and self.token.text == close) or (not close and self.token.kind == "end"):
                return list(fields.values())
            raise self._fault(f"',' or '{close}'" if close else "',' or the end")

    def type(self, depth: int) -> pa.DataType:
        """Read a type."""
        if depth > MAX_DEPTH:
            raise OptionError(f"DDL: nested more than {MAX_DEPTH} deep, at character {self.token.at + 1}")
        token = self.token
        if token.kind != "word":
            raise self._fault("a type")
        self._next += 1
        name = token.text.upper()
        name = SYNONYMS.get(name, name)
        if name in SIMPLE:
            return SIMPLE[name]
        if name in ("DECIMAL", "DEC", "NUMERIC"):
            return self._decimal()
        if name not in NESTED:
            hint = did_you_mean(name, [*SIMPLE, *NESTED, "DECIMAL"])
            raise OptionError(f"DDL: the type '{token.text}' is not supported{hint}, at character {token.at + 1}")
        self._expect("<")
        if name == "STRUCT":
            kind: pa.DataType = pa.struct(self.fields(">", depth + 1))
        elif name == "ARRAY":
            kind = pa.list_(pa.field("element", self.type(depth + 1)))  # what Spark calls it
        else:
            key = self.type(depth + 1)
            self._expect(",")
            kind = pa.map_(key, self.type(depth + 1))
        self._expect(">")
        return kind

    def _decimal(self) -> pa.DataType:
        """Read precision and scale, which are 10 and 0 by default."""
        at = self.token.at
        numbers = [10, 0]
        if self._skip("("):
            numbers = [self._number(), 0]
            if self._skip(","):
                numbers[1] = self._number()
            self._expect(")")
        precision, scale = numbers
        if not 1 <= precision <= MAX_PRECISION or scale > precision:
            raise OptionError(
                f"DDL: DECIMAL({precision}, {scale}): expected a precision from 1 to {MAX_PRECISION}, and a scale "
                f"up to the precision, at character {at + 1}"
            )
        return pa.decimal128(precision, scale)

    def _number(self) -> int:
        token = self.token
        if token.kind != "word" or not token.text.isdecimal() or len(token.text) > MAX_PRECISION:
            raise self._fault("a number")
        self._next += 1
        return int(token.text)

    def _name(self) -> str:
        token = self.token
        if token.kind not in ("word", "quoted"):
            raise self._fault("a name (in backquotes, unless it has only letters, digits and _)")
        self._next += 1
        return token.text[1:-1].replace("``", "`") if token.kind == "quoted" else token.text

    def _field_options(self, name: str) -> None:
        if self.token.kind == "word" and self.token.text.upper() == "NOT":
            raise OptionError(
                f"DDL: '{name}': NOT NULL is not supported: what is missing in a value is null; leave it out"
            )
        if self.token.kind == "word" and self.token.text.upper() == "COMMENT":
            self._next += 1
            if self.token.kind != "text":
                raise self._fault("a comment in quotes")
            self._next += 1

    def _skip(self, sign: str) -> bool:
        found = self.token.kind == "sign" and self.token.text == sign
        self._next += found
        return found

    def _expect(self, sign: str) -> None:
        if not self._skip(sign):
            raise self._fault(f"'{sign}'")

    def _fault(self, expected: str) -> OptionError:
        got = self.token.text if self.token.kind == "end" else f"'{self.token.text[:40]}'"
        return OptionError(f"DDL: expected {expected}, got {got}, at character {self.token.at + 1}")
