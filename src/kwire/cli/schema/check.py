"""`kwire schema check`: definitions against the rules."""

from __future__ import annotations

from kwire.cli import terminal
from kwire.cli.command import FINE, FOUND
from kwire.cli.options import Dialect, DialectOption, FormatOption
from kwire.cli.rows import Format, Row, write_rows
from kwire.cli.schema.definitions import existing_paths
from kwire.cli.schema.options import Paths
from kwire.errors import OptionError, SchemaError
from kwire.pages.escaping import printable
from kwire.pages.quantities import plural

__all__ = ["check"]


def check(paths: Paths, dialect: DialectOption = Dialect.STRICT, format: FormatOption = Format.TABLE) -> int:
    """Check definitions against the rules of the language.

    Shows every error of every file. Exit code 1 if there are any.
    """
    from kwire.schema import check_all

    messages, errors = check_all(existing_paths(paths), dialect=dialect.value)
    if not messages and not errors:
        raise OptionError(f"{', '.join(map(str, paths))}: no .json files")
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
