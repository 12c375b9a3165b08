"""`kwire conformance list`: the checks of a broker."""

from __future__ import annotations

from kwire.cli.command import FINE
from kwire.cli.conformance.options import Only, Skip
from kwire.cli.options import FormatOption
from kwire.cli.rows import Column, Format, Row, write_rows
from kwire.pages.quantities import plural

__all__ = ["list_checks"]

COLUMNS = (
    Column(key="id", heading="CHECK"),
    Column(key="since", heading="SINCE"),
    Column(key="until", heading="UNTIL"),
    Column(key="source", heading="SOURCE", optional=True),
    Column(key="title", heading="TITLE"),
)


def list_checks(only: Only = None, skip: Skip = None, format: FormatOption = Format.TABLE) -> int:
    """List the checks of a broker, by chapter."""
    from kwire.conformance.broker import all_checks
    from kwire.conformance.check import select

    checks = select(all_checks(), only or (), skip or ())
    rows: list[Row] = [
        {
            "id": check.id,
            "chapter": check.chapter,
            "title": check.title,
            "source": check.source,
            "since": check.since,
            "until": check.until,
            "steps": list(check.steps),
        }
        for check in checks
    ]
    write_rows(rows, COLUMNS, format)
    if format is Format.TABLE:
        print(plural(len(rows), "check"))
    return FINE
