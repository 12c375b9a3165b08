"""Mutation testing: small faults put into a copy of the sources, and whether the tests of the module notice them.

    python tools/mutate.py run lake storage --sample 40 --minutes 30    results are added to build/mutants/results.json
    python tools/mutate.py report                                       the score of each package, and the survivors

A mutant changes one operator or constant of one function:

    compare     < and <=, > and >= change places
    equality    == and != change places
    offset      + 1 and - 1 change places
    boolean     `and` and `or` change places; `not` is left out
    constant    n becomes n + 1, True becomes False
    return      the value becomes None

compare and offset are those of boundaries, the default. The sample of a package is the same in every run, as long as
its functions are; --seed draws another one.

The tests of a package are collected once, and all run once with probes in its functions, which note the mutants that
each test could notice: it evaluates the place, and both sides of a comparison are equal. This is kept until the test
file or a source of the package changes. Then a process forked for a mutant gives the function its changed code and runs
these tests, until one fails that passes without the mutant. What processes started by a test evaluate is not noted.
No result depends on wall time, so it is the same on a loaded machine; Hypothesis draws the same examples in every run.
tools/mutants.tsv has a reason for every survivor that stays: `equivalent` (no input tells it from the original) does
not run and does not count, `kept` does.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import contextlib
import fcntl
import gc
import hashlib
import importlib
import json
import multiprocessing
import operator
import os
import random
import re
import resource
import shutil
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "mutants"
RESULTS = BUILD / "results.json"
REASONS = ROOT / "tools" / "mutants.tsv"
PACKAGES = ("lake", "maintenance", "storage", "schemas", "client", "records", "log")
BOUNDARIES = ("compare", "offset")
FLOOR = 0.85
MOST_TESTS = 60  # of a mutant; cases of other test functions come before more cases of the same one
CPU_LIMIT_S = 5  # of a test with a mutant, besides 10 times what it takes without: a loop may have lost its end
WAIT_LIMIT_S = 60  # the same in wall time, for what waits forever; the test without the mutant has the same
NO_END = 70  # exit code of a process that waits forever
FILE_LIMIT_S = 3600.0  # of a test file with probes
MAX_MEMORY = 12 << 30
OTHERS = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
}
MORE_TESTS: Mapping[str, Sequence[str]] = {
    "records": ("log/test_append_preparation.py",),
    "maintenance": ("records/test_find_batch.py", "records/test_batch_header.py", "log/test_relisting.py"),
}
"""Test files and folders of packages, besides the folder of their name."""
PROBED = ("compare", "equality", "offset")
"""Kinds of mutants whose place has a probe; for the others, the tests that enter the function count."""
PYTEST = (
    *("-q", "-n", "0", "-p", "no:cacheprovider", "-m", "not jvm and not slow and not spark"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
)


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change of a module. start, end: the characters of the source that `text` replaces."""

    module: str
    function: str
    kind: str
    number: int
    line: int
    start: int
    end: int
    text: str
    shown: str

    @property
    def id(self) -> str:
        """A name that stays when other functions change."""
        return f"{self.module} {self.function} {self.kind} {self.number}: {self.shown}"

    @property
    def package(self) -> str:
        """The package below kwire."""
        return self.module.partition("/")[0]


# ---- mutants


class Finder(ast.NodeVisitor):
    """Collects the mutants of a module. Annotations, assertions, messages and code outside of functions have none."""

    def __init__(self, module: str, source: str) -> None:
        self.module, self.source, self.found = module, source, list[Mutant]()
        self.tree = ast.parse(source)
        self.sites: dict[ast.AST, list[tuple[int, Mutant]]] = {}  # with the number of the operator in a comparison
        self._names: list[str] = []
        self._counts: dict[tuple[str, str], int] = {}
        self._in_function = 0
        lines = source.splitlines(keepends=True)
        self._line_starts = [0]
        for line in lines:
            self._line_starts.append(self._line_starts[-1] + len(line))
        self._lines = lines
        self.visit(self.tree)

    def _at(self, line: int, column: int) -> int:
        """Return the index of a character; columns of the syntax tree count UTF-8 bytes."""
        return self._line_starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())

    def _place(self, node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def _add(self, kind: str, node: ast.expr | ast.stmt, start: int, end: int, text: str, index: int = 0) -> None:
        if not self._in_function:
            return
        name = ".".join(self._names)
        number = self._counts[name, kind] = self._counts.get((name, kind), 0) + 1
        before = self.source[max(start - 25, self.source.rfind("\n", 0, start) + 1) : start].lstrip()
        after = self.source[end : end + 25].partition("\n")[0]
        shown = f"{before}[{self.source[start:end]} -> {text}]{after}"
        mutant = Mutant(self.module, name, kind, number, node.lineno, start, end, text, " ".join(shown.split())[:90])
        self.found.append(mutant)
        self.sites.setdefault(node, []).append((index, mutant))

    def _named(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, is_function: bool) -> None:
        self._names.append(node.name)
        self._in_function += is_function
        for each in node.body:
            self.visit(each)
        self._in_function -= is_function
        self._names.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name not in ("__repr__", "__str__"):
            self._named(node, True)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._named(node, True)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._named(node, False)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Assert(self, node: ast.Assert) -> None:
        pass

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        pass

    def visit_Raise(self, node: ast.Raise) -> None:
        pass

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for index, each in enumerate(node.ops):
            if type(each) in OTHERS:
                old, new = OTHERS[type(each)]
                start, end = self._place(operands[index])[1], self._place(operands[index + 1])[0]
                at = self.source.index(old, start, end)
                kind = "equality" if old in ("==", "!=") else "compare"
                self._add(kind, node, at, at + len(old), new, index)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        is_one = isinstance(node.right, ast.Constant) and node.right.value == 1
        if is_one and isinstance(node.op, ast.Add | ast.Sub):
            old, new = ("+", "-") if isinstance(node.op, ast.Add) else ("-", "+")
            at = self.source.index(old, self._place(node.left)[1])
            self._add("offset", node, at, at + 1, new)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            start, end = self._place(left)[1], self._place(right)[0]
            if match := re.search(rf"\b{old}\b", self.source[start:end]):
                self._add("boolean", node, start + match.start(), start + match.end(), new)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            start, end = self._place(node)[0], self._place(node.operand)[0]
            self._add("boolean", node, start, end, "(" * self.source[start:end].count("("))
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._add("constant", node, *self._place(node), str(not node.value))
        elif isinstance(node.value, int):
            self._add("constant", node, *self._place(node), str(node.value + 1))

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            self._add("return", node, *self._place(node.value), "None")
            self.visit(node.value)


def mutants_of(package: str, kinds: Sequence[str]) -> list[Mutant]:
    """Return the mutants of a package in the order of its files."""
    found = []
    for path in sorted((ROOT / "src" / "kwire" / package).rglob("*.py")):
        module = str(path.relative_to(ROOT / "src" / "kwire").with_suffix(""))
        found += [each for each in Finder(module, path.read_text()).found if each.kind in kinds]
    return found


def sample_of(package: str, kinds: Sequence[str], count: int, seed: str = "") -> list[Mutant]:
    """Return the same mutants in every run: those whose names come first in an order by chance."""

    def place(mutant: Mutant) -> float:
        return random.Random(seed + mutant.id).random()

    return sorted(sorted(mutants_of(package, kinds), key=place)[:count], key=lambda each: (each.module, each.start))


# ---- tests

ENTER, REACH, MEET = "_kwire_enter", "_kwire_reach", "_kwire_meet"
"""Names of the probes, which are builtins while tests run with them."""


class Probes(ast.NodeTransformer):
    """Puts probes into the syntax tree of a module: at the beginning of functions and where mutants are."""

    def __init__(self, finder: Finder) -> None:
        self._module, self._sites, self._names = finder.module, finder.sites, list[str]()

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        self._names.append(node.name)
        probe = ast.Expr(_call(ENTER, ast.Constant(f"{self._module} {'.'.join(self._names)}")))
        self.generic_visit(node)
        self._names.pop()
        node.body.insert(0, ast.copy_location(probe, node.body[0]))
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._function(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self._names.append(node.name)
        self.generic_visit(node)
        self._names.pop()
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        sites = self._sites.get(node, [])
        self.generic_visit(node)
        operands = [node.left, *node.comparators]
        if len(node.ops) == 1 and [mutant.kind for _, mutant in sites] == ["compare"]:
            symbol = ast.Constant(OTHERS[type(node.ops[0])][0])
            return ast.copy_location(_call(MEET, ast.Constant(sites[0][1].id), *operands, symbol), node)
        names, before = list[str](), list[ast.expr]()
        for index, mutant in sites:  # of a chain; what is evaluated twice has to be without effects
            pair = operands[index : index + 2]
            if mutant.kind == "compare" and all(_is_plain(each) for each in pair):
                before.append(_call(MEET, ast.Constant(mutant.id), *pair, ast.Constant("==")))
            else:
                names.append(mutant.id)
        found = self._reached(node, names)
        if not before:
            return found
        return ast.copy_location(
            ast.Subscript(ast.Tuple([*before, found], ast.Load()), ast.Constant(-1), ast.Load()), node
        )

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        names = [mutant.id for _, mutant in self._sites.get(node, [])]
        self.generic_visit(node)
        return self._reached(node, names)

    def _reached(self, node: ast.expr, names: Sequence[str]) -> ast.expr:
        return ast.copy_location(_call(REACH, node, *(ast.Constant(name) for name in names)), node) if names else node


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def _is_plain(node: ast.expr) -> bool:
    return all(isinstance(each, ast.Name | ast.Constant | ast.Attribute | ast.Load) for each in ast.walk(node))


COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class Test:
    """A test. notices: the functions that it enters, as `module function`, and the mutants that it could notice."""

    id: str
    cpu_s: float
    wall_s: float
    notices: frozenset[str]


class Coverage:
    """A plugin of pytest that stores what the probes see in each test.

    What they see in fixtures for a whole file or run belongs to all tests of the file.
    """

    def __init__(self) -> None:
        self.tests: dict[str, tuple[float, float, set[str]]] = {}
        self._shared, self.noted, self._failed = set[str](), set[str](), False
        for name, probe in ((ENTER, self.enter), (REACH, self.reach), (MEET, self.meet)):
            setattr(builtins, name, probe)

    def enter(self, function: str) -> None:
        """Note that a function is entered."""
        self.noted.add(function)

    def reach(self, value: object, *names: str) -> object:
        """Note mutants whose place is evaluated; return its value."""
        self.noted.update(names)
        return value

    def meet(self, name: str, left: Any, right: Any, symbol: str) -> Any:
        """Note a mutant if both sides of the comparison are equal; return what the comparison returns."""
        if name not in self.noted:
            equal = left == right
            if not isinstance(equal, bool) or equal:  # arrays, NumPy's bool
                self.noted.add(name)
        return COMPARISONS[symbol](left, right)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Store what a test notices."""
        self.noted, self._failed = set(), False
        cpu, wall = time.process_time(), time.monotonic()
        try:
            return (yield)
        finally:
            if not self._failed:
                taken = time.process_time() - cpu, time.monotonic() - wall
                self.tests[item.nodeid] = *taken, self.noted

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Leave out tests that fail or are skipped."""
        self._failed |= not report.passed

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
        """Separate what fixtures of several tests notice."""
        before = self.noted
        if fixturedef.scope != "function":
            self.noted = self._shared
        try:
            return (yield)
        finally:
            self.noted = before

    def write(self, path: Path) -> None:
        """Store what was found."""
        found = {name: [cpu, wall, sorted(seen | self._shared)] for name, (cpu, wall, seen) in self.tests.items()}
        path.write_text(json.dumps(found))


class Runner:
    """Runs the tests of a package with mutants, each in a process forked from one that has imported everything."""

    def __init__(self, package: str, copy: Path) -> None:
        self._package, self.copy = package, copy
        self.output = BUILD / f"output-{package}.txt"
        self.files = sorted(
            str(path.relative_to(ROOT))
            for path in (ROOT / "tests").rglob("test_*.py")
            if any(path.is_relative_to(ROOT / "tests" / folder) for folder in (package, *MORE_TESTS.get(package, ())))
        )
        self._modules = sorted((copy / "kwire" / package).rglob("*.py"))
        sources = hashlib.sha256(b"".join(path.read_bytes() for path in self._modules)).hexdigest()[:16]
        self._digests = {
            path: f"{hashlib.sha256((ROOT / path).read_bytes()).hexdigest()[:16]}-{sources}" for path in self.files
        }
        os.chdir(ROOT)
        sys.path[:] = [str(self.copy), *(each for each in sys.path if each != str(ROOT / "src"))]
        os.environ |= {
            "PYTHONPATH": str(self.copy),
            "HYPOTHESIS_STORAGE_DIRECTORY": str(BUILD / "hypothesis"),
            "CI": "1",
        }
        for path in self._modules:
            with contextlib.suppress(ImportError):
                importlib.import_module(".".join(path.relative_to(self.copy).with_suffix("").parts))
        with self._output():
            pytest.main([*PYTEST, "--collect-only", "-q", "-q", *self.files])
        self._functions = functions_below(str(self.copy))
        self._tests: dict[str, list[Test]] = {}

    @contextlib.contextmanager
    def _output(self) -> Iterator[None]:
        """Write the output of the process to a file meanwhile."""
        sys.stdout.flush()
        before = os.dup(1), os.dup(2)
        with self.output.open("wb") as output:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
        yield
        sys.stdout.flush()
        sys.stderr.flush()
        for stream, old in zip((1, 2), before, strict=True):
            os.dup2(old, stream)
            os.close(old)

    def _tests_in(self, path: str) -> list[Test]:
        """Return the tests of a file that pass, run with probes if the file or the package has changed."""
        if path not in self._tests:
            self._tests[path] = self._measure(path)
        return self._tests[path]

    def _measure(self, path: str) -> list[Test]:
        stored = BUILD / "coverage" / f"{self._package}-{path.replace('/', '-')}-{self._digests[path]}.json"
        found = stored if stored.exists() else stored.with_suffix(".failed")
        if not stored.exists():
            found.unlink(missing_ok=True)

            def trace() -> int:
                coverage = Coverage()
                for each in self._modules:
                    add_probes(self._functions, str(each), str(each.relative_to(self.copy / "kwire").with_suffix("")))
                code = pytest.main([*PYTEST, path], plugins=[coverage])
                coverage.write(found)
                return int(code)

            stored.parent.mkdir(exist_ok=True)
            code = self._in_child(trace, FILE_LIMIT_S)
            if not found.exists():
                found.write_text("{}")
            if code in (0, 5):
                found = found.rename(stored)
            else:
                print(f"{path} has tests that fail without a mutant, see {self.output}", flush=True)
        return [
            Test(name, cpu, wall, frozenset(seen)) for name, (cpu, wall, seen) in json.loads(found.read_text()).items()
        ]

    def tests_of(self, mutant: Mutant) -> list[Test]:
        """Return the tests that could notice a mutant, at most MOST_TESTS."""
        reached = mutant.id if mutant.kind in PROBED else f"{mutant.module} {mutant.function}"
        return varied(test for file in self.files for test in self._tests_in(file) if reached in test.notices)

    def result(self, mutant: Mutant) -> tuple[str, str]:
        """Return (`killed`, the test), (`survived` or `untested`, how far tests came) or (`unclear`, why)."""
        tests = self.tests_of(mutant)
        if not tests:
            name = f"{mutant.module} {mutant.function}"
            if any(name in test.notices for file in self.files for test in self._tests_in(file)):
                return "survived", "no test reaches the boundary"
            return "untested", "no test enters the function"
        count = len(tests)
        while tests:
            failed = self._killer(mutant, tests)
            if not failed:
                return "survived", f"{count} tests reach the boundary"
            suspects = [test for test in tests if test.id == failed.removesuffix(" does not end")] or tests
            if not self._killer(None, suspects):
                return "killed", failed
            print(f"{failed} fails without a mutant too", flush=True)
            tests = [test for test in tests if test not in suspects]
        return "unclear", "the tests fail without the mutant"

    def _killer(self, mutant: Mutant | None, tests: Sequence[Test]) -> str:
        """Return the test that fails with a mutant or, for None, without one; empty if all pass."""
        killer = BUILD / f"killer-{os.getpid()}.txt"
        killer.unlink(missing_ok=True)
        path = self.copy / "kwire" / f"{mutant.module}.py" if mutant else self.output
        source = path.read_text() if mutant else ""

        def run() -> int:
            if mutant:
                replace_code(self._functions, str(path), mutated(mutant, source), mutant.line)
            return int(pytest.main([*PYTEST, "-x", *(test.id for test in tests)], plugins=[Killer(killer, tests)]))

        try:
            if mutant:
                path.write_text(mutated(mutant, source))  # for the processes that tests start
            code = self._in_child(run, FILE_LIMIT_S)
        finally:
            if mutant:
                path.write_text(source)
        if code == 0:
            return ""
        return killer.read_text() if killer.exists() else f"exit code {code}"

    def _in_child(self, action: Callable[[], int], limit_s: float) -> int:
        """Return the exit code of an action in a forked process, -1 after the limit."""
        child = os.fork()
        if child == 0:
            self._act(action)
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                self._end_group(child)
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.02)
        self._end_group(child)
        os.waitpid(child, 0)
        return -1

    def _end_group(self, child: int) -> None:
        """End what a test has left, such as processes that it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)

    def _act(self, action: Callable[[], int]) -> None:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
        code = 3
        try:
            with self._output():
                try:
                    code = action()
                except BaseException:
                    traceback.print_exc()
        finally:
            os._exit(code)


def varied(tests: Iterable[Test]) -> list[Test]:
    """Return at most MOST_TESTS: the quickest case of each test function, then the second one of each, and so on."""
    cases: dict[str, list[Test]] = {}
    for test in tests:
        cases.setdefault(test.id.partition("[")[0], []).append(test)
    ranked = [
        (rank, test.cpu_s, test.id, test)
        for same in cases.values()
        for rank, test in enumerate(sorted(same, key=lambda each: each.cpu_s))
    ]
    return [test for *_, test in sorted(ranked, key=lambda each: each[:3])[:MOST_TESTS]]


class Killer:
    """A plugin of pytest that stores which test fails, and ends the process if one has no end."""

    def __init__(self, path: Path, tests: Sequence[Test]) -> None:
        self._path, self._tests = path, {test.id: test for test in tests}
        self._timer: threading.Timer | None = None

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Limit the time of a test."""
        test = self._tests[nodeid]
        self._path.write_text(f"{nodeid} does not end")
        limit_s = int(time.process_time() + CPU_LIMIT_S + 10 * test.cpu_s) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (limit_s, resource.RLIM_INFINITY))
        self._timer = threading.Timer(WAIT_LIMIT_S + 10 * test.wall_s, os._exit, (NO_END,))
        self._timer.daemon = True
        self._timer.start()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Store a failure."""
        if report.failed:
            self._path.write_text(report.nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """End the limit."""
        if self._timer is not None:
            self._timer.cancel()
        if self._path.read_text() != nodeid:
            self._path.unlink()


def functions_below(path: str) -> dict[tuple[str, str], list[FunctionType]]:
    """Return the functions of the modules whose files are below a path, by file and name."""
    found: dict[tuple[str, str], list[FunctionType]] = {}
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and each.__code__.co_filename.startswith(path):
            found.setdefault((each.__code__.co_filename, each.__code__.co_qualname), []).append(each)
    return found


def mutated(mutant: Mutant, source: str) -> str:
    """Return the source of a module with a mutant."""
    return f"{source[: mutant.start]}{mutant.text}{source[mutant.end :]}"


Functions = Mapping[tuple[str, str], Sequence[FunctionType]]


def outermost(functions: Functions, path: str, code: CodeType) -> Iterator[CodeType]:
    """Return the code of functions of a module and of its classes, without those inside other functions."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            if (path, each.co_qualname) in functions:
                yield each
            else:  # a class
                yield from outermost(functions, path, each)


def set_code(functions: Functions, path: str, code: CodeType) -> None:
    """Give functions other code."""
    for function in functions[path, code.co_qualname]:
        if function.__code__.co_firstlineno == code.co_firstlineno:
            function.__code__ = code


def replace_code(functions: Functions, path: str, source: str, line: int) -> None:
    """Give the outermost function around a line its code in another source of the module."""
    codes = outermost(functions, path, compile(source, path, "exec"))
    outer = next((each for each in codes if any(at == line for _, _, at in code_lines(each))), None)
    assert outer is not None, f"{path}:{line}"
    set_code(functions, path, outer)


def add_probes(functions: Functions, path: str, module: str) -> None:
    """Give all functions of a module their code with probes."""
    finder = Finder(module, Path(path).read_text())
    tree = ast.fix_missing_locations(Probes(finder).visit(finder.tree))
    for code in outermost(functions, path, compile(tree, path, "exec")):
        set_code(functions, path, code)


def code_lines(code: CodeType) -> Iterator[tuple[int, int, int | None]]:
    """Return the lines of a function and of the functions inside it."""
    yield from code.co_lines()
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from code_lines(each)


# ---- commands


def load(path: Path) -> dict[str, dict[str, str]]:
    """Return the results so far."""
    found: dict[str, dict[str, str]] = json.loads(path.read_text()) if path.exists() else {}
    return found


def reasons() -> dict[str, tuple[str, str]]:
    """Return (`equivalent` or `kept`, reason) of survivors by id."""
    lines = REASONS.read_text().splitlines() if REASONS.exists() else []
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    return {row[0]: (row[1], row[2]) for row in rows}


def run(package: str, sample: Sequence[Mutant], minutes: float, again: str) -> None:
    """Run mutants of a package that have no result yet, until the time is over."""
    BUILD.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + 60 * minutes
    known = load(RESULTS)
    equivalent = {name for name, (kind, _) in reasons().items() if kind == "equivalent"}
    waiting = [each for each in sample if known.get(each.id, {}).get("result") in (None, again)]
    waiting = [each for each in waiting if each.id not in equivalent]
    if not waiting:
        return
    copy = BUILD / f"src-{os.getpid()}"
    shutil.copytree(ROOT / "src", copy, ignore=shutil.ignore_patterns("__pycache__"))
    try:
        runner = Runner(package, copy)
        for mutant in waiting:
            if time.monotonic() > deadline:
                print("the time is over; run the command again to continue")
                return
            start = time.monotonic()
            result, by = runner.result(mutant)
            store(mutant, {"result": result, "by": by, "line": str(mutant.line)})
            print(f"{result:9} {time.monotonic() - start:5.1f} s  {mutant.id}  {by}", flush=True)
    finally:
        shutil.rmtree(copy, ignore_errors=True)


def store(mutant: Mutant, result: dict[str, str]) -> None:
    """Add a result to those of this run and of others."""
    with (BUILD / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        RESULTS.write_text(json.dumps(load(RESULTS) | {mutant.id: result}, indent=1, sort_keys=True))


def report(packages: Sequence[str], kinds: Sequence[str], count: int, seed: str) -> int:
    """Print the score of each package and its survivors; return 1 if one is below the floor or has no reason."""
    results, known, is_low = load(RESULTS), reasons(), False
    print(f"{'PACKAGE':12} {'MUTANTS':>7} {'KILLED':>7} {'EQUIVALENT':>10} {'SURVIVED':>8} {'SCORE':>6}")
    left = []
    for package in packages:
        sample = sample_of(package, kinds, count, seed)
        equal = [each for each in sample if known.get(each.id, ("", ""))[0] == "equivalent"]
        ran = [each for each in sample if each.id in results or each in equal]
        alive = [each for each in ran if each in equal or results[each.id]["result"] != "killed"]
        score = (len(ran) - len(alive)) / max(len(ran) - len(equal), 1)
        row = f"{package:12} {len(ran):7} {len(ran) - len(alive):7} {len(equal):10} {len(alive) - len(equal):8}"
        print(f"{row} {score:6.0%}")
        left += [each for each in alive if each not in equal]
        is_low |= score < FLOOR
    for each in left:
        why = known.get(each.id, ("", "no reason in tools/mutants.tsv"))[1]
        print(f"src/kwire/{each.module}.py:{each.line}: {each.id}\t{results[each.id]['result']}; {why}")
    return int(is_low or any(each.id not in known for each in left))


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description="Mutation testing; see the top of this file.")
    parser.add_argument("command", choices=["run", "report"])
    parser.add_argument("packages", nargs="*", default=PACKAGES, metavar="PACKAGE")
    parser.add_argument("--kinds", default=",".join(BOUNDARIES), help="kinds of mutants (default: %(default)s)")
    parser.add_argument("--sample", type=int, default=40, help="mutants of a package (default: %(default)s)")
    parser.add_argument("--seed", default="", help="any word, for another sample")
    parser.add_argument(
        "--minutes", type=float, default=60, help="time limit of run, of each package (default: %(default)s)"
    )
    parser.add_argument("--again", default="", help="a result, such as survived, whose mutants run again")
    given = parser.parse_args()
    kinds = given.kinds.split(",")
    if given.command == "report":
        return report(given.packages, kinds, given.sample, given.seed)
    code = 0
    for package in given.packages:
        sample = sample_of(package, kinds, given.sample, given.seed)
        worker = multiprocessing.get_context("fork").Process(
            target=run, args=(package, sample, given.minutes, given.again)
        )
        worker.start()
        worker.join()
        code |= int(worker.exitcode != 0)
    return code


if __name__ == "__main__":
    raise SystemExit(main())
