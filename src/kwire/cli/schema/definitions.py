"""Definitions and messages named by arguments, and the report of written files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kwire.cli import terminal
from kwire.cli.command import FINE
from kwire.cli.options import Dialect
from kwire.cli.rows import Format
from kwire.errors import OptionError, SchemaError
from kwire.pages.escaping import json_line, printable
from kwire.pages.quantities import plural

if TYPE_CHECKING:
    from kwire.schema import Message

__all__ = ["existing_paths", "message_of", "report_errors", "report_written", "valid_definitions"]


def existing_paths(paths: list[Path]) -> list[Path]:
    """Return paths. Raises OptionError if one does not exist."""
    for path in paths:
        if not path.exists():
            raise OptionError(f"{path}: no such file or directory")
    return paths


def message_of(name: str, kafka: str | None, dialect: Dialect, version: int | None) -> Message:
    """Return the message of that name or definition file.

    Raises OptionError for an unknown name or version, SchemaError for an invalid definition.
    """
    from kwire.schema import load

    if name.endswith(".json") or Path(name).is_file():
        existing_paths([Path(name)])
        message = load(name, dialect=dialect.value)
    else:
        from kwire.messages import registry

        message = registry.get(name, kafka).SPEC
    if version is not None and version not in message.valid:
        raise OptionError(f"{message.name}: no version {version}; versions are {message.valid}")
    return message


def valid_definitions(paths: list[Path], dialect: Dialect) -> list[Message] | None:
    """Return the definitions of files and directories, or None after printing their errors.

    Raises OptionError for a missing path or a directory without definitions.
    """
    from kwire.schema import check_all

    messages, errors = check_all(existing_paths(paths), dialect=dialect.value)
    if errors:
        report_errors(errors)
        return None
    if not messages:
        raise OptionError(f"{', '.join(map(str, paths))}: no .json files")
    return messages


def report_errors(errors: Sequence[SchemaError]) -> None:
    """Print errors of definitions, a line each."""
    for error in errors:
        terminal.warn(printable(str(error)))


def report_written(paths: list[Path], format: Format) -> int:
    """Print the written files. Returns the exit code."""
    if format is Format.TABLE:
        terminal.warn(f"{plural(len(paths), 'file')} written")
    else:
        print(json_line([str(path) for path in paths]))
    return FINE
