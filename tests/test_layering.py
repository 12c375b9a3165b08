"""The package table of docs/design.md, compared with the imports of the code."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"

# Lowest first: a package imports only from itself and from rows above it. warm, pytest_plugin and the top level sit
# outside the table.
ORDER = [
    "errors",
    "extras",
    "spark_formats",
    "identifiers",
    "target_paths",
    "http_deadline",
    "url_passwords",
    "wire",
    "native",
    "schema",
    "plan",
    "codegen",
    "messages",
    "protocol",
    "records",
    "internal_topics",
    "storage",
    "log",
    "client",
    "schemas",
    "maintenance",
    "broker",
    "capture",
    "tap",
    "lake",
    "sql",
    "duckdb",
    "polars",
    "spark",
    "testing",
    "conformance",
    "pages",
    "cli",
]
# What a package may not know although it stands below (the last column of the table, and "records and messages stay
# strangers").
STRANGERS = {
    ("records", "messages"),
    ("records", "protocol"),
    ("records", "plan"),
    ("messages", "codegen"),
    ("spark", "broker"),
    ("capture", "broker"),
    ("broker", "client"),
    ("broker", "maintenance"),
    ("capture", "client"),
    ("schemas", "client"),
    ("maintenance", "schemas"),
    ("broker", "schemas"),
    ("capture", "schemas"),
    ("sql", "broker"),
    ("sql", "maintenance"),
    ("sql", "lake"),
    ("spark", "sql"),
    ("pages", "sql"),
    ("lake", "broker"),
    ("lake", "tap"),
    ("sql", "tap"),
    ("spark", "tap"),
    ("pages", "tap"),
    ("conformance", "tap"),
    ("lake", "maintenance"),
    ("lake", "capture"),
    ("conformance", "maintenance"),
    ("conformance", "schemas"),
    ("conformance", "capture"),
    ("conformance", "lake"),
    ("conformance", "spark"),
    ("conformance", "testing"),
    ("pages", "lake"),
    ("pages", "spark"),
    ("pages", "broker"),
    ("pages", "client"),
    ("pages", "capture"),
    ("pages", "testing"),
    ("cli", "testing"),
}
# Methods that users rely on and packages above implement, each imported inside the method: module, imported name.
PROMISED = {
    ("kwire/log/reading/readable_log.py", "kwire.maintenance.verify"),  # log.verify()
    ("kwire/log/reading/readable_log.py", "kwire.sql.dataset"),  # logs.topic()
}
# Third-party packages that only their owners import.
OWNERS = {
    "pyspark": {"spark", "testing"},
    "cramjam": {"records"},
    "isal": {"records"},
    "fsspec": {"storage", "maintenance"},
    "typer": {"cli"},
    "rich": {"cli"},
    "cryptography": {"client", "storage"},
    "pyiceberg": {"lake"},
    "deltalake": {"lake"},
    "gssapi": {"broker", "client"},
    "urllib3": {"schemas"},
    "proto_schema_parser": {"schemas"},
    "jsonschema": {"schemas"},
    "duckdb": {"sql", "duckdb"},
    "polars": {"polars"},
}

# The modules of the broker that hold the whole node: they hand it to handlers, run it, or reset it. Services take the
# objects that they use.
WITH_NODE = {
    "broker",
    "cluster",
    "cluster_nodes",
    "dispatch",
    "housekeeping",
    "injection",
    "network/connection",
    "network/server",
    "reset",
}


def imports(path: Path) -> set[str]:
    """Return the absolute names that a module imports, including relative imports and imports inside functions."""
    module = path.relative_to(SOURCE).with_suffix("").parts
    package = module[:-1]
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) + "." if node.level else ""
            name = (base + (node.module or "")).strip(".")
            found.update(f"{name}.{alias.name}" if name == "kwire" else name for alias in node.names)
    return found


def modules() -> list[Path]:
    return sorted(p for p in (SOURCE / "kwire").rglob("*.py"))


def owner(path: Path) -> str:
    return path.relative_to(SOURCE / "kwire").parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_a_module_imports_only_from_rows_above_it(path: Path) -> None:
    here = owner(path)
    for name in imports(path):
        top, _, rest = name.partition(".")
        if top in OWNERS and here in ORDER:
            assert here in OWNERS[top], f"{top} belongs to {sorted(OWNERS[top])}, imported in {here}"
        if top != "kwire" or not rest or here not in ORDER:
            continue
        there = rest.partition(".")[0]
        if there not in ORDER or there == here or (str(path.relative_to(SOURCE)), name) in PROMISED:
            continue
        assert ORDER.index(there) < ORDER.index(here), f"{here} imports {there}, which stands above it"
        assert (here, there) not in STRANGERS, f"{here} may not know {there}"


def test_every_package_is_in_the_table() -> None:
    outside = {"__init__", "__main__", "pytest_plugin", "warm"}
    assert {owner(p) for p in modules()} - outside <= set(ORDER)


def test_only_handlers_and_the_modules_that_run_them_know_the_node() -> None:
    broker = SOURCE / "kwire" / "broker"
    paths = [path for path in broker.rglob("*.py") if "kwire.broker.node" in imports(path)]
    names = {path.relative_to(broker).with_suffix("").as_posix() for path in paths}
    assert {name for name in names if not name.startswith("apis/")} == WITH_NODE


def test_promised_methods_import_inside_the_method() -> None:
    for module, name in PROMISED:
        tree = ast.parse((SOURCE / module).read_text())
        imported = {id(each): each.module for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)}
        inside = {
            id(each)
            for function in ast.walk(tree)
            if isinstance(function, ast.FunctionDef)
            for each in ast.walk(function)
        }
        found = [key for key, value in imported.items() if value == name]
        assert found, f"{module} does not import {name} any more: remove it from PROMISED"
        assert inside.issuperset(found), f"{module} imports {name} at its top"
