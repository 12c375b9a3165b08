"""`kwire conformance codec`: an encoder and decoder as a child process, against the data set."""

from __future__ import annotations

import datetime
import shlex
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kwire.cli.conformance.output import finish, make_folder
from kwire.errors import OptionError, did_you_mean

if TYPE_CHECKING:
    from kwire.conformance import Report, Result
    from kwire.conformance.vectors import Case, KnownFailures

__all__ = ["codec"]

MAX_PRINTED = 20
"""Findings on the terminal; there may be thousands of one cause."""


def codec(
    command: Annotated[list[str], typer.Argument(metavar="COMMAND...", help="The runner, after --.")],
    folder: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="DIR", help="Folder that receives the reports.")
    ] = None,
    release: Annotated[
        str | None, typer.Option("--release", metavar="X.Y", help="Only what this Kafka release has; all by default.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="WORD", help="Chapter or beginning of an id; repeatable.")
    ] = None,
    skip: Annotated[
        list[str] | None, typer.Option("--skip", metavar="WORD", help="Chapter or beginning of an id; repeatable.")
    ] = None,
    expected_failures: Annotated[
        Path | None,
        typer.Option("--expected-failures", metavar="FILE", help="Known failures, one a line; # starts a comment."),
    ] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", help="Limit of one response.", min=0.1)
    ] = 10,
    strict: Annotated[
        bool, typer.Option("--strict", help="Deviations and unsupported cases are failures too.")
    ] = False,
) -> int:
    """Test an encoder and decoder: a program that reads requests and writes responses, as JSON after its length.

    Exit code 1 if a case fails that is not in the list of known failures, or one in the list passes. A line of
    it may be a pattern with * for ids, and ": " with a part of the reason: all these failures are known.
    """
    from kwire.conformance.vectors import NOTHING_KNOWN, KnownFailures

    if folder is not None:
        make_folder(folder)
    known = NOTHING_KNOWN if expected_failures is None else KnownFailures.read(expected_failures)
    chosen = _chosen(release, only or [], skip or [])
    is_whole = not release and not only and not skip
    if is_whole and (unknown := sorted(known.cases - {case.id for case in chosen})):
        raise OptionError(f"--expected-failures: no case {unknown[0]!r} ({len(unknown)} unknown ids)")
    report = _run(command, chosen, known, release or "all", timeout)
    if is_whole and not report.was_interrupted:
        report = replace(report, results=(*report.results, *known.unused(report.results)))
    return finish(report, folder, strict=strict, most=MAX_PRINTED)


def _chosen(release: str | None, only: list[str], skip: list[str]) -> list[Case]:
    """Return the cases to run. Raises OptionError for words that no case has."""
    from kwire.conformance.vectors import CHAPTERS, cases

    for option, word in (*(("--only", word) for word in only), *(("--skip", word) for word in skip)):
        if (chapter := word.split("/")[0]) not in CHAPTERS:
            hint = did_you_mean(chapter, CHAPTERS)
            raise OptionError(f"{option}: no chapter {chapter!r}{hint}; known: {', '.join(CHAPTERS)}")
    chapters = [each for each in CHAPTERS if not only or any(word.split("/")[0] == each for word in only)]
    every = list(cases(only=chapters, release=release))
    for word in (*only, *(each for each in skip if each.split("/")[0] in chapters)):
        if not any(_matches(case.id, word) for case in every):
            raise OptionError(f"no case is or begins with {word!r}; ids are CHAPTER/TYPE/VERSION/CASE")
    found = [
        case
        for case in every
        if (not only or any(_matches(case.id, word) for word in only))
        and not any(_matches(case.id, word) for word in skip)
    ]
    if not found:
        raise OptionError("no case is left; ids are CHAPTER/TYPE/VERSION/CASE")
    return found


def _matches(id: str, word: str) -> bool:
    return id == word or id.startswith(f"{word.rstrip('/')}/")


def _run(command: list[str], chosen: list[Case], known: KnownFailures, release: str, timeout: float) -> Report:
    from kwire.conformance import Report
    from kwire.conformance.vectors import Runner, judge_all, manifest

    started, results, notes, was_interrupted = time.monotonic(), [], [], False
    with Runner(command, timeout_s=timeout) as runner:
        try:
            for result in _with_progress(chosen, judge_all(chosen, runner.ask, known_failures=known)):
                results.append(result)  # noqa: PERF402  # those so far count after Ctrl-C
        except KeyboardInterrupt:
            was_interrupted = True
            notes.append(f"interrupted after {len(results)} of {len(chosen)} cases")
        if runner.starts > 1:
            notes.append(
                f"the program was started {runner.starts} times, because it died, hung or wrote something else"
            )
    data_set = manifest()
    return Report(
        kind="codec",
        subject=shlex.join(command),
        release=release,
        made_at=datetime.datetime.now(datetime.UTC),
        seconds=time.monotonic() - started,
        results=tuple(results),
        notes=tuple(notes),
        was_interrupted=was_interrupted,
        facts={"vectors": f"{data_set['name']} {data_set['version']}"},
    )


def _with_progress(chosen: list[Case], results: Iterator[Result]) -> Iterator[Result]:
    """Show the bytes of the cases that are done."""
    from kwire.cli import terminal

    with terminal.progress("Cases", sum(len(case.bytes) // 2 for case in chosen)) as shown:
        for case, result in zip(chosen, results, strict=True):
            yield result
            shown.advance(len(case.bytes) // 2)
