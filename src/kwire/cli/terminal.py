"""What the terminal is and may be sent: colours, width, progress. Text from data goes through `escaping` first."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TextIO

__all__ = ["Progress", "bold", "is_terminal", "progress", "warn", "width"]


def is_terminal(stream: TextIO | None = None) -> bool:
    """Whether a person looks at stream (standard output by default)."""
    return (stream or sys.stdout).isatty()


def _colours(stream: TextIO) -> bool:
    # https://no-color.org: set and not empty means no colours, whatever its value
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def bold(text: str) -> str:
    """text in bold on a terminal that has colours, unchanged elsewhere."""
    return f"\x1b[1m{text}\x1b[0m" if _colours(sys.stdout) else text


def width() -> int | None:
    """Columns of the terminal; None in a pipe or file, where nothing is cut."""
    return shutil.get_terminal_size().columns if is_terminal() else None


def warn(message: str) -> None:
    """One line on standard error, flushed behind what standard output already has."""
    sys.stdout.flush()
    print(f"kwire: {message}", file=sys.stderr)


class Progress(Protocol):
    """Told how far long work has come."""

    def advance(self, amount: int) -> None:
        """amount more of the total is done."""


class _Silent:
    def advance(self, amount: int) -> None:
        pass


@contextmanager
def progress(what: str, total_bytes: int, *, beside_rows: bool = False) -> Iterator[Progress]:
    """A bar on standard error for work over total_bytes; silent unless standard error is a terminal.

    beside_rows: rows are printed meanwhile, which would tear the bar apart on the same terminal; so it is shown only
    while standard output goes elsewhere.
    """
    if not is_terminal(sys.stderr) or (beside_rows and is_terminal()):
        yield _Silent()
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    # rich would take sys.stdout over and print the rows on its own console, standard error
    with Bar(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as bar:
        task = bar.add_task(what, total=total_bytes)

        class Shown:
            def advance(self, amount: int) -> None:
                bar.advance(task, amount)

        yield Shown()
