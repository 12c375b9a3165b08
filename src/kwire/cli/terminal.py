"""The terminal: colors, width, warnings, progress. Text from data is escaped first (kwire.pages.escaping)."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TextIO

import kwire
from kwire.errors import hide_secrets
from kwire.pages.escaping import printable

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import ProgressColumn

__all__ = [
    "Progress",
    "RecordProgress",
    "bold",
    "is_terminal",
    "progress",
    "show_python_warnings",
    "show_warnings",
    "warn",
    "width",
]

PACKAGE = os.path.join(os.path.dirname(kwire.__file__), "")


def is_terminal(stream: TextIO | None = None) -> bool:
    """Whether stream (standard output by default) is a terminal."""
    return (stream or sys.stdout).isatty()


def _has_colors(stream: TextIO) -> bool:
    # https://no-color.org: any value that is not empty turns colors off
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def bold(text: str) -> str:
    """Return text in bold on a terminal with colors, else unchanged."""
    return f"\x1b[1m{text}\x1b[0m" if _has_colors(sys.stdout) else text


def width() -> int | None:
    """Return the columns of the terminal; None in a pipe or file, where nothing is cut."""
    return shutil.get_terminal_size().columns if is_terminal() else None


def warn(message: str) -> None:
    """Print one line to standard error, without secrets of URLs, after flushing standard output."""
    sys.stdout.flush()
    print(f"kwire: {hide_secrets(message)}", file=sys.stderr)


def show_warnings(name: str) -> None:
    """Print the warnings of a logger like a command's own."""
    import logging

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            warn(printable(record.getMessage()))

    logger = logging.getLogger(name)
    if not logger.handlers:
        logger.addHandler(Lines(logging.WARNING))


def show_python_warnings() -> None:
    """Print kwire's Python warnings in one line, like a command's own, and other libraries' as Python does."""
    import warnings

    show = warnings.showwarning

    def show_ours(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if filename.startswith(PACKAGE):
            warn(printable(str(message)))
        else:
            show(message, category, filename, lineno, file, line)

    warnings.showwarning = show_ours


class Progress(Protocol):
    """Progress of long work."""

    def advance(self, amount: int) -> None:
        """Add amount to the finished part of the total."""


class _Silent:
    def advance(self, amount: int) -> None:
        pass


class RecordProgress:
    """A bar on standard error for records that are read, until stop(); without a terminal there is none."""

    def __init__(self, what: str) -> None:
        self._bar = None
        if not is_terminal(sys.stderr):
            return
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

        text = TextColumn("{task.description}", markup=False)
        self._bar = _bar(text, BarColumn(), MofNCompleteColumn(), TextColumn("records"), TimeRemainingColumn())
        self._task = self._bar.add_task(what, total=None)

    def show(self, done: int, total: int) -> None:
        """Show how much of a total is done."""
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=max(done, total))
            self._bar.start()  # does nothing the next time

    def stop(self) -> None:
        """Remove the bar. Another thread may call this."""
        if self._bar is not None:
            self._bar.stop()


def _bar(*columns: ProgressColumn) -> Bar:
    from rich.console import Console
    from rich.progress import Progress as Bar

    # rich would redirect sys.stdout to its own console, standard error
    return Bar(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False)


@contextmanager
def progress(what: str, total_bytes: int, *, beside_rows: bool = False) -> Iterator[Progress]:
    """Show a bar on standard error for work over total_bytes, if standard error is a terminal.

    beside_rows: rows are printed meanwhile and would break the bar on the same terminal, so it is shown only if
    standard output is not a terminal.
    """
    if not is_terminal(sys.stderr) or (beside_rows and is_terminal()):
        yield _Silent()
        return
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with _bar(*columns) as bar:
        task = bar.add_task(what, total=total_bytes)

        class Shown:
            def advance(self, amount: int) -> None:
                bar.advance(task, amount)

        yield Shown()
