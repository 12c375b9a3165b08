"""`kwire schema show`: the fields of a message in all versions, or the wire layout of one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from kwire.cli import terminal
from kwire.cli.command import FINE
from kwire.cli.options import Dialect, DialectOption, FormatOption, MessageName, Release
from kwire.cli.rows import Column, Format, Row, write_rows
from kwire.cli.schema.definitions import message_of

if TYPE_CHECKING:
    from kwire.schema import Message, Struct
    from kwire.schema.layout import Slot

__all__ = ["show"]

Version = Annotated[int | None, typer.Option("--version", metavar="N", help="Wire layout of this version.")]


def show(
    name: MessageName,
    version: Version = None,
    kafka: Release = None,
    dialect: DialectOption = Dialect.STRICT,
    format: FormatOption = Format.TABLE,
) -> int:
    """Show the fields of a message in all versions, or the wire layout of one version."""
    message = message_of(name, kafka, dialect, version)
    if format is Format.TABLE:
        for line in _title(message, version):
            print(line)
    if version is None:
        write_rows(_field_rows(message, message.struct, 0, ""), FIELDS, format)
    else:
        write_rows(_wire_rows(message, version), WIRE, format)
    return FINE


FIELDS = (
    Column(key="name", heading="FIELD", pick=lambda row: "  " * row["depth"] + row["name"]),
    Column(key="type", heading="TYPE"),
    Column(key="versions", heading="VERSIONS"),
    Column(key="tag", heading="TAG", right=True),
    Column(key="nullable", heading="NULLABLE"),
    Column(key="default", heading="DEFAULT"),
    Column(key="notes", heading="NOTES", pick=lambda row: ", ".join(row["notes"])),
)
WIRE = (
    FIELDS[0],
    Column(key="type", heading="TYPE"),
    Column(heading="BYTES", pick=lambda row: f"{row['bytes']}{'' if row['fixed'] else '+'}", right=True),
    Column(key="form", heading="FORM"),
    Column(key="default", heading="DEFAULT"),
)


def _title(message: Message, version: int | None) -> Iterator[str]:
    facts = [message.kind if message.api_key is None else f"{message.kind} {message.api_key}"]
    if version is None:
        facts += [f"versions {message.valid}", f"flexible {message.flexible}"]
        facts += [f"deprecated {message.deprecated}"] if message.deprecated else []
        facts += ["newest version unstable"] if message.latest_version_unstable else []
        facts += [f"listeners {', '.join(message.listeners)}"] if message.listeners else []
    else:
        facts += [f"version {version}", "flexible" if version in message.flexible else "not flexible"]
        if message.kind in ("request", "response"):
            facts.append(f"{message.kind} header {message.header_version(version)}")
    yield f"{terminal.bold(message.name)}: {', '.join(facts)}"


def _field_rows(message: Message, struct: Struct, depth: int, path: str) -> Iterator[Row]:
    from kwire.schema.rendering import field_notes, render_default, versions_text

    for field in struct.fields:
        here = f"{path}.{field.attr}" if path else field.attr
        default = render_default(field)
        yield {
            "path": here,
            "depth": depth,
            "name": field.attr,
            "type": field.type_text,
            "versions": versions_text(field.versions, message.valid),
            "tag": field.tag,
            "tagged": versions_text(field.tagged, message.valid) if field.tag is not None else None,
            "nullable": versions_text(field.nullable, message.valid) if field.nullable else None,
            "default": default,
            "notes": field_notes(field, message.valid),
        }
        if field.struct is not None:
            yield from _field_rows(message, field.struct, depth + 1, here)


def _wire_rows(message: Message, version: int) -> Iterator[Row]:
    from kwire.schema.layout import layout

    for slot in layout(message, version).slots:
        yield from _slot_rows(slot, 0, "")


def _slot_rows(slot: Slot, depth: int, path: str) -> Iterator[Row]:
    from kwire.schema.rendering import render_default

    field = slot.field
    here = path if field is None else f"{path}.{field.attr}" if path else field.attr
    yield {
        "path": here,
        "depth": depth,
        "name": "(tagged fields)" if field is None else field.attr,
        "type": "" if field is None else field.type_text,
        "bytes": slot.width.least,
        "fixed": field is not None and field.struct is None and slot.width.least == slot.width.most,
        "form": (f"tag {slot.tag}, " if slot.tag is not None else "")
        + slot.form
        + (f" ({slot.encoding})" if slot.encoding is not None else ""),
        "default": None if field is None else render_default(field),
    }
    for inner in slot.slots:
        yield from _slot_rows(inner, depth + 1, here)
