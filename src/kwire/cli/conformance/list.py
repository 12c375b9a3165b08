"""`kwire conformance list`: the checks of a broker, or the scenarios for clients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kwire.cli.command import FINE
from kwire.cli.conformance.options import Only, Skip
from kwire.cli.options import FormatOption
from kwire.cli.rows import Column, Format, Row, write_rows
from kwire.pages.quantities import plural

if TYPE_CHECKING:
    from kwire.conformance import Check

__all__ = ["list_checks"]

COLUMNS = (
    Column(key="id", heading="CHECK"),
    Column(key="since", heading="SINCE"),
    Column(key="until", heading="UNTIL"),
    Column(key="source", heading="SOURCE", optional=True),
    Column(key="title", heading="TITLE"),
)


def list_checks(
    only: Only = None,
    skip: Skip = None,
    client: Annotated[bool, typer.Option("--client", help="The scenarios for clients instead.")] = False,
    format: FormatOption = Format.TABLE,
) -> int:
    """List the checks of a broker, or the scenarios for clients, by chapter."""
    from kwire.conformance.check import select

    checks = select(_scenarios() if client else _checks(), only or (), skip or ())
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


def _checks() -> Sequence[Check]:
    from kwire.conformance.broker import all_checks

    return all_checks()


def _scenarios() -> Sequence[Check]:
    from kwire.conformance.client import all_scenarios

    return all_scenarios()
