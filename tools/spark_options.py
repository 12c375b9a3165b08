"""The option tables of the Spark pages in docs/, from the options that the code parses with.

A page marks the place of a table with two comments, between which everything is generated:

    <!-- options: kwire.spark.log.options OPTIONS -->
    <!-- end of options -->
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from kwire.spark.options.option import Option

DOCS = Path(__file__).parents[1] / "docs"
TABLE = re.compile(r"(<!-- options: ([\w.]+) (\w+) -->\n).*?(<!-- end of options -->)", re.DOTALL)
NOT_SHOWN = {"paths"}  # Spark sets it, not the user


def table(options: Iterable[Option[object]]) -> str:
    """A row for each option; the query type is a column where options differ in it."""
    shown = [option for option in options if option.name not in NOT_SHOWN]
    for option in shown:
        if not all((option.value, option.default_cell, option.meaning)):
            raise ValueError(f"option '{option.name}' lacks a description; set value and meaning")
    columns = {
        "Option": [f"`{option.name}`" for option in shown],
        "Value": [option.value for option in shown],
        "Default": [option.default_cell for option in shown],
        "Query type": [option.query for option in shown],
        "Meaning": [option.meaning for option in shown],
    }
    if len(set(columns["Query type"])) == 1:
        del columns["Query type"]
    rows = [list(columns), ["---"] * len(columns), *map(list, zip(*columns.values(), strict=True))]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def reasons(unsupported: Mapping[str, str] | Mapping[str, tuple[str, ...]]) -> str:
    """A row for each option that is refused; for each reason, where that has several options."""
    rows = ["| Option | Reason |\n", "| --- | --- |\n"]
    for key, value in unsupported.items():
        names, reason = ((key,), value) if isinstance(value, str) else (value, key)
        rows.append(f"| {', '.join(f'`{name}`' for name in names)} | {reason} |\n")
    return "".join(rows)


def filled(page: str) -> str:
    """A page with its tables."""

    def made(place: re.Match[str]) -> str:
        found = getattr(importlib.import_module(place[2]), place[3])
        return place[1] + (reasons(found) if isinstance(found, Mapping) else table(found)) + place[4]

    return TABLE.sub(made, page)


def main(*, check: bool) -> list[Path]:
    """Write the tables, or with check only compare; returns the pages that differ."""
    stale = []
    for path in sorted(DOCS.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        if (new := filled(text)) != text:
            stale.append(path)
            if not check:
                path.write_text(new, encoding="utf-8")
    return stale
