"""The generated pages of the documentation site: a hook of mkdocs.

index.md                    README.md
all pages of docs/          without links to files that are not part of the site
reference/commands.md       every command with its arguments and options, from the command line itself
reference/python.md         the public modules; one page for each, with everything in its __all__
protocol/                   the protocol site that `kwire schema docs` writes

The build fails when a command, an option, an argument or a public name has no description.
"""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_origin

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

from kwire.cli.main import build

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
# Public modules in the order of the reference, by what they are used for.
MODULES = {
    "Logs": (
        "kwire.log",
        "kwire.log.cleaner",
        "kwire.log.topics",
        "kwire.maintenance.verify",
        "kwire.maintenance.adopt",
        "kwire.maintenance.convert",
        "kwire.maintenance.from_parquet",
        "kwire.maintenance.restore",
        "kwire.storage",
        "kwire.storage.tiered",
    ),
    "Internal topics": (
        "kwire.internal_topics",
        "kwire.internal_topics.cluster_state",
        "kwire.internal_topics.groups_state",
        "kwire.internal_topics.transactions_state",
    ),
    "Spark": ("kwire.spark", "kwire.spark.functions", "kwire.spark.jobs"),
    "Broker and client": (
        "kwire.broker",
        "kwire.broker.tokens",
        "kwire.pytest_plugin",
        "kwire.testing",
        "kwire.client",
        "kwire.client.admin.tokens",
        "kwire.tap",
    ),
    "Messages and records": (
        "kwire.messages.base",
        "kwire.messages.registry",
        "kwire.records",
        "kwire.protocol",
        "kwire.capture",
        "kwire.errors",
    ),
    "Tables and SQL": ("kwire.lake", "kwire.sql", "kwire.sql.values", "kwire.duckdb", "kwire.polars"),
    "Values with schemas": ("kwire.schemas", "kwire.schemas.avro"),
    "Definitions": (
        "kwire.schema",
        "kwire.schema.evolution",
        "kwire.plan",
        "kwire.plan.columns",
        "kwire.codegen",
    ),
    "Pages": (
        "kwire.pages.log_report",
        "kwire.pages.damage_report",
        "kwire.pages.encoding_report",
        "kwire.pages.site.render",
    ),
}
# Modules whose other public names are for generated code.
ONLY = {"kwire.messages.base": ("KeyedList", "Message", "Struct")}
LINK = re.compile(r"\[([^]]*)\]\(([^)#\s:]+)(#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the pages of the Python reference to the navigation."""
    modules = [
        {group: [{name.removeprefix("kwire."): f"reference/{name}.md"} for name in names]}
        for group, names in MODULES.items()
    ]
    for section in config.nav or ():
        if "Reference" in section:
            section["Reference"].append({"Python": [{"Modules": "reference/python.md"}, *modules]})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages, and the protocol site."""
    for page in DOCS.rglob("*.md"):
        path = page.relative_to(DOCS).as_posix()
        add(files, config, path, within_site(page.read_text("utf-8"), page.parent))
    readme = within_site((ROOT / "README.md").read_text("utf-8"), ROOT)
    add(files, config, "index.md", readme.replace("](docs/", "]("))
    app = typer.main.get_command(build())
    add(files, config, "reference/commands.md", "# Commands and options\n\n" + "".join(commands(app, "kwire")))
    add(files, config, "reference/python.md", python_overview())
    for name in (name for names in MODULES.values() for name in names):
        add(files, config, f"reference/{name}.md", module_page(name))
    add_protocol_site(files, config)
    return files


def add(files: Files, config: MkDocsConfig, path: str, content: str | bytes) -> None:
    """Add a generated file, in place of one of that path."""
    old = files.get_file_from_path(path)
    if old is not None:
        files.remove(old)
    files.append(File.generated(config, path, content=content))


def add_protocol_site(files: Files, config: MkDocsConfig) -> None:
    """Add what `kwire schema docs` writes, below protocol/."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "kwire.cli", "schema", "docs", "-o", folder]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        for path in sorted(Path(folder).rglob("*")):
            if path.is_file():
                add(files, config, f"protocol/{path.relative_to(folder).as_posix()}", path.read_bytes())


def within_site(text: str, folder: Path) -> str:
    """Replace links to files that are not part of the site by their text. folder: what the links are relative to."""

    def replaced(link: re.Match[str]) -> str:
        target = (folder / link[2]).resolve()
        return link[0] if target.is_relative_to(DOCS) and target.is_file() else link[1]

    return LINK.sub(replaced, text)


def commands(command: Any, words: str) -> Iterator[str]:
    """A section for each command below this one."""
    if hasattr(command, "commands"):
        for name, each in command.commands.items():
            yield from commands(each, f"{words} {name}")
        return
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option"]
    usage = " ".join([words, "[OPTIONS]", *(label(each) for each in arguments)])
    yield f"## {words}\n\n{re.sub(r' +', ' ', described(command.help, words))}\n\n```text\n{usage}\n```\n\n"
    if arguments:
        yield "| argument | meaning |\n| --- | --- |\n"
        for each in arguments:
            yield f"| `{label(each)}` | {cell(described(each.help, f'{words} {each.name}'))} |\n"
        yield "\n"
    yield "| option | meaning |\n| --- | --- |\n"
    for each in options:
        names = ", ".join(f"`{name}{value(each)}`" for name in (*each.opts, *each.secondary_opts))
        yield f"| {names} | {cell(described(each.help, f'{words} {each.opts[0]}'))}{default(each)} |\n"
    yield f"\n```sh\n{described(command.epilog, f'{words}: examples')}\n```\n\n"


def value(option: Any) -> str:
    """Return the value of an option after a space, or an empty text for a flag."""
    if option.is_flag:
        return ""
    choices = getattr(option.type, "choices", ())
    if choices and not option.metavar:
        return " " + "|".join(str(getattr(each, "value", each)) for each in choices)
    return " " + (option.metavar or option.type.name.upper())


def default(option: Any) -> str:
    """A sentence with the default of an option, or nothing."""
    has_one = option.default not in (None, False, "", (), []) and not callable(option.default) and not option.is_flag
    return f" Default: `{getattr(option.default, 'value', option.default)}`." if has_one else ""


def label(argument: Any) -> str:
    """An argument as usage lines name it: `[NAME]` if optional, `NAME...` if repeatable."""
    name = f"{argument.metavar or argument.name.upper()}{'...' if argument.nargs == -1 else ''}"
    return name if argument.required else f"[{name}]"


def described(text: str | None, name: str) -> str:
    """The description of a name; raises PluginError where it has none."""
    if not text or not text.strip():
        raise PluginError(f"{name} has no description")
    return text


def cell(text: str) -> str:
    """Plain text as a table's cell."""
    return re.sub(r"([|*_<])", r"\\\1", text).replace("\n", " ")


def python_overview() -> str:
    """The list of public modules."""
    lines = [
        "# Python modules\n",
        "Every public module and its names. The message classes, one for each of Kafka's messages, are in"
        " `kwire.messages`: [Messages](../messages.md) shows how they are used, and the"
        " [protocol site](../protocol/index.html) lists their fields.\n",
    ]
    for group, names in MODULES.items():
        lines.append(f"## {group}\n\n| module | contents |\n| --- | --- |")
        for name in names:
            summary = described(importlib.import_module(name).__doc__, name).strip().split("\n\n")[0]
            lines.append(f"| [`{name}`]({name}.md) | {cell(summary)} |")
        lines.append("")
    return "\n".join(lines)


def module_page(name: str) -> str:
    """A module and everything in its __all__: constants first, then functions and classes by name."""
    module = importlib.import_module(name)
    values = {public: getattr(module, public) for public in sorted(ONLY.get(name, module.__all__), key=str.lower)}
    constants = {public: value for public, value in values.items() if not is_documented(value)}
    parts = [f"# {name}\n\n{described(inspect.getdoc(module), name)}\n"]
    if constants:
        rows = [f"| `{public}` | {shown(value)} |" for public, value in constants.items()]
        parts.append("\n".join(["| constant | value |", "| --- | --- |", *rows, ""]))
    for public in values.keys() - constants.keys():
        described(inspect.getdoc(values[public]), f"{name}.{public}")
    parts += [
        f"::: {name}.{public}\n    options:\n      heading_level: 2\n" for public in values if public not in constants
    ]
    return "\n".join(parts)


def is_documented(value: object) -> bool:
    """Return whether a value can have a docstring: classes and functions, but not constants and type aliases."""
    return inspect.isclass(value) or inspect.isroutine(value)


def shown(value: object) -> str:
    """A constant as a table shows it: its repr if that is its value, else its type."""
    if isinstance(value, (int, str, bytes, float, tuple)) and len(repr(value)) < 100:
        return f"`{value!r}`"
    return "type alias" if get_origin(value) else type(value).__name__
