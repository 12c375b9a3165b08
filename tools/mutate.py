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
its functions are. Mutants run one after another, each in a process forked from one that has imported the libraries,
with the test files that have the module's name, those that import it, and those of TESTS: the quick ones of each first,
up to a limit.
tools/mutants.tsv has a reason for every survivor that stays: `equivalent` (no input tells it from the original) does
not count, `kept` does.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "mutants"
RESULTS, DURATIONS = BUILD / "results.json", BUILD / "durations.json"
REASONS = ROOT / "tools" / "mutants.tsv"
PACKAGES = ("lake", "maintenance", "storage", "schemas", "client", "records", "log")
BOUNDARIES = ("compare", "offset")
FLOOR = 0.85
SLOWEST_FILE_S = 40.0  # without a mutant; slower files are left out
LONGEST_MUTANT_S = 35.0  # of test files, as they take without a mutant
NEVER_S = 1e9  # of files that fail, or have no test
MAX_MEMORY = 12 << 30
OTHERS = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
}
TESTS: Mapping[str, Sequence[str]] = {
    "client": (
        *("client/test_client.py", "client/test_failures.py", "client/test_fetcher.py", "client/test_cluster_logs.py"),
        *("client/test_old_brokers.py", "client/test_group_offsets.py", "client/test_producer.py"),
    ),
    "lake": ("lake/test_commits.py", "lake/test_holes.py", "lake/test_schemas.py", "lake/test_append.py"),
    "log": ("log/test_partition_log.py",),
    "log/cleaner": ("log/cleaner/test_cleaning_pass.py", "log/cleaner/test_cleaner.py"),
    "log/files": ("log/test_segment.py", "log/test_indexes.py", "log/test_index_writer.py", "log/test_time_lookup.py"),
    "log/reading": ("log/test_splits.py", "log/test_missing_segments.py", "log/test_transactions.py"),
    "log/writing": ("log/test_partition_writer.py", "log/test_segment_writer.py", "log/test_recovery.py"),
    "maintenance": ("maintenance/test_repair.py",),
    "maintenance/adopt": ("maintenance/adopt/test_plan.py", "maintenance/adopt/test_apply.py"),
    "maintenance/convert": ("maintenance/convert/test_directory.py", "maintenance/convert/test_in_place.py"),
    "maintenance/encoded_runs": ("maintenance/from_parquet/test_directory.py",),
    "maintenance/from_parquet": ("maintenance/from_parquet/test_directory.py",),
    "maintenance/restore": ("maintenance/restore/test_run.py", "maintenance/restore/test_transactions.py"),
    "maintenance/verify": ("maintenance/verify/test_verify.py", "maintenance/verify/test_layout.py"),
    "records": ("records/test_columns.py", "records/test_default_batch.py", "records/test_legacy_batch.py"),
    "records/append": (
        *("records/test_validation.py", "records/test_whole_batch.py", "records/test_append_checks.py"),
        *("records/test_column_rebuild.py", "log/test_append_preparation.py"),
    ),
    "records/columns": ("records/test_column_writer.py", "records/test_kernels.py", "records/test_parallel_decoder.py"),
    "records/convert": ("records/test_conversion.py", "records/test_column_conversion.py"),
    "records/format": ("records/test_builder.py", "records/test_section_scan.py", "records/test_hostile_bytes.py"),
    "schemas": ("schemas/test_columns.py", "schemas/test_registry.py"),
    "schemas/avro": (
        *("schemas/avro/test_parsing.py", "schemas/avro/test_encoder.py", "schemas/avro/test_decoder.py"),
        *("schemas/avro/test_resolution.py", "schemas/avro/test_hostile_bytes.py"),
    ),
    "schemas/json_schema": ("schemas/json_schema/test_json_schema.py", "schemas/json_schema/test_kernel.py"),
    "schemas/protobuf": ("schemas/protobuf/test_protobuf.py", "schemas/protobuf/test_kernel.py"),
    "storage": ("storage/test_file_system.py", "storage/test_store.py"),
}
"""Test files of modules and packages, besides those found by name."""


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


def sample_of(package: str, kinds: Sequence[str], count: int) -> list[Mutant]:
    """Return the same mutants in every run: those whose names come first in an order by chance."""

    def place(mutant: Mutant) -> float:
        return random.Random(mutant.id).random()

    return sorted(sorted(mutants_of(package, kinds), key=place)[:count], key=lambda each: (each.module, each.start))


# ---- tests


def test_files(module: str, durations: Mapping[str, float]) -> list[str]:
    """Return the test files of a module, with the paths below tests: the quick ones of each sort first."""
    package, _, rest = module.partition("/")
    name = rest.rpartition("/")[2] or package
    tests = ROOT / "tests"
    named = {*tests.glob(f"{package}/**/test_{name}.py")}
    dotted = re.compile(rf"kwire\.{module.replace('/', '.')}\b")
    importing = {path for path in tests.glob(f"{package}/**/test_*.py") if dotted.search(path.read_text())}
    listed = [tests / path for start in (module, *parents(module)) for path in TESTS.get(start, ())]
    found = list[str]()
    for some in (named, importing, listed):
        paths = [str(path.relative_to(tests)) for path in some]
        found += sorted((each for each in paths if each not in found), key=lambda each: durations.get(each, 0))
    return found


def parents(module: str) -> Iterator[str]:
    """Return the packages of a module, the inner one first."""
    while "/" in module:
        module = module.rpartition("/")[0]
        yield module


class Runner:
    """Runs test files on a copy of the sources in forked processes."""

    def __init__(self) -> None:
        self.copy = BUILD / "src"
        shutil.rmtree(self.copy, ignore_errors=True)
        shutil.copytree(ROOT / "src", self.copy, ignore=shutil.ignore_patterns("__pycache__"))
        self.durations: dict[str, float] = json.loads(DURATIONS.read_text()) if DURATIONS.exists() else {}
        self._clock = int(time.time())
        self._sources: dict[str, str] = {}
        for name in ("numpy", "pyarrow", "pyarrow.parquet", "pyarrow.compute", "msgspec", "pytest"):
            with contextlib.suppress(ImportError):
                __import__(name)

    def measure(self, path: str) -> float:
        """Return how long a test file takes without a mutant; infinite if it fails, has no test, or takes too long."""
        if path not in self.durations:
            start = time.monotonic()
            code = self._run(path, 3 * SLOWEST_FILE_S)
            taken = time.monotonic() - start
            self.durations[path] = taken if code == 0 else NEVER_S
            if code not in (0, 5):
                print(f"tests/{path} fails without a mutant, see {BUILD}/output.txt")
            DURATIONS.write_text(json.dumps(self.durations, indent=1, sort_keys=True))
        return self.durations[path]

    def result(self, mutant: Mutant) -> tuple[str, str]:
        """Return whether a mutant was killed, and by which test file; `survived` or `untested`."""
        files = test_files(mutant.module, self.durations)
        for path in files:
            self.measure(path)
        self._write(mutant, is_mutated=True)
        total = 0.0
        try:
            for path in test_files(mutant.module, self.durations):
                taken = self.durations[path]
                if taken > SLOWEST_FILE_S or (total and total + taken > LONGEST_MUTANT_S):
                    continue
                total += taken
                if self._run(path, 20 + 5 * taken) not in (0, 5):
                    return "killed", path
        finally:
            self._write(mutant, is_mutated=False)
        return ("survived", "") if total else ("untested", "")

    def _write(self, mutant: Mutant, *, is_mutated: bool) -> None:
        path = self.copy / "kwire" / f"{mutant.module}.py"
        source = self._sources.setdefault(mutant.module, path.read_text())
        path.write_text(f"{source[: mutant.start]}{mutant.text}{source[mutant.end :]}" if is_mutated else source)
        self._clock += 2  # compiled files are told apart by whole seconds
        os.utime(path, (self._clock, self._clock))

    def _run(self, path: str, limit_s: float) -> int:
        """Return pytest's exit code, -1 after the limit."""
        child = os.fork()
        if child == 0:
            self._test(path)
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

    def _test(self, path: str) -> None:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
        with (BUILD / "output.txt").open("wb") as output:
            for stream in (1, 2):
                os.dup2(output.fileno(), stream)
        os.chdir(ROOT)
        sys.path[:] = [str(self.copy), *(each for each in sys.path if each != str(ROOT / "src"))]
        os.environ |= {"PYTHONPATH": str(self.copy), "HYPOTHESIS_STORAGE_DIRECTORY": str(BUILD / "hypothesis")}
        code: int = 3
        try:
            import pytest

            marks = "not jvm and not slow and not spark"
            code = pytest.main(["-q", "-x", "-n", "0", "-p", "no:cacheprovider", "-m", marks, f"tests/{path}"])
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(int(code))


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


def run(packages: Sequence[str], kinds: Sequence[str], count: int, minutes: float, again: str) -> None:
    """Run mutants that have no result yet, until the time is over."""
    BUILD.mkdir(parents=True, exist_ok=True)
    deadline, results, runner = time.monotonic() + 60 * minutes, load(RESULTS), Runner()
    samples = [sample_of(package, kinds, count) for package in packages]
    for index in range(max(map(len, samples))):
        for mutant in [sample[index] for sample in samples if index < len(sample)]:
            known = results.get(mutant.id, {}).get("result")
            if known is not None and known != again:
                continue
            if time.monotonic() > deadline:
                print("the time is over; run the command again to continue")
                return
            start = time.monotonic()
            result, by = runner.result(mutant)
            results[mutant.id] = {"result": result, "by": by, "line": str(mutant.line)}
            RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True))
            print(f"{result:9} {time.monotonic() - start:5.1f} s  {mutant.id}  {by}", flush=True)


def report(packages: Sequence[str], kinds: Sequence[str], count: int) -> int:
    """Print the score of each package and its survivors; return 1 if one is below the floor or has no reason."""
    results, known, is_low = load(RESULTS), reasons(), False
    print(f"{'PACKAGE':12} {'MUTANTS':>7} {'KILLED':>7} {'EQUIVALENT':>10} {'SURVIVED':>8} {'SCORE':>6}")
    left = []
    for package in packages:
        ran = [each for each in sample_of(package, kinds, count) if each.id in results]
        alive = [each for each in ran if results[each.id]["result"] != "killed"]
        equal = [each for each in alive if known.get(each.id, ("", ""))[0] == "equivalent"]
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
    parser.add_argument("--minutes", type=float, default=60, help="time limit of run (default: %(default)s)")
    parser.add_argument("--again", default="", help="a result, such as survived, whose mutants run again")
    given = parser.parse_args()
    kinds = given.kinds.split(",")
    if given.command == "report":
        return report(given.packages, kinds, given.sample)
    run(given.packages, kinds, given.sample, given.minutes, given.again)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
