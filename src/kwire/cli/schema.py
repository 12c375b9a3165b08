"""`kwire schema`: message definitions and what is made of them."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kwire.cli import terminal
from kwire.cli.command import FINE, FOUND, add_command
from kwire.cli.rows import Column, Format, Row, write_rows
from kwire.errors import OptionError, SchemaError
from kwire.pages.escaping import json_line, printable

if TYPE_CHECKING:
    from kwire.schema import Field, Message, Struct
    from kwire.schema.layout import Slot

__all__ = ["register"]


class Dialect(enum.StrEnum):
    """What --dialect takes."""

    STRICT = "strict"
    KAFKA = "kafka"
    KIP = "kip"


Paths = Annotated[list[Path], typer.Argument(metavar="PATH...", help="Definition files, or directories of them.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="A message of Kafka's, or a definition file.")]
Release = Annotated[str | None, typer.Option("--kafka", help="As this Kafka release has it, such as 3.9.1.")]
Version = Annotated[int | None, typer.Option("--version", help="This version alone, as it goes over the wire.")]
Shape = Annotated[Format, typer.Option("--format", help="table, json or jsonl.")]
Words = Annotated[
    Dialect,
    typer.Option(
        "--dialect",
        help="kip: the spellings of KIP-482 and KIP-625 (a tag needs no ranges, unsigned32). "
        "kafka: what Kafka's own releases need accepted.",
    ),
]
Into = Annotated[Path, typer.Option("--output", "-o", help="Directory to write to.")]


def register(app: typer.Typer) -> None:
    """Add `schema` and its commands to the app."""
    # which take their options from here
    from kwire.cli.schema_advise import advise
    from kwire.cli.schema_diff import diff
    from kwire.cli.schema_docs import docs
    from kwire.cli.schema_size import size

    group = typer.Typer(
        name="schema", help="Check, show and compile message definitions.", no_args_is_help=True, rich_markup_mode=None
    )
    add_command(group, "check", check)
    add_command(group, "diff", diff)
    add_command(group, "show", show)
    add_command(group, "size", size)
    add_command(group, "advise", advise)
    add_command(group, "generate", generate)
    add_command(group, "import", import_)
    add_command(group, "docs", docs)
    app.add_typer(group)


def check(paths: Paths, dialect: Words = Dialect.STRICT, shape: Shape = Format.TABLE) -> int:
    """Check definitions. Exit code 1 if any breaks a rule; every error of every file is shown."""
    from kwire.schema import check_all

    messages, errors = check_all(existing_paths(paths), dialect=dialect.value)
    if not messages and not errors:
        raise OptionError(f"no .json files in {', '.join(map(str, paths))}")
    if shape is Format.TABLE:
        for error in errors:
            print(printable(str(error)))
        broken = {error.file for error in errors}
        where = f" in {_count(len(broken), 'file')}" if broken else ""
        terminal.warn(f"{_count(len(messages), 'definition')}, {_count(len(errors), 'error')}{where}")
    else:
        write_rows(map(_error_row, errors), (), shape)
    return FOUND if errors else FINE


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _error_row(error: SchemaError) -> Row:
    return {
        "rule": error.rule,
        "file": error.file,
        "struct": error.struct,
        "field": error.field,
        "message": error.what,
    }


def existing_paths(paths: list[Path]) -> list[Path]:
    """paths. Raises OptionError for one that is not there."""
    for path in paths:
        if not path.exists():
            raise OptionError(f"{path} is not there")
    return paths


def show(
    name: Name,
    version: Version = None,
    kafka: Release = None,
    dialect: Words = Dialect.STRICT,
    shape: Shape = Format.TABLE,
) -> int:
    """Show a message: its fields in all versions, or one version as it goes over the wire."""
    message = message_of(name, kafka, dialect)
    if version is not None and version not in message.valid:
        raise OptionError(f"{message.name} has versions {message.valid}, not {version}")
    if shape is Format.TABLE:
        for line in _title(message, version):
            print(line)
    if version is None:
        write_rows(_field_rows(message, message.struct, 0, ""), FIELDS, shape)
    else:
        write_rows(_wire_rows(message, version), WIRE, shape)
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


def message_of(name: str, kafka: str | None, dialect: Dialect = Dialect.STRICT) -> Message:
    """The message of that name, or of a definition file. Raises OptionError, SchemaError."""
    from kwire.schema import load

    if name.endswith(".json") or Path(name).is_file():
        existing_paths([Path(name)])
        return load(name, dialect=dialect.value)
    from kwire.messages import registry

    return registry.get(name, kafka).SPEC


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
    from kwire.schema.rendering import render_default, versions_text

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
            "notes": _notes(field),
        }
        if field.struct is not None:
            yield from _field_rows(message, field.struct, depth + 1, here)


def _notes(field: Field) -> list[str]:
    notes = [word for word, is_so in (("map key", field.map_key), ("ignorable", field.ignorable)) if is_so]
    notes += [field.entity_type] if field.entity_type != "unknown" else []
    if field.flexible is not None:
        notes.append(f"compact in {field.flexible}")
    notes += [f"{name} in {versions}" for versions, name in field.encodings]
    return notes


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


def sound_definitions(paths: list[Path], dialect: Dialect) -> list[Message] | None:
    """The definitions of the files and directories; None after saying what is wrong with them.

    Raises OptionError for a path that is not there or holds no definition.
    """
    from kwire.schema import check_all

    messages, errors = check_all(existing_paths(paths), dialect=dialect.value)
    if errors:
        for error in errors:
            terminal.warn(printable(str(error)))
        return None
    if not messages:
        raise OptionError(f"no .json files in {', '.join(map(str, paths))}")
    return messages


def generate(
    paths: Paths,
    into: Into,
    dialect: Words = Dialect.STRICT,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Write nothing; exit code 1 if a file there is missing, stale or of no definition."
        ),
    ] = False,
    shape: Shape = Format.TABLE,
) -> int:
    """Write Python classes for definitions: a package, one module a message."""
    from kwire.codegen import package_files, stale_files, write_files

    messages = sound_definitions(paths, dialect)
    if messages is None:
        return FOUND
    twice = {m.name for m in messages if sum(other.name == m.name for other in messages) > 1}
    if twice:
        raise OptionError(f"several definitions are named {', '.join(sorted(twice))}")
    files = package_files([m for m in messages if m.valid])
    if not check:
        return say_written(write_files(files, into), shape)
    stale = stale_files(files, into)
    if shape is not Format.TABLE:
        write_rows(({"path": path, "problem": problem} for path, problem in stale.items()), (), shape)
    else:
        for path, problem in stale.items():
            print(printable(f"{path}: {problem}"))
        terminal.warn(f"{_count(len(stale), 'file')} to generate again" if stale else "every file is fresh")
    return FOUND if stale else FINE


def import_(
    sources: Annotated[list[Path], typer.Argument(metavar="JAR|DIR...", help="Kafka's jars, or folders of sources.")],
    into: Into,
    base: Annotated[
        Path | None, typer.Option("--base", help="Another release in the same folder: keep what differs from it.")
    ] = None,
    shape: Shape = Format.TABLE,
) -> int:
    """Write the definitions of Kafka's jars or sources as facts, without prose. Several sources get a folder each."""
    from kwire.schema import import_definitions
    from kwire.schema.catalogue import keep_differences, module_name

    written: list[Path] = []
    for source in existing_paths(sources):
        target = into / module_name(source) if len(sources) > 1 or base is not None else into
        try:
            found = import_definitions(source, target)
        except ExceptionGroup as group:
            for error in group.exceptions:
                terminal.warn(printable(str(error)))
            return FOUND
        if not found:
            terminal.warn(f"{source} has no definitions")
        written += found
    if base is not None:
        written = keep_differences(into, base)
    return say_written(written, shape)


def say_written(paths: list[Path], shape: Format) -> int:
    """Say which files were written; the exit code."""
    if shape is Format.TABLE:
        terminal.warn(f"{_count(len(paths), 'file')} written")
    else:
        print(json_line([str(path) for path in paths]))
    return FINE
