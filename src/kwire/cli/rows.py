"""Rows to standard output: a table, a JSON array or JSON lines. All of them stream.

The column widths of a table come from its header and first rows, so a log of any size can be printed while it is read.
A later, wider cell shifts its own line. Lines are cut to the width of a terminal, and never in a pipe.
"""

from __future__ import annotations

import enum
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kwire.cli import terminal
from kwire.pages.escaping import json_line, printable

__all__ = ["Column", "Format", "write_rows"]

LOOK_AHEAD = 200  # rows that determine the widths
MAX_WIDTH = 48  # cells that a column is padded to

Row = dict[str, Any]


class Format(enum.StrEnum):
    """Values of --format."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table: its heading, and its value by key or by `pick(row)`. show: value to text."""

    heading: str
    key: str = ""
    pick: Callable[[Row], Any] | None = None
    show: Callable[[Any], str] = str
    right: bool = False


def write_rows(rows: Iterable[Row], columns: Sequence[Column], format: Format, *, live: bool = False) -> None:
    """Print rows. columns select and order the cells of a table; JSON has every entry of a row.

    live: print each row at once, for rows that may take long to come; the widths of a table are then those of the first
    row.
    """
    if format is Format.TABLE:
        _write_table(rows, columns, live=live)
    elif format is Format.JSONL:
        for row in rows:
            sys.stdout.write(json_line(row) + "\n")
            if live:
                sys.stdout.flush()
    else:
        before = "[\n "
        for row in rows:
            sys.stdout.write(before + json_line(row))
            before = ",\n "
        sys.stdout.write("[]\n" if before.startswith("[") else "\n]\n")


def _write_table(rows: Iterable[Row], columns: Sequence[Column], *, live: bool) -> None:
    cells = ([_cell(column, row) for column in columns] for row in rows)
    first = list(itertools.islice(cells, 1 if live else LOOK_AHEAD))
    if not first:
        return
    widths = [
        min(max(_cells(column.heading), *(_cells(line[i]) for line in first)), MAX_WIDTH)
        for i, column in enumerate(columns)
    ]
    limit = terminal.width()
    sys.stdout.write(terminal.bold(_line([c.heading for c in columns], columns, widths, limit)) + "\n")
    for line in itertools.chain(first, cells):
        sys.stdout.write(_line(line, columns, widths, limit) + "\n")
        if live:
            sys.stdout.flush()


def _cell(column: Column, row: Row) -> str:
    value = column.pick(row) if column.pick else row.get(column.key)
    return "-" if value is None else printable(column.show(value))


def _line(cells: Sequence[str], columns: Sequence[Column], widths: Sequence[int], limit: int | None) -> str:
    return _cut("  ".join(_padded(cells, columns, widths)).rstrip(), limit)


def _padded(cells: Sequence[str], columns: Sequence[Column], widths: Sequence[int]) -> Iterator[str]:
    for cell, column, width in zip(cells, columns, widths, strict=True):
        space = " " * (width - _cells(cell))
        yield space + cell if column.right else cell + space


def _cells(text: str) -> int:
    """Return the number of terminal cells of text; East Asian characters take two."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _cut(text: str, limit: int | None) -> str:
    if limit is None or _cells(text) <= limit:
        return text
    from rich.cells import set_cell_size

    return set_cell_size(text, limit - 1).rstrip() + "…"
