"""`kwire schema check`: definitions against the rules."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kwire.cli import terminal
from kwire.cli.command import FINE, FOUND
from kwire.cli.options import Dialect, DialectOption, FormatOption
from kwire.cli.rows import Format, Row, write_rows
from kwire.cli.schema.definitions import existing_paths
from kwire.cli.schema.options import Paths
from kwire.errors import OptionError, SchemaError
from kwire.pages.escaping import printable
from kwire.pages.quantities import plural

if TYPE_CHECKING:
    from kwire.schema import Message

__all__ = ["check"]


def check(paths: Paths, dialect: DialectOption = Dialect.STRICT, format: FormatOption = Format.TABLE) -> int:
    """Check definitions against the rules of the language.

    Shows every error of every file. Exit code 1 if there are any. A file given by itself may lack its partner, such as
    the request of a response, with a note.
    """
    from kwire.codegen import package_errors
    from kwire.schema.definition_files import check_files

    messages, errors, notes = check_files(existing_paths(paths), dialect=dialect.value)
    if not messages and not errors:
        raise OptionError(f"{', '.join(map(str, paths))}: no .json files")
    wrong = {error.file for error in errors}
    packages: dict[Path, list[Message]] = {}
    for message in messages:
        if message.valid and message.file not in wrong:
            packages.setdefault(Path(message.file or "").parent, []).append(message)
    errors += [error for package in packages.values() for error in package_errors(package)]
    for note in notes:
        terminal.warn(f"note: {printable(str(note))}")
    if format is Format.TABLE:
        for error in errors:
            print(printable(str(error)))
        broken = {error.file for error in errors}
        where = f" in {plural(len(broken), 'file')}" if broken else ""
        terminal.warn(f"{plural(len(messages), 'definition')}, {plural(len(errors), 'error')}{where}")
    else:
        write_rows(map(_error_row, errors), (), format)
    return FOUND if errors else FINE


def _error_row(error: SchemaError) -> Row:
    return {
        "rule": error.rule,
        "file": error.file,
        "struct": error.struct,
        "field": error.field,
        "message": error.what,
    }
