"""Rules for the code's structure: import cycles, short functions and modules, docstrings, typed handlers; and for the
length of the changelog.

Every module is parsed once. Generated modules are checked for import cycles only.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import kwire

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"

MAX_FUNCTION_LINES = 80
MAX_MODULE_LINES = 600
MAX_CHANGELOG_LINES = 200  # for a version
# Most parameters of a function of a package, self not counted, where it is not MAX_PARAMETERS. Numbers only fall: the
# same parameters of several functions are one value. cli is free: parameters of a command are its options.
MAX_PARAMETERS = 8
PARAMETERS = {
    "lake": 8,
    "log": 9,
    "maintenance": 10,
    "records": 15,  # a batch: BatchBuilder, and BatchOptions for what passes its arguments on
    "schemas": 12,
    "spark": 20,
}
# Handlers and the client work on message classes, so their signatures name them.
TYPED = ("kwire.broker.apis", "kwire.client")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One source file: its dotted name, text and syntax tree."""

    name: str
    is_package: bool
    text: str
    tree: ast.Module

    @property
    def is_generated(self) -> bool:
        return any(line.startswith("Generated ") for line in (ast.get_docstring(self.tree) or "").splitlines())

    @property
    def is_public(self) -> bool:
        return not any(part.startswith("_") for part in self.name.split("."))

    def imports(self, known: dict[str, Module]) -> set[str]:
        """Names of the known modules that this one imports, also inside functions and for type checkers only."""
        found: set[str] = set()
        package = self.name if self.is_package else self.name.rpartition(".")[0]
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                base = node.module or ""
                if node.level:
                    parents = package.split(".")
                    base = ".".join([*parents[: len(parents) - node.level + 1], *filter(None, [node.module])])
                submodules = {f"{base}.{alias.name}" for alias in node.names} & known.keys()
                found |= submodules
                if len(submodules) < len(node.names):
                    found.add(base)
        return (found & known.keys()) - {self.name}


def _definitions(node: ast.AST, path: str) -> Iterator[tuple[str, Function | ast.ClassDef, bool]]:
    """Return (dotted path, definition, whether it is inside a function) of all functions and classes below node."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function | ast.ClassDef):
            name = f"{path}.{child.name}"
            inside_function = isinstance(node, Function)
            yield name, child, inside_function
            for below in _definitions(child, name):
                yield (*below[:2], below[2] or inside_function or isinstance(child, Function))
        else:
            yield from _definitions(child, path)


@pytest.fixture(scope="module")
def modules() -> dict[str, Module]:
    found = {}
    for path in sorted((SOURCE / "kwire").rglob("*.py")):
        name = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        text = path.read_text("utf-8")
        found[name] = Module(name=name, is_package=path.stem == "__init__", text=text, tree=ast.parse(text))
    return found


@pytest.fixture(scope="module")
def hand_written(modules: dict[str, Module]) -> list[Module]:
    return [module for module in modules.values() if not module.is_generated]


def is_in(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(package + ".") for package in packages)


def report(rule: str, violations: list[str]) -> str:
    return "\n  ".join([f"{rule}:", *violations])


def package_of(name: str) -> str:
    """Return the package of a module: kwire.log for kwire.log.reading.splits."""
    return ".".join(name.split(".")[:2])


def import_graphs(modules: dict[str, Module]) -> dict[str, dict[str, set[str]]]:
    """Return by package which modules of the package each of its modules imports."""
    packages: dict[str, dict[str, set[str]]] = defaultdict(dict)
    for name, module in modules.items():
        packages[package_of(name)][name] = {
            other for other in module.imports(modules) if package_of(other) == package_of(name)
        }
    return packages


def test_no_package_has_an_import_cycle(modules: dict[str, Module]) -> None:
    cycles = []
    for graph in import_graphs(modules).values():
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as cycle:
            cycles.append(" -> ".join(cycle.args[1][::-1]))
    assert not cycles, report("import cycles, each module importing the next", cycles)


def test_imports_for_typing_and_in_functions_are_part_of_cycles() -> None:
    text = "if TYPE_CHECKING:\n    from p import a\ndef f():\n    import p.b\n"
    module = Module(name="p.c", is_package=False, text=text, tree=ast.parse(text))
    known = dict.fromkeys(("p", "p.a", "p.b", "p.c"), module)
    assert module.imports(known) == {"p.a", "p.b"}


def test_functions_are_short(hand_written: list[Module]) -> None:
    long = [
        f"{path}: {lines} lines"
        for module in hand_written
        for path, node, _ in _definitions(module.tree, module.name)
        if isinstance(node, Function) and (lines := (node.end_lineno or 0) - node.lineno + 1) > MAX_FUNCTION_LINES
    ]
    assert not long, report(f"functions above {MAX_FUNCTION_LINES} lines", long)


def test_functions_have_few_parameters(hand_written: list[Module]) -> None:
    most: dict[str, tuple[int, str]] = {}
    for module in hand_written:
        package = module.name.split(".")[1] if "." in module.name else ""
        if package == "cli":
            continue
        for path, node, _ in _definitions(module.tree, module.name):
            if isinstance(node, Function):
                most[package] = max(most.get(package, (0, "")), (_parameter_count(node), path))
    wrong = [
        f"{path}: {count} parameters, and {package} may have {PARAMETERS.get(package, MAX_PARAMETERS)}"
        for package, (count, path) in most.items()
        if (count > MAX_PARAMETERS or package in PARAMETERS) and count != PARAMETERS.get(package)
    ]
    assert not wrong, report("the most parameters of a package; for a lower number change PARAMETERS", wrong)


def _parameter_count(function: Function) -> int:
    given = function.args
    names = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def test_modules_are_short(hand_written: list[Module]) -> None:
    long = [
        f"{module.name}: {lines} lines"
        for module in hand_written
        if (lines := module.text.count("\n")) > MAX_MODULE_LINES
    ]
    assert not long, report(f"modules above {MAX_MODULE_LINES} lines", long)


def test_signatures_of_handlers_and_client_name_their_types(hand_written: list[Module]) -> None:
    untyped = [
        path
        for module in hand_written
        if is_in(module.name, TYPED)
        for path, node, _ in _definitions(module.tree, module.name)
        if isinstance(node, Function) and _annotations_have_any(node)
    ]
    assert not untyped, report("Any in a signature", untyped)


def _annotations_have_any(function: Function) -> bool:
    given = function.args
    arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    annotations = [function.returns, *(argument.annotation for argument in arguments if argument)]
    return any(
        isinstance(node, ast.Name) and node.id == "Any"
        for annotation in annotations
        if annotation
        for node in ast.walk(annotation)
    )


def test_every_public_name_has_a_docstring(hand_written: list[Module]) -> None:
    protocols = _documented_protocols(hand_written)
    classes = {
        node.name: node
        for module in hand_written
        for _, node, _ in _definitions(module.tree, module.name)
        if isinstance(node, ast.ClassDef)
    }
    missing = []
    for module in hand_written:
        if not module.is_public:
            continue
        if module.text.strip() and not ast.get_docstring(module.tree):
            missing.append(module.name)
        shared: dict[str, set[str]] = {}
        for path, node, inside_function in _definitions(module.tree, module.name):
            if isinstance(node, ast.ClassDef):
                members = _members(node, classes)
                shared[path] = set().union(*(methods for methods in protocols if methods <= members))
            is_public = not any(part.startswith("_") for part in path.split("."))
            if is_public and not inside_function and not _is_documented(node):
                owner, _, name = path.rpartition(".")
                if name not in shared.get(owner, ()):
                    missing.append(path)
    assert not missing, report("public names without a docstring", missing)


def _is_documented(node: Function | ast.ClassDef) -> bool:
    """Return whether a definition has a docstring, or needs none.

    Overrides, overloads and setters share another's. Declarations of a Protocol, `def size(self) -> int: ...`, are
    described by its docstring.
    """
    if isinstance(node, Function) and [ast.unparse(line) for line in node.body] == ["..."]:
        return True
    shared = any(
        word in ast.unparse(decorator)
        for decorator in node.decorator_list
        for word in ("override", "overload", ".setter")
    )
    return shared or bool(ast.get_docstring(node))


def _documented_protocols(modules: list[Module]) -> list[set[str]]:
    """Return the methods of each Protocol whose methods all have docstrings. A class with all of them implements it."""
    found = []
    for module in modules:
        for _, node, _ in _definitions(module.tree, module.name):
            if isinstance(node, ast.ClassDef) and any("Protocol" in ast.unparse(base) for base in node.bases):
                methods = [each for each in node.body if isinstance(each, Function) and not each.name.startswith("_")]
                if methods and all(_is_documented(method) for method in methods):
                    found.append({method.name for method in methods})
    return found


def _members(node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> set[str]:
    """Return the names of a class's methods and attributes, including base classes. classes: by name."""
    found = {each.name for each in node.body if isinstance(each, Function)}
    for each in ast.walk(node):
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            found.add(each.target.id)
        elif isinstance(each, ast.Attribute) and ast.unparse(each.value) == "self":
            found.add(each.attr)
    for base in node.bases:
        parent = classes.get(ast.unparse(base))
        if parent is not None and parent is not node:
            found |= _members(parent, classes)
    return found


def test_the_changelog_is_for_users() -> None:
    """Short, each section once: files that git merges by union can get back lines that were shortened."""
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    for version in text.split("\n## ")[1:]:
        name, *lines = version.splitlines()
        headings = [line for line in lines if line.startswith("#")]
        is_short = len(lines) <= MAX_CHANGELOG_LINES and len(set(headings)) == len(headings)
        assert is_short, (
            f"CHANGELOG.md, {name}: {len(lines)} lines, headings {headings}. If a merge brought old lines back:"
            " git checkout main -- CHANGELOG.md, then add your line again"
        )
    versions = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert next(name for name in versions if name != "Unreleased") == kwire.__version__
    assert len(set(versions)) == len(versions)
