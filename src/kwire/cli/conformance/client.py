"""`kwire conformance client`: test a client."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kwire.cli.conformance.options import Only, Skip, Strict
from kwire.cli.conformance.output import finish, make_folder, shown_progress
from kwire.cli.options import FormatOption
from kwire.cli.rows import Format
from kwire.errors import OptionError

__all__ = ["client"]


def client(
    command: Annotated[
        list[str], typer.Argument(metavar="COMMAND...", help="The program that uses the client, after --.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Folder for report.json, report.xml and report.html."),
    ] = None,
    only: Only = None,
    skip: Skip = None,
    strict: Strict = False,
    stdin: Annotated[
        bool, typer.Option("--stdin", help="Keep the program running: it reads a task from each line of its input.")
    ] = False,
    jobs: Annotated[
        int, typer.Option("--jobs", metavar="N", help="Scenarios, and programs, that run in parallel.", min=1)
    ] = 4,
    timeout: Annotated[float, typer.Option("--timeout", metavar="SECONDS", help="Deadline of one task.")] = 20.0,
    format: FormatOption = Format.TABLE,
) -> int:
    """Test a client: a program does tasks against a broker that errs, moves, closes and falls silent by a script.

    The task is JSON in the environment variable KWIRE_TASK, and the program prints what was acknowledged or received, a
    JSON object a line. Exit code 1 if a scenario failed.
    """
    if not timeout > 0:
        raise OptionError(f"--timeout {timeout}: expected a number above 0")
    from kwire.conformance.check import select
    from kwire.conformance.client import all_scenarios, run_scenarios

    scenarios = select(all_scenarios(), only or (), skip or ())
    if output is not None:
        make_folder(output)
    with shown_progress(len(scenarios)) as shown:
        report = run_scenarios(
            command, scenarios, release="4.4", keeps_running=stdin, jobs=jobs, deadline_s=timeout, progress=shown
        )
    return finish(report, output, format, strict=strict)
