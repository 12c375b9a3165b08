"""`kwire conformance compare`: reports side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kwire.cli.command import FINE, FOUND
from kwire.cli.options import FormatOption
from kwire.cli.rows import Column, Format, Row, write_rows
from kwire.errors import OptionError
from kwire.pages.quantities import plural

__all__ = ["compare"]


def compare(
    reports: Annotated[list[Path], typer.Argument(metavar="REPORT.json", help="Reports of kwire conformance.")],
    everything: Annotated[bool, typer.Option("--all", help="Checks with equal verdicts too.")] = False,
    format: FormatOption = Format.TABLE,
) -> int:
    """Show the verdicts of two or more reports side by side.

    Exit code 1 if a check has different verdicts.
    """
    from kwire.conformance import Report
    from kwire.conformance import compare as compare_reports

    if len(reports) < 2:
        raise OptionError("compare needs at least two reports")
    opened = [Report.from_json(_read(path), str(path)) for path in reports]
    compared = compare_reports(*opened)
    names = _names(reports)
    rows: list[Row] = [
        {
            "id": each.check.id,
            "chapter": each.check.chapter,
            "title": each.check.title,
            **dict(zip(names, each.verdicts, strict=True)),
        }
        for each in compared
        if everything or each.differs
    ]
    columns = (
        Column(key="id", heading="CHECK"),
        *(Column(key=name, heading=name.upper()) for name in names),
        Column(key="title", heading="TITLE", is_name=True, optional=True),
    )
    write_rows(rows, columns, format)
    differing = sum(each.differs for each in compared)
    if format is Format.TABLE:
        print(f"{plural(len(compared), 'check')}, {plural(differing, 'difference')}")
    return FOUND if differing else FINE


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise OptionError(f"{path}: cannot be read: {error.strerror}") from None


def _names(paths: list[Path]) -> list[str]:
    """Return a heading for each report: the name of its file, or of its folder for files of equal names."""
    names = [path.stem for path in paths]
    if len(set(names)) < len(names):
        names = [path.resolve().parent.name for path in paths]
    if len(set(names)) < len(names):
        names = [str(i + 1) for i in range(len(paths))]
    return names
