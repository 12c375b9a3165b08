"""What the commands that run checks share: the files of a report, the lines on the terminal, the exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kwire.cli import terminal
from kwire.cli.command import FINE, FOUND, raise_again
from kwire.cli.rows import Format
from kwire.errors import OptionError
from kwire.pages.escaping import printable
from kwire.pages.quantities import plural
from kwire.target_paths import write_whole

if TYPE_CHECKING:
    from kwire.conformance import Check, Report

__all__ = ["exit_code", "finish", "make_folder", "print_report", "shown_progress", "write_report"]

MAX_REASON = 300


def make_folder(folder: Path) -> None:
    """Create the folder of -o. Raises OptionError; called before the checks run."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptionError(f"{folder}: cannot be created: {error.strerror}") from None


def write_report(report: Report, folder: Path, *, strict: bool = False) -> None:
    """Write report.json, report.xml (JUnit) and report.html into a folder."""
    from kwire.conformance.junit import junit
    from kwire.pages.conformance_report import render_conformance

    write_whole(folder / "report.json", report.to_json().encode())
    write_whole(folder / "report.xml", junit(report, strict=strict).encode())
    write_whole(folder / "report.html", render_conformance(report).encode())


def print_report(report: Report, *, strict: bool = False, most: int | None = None) -> None:
    """Print the findings, `most` of them if given, and the totals."""
    findings = report.findings(strict=strict)
    for result in findings[:most]:
        check = result.check
        print(terminal.bold(printable(f"{result.verdict.value.upper()}  {check.id}  {check.title}")))
        print(printable(f"      {result.reason[:MAX_REASON]}"))
    if most is not None and len(findings) > most:
        print(f"... and {plural(len(findings) - most, 'more finding')}; the reports of -o have all")
    for note in report.notes:
        terminal.warn(printable(note))
    counts = ", ".join(f"{count} {verdict.value}" for verdict, count in report.totals.items() if count)
    print(f"{plural(len(report.results), 'check')} in {report.seconds:.0f} s: {counts or 'none'}")


def finish(
    report: Report, folder: Path | None, format: Format = Format.TABLE, *, strict: bool, most: int | None = None
) -> int:
    """Write the reports of -o, print the report, and return the exit code. most: see print_report.

    Raises KeyboardInterrupt for a report of an interrupted run.
    """
    if folder is not None:
        write_report(report, folder, strict=strict)
    if format is Format.TABLE:
        print_report(report, strict=strict, most=most)
    else:
        print(report.to_json(), end="")
    if report.was_interrupted:
        raise_again()  # with the signal's number
        raise KeyboardInterrupt
    return exit_code(report, strict=strict)


def exit_code(report: Report, *, strict: bool = False) -> int:
    """Return 0 only if nothing failed."""
    return FOUND if report.findings(strict=strict) else FINE


@contextmanager
def shown_progress(total: int) -> Iterator[Callable[[Check], object]]:
    """Show the running check on standard error, if it is a terminal."""
    if not terminal.is_terminal(sys.stderr):
        yield lambda check: None
        return
    done = 0

    def shown(check: Check) -> None:
        nonlocal done
        done += 1
        print(f"\r\x1b[K{done} of {total}  {check.id}", end="", file=sys.stderr, flush=True)

    try:
        yield shown
    finally:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
