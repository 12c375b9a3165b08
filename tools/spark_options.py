"""The tables of options and client configs in docs/, from what the code parses them with.

A page marks the place of a table with two comments, between which everything is generated:

    <!-- options: kwire.spark.log.options OPTIONS -->
    <!-- end of options -->

A table of configs that the client obeys has the word `configs` in place of `options`.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from kwire.client.settings import ClientSettings
from kwire.spark.options.option import Option

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
JAVA_CONFIGS = ROOT / "tests" / "data" / "client_settings.tsv"
TABLE = re.compile(r"(<!-- (options|configs): ([\w.]+) (\w+) -->\n).*?(<!-- end of options -->)", re.DOTALL)
PROBES = ("\0", "0", "-200000", "true")  # of which every parser refuses one, but those of text
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


def configs(known: Mapping[str, tuple[str, Callable[[str], Any]]]) -> str:
    """A row for each config that the client obeys: what its parser expects, its default, which Java clients have it."""
    java = dict(line.split("\t", 1) for line in JAVA_CONFIGS.read_text().splitlines()[1:])
    defaults = {name: each.default for name, each in ClientSettings.__dataclass_fields__.items()}
    rows = ["| Config | Value | Default | Clients of Kafka |\n", "| --- | --- | --- | --- |\n"]
    for name, (field, parse) in sorted(known.items()):
        if name == "transaction.two.phase.commit.enable":  # obeyed where it is off
            continue
        default = defaults.get(field)
        if isinstance(default, bool):
            default = str(default).lower()
        shown = f"`{', '.join(default) if isinstance(default, tuple) else default}`"
        clients = sorted({*java.get(name, "").replace("\t", ",").split(",")} - {"", "-"})
        rows.append(
            f"| `{name}` | {_expected(parse)} | {shown if type(default) in (int, str, tuple) and default else ''} "
            f"| {', '.join(clients)} |\n"
        )
    return "".join(rows)


def _expected(parse: Callable[[str], Any]) -> str:
    """Return what a parser says that it expects, in its most precise words."""
    found = ["text"]
    for probe in PROBES:
        try:
            parse(probe)
        except ValueError as error:
            found.append(str(error).partition(", found")[0])
    return max(found, key=len)


def filled(page: str) -> str:
    """A page with its tables."""

    def made(place: re.Match[str]) -> str:
        found = getattr(importlib.import_module(place[3]), place[4])
        if place[2] == "configs":
            return place[1] + configs(found) + place[5]
        return place[1] + (reasons(found) if isinstance(found, Mapping) else table(found)) + place[5]

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
