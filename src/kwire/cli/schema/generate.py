"""`kwire schema generate` and `kwire schema import`: classes from definitions, definitions from jars."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from kwire.cli import terminal
from kwire.cli.command import FINE, FOUND
from kwire.cli.options import Dialect, DialectOption, FormatOption
from kwire.cli.rows import Format, write_rows
from kwire.cli.schema.definitions import existing_paths, report_errors, report_written, valid_definitions
from kwire.cli.schema.options import Output, Paths
from kwire.errors import OptionError
from kwire.pages.escaping import printable
from kwire.pages.quantities import plural

__all__ = ["generate", "import_"]


def generate(
    paths: Paths,
    into: Output,
    dialect: DialectOption = Dialect.STRICT,
    check: Annotated[
        bool,
        typer.Option("--check", help="Check only: exit code 1 if a file is missing, stale or without definition."),
    ] = False,
    format: FormatOption = Format.TABLE,
) -> int:
    """Generate Python classes from definitions: a package with one module per message."""
    from kwire.codegen import package_errors, package_files, stale_files, write_files

    messages = valid_definitions(paths, dialect)
    if messages is None:
        return FOUND
    duplicates = sorted(name for name, count in Counter(m.name for m in messages).items() if count > 1)
    if duplicates:
        raise OptionError(f"duplicate definitions: {', '.join(duplicates)}")
    messages = [message for message in messages if message.valid]
    if errors := package_errors(messages):
        report_errors(errors)
        return FOUND
    files = package_files(messages)
    if not check:
        return report_written(write_files(files, into), format)
    stale = stale_files(files, into)
    if format is not Format.TABLE:
        write_rows(({"path": path, "problem": problem} for path, problem in stale.items()), (), format)
    else:
        for path, problem in stale.items():
            print(printable(f"{path}: {problem}"))
        terminal.warn(
            f"{plural(len(stale), 'file')} not up to date; generate again" if stale else "all files are up to date"
        )
    return FOUND if stale else FINE


def import_(
    sources: Annotated[list[Path], typer.Argument(metavar="JAR|DIR", help="Kafka jars or source directories.")],
    into: Output,
    base: Annotated[
        Path | None, typer.Option("--base", metavar="DIR", help="Base release; only the differences from it are kept.")
    ] = None,
    format: FormatOption = Format.TABLE,
) -> int:
    """Import the definitions of Kafka's jars or sources, without comments.

    Several sources are written to separate directories.
    """
    from kwire.schema import import_definitions
    from kwire.schema.catalogue import keep_differences, module_name

    written: list[Path] = []
    for source in existing_paths(sources):
        target = into / module_name(source) if len(sources) > 1 or base is not None else into
        try:
            definitions = import_definitions(source, target)
        except ExceptionGroup as group:
            for error in group.exceptions:
                terminal.warn(printable(str(error)))
            return FOUND
        if not definitions:
            terminal.warn(f"{source}: no definitions")
        written += definitions
    if base is not None:
        written = keep_differences(into, base)
    return report_written(written, format)
