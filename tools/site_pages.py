"""Pages of the documentation's site that are made from README and the code. mkdocs runs this (plugin gen-files).

index.md                    README
all pages of docs/          without links to files that are no pages
reference/commands.md       every command with its arguments and options, from the command line itself
reference/python.md         the public modules, with a page each: everything in __all__, from docstrings and annotations
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mkdocs_gen_files
import typer

from kwire.cli.main import build

ROOT = Path(__file__).parents[1]
MODULES = (
    "kwire.errors",
    "kwire.log",
    "kwire.log.convert",
    "kwire.log.cleaner",
    "kwire.storage",
    "kwire.log.internal",
    "kwire.records",
    "kwire.messages.registry",
    "kwire.schema",
    "kwire.plan",
    "kwire.protocol",
    "kwire.broker",
    "kwire.client",
    "kwire.capture",
    "kwire.spark",
    "kwire.spark.functions",
    "kwire.spark.jobs",
    "kwire.pages.log_report",
    "kwire.pages.damage_report",
    "kwire.pages.encoding_report",
    "kwire.pages.site.render",
)
DOCS = ROOT / "docs"
LINK = re.compile(r"\[([^]]*)\]\(([^)#\s:]+)(#[^)\s]*)?\)")


def write(path: str, text: str) -> None:
    with mkdocs_gen_files.open(path, "w") as page:
        page.write(text)


def within_site(text: str, folder: Path) -> str:
    """A page without links to files of the repository that are no pages. folder: that its links are relative to."""

    def kept(link: re.Match[str]) -> str:
        target = (folder / link[2]).resolve()
        return link[0] if target.is_relative_to(DOCS) and target.is_file() else link[1]

    return LINK.sub(kept, text)


def index() -> str:
    """README as the first page."""
    return within_site((ROOT / "README.md").read_text("utf-8"), ROOT).replace("](docs/", "](")


def commands(command: Any, words: str) -> Iterator[str]:
    """A section for each command below this one."""
    if hasattr(command, "commands"):
        for name, each in command.commands.items():
            yield from commands(each, f"{words} {name}")
        return
    yield f"## {words}\n\n{re.sub(r' +', ' ', command.help or '')}\n\n"
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option"]
    names = " ".join(each.metavar or each.name.upper() for each in arguments)
    yield f"```text\n{words} [OPTIONS] {names}\n```\n\n"
    yield "| option | meaning |\n| --- | --- |\n"
    for each in options:
        flags = ", ".join(f"`{name}`" for name in (*each.opts, *each.secondary_opts))
        yield f"| {flags} | {cell(getattr(each, 'help', None) or '')} |\n"
    yield "\n"


def cell(text: str) -> str:
    """Text for a table's cell."""
    return text.replace("|", "\\|").replace("\n", " ")


def module_page(name: str) -> str:
    """A module and everything in its __all__."""
    module = importlib.import_module(name)
    names = [public for public in sorted(module.__all__, key=str.lower) if callable(getattr(module, public))]
    constants = sorted(set(module.__all__) - set(names))
    parts = [f"# {name}\n\n```text\n{(module.__doc__ or '').strip()}\n```\n"]
    parts += [f"`{each}` = `{getattr(module, each)!r}`\n" for each in constants]
    parts += [f"::: {name}.{public}\n    options:\n      heading_level: 2\n" for public in names]
    return "\n".join(parts)


def main() -> None:
    """Write all of them."""
    write("index.md", index())
    for page in sorted(DOCS.rglob("*.md")):
        write(page.relative_to(DOCS).as_posix(), within_site(page.read_text("utf-8"), page.parent))
    app = typer.main.get_command(build())
    write("reference/commands.md", "# Commands and options\n\n" + "".join(commands(app, "kwire")))
    rows = []
    for name in MODULES:
        write(f"reference/{name}.md", module_page(name))
        first = (importlib.import_module(name).__doc__ or "").strip().split("\n\n")[0].replace("\n", " ")
        rows.append(f"| [`{name}`]({name}.md) | {cell(first)} |\n")
    text = (
        "# Python\n\nThe message classes, one for each of Kafka's messages, are in `kwire.messages`; "
        "[Messages](../messages.md) shows what each of them has.\n\n| module | contents |\n| --- | --- |\n"
    )
    write("reference/python.md", text + "".join(rows))


main()
