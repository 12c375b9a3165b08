"""Rows to standard output: a table, a JSON array or JSON lines. All of them stream.

The column widths of a table come from its header and first rows, so a log of any size can be printed while it is read.
A later, wider cell shifts its own line. In a terminal that is too narrow, optional columns are left out, names are
shortened, and lines that are still too long are cut; never in a pipe.
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

__all__ = ["TOPIC", "Column", "Format", "write_rows"]

LOOK_AHEAD = 200  # rows that determine the widths
MAX_WIDTH = 48  # cells that a column is padded to
SPACE = "  "
NAME_WIDTH = 16  # cells that a name keeps in a narrow terminal

Row = dict[str, Any]


class Format(enum.StrEnum):
    """Values of --format."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table: its heading, and its value by key or by `pick(row)`. show: value to text.

    If the terminal is too narrow, optional columns are hidden, and the text of columns with is_name is shortened.
    """

    heading: str
    key: str = ""
    pick: Callable[[Row], Any] | None = None
    show: Callable[[Any], str] = str
    right: bool = False
    optional: bool = False
    is_name: bool = False


TOPIC = Column(key="topic", heading="TOPIC", is_name=True)


def write_rows(rows: Iterable[Row], columns: Sequence[Column], format: Format, *, live: bool = False) -> None:
    """Print rows. columns select and order the cells of a table; JSON has every entry of a row.

    live: print each row at once, for rows that may take long to come; the widths of a table then fit the first
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
    rows = iter(rows)
    first = list(itertools.islice(rows, 1 if live else LOOK_AHEAD))
    if not first:
        return
    limit = terminal.width()
    widths = {
        column.heading: min(max(_cells(column.heading), *(_cells(_cell(column, row)) for row in first)), MAX_WIDTH)
        for column in columns
    }
    shown = columns if limit is None else _fit(columns, widths, limit)
    if limit is not None and (left_out := [column.heading for column in columns if column not in shown]):
        terminal.warn(f"{limit} columns are too few for {', '.join(left_out)}; --format json has all values")
    sizes = [widths[column.heading] for column in shown]
    sys.stdout.write(terminal.bold(_line([column.heading for column in shown], shown, sizes, limit)) + "\n")
    for row in itertools.chain(first, rows):
        cells = [_cell(column, row) for column in shown]
        if limit is not None:
            cells = [
                _shortened(cell, size) if column.is_name else cell
                for cell, column, size in zip(cells, shown, sizes, strict=True)
            ]
        sys.stdout.write(_line(cells, shown, sizes, limit) + "\n")
        if live:
            sys.stdout.flush()


def _fit(columns: Sequence[Column], widths: dict[str, int], limit: int) -> Sequence[Column]:
    """Return the columns that a terminal has space for; sets the widths of names."""

    def excess(shown: Sequence[Column]) -> int:
        narrow = (min(widths[each.heading], NAME_WIDTH) if each.is_name else widths[each.heading] for each in shown)
        return sum(narrow) + len(SPACE) * (len(shown) - 1) - limit

    shown = list(columns)
    while excess(shown) > 0 and (optional := [each for each in shown if each.optional]):
        shown.remove(optional[-1])
    free = max(-excess(shown), 0)
    for column in shown:
        if column.is_name and widths[column.heading] > NAME_WIDTH:
            wanted = widths[column.heading] - NAME_WIDTH
            widths[column.heading] = NAME_WIDTH + min(wanted, free)
            free -= min(wanted, free)
    return shown


def _shortened(name: str, width: int) -> str:
    """Return a name with `…` in place of its middle if it is wider: beginnings and ends tell names apart."""
    if _cells(name) <= width:
        return name
    from rich.cells import set_cell_size

    half = (width - 1) // 2
    end = set_cell_size(name[::-1], half)[::-1]
    return set_cell_size(name, width - 1 - half) + "…" + end


def _cell(column: Column, row: Row) -> str:
    value = column.pick(row) if column.pick else row.get(column.key)
    return "-" if value is None else printable(column.show(value))


def _line(cells: Sequence[str], columns: Sequence[Column], widths: Sequence[int], limit: int | None) -> str:
    return _cut(SPACE.join(_padded(cells, columns, widths)).rstrip(), limit)


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
