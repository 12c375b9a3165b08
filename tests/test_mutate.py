"""Mutation testing: which mutants a module has, and that each is a program of its own."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tools import mutate

SOURCE = '''
"""1 + 1"""
LIMIT = 5 + 1


class Box:
    size: int = 3

    def has(self, n: int, most: "int | None" = 7) -> bool:
        """Return n < 1."""
        assert n >= 0
        if n < 0 <= self.size and not (n == 2 or "é" > "a"):
            raise ValueError(f"{n - 1} of {n < 2}")
        return n - 1 > 3
'''


def test_every_boundary_of_a_function_is_a_mutant() -> None:
    found = mutate.Finder("box", SOURCE).found
    assert [(each.kind, each.number, each.line, each.shown) for each in found if each.kind in mutate.BOUNDARIES] == [
        ("compare", 1, 12, "if n [< -> <=] 0 <= self.size and not ("),
        ("compare", 2, 12, "if n < 0 [<= -> <] self.size and not (n =="),
        ("compare", 3, 12, 'e and not (n == 2 or "é" [> -> >=] "a"):'),
        ("compare", 4, 14, "return n - 1 [> -> >=] 3"),
        ("offset", 1, 14, "return n [- -> +] 1 > 3"),
    ]
    assert {each.function for each in found} == {"Box.has"}
    others = sorted((each.kind, each.text) for each in found if each.kind not in mutate.BOUNDARIES)
    assert others == [
        ("boolean", "("),
        ("boolean", "and"),
        ("boolean", "or"),
        ("constant", "1"),
        ("constant", "2"),
        ("constant", "3"),
        ("constant", "4"),
        ("equality", "!="),
        ("return", "None"),
    ]


@pytest.mark.sampled
@pytest.mark.parametrize("package", mutate.PACKAGES)
def test_mutants_are_other_programs_with_names_of_their_own(package: str) -> None:
    found = mutate.sample_of(package, [*mutate.BOUNDARIES, "equality", "boolean", "constant", "return"], 20)
    assert len({each.id for each in found}) == 20
    for each in found:
        source = (mutate.ROOT / "src" / "kwire" / f"{each.module}.py").read_text()
        changed = f"{source[: each.start]}{each.text}{source[each.end :]}"
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source)), each.id


def test_every_reason_is_of_a_mutant_that_exists() -> None:
    """A function that has changed may have other mutants."""
    everything = [*mutate.BOUNDARIES, "equality", "boolean", "constant", "return"]
    reasons = mutate.reasons()
    packages = {name.partition("/")[0] for name in reasons}
    known = {each.id for package in packages for each in mutate.mutants_of(package, everything)}
    assert {name for name in reasons if name not in known} == set()
    assert {kind for kind, _ in reasons.values()} <= {"equivalent", "kept"}


def test_the_test_files_exist() -> None:
    for package, paths in mutate.MORE_TESTS.items():
        assert package in mutate.PACKAGES
        for path in paths:
            assert (mutate.ROOT / "tests" / path).exists(), path


FUNCTIONS = """
import contextlib, functools

@functools.lru_cache
def cached(n):
    return n < 5

class Box:
    def __init__(self, n):
        self.n = n

    @property
    def is_small(self):
        return self.n < 5

    @contextlib.contextmanager
    def inside(self):
        def below(limit):
            return [each for each in range(self.n) if each < limit]
        yield below

bound = Box(5).inside
"""


def test_a_function_has_its_changed_code_wherever_it_is_referred_to() -> None:
    path, module = "/changed/module.py", dict[str, Any]()
    exec(compile(FUNCTIONS, path, "exec"), module)
    functions = mutate.functions_below("/changed/")
    found = [each for each in mutate.Finder("module", FUNCTIONS).found if each.kind == "compare"]
    assert [each.function for each in found] == ["cached", "Box.is_small", "Box.inside.below"]

    def results() -> tuple[bool, bool, list[int]]:
        module["cached"].cache_clear()
        with module["bound"]() as below:
            return module["cached"](5), module["Box"](5).is_small, below(2)

    assert results() == (False, False, [0, 1])
    expected = [(True, False, [0, 1]), (False, True, [0, 1]), (False, False, [0, 1, 2])]
    for mutant, result in zip(found, expected, strict=True):
        changed = f"{FUNCTIONS[: mutant.start]}{mutant.text}{FUNCTIONS[mutant.end :]}"
        mutate.replace_code(functions, path, changed, mutant.line)
        assert results() == result
        mutate.replace_code(functions, path, FUNCTIONS, mutant.line)
    assert results() == (False, False, [0, 1])


PROBED = """
class Box:
    def has(self, n):
        return [each for each in (1, 2) if each < n]

    def spans(self, n):
        return 0 <= n < self.size or n == 7

    size = 5

def after(n):
    return n + 1
"""


def test_probes_note_what_could_make_a_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A comparison makes one where both sides are equal; other places wherever they are evaluated."""
    for name in (mutate.ENTER, mutate.REACH, mutate.MEET):
        monkeypatch.setattr(builtins, name, None, raising=False)
    path, module = tmp_path / "module.py", dict[str, Any]()
    path.write_text(PROBED)
    exec(compile(PROBED, str(path), "exec"), module)
    kinds = {each.id: f"{each.kind} {each.number}" for each in mutate.Finder("log/module", PROBED).found}
    mutate.add_probes(mutate.functions_below(str(tmp_path)), str(path), "log/module")
    box = module["Box"]()

    def noted(action: Callable[[], object]) -> tuple[object, list[str]]:
        coverage = mutate.Coverage()
        result = action()
        return result, sorted(kinds.get(each, each) for each in coverage.noted)

    has, spans = "log/module Box.has", "log/module Box.spans"
    assert noted(lambda: box.has(5)) == ([1, 2], [has])
    assert noted(lambda: box.has(2)) == ([1], ["compare 1", has])
    assert noted(lambda: box.spans(3)) == (True, [spans])
    assert noted(lambda: box.spans(0)) == (True, ["compare 1", spans])
    assert noted(lambda: box.spans(5)) == (False, ["compare 2", "equality 1", spans])
    assert noted(lambda: box.spans(7)) == (True, ["equality 1", spans])
    assert noted(lambda: module["after"](1)) == (2, ["log/module after", "offset 1"])


def test_different_tests_come_before_more_cases_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def test(name: str, cpu_s: float) -> mutate.Test:
        return mutate.Test(name, cpu_s, cpu_s, frozenset())

    given = [test("a[1]", 0.1), test("a[2]", 0.2), test("a[3]", 0.05), test("b", 3.0), test("c[x]", 1.0)]
    assert [each.id for each in mutate.varied(given)] == ["a[3]", "c[x]", "b", "a[1]", "a[2]"]
    monkeypatch.setattr(mutate, "MOST_TESTS", 4)
    assert [each.id for each in mutate.varied(given)] == ["a[3]", "c[x]", "b", "a[1]"]
