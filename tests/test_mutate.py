"""Mutation testing: which mutants a module has, and that each is a program of its own."""

from __future__ import annotations

import ast

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
    for start, paths in mutate.TESTS.items():
        source = mutate.ROOT / "src" / "kwire" / start
        assert source.is_dir() or source.with_suffix(".py").is_file(), start
        for path in paths:
            assert (mutate.ROOT / "tests" / path).is_file(), path
