"""`kwire conformance vectors`: the data set as files of JSON Lines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kwire.cli.command import FINE
from kwire.cli.options import FormatOption
from kwire.cli.rows import Column, Format, Row, write_rows
from kwire.errors import OptionError

__all__ = ["vectors"]

COLUMNS = (
    Column(key="file", heading="FILE", is_name=True),
    Column(key="cases", heading="CASES", right=True),
)


def vectors(
    folder: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder that receives the files.")],
    release: Annotated[
        str | None, typer.Option("--release", metavar="X.Y", help="Only what this Kafka release has; all by default.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="CHAPTER", help="A chapter; repeatable; all by default.")
    ] = None,
    format: FormatOption = Format.TABLE,
) -> int:
    """Write the test vectors: bytes that Kafka's own classes wrote, their values, and invalid bytes.

    A file of JSON Lines for each chapter; README.md describes the fields.
    """
    from kwire.conformance.vectors import write_cases

    try:
        counts = write_cases(folder, only=only or (), release=release)
    except OSError as error:
        raise OptionError(f"{folder}: cannot be written: {error.strerror}") from None
    rows: list[Row] = [{"file": str(folder / name), "cases": count} for name, count in counts.items()]
    write_rows(rows, COLUMNS, format)
    return FINE
