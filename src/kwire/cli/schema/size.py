"""`kwire schema size`: the minimum size of a message, or its size with given values, by field."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kwire.cli import terminal
from kwire.cli.codec import read_input
from kwire.cli.command import FINE
from kwire.cli.options import Dialect, DialectOption, FormatOption, MessageName, Release
from kwire.cli.rows import Column, Format, Row, write_rows
from kwire.cli.schema.definitions import message_of
from kwire.errors import EncodeError
from kwire.wire.integer_encoding import ENCODINGS, FORMS

if TYPE_CHECKING:
    from kwire.plan.notes import FieldBytes
    from kwire.schema import Message, Struct

__all__ = ["cost_of", "size"]

Values = Annotated[
    str | None, typer.Argument(metavar="JSON|-", help="File with values as Kafka's JSON; - is standard input.")
]
Version = Annotated[
    int | None, typer.Option("--version", metavar="N", help="This version only; with values, by field.")
]


def size(
    name: MessageName,
    values: Values = None,
    version: Version = None,
    kafka: Release = None,
    dialect: DialectOption = Dialect.STRICT,
    format: FormatOption = Format.TABLE,
) -> int:
    """Show the minimum size of a message in each version, and the minimum size of array elements.

    With values: the size of that message in each version; with --version, the bytes of each field, and of its integers
    in the other encodings of KIP-625.
    """
    message = message_of(name, kafka, dialect, version)
    if values is None:
        versions = message.valid if version is None else [version]
        write_rows((_smallest_row(message, each) for each in versions), SMALLEST, format)
        return FINE
    try:
        content = json.loads(read_input(values))
    except ValueError as error:
        raise EncodeError(f"{values}: not JSON: {error}") from None
    if version is None:
        write_rows((_version_row(message, each, content) for each in message.valid), VERSIONS, format)
        return FINE
    rows, total = _field_rows(message, version, content)
    write_rows(rows, FIELDS, format)
    if format is Format.TABLE:
        terminal.warn(f"{message.name} version {version}: {total} bytes")
    return FINE


# Minimum sizes

SMALLEST = (
    Column(key="version", heading="VERSION", right=True),
    Column(key="header_bytes", heading="HEADER", right=True),
    Column(key="bytes", heading="BODY", right=True),
    Column(
        heading="EACH ELEMENT ADDS",
        pick=lambda row: ", ".join(f"{path} {size}" for path, size in row["elements"].items()) or None,
    ),
)


def _smallest_row(message: Message, version: int) -> Row:
    from kwire.schema.wire_size import smallest_message

    row: dict[str, Any] = {"name": message.name, "version": version, "bytes": smallest_message(message, version)}
    row["header_bytes"] = _header_bytes(message, version)
    row["elements"] = dict(_elements(message, message.struct, version, ""))
    return row


def _header_bytes(message: Message, version: int) -> int | None:
    from kwire.messages import RequestHeader, ResponseHeader
    from kwire.schema.wire_size import smallest_message

    if message.kind not in ("request", "response"):
        return None
    header = RequestHeader.SPEC if message.kind == "request" else ResponseHeader.SPEC
    return smallest_message(header, message.header_version(version))


def _elements(message: Message, struct: Struct, version: int, path: str) -> Iterator[tuple[str, int]]:
    from kwire.schema.wire_size import smallest_element

    for field in struct.fields:
        if version not in field.versions:
            continue
        here = f"{path}.{field.attr}" if path else field.attr
        if field.is_array:
            here = f"{here}[]"
            yield here, smallest_element(message, field, version)
        if field.struct is not None:
            yield from _elements(message, field.struct, version, here)


# Sizes of given values


def cost_of(form: str) -> Callable[[Row], int | None]:
    """Return a function of a row: the bytes of its values in an encoding, as wide as the field."""

    def pick(row: Row) -> int | None:
        cost: int | None = row["encodings"].get(f"{form}{row['bits']}")
        return cost

    return pick


VERSIONS = (
    Column(key="version", heading="VERSION", right=True),
    Column(key="bytes", heading="BODY", right=True),
    Column(key="problem", heading="PROBLEM"),
)
FIELDS = (
    Column(key="path", heading="FIELD"),
    Column(key="type", heading="AS"),
    Column(key="times", heading="TIMES", right=True),
    Column(key="bytes", heading="BYTES", right=True),
    *(Column(heading=form.upper(), right=True, pick=cost_of(form)) for form in FORMS),
)


def _version_row(message: Message, version: int, content: Any) -> Row:
    from kwire import schema

    cls = schema.compile(message)
    row: Row = {"name": message.name, "version": version, "bytes": None, "problem": None}
    try:
        row["bytes"] = cls.from_json(content, version=version).encoded_size(version=version)
    except EncodeError as error:
        row["problem"] = str(error)
    return row


def _field_rows(message: Message, version: int, content: Any) -> tuple[list[Row], int]:
    from kwire import plan, schema
    from kwire.plan.notes import bytes_by_field

    cls = schema.compile(message)
    data = cls.from_json(content, version=version).encode(version=version)
    notes = plan.codec(message, version, cls, kernels=False).annotate(data).notes
    return [_field_row(each) for each in bytes_by_field(notes)], len(data)


def _field_row(part: FieldBytes) -> Row:
    from kwire.schema.encoding_costs import count_integers
    from kwire.schema.model import ENCODABLE, own_encoding

    encoding = ENCODINGS.get(part.type) or ENCODINGS.get(own_encoding(part.type) if part.type in ENCODABLE else "")
    row: Row = {
        "path": part.path or "(message)",
        "type": part.type,
        "times": part.times,
        "bytes": part.bytes,
        "bits": None if encoding is None else encoding.bits,
        "encodings": {},
    }
    if encoding is not None:
        counts = count_integers(part.values)
        row["encodings"] = {name: counts.bytes_as(each) for name, each in ENCODINGS.items()}
    return row
