""".proto files as objects. The syntax is proto-schema-parser's; names, presence and packing are resolved here."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from kwire.errors import InvalidSchema
from kwire.extras import needing
from kwire.schemas.protobuf.descriptors import DescriptorReader, is_descriptor
from kwire.schemas.protobuf.model import SCALARS, Enum, Field, File, Message
from kwire.schemas.protobuf.source_text import simplify
from kwire.schemas.protobuf.well_known import FILES

if TYPE_CHECKING:
    from proto_schema_parser import ast

__all__ = ["parse"]

MAX_TEXT_CHARACTERS = 4 << 20
MAX_CPU_S = 20
"""Of a file and its imports. The parser takes 10 us for a byte, 200 for some; those of 200 KB take 2 s."""
MAX_NESTED_BRACES = 100
MAX_FIELD_NUMBER = (1 << 29) - 1
UNPACKED = ("string", "bytes", "message", "group")


def parse(text: str, references: Mapping[str, str] | None = None) -> File:
    """Parse a .proto file, or its serialized descriptor in base64.

    references: the texts of imported files, directly and through others, by name. Raises InvalidSchema.
    """
    texts = dict(references or {})
    parsed: dict[str, ast.File] = {}
    deadline = time.thread_time() + MAX_CPU_S
    root = _parse_text(text, None, deadline)
    wanted: list[tuple[str, str | None]] = [(name, None) for name in _imports(root)]
    while wanted:
        name, importer = wanted.pop()
        if name in parsed:
            continue
        source = texts.get(name, FILES.get(name))
        if source is None:
            raise InvalidSchema(f"import '{name}'{f' of {importer}' if importer else ''}: no reference has this name")
        parsed[name] = _parse_text(source, name, deadline)
        wanted += [(each, name) for each in _imports(parsed[name])]
    types: dict[str, Message | Enum] = {}
    files = [_FileBuilder(each, types) for each in parsed.values()]
    builder = _FileBuilder(root, types)
    for each in (*files, builder):
        each.resolve()
    return File(messages=builder.messages, types=types)


def _parse_text(text: str, name: str | None, deadline: float) -> ast.File:
    with needing("Protobuf schemas"):
        from antlr4 import ParserRuleContext, ParseTreeListener
        from antlr4.error.ErrorListener import ErrorListener
        from proto_schema_parser.parser import Parser

    class Listener(ErrorListener):  # type: ignore[misc]  # antlr4 has no types
        def syntaxError(  # noqa: N802
            self, recognizer: object, symbol: object, line: int, column: int, message: str, error: object
        ) -> NoReturn:
            raise InvalidSchema(f"{where}line {line}, column {column + 1}: {message[:200]}")

    class Clock(ParseTreeListener):  # type: ignore[misc]
        def enterEveryRule(self, context: ParserRuleContext) -> None:  # noqa: N802
            if time.thread_time() > deadline:
                raise InvalidSchema(
                    f"{where}line {context.start.line}: parsing takes more than {MAX_CPU_S} s; register the serialized "
                    "descriptor in place of the text"
                )

    def listen(recognizer: Any) -> None:
        recognizer.removeErrorListeners()
        recognizer.addErrorListener(Listener())

    def listen_in_time(recognizer: Any) -> None:
        listen(recognizer)
        recognizer.addParseListener(Clock())

    where = f"{name}: " if name else ""
    if len(text) > MAX_TEXT_CHARACTERS:
        raise InvalidSchema(f"{where}{len(text)} characters, the limit is {MAX_TEXT_CHARACTERS}")
    if is_descriptor(text):
        return DescriptorReader(parse).read(text)
    text = simplify(text)
    depth = deepest = 0
    for character in text:
        depth += (character in "{[<(") - (character in "}]>)")
        deepest = max(deepest, depth)
    if deepest > MAX_NESTED_BRACES:
        raise InvalidSchema(f"{where}nested {deepest} deep, the limit is {MAX_NESTED_BRACES}")
    try:
        return Parser(setup_lexer=listen, setup_parser=listen_in_time).parse(text)
    except InvalidSchema:
        raise
    except (RecursionError, ValueError, AttributeError, TypeError, KeyError, IndexError) as error:
        raise InvalidSchema(f"{where}cannot be parsed: {error}") from None


def _imports(file: ast.File) -> Iterator[str]:
    from proto_schema_parser import ast

    return (each.name for each in file.file_elements if isinstance(each, ast.Import))


class _FileBuilder:
    """Builds the messages of one file: first all names, then their fields."""

    def __init__(self, file: ast.File, types: dict[str, Message | Enum]) -> None:
        from proto_schema_parser import ast

        self.types = types
        self.syntax = file.edition or file.syntax or "proto2"
        self.features = _features(file.file_elements)
        packages = [each.name for each in file.file_elements if isinstance(each, ast.Package)]
        self.package = packages[0] if packages else ""
        self.pending: list[tuple[Message, list[Any]]] = []
        self.messages = [m for each in file.file_elements if (m := self._declare(each, self.package)) is not None]

    def _declare(self, element: object, scope: str) -> Message | None:
        """Add a message or enum, and what is inside of it, to the types."""
        from proto_schema_parser import ast

        if isinstance(element, ast.Extension):
            for extension in element.elements:
                self._declare(extension, scope)
            return None
        if isinstance(element, ast.OneOf):
            for member in element.elements:
                self._declare(member, scope)
            return None
        if not isinstance(element, ast.Message | ast.Enum | ast.Group):
            return None
        name = f"{scope}.{element.name}" if scope else element.name
        if name in self.types:
            raise InvalidSchema(f"'{name}' is defined twice")
        if isinstance(element, ast.Enum):
            values = [each for each in element.elements if isinstance(each, ast.EnumValue)]
            numbers = {each.name: each.number for each in values}
            self.types[name] = Enum(
                name=name, numbers=numbers, names={number: text for text, number in reversed(numbers.items())}
            )
            return None
        message = Message(name=name)
        self.types[name] = message
        self.pending.append((message, element.elements))
        nested = [self._declare(each, name) for each in element.elements]
        message.nested = [each for each in nested if each is not None]
        return message

    def resolve(self) -> None:
        """Give all messages their fields."""
        for message, elements in self.pending:
            fields = list(self._fields(message, elements, None))
            for name, values in (("number", [f.number for f in fields]), ("name", [f.name for f in fields])):
                if (twice := _repeated(values)) is not None:
                    raise InvalidSchema(f"two fields have the {name} {twice}", path=(message.name,))
            message.fields = tuple(fields)

    def _fields(self, message: Message, elements: list[Any], oneof: str | None) -> Iterator[Field]:
        from proto_schema_parser import ast

        for each in elements:
            if isinstance(each, ast.OneOf):
                yield from self._fields(message, each.elements, each.name)
            elif isinstance(each, ast.Field | ast.MapField | ast.Group):
                if not 1 <= each.number <= MAX_FIELD_NUMBER:
                    raise InvalidSchema(f"field number {each.number} is not valid", path=(message.name, each.name))
                yield self._map(message, each) if isinstance(each, ast.MapField) else self._field(message, each, oneof)

    def _field(self, message: Message, given: ast.Field | ast.Group, oneof: str | None) -> Field:
        from proto_schema_parser import ast

        name, type_name, options = given.name, given.name, list[ast.Option]()
        if isinstance(given, ast.Field):
            type_name, options = given.type, given.options
        else:
            name = name.lower()
        made = Field(name=name, number=given.number, type="", oneof=oneof)
        self._set_type(made, type_name, message.name, (message.name, made.name))
        features = self.features | _features(options)
        is_delimited = made.type == "message" and features.get("message_encoding") == "DELIMITED"
        if isinstance(given, ast.Group) or is_delimited:
            made.type = "group"
        if given.cardinality == ast.FieldCardinality.REPEATED:
            made.shape = "list"
            made.packed = self._is_packed(made, options, features)
        else:
            made.has_presence = self._has_presence(made, given, features)
        return made

    def _has_presence(self, made: Field, given: ast.Field | ast.Group, features: dict[str, str]) -> bool:
        if made.type in ("message", "group") or made.oneof is not None or self.syntax == "proto2":
            return True
        if self.syntax == "proto3":
            return given.cardinality is not None
        return features.get("field_presence") != "IMPLICIT"

    def _is_packed(self, made: Field, options: list[ast.Option], features: dict[str, str]) -> bool:
        if made.type in UNPACKED:
            return False
        packed = _option(options, "packed")
        if packed is not None:
            return packed == "True"
        return self.syntax != "proto2" and features.get("repeated_field_encoding") != "EXPANDED"

    def _map(self, message: Message, given: ast.MapField) -> Field:
        path = (message.name, given.name)
        key = Field(name="key", number=1, type=given.key_type)
        value = Field(name="value", number=2, type="")
        self._set_type(value, given.value_type, message.name, path)
        entry = Message(name=f"{message.name}.{given.name}", fields=(key, value))
        return Field(name=given.name, number=given.number, type="message", shape="map", message=entry)

    def _set_type(self, made: Field, name: str, scope: str, path: tuple[str, ...]) -> None:
        if name in SCALARS:
            made.type = name
            return
        definition = self._find(name, scope)
        if definition is None:
            raise InvalidSchema(f"unknown type '{name}'", path=path)
        if isinstance(definition, Enum):
            made.type, made.enum = "enum", definition
        else:
            made.type, made.message = "message", definition

    def _find(self, name: str, scope: str) -> Message | Enum | None:
        """Look a type up in the scopes around it, from the innermost one."""
        if name.startswith("."):
            return self.types.get(name[1:])
        while True:
            definition = self.types.get(f"{scope}.{name}" if scope else name)
            if definition is not None or not scope:
                return definition
            scope = scope.rpartition(".")[0]


def _repeated(values: list[Any]) -> Any:
    """Return the first value that occurs more than once, or None."""
    return next((each for each, count in Counter(values).items() if count > 1), None)


def _option(options: list[Any], name: str) -> str | None:
    """Return the text of an option's value."""
    from proto_schema_parser import ast

    for each in options:
        if isinstance(each, ast.Option) and each.name == name:
            return str(each.value)
    return None


def _features(options: list[Any]) -> dict[str, str]:
    """Return the features of editions that a file or field sets, one by one or as a message."""
    from proto_schema_parser import ast

    features = dict[str, str]()
    for each in options:
        if not isinstance(each, ast.Option):
            continue
        if each.name.startswith("features.") and isinstance(each.value, ast.Identifier):
            features[each.name.removeprefix("features.")] = each.value.name
        elif each.name == "features" and isinstance(each.value, ast.MessageLiteral):
            for part in each.value.elements:
                if isinstance(part, ast.MessageLiteralField) and isinstance(part.value, ast.Identifier):
                    features[part.name] = part.value.name
    return features
