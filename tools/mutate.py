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

The tests of a package are collected once. A process forked from there gives the function its changed code and runs the
tests that enter it, until one fails. Which functions a test enters is traced once and kept until its file changes:
files that have the module's name or import it are traced when they are needed, the others are used if they have been,
or if no test enters the function so far.
tools/mutants.tsv has a reason for every survivor that stays: `equivalent` (no input tells it from the original) does
not run and does not count, `kept` does.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import fcntl
import gc
import hashlib
import importlib
import json
import multiprocessing
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
from types import CodeType, FrameType, FunctionType

import pytest

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "mutants"
RESULTS = BUILD / "results.json"
REASONS = ROOT / "tools" / "mutants.tsv"
PACKAGES = ("lake", "maintenance", "storage", "schemas", "client", "records", "log")
BOUNDARIES = ("compare", "offset")
FLOOR = 0.85
SLOWEST_TEST_S = 10.0  # traced, without a mutant; slower tests are left out
SLOWEST_FILE_S = 150.0  # the same: tests after it are left out
LONGEST_SEARCH_S = 180.0  # for tests that enter a function; then no more files are traced for it
LONGEST_MUTANT_S = 15.0  # of tests, as they take without a mutant
MAX_MEMORY = 12 << 30
OTHERS = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
}
MORE_TESTS: Mapping[str, Sequence[str]] = {"records": ("log/test_append_preparation.py",)}
"""Test files and folders of packages, besides the folder of their name."""
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
        self._names: list[str] = []
        self._counts: dict[tuple[str, str], int] = {}
        self._in_function = 0
        lines = source.splitlines(keepends=True)
        self._line_starts = [0]
        for line in lines:
            self._line_starts.append(self._line_starts[-1] + len(line))
        self._lines = lines
        self.visit(ast.parse(source))

    def _at(self, line: int, column: int) -> int:
        """Return the index of a character; columns of the syntax tree count UTF-8 bytes."""
        return self._line_starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())

    def _place(self, node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def _add(self, kind: str, node: ast.expr | ast.stmt, start: int, end: int, text: str) -> None:
        if not self._in_function:
            return
        name = ".".join(self._names)
        number = self._counts[name, kind] = self._counts.get((name, kind), 0) + 1
        before = self.source[max(start - 25, self.source.rfind("\n", 0, start) + 1) : start].lstrip()
        after = self.source[end : end + 25].partition("\n")[0]
        shown = f"{before}[{self.source[start:end]} -> {text}]{after}"
        self.found.append(
            Mutant(self.module, name, kind, number, node.lineno, start, end, text, " ".join(shown.split())[:90])
        )

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
        for index, operator in enumerate(node.ops):
            if type(operator) in OTHERS:
                old, new = OTHERS[type(operator)]
                start, end = self._place(operands[index])[1], self._place(operands[index + 1])[0]
                at = self.source.index(old, start, end)
                kind = "equality" if old in ("==", "!=") else "compare"
                self._add(kind, node, at, at + len(old), new)
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


@dataclass(frozen=True, slots=True)
class Test:
    """A test. functions: those of kwire that it enters, as `module function`."""

    id: str
    duration_s: float
    functions: frozenset[str]


class Coverage:
    """A plugin of pytest that notes the functions that each test enters.

    Those of fixtures for a whole file or run belong to all tests of the file.
    """

    def __init__(self, source: Path) -> None:
        self.tests: dict[str, tuple[float, set[str]]] = {}
        self._source, self._shared, self._current = f"{source}/", set[CodeType](), set[CodeType]()
        self._failed, self._deadline = False, time.monotonic() + SLOWEST_FILE_S

    def _enter(self, frame: FrameType, event: str, argument: object) -> None:
        self._current.add(frame.f_code)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Trace a test."""
        self._current, start, self._failed = set(), time.monotonic(), False
        sys.settrace(self._enter)
        threading.settrace(self._enter)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)
            if not self._failed:
                self.tests[item.nodeid] = time.monotonic() - start, self.names(self._current)

    def pytest_runtest_setup(self) -> None:
        """Leave out tests when the time of the file is over."""
        if time.monotonic() > self._deadline:
            pytest.skip("too late")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        """End a slow test."""
        signal.signal(signal.SIGALRM, end_test)
        signal.setitimer(signal.ITIMER_REAL, SLOWEST_TEST_S)
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Leave out tests that fail or are ended."""
        self._failed |= not report.passed

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
        """Trace a fixture."""
        before = self._current
        if fixturedef.scope != "function":
            self._current = self._shared
        try:
            return (yield)
        finally:
            self._current = before

    def names(self, codes: Iterable[CodeType]) -> set[str]:
        """Return the functions of kwire among code objects, as `module function`."""
        found = set()
        for code in codes:
            if code.co_filename.startswith(self._source):
                module = code.co_filename.removeprefix(self._source).removesuffix(".py")
                found.add(f"{module} {re.sub(r'[.]<[^.]*>', '', code.co_qualname)}")
        return found

    def write(self, path: Path) -> None:
        """Store what was found."""
        shared = self.names(self._shared)
        found = {name: [taken, sorted(names | shared)] for name, (taken, names) in self.tests.items()}
        path.write_text(json.dumps(found))


def end_test(number: int, frame: FrameType | None) -> None:
    """Skip the rest of a test."""
    pytest.skip("too slow")


class Runner:
    """Runs the tests of a package with mutants, each in a process forked from one that has imported everything."""

    def __init__(self, package: str, copy: Path) -> None:
        self.copy = copy
        self.output = BUILD / f"output-{package}.txt"
        self.files = sorted(
            str(path.relative_to(ROOT))
            for path in (ROOT / "tests").rglob("test_*.py")
            if any(path.is_relative_to(ROOT / "tests" / folder) for folder in (package, *MORE_TESTS.get(package, ())))
        )
        self._digests = {path: hashlib.sha256((ROOT / path).read_bytes()).hexdigest()[:16] for path in self.files}
        os.chdir(ROOT)
        sys.path[:] = [str(self.copy), *(each for each in sys.path if each != str(ROOT / "src"))]
        os.environ |= {"PYTHONPATH": str(self.copy), "HYPOTHESIS_STORAGE_DIRECTORY": str(BUILD / "hypothesis")}
        for path in sorted((self.copy / "kwire" / package).rglob("*.py")):
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
        """Return the tests of a file, traced again if the file has changed; none if it fails or is too slow."""
        if path not in self._tests:
            self._tests[path] = self._measure(path)
        return self._tests[path]

    def _measure(self, path: str) -> list[Test]:
        stored = self._stored(path)
        if not stored.exists():

            def trace() -> int:
                coverage = Coverage(self.copy / "kwire")
                code = pytest.main([*PYTEST, path], plugins=[coverage])
                coverage.write(stored)
                return int(code)

            stored.parent.mkdir(exist_ok=True)
            code = self._in_child(trace, 2 * SLOWEST_FILE_S)
            if not stored.exists():
                stored.write_text("{}")
            if code not in (0, 5):
                what = "is too slow" if code == -1 else f"has tests that fail without a mutant, see {self.output}"
                print(f"{path} {what}", flush=True)
        return [Test(name, taken, frozenset(names)) for name, (taken, names) in json.loads(stored.read_text()).items()]

    def _files_of(self, module: str) -> list[str]:
        """Return the test files that have the name of the module or import it, and then the others traced so far."""
        name = module.rpartition("/")[2]
        dotted = re.compile(rf"kwire[.]{module.replace('/', '[.]')}\b")
        named = [path for path in self.files if path.endswith(f"/test_{name}.py")]
        importing = [path for path in self.files if dotted.search((ROOT / path).read_text())]
        traced = sorted((path for path in self.files if self._is_traced(path)), key=self._duration_s)
        inner = module.partition("/")[0] != module.rpartition("/")[0]
        beside = [path for path in self.files if inner and path.startswith(f"tests/{module.rpartition('/')[0]}/")]
        return list(dict.fromkeys([*named, *importing, *traced, *beside]))

    def _is_traced(self, path: str) -> bool:
        return path in self._tests or self._stored(path).exists()

    def _duration_s(self, path: str) -> float:
        return sum(test.duration_s for test in self._tests_in(path))

    def _stored(self, path: str) -> Path:
        return BUILD / "coverage" / f"{path.replace('/', '-')}-{self._digests[path]}.json"

    def result(self, mutant: Mutant) -> tuple[str, str]:
        """Return whether a mutant was killed, and by which test; `survived` or `untested`."""
        path = self.copy / "kwire" / f"{mutant.module}.py"
        source = path.read_text()
        mutated = f"{source[: mutant.start]}{mutant.text}{source[mutant.end :]}"
        total, start = 0.0, time.monotonic()
        likely = self._files_of(mutant.module)
        for file in [*likely, *(each for each in self.files if each not in likely)]:
            if total and file not in likely:
                break
            if not self._is_traced(file) and time.monotonic() - start > LONGEST_SEARCH_S:
                continue
            tests = []
            for test in sorted(self._tests_in(file), key=lambda each: each.duration_s):
                enters = f"{mutant.module} {mutant.function}" in test.functions
                if enters and (not total or total + test.duration_s <= LONGEST_MUTANT_S):
                    tests.append(test)
                    total += test.duration_s
            try:
                path.write_text(mutated)  # for the processes that tests start
                if tests and (by := self._killer(mutant, path, mutated, tests)):
                    return "killed", by
            finally:
                path.write_text(source)
        return "survived" if total else "untested", ""

    def _killer(self, mutant: Mutant, path: Path, mutated: str, tests: Sequence[Test]) -> str:
        """Return the test that fails with a mutant, empty if all pass."""
        killer = BUILD / f"killer-{os.getpid()}.txt"
        killer.unlink(missing_ok=True)

        def run() -> int:
            replace_code(self._functions, str(path), mutated, mutant.line)
            return int(pytest.main([*PYTEST, "-x", *(test.id for test in tests)], plugins=[Killer(killer)]))

        code = self._in_child(run, 30 + 5 * sum(test.duration_s for test in tests))
        if code == 0:
            return ""
        return killer.read_text() if killer.exists() else "no end" if code == -1 else f"exit code {code}"

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


class Killer:
    """A plugin of pytest that stores which test fails."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Store a failure."""
        if report.failed:
            self._path.write_text(report.nodeid)


def functions_below(path: str) -> dict[tuple[str, str], list[FunctionType]]:
    """Return the functions of the modules whose files are below a path, by file and name."""
    found: dict[tuple[str, str], list[FunctionType]] = {}
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and each.__code__.co_filename.startswith(path):
            found.setdefault((each.__code__.co_filename, each.__code__.co_qualname), []).append(each)
    return found


def replace_code(
    functions: Mapping[tuple[str, str], Sequence[FunctionType]], path: str, source: str, line: int
) -> None:
    """Give the outermost function around a line its code in another source of the module."""
    waiting, outer = [compile(source, path, "exec")], None
    while waiting and outer is None:
        for code in [each for each in waiting.pop().co_consts if isinstance(each, CodeType)]:
            if (path, code.co_qualname) not in functions:
                waiting.append(code)  # a class
            elif any(at == line for _, _, at in code_lines(code)):
                outer = code
                break
    assert outer is not None, f"{path}:{line}"
    for function in functions[path, outer.co_qualname]:
        if function.__code__.co_firstlineno == outer.co_firstlineno:
            function.__code__ = outer


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
