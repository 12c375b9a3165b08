"""Differences between rows that a test expects and those that it got."""

from __future__ import annotations

import time
from decimal import Decimal

import pytest

from kwire.testing.rows import difference

NAN = float("nan")
EQUAL = [
    ([], []),
    ([("a", 1), ("b", 2)], [("b", 2), ("a", 1)]),
    ([("a", 1), ("a", 1)], [("a", 1), ("a", 1)]),
    ([(NAN,)], [(NAN,)]),
    ([(1.0,)], [(1,)]),
    ([(0.1 + 0.2, "x")], [(0.3, "x")]),
    ([(1.0, 5.0), (1.0, 7.0)], [(1.0, 7.000001), (1.0, 5.000001)]),
    ([(Decimal("1.000001"),)], [(Decimal("1"),)]),
    ([(bytearray(b"x"),)], [(b"x",)]),
    ([([1, 2],)], [((1, 2),)]),
    ([({"b": 2, "a": [1]},)], [({"a": [1], "b": 2},)]),
    ([(None,)], [(None,)]),
]
DIFFERENT = [
    ([("a",)], []),
    ([("a",), ("a",)], [("a",)]),
    ([(True,)], [(1,)]),
    ([("1",)], [(1,)]),
    ([(b"a",)], [("a",)]),
    ([(1.0001,)], [(1.0,)]),
    ([(NAN,)], [(None,)]),
    ([(0,)], [(None,)]),
    ([("",)], [(None,)]),
    ([([1, 2],)], [([2, 1],)]),
]


@pytest.mark.parametrize(("actual", "expected"), EQUAL)
def test_equal_rows_do_not_differ(actual: list[tuple[object]], expected: list[tuple[object]]) -> None:
    assert difference(actual, expected) is None
    assert difference(expected, actual) is None


@pytest.mark.parametrize(("actual", "expected"), DIFFERENT)
def test_other_rows_differ_both_ways(actual: list[tuple[object]], expected: list[tuple[object]]) -> None:
    assert difference(actual, expected) is not None
    assert difference(expected, actual) is not None


def test_a_difference_lists_missing_and_unexpected_rows_only() -> None:
    assert difference([("a", 1), ("c", 3), ("d", 4)], [("a", 1), ("b", 2), ("d", 4)]) == (
        "the result has 3 rows, 3 rows expected\n"
        "1 missing, expected but not in the result:\n    ('b', 2)\n"
        "1 unexpected, in the result but not expected:\n    ('c', 3)"
    )


def test_a_missing_row_is_one_difference_wherever_it_is() -> None:
    rows = [(n,) for n in range(100)]
    found = difference(rows[1:], rows)
    assert found == "the result has 99 rows, 100 rows expected\n1 missing, expected but not in the result:\n    (0,)"


def test_another_order_counts_only_if_asked_for() -> None:
    actual, expected = [("b",), ("a",), ("c",)], [("a",), ("b",), ("c",)]
    assert difference(actual, expected) is None
    assert difference(expected, expected, in_order=True) is None
    assert difference([(0.1 + 0.2,)], [(0.3,)], in_order=True) is None
    assert difference(actual, expected, in_order=True) == (
        "the result has 3 rows, 3 rows expected\n2 in another order:\n"
        "    position 0: expected ('a',), got ('b',)\n    position 1: expected ('b',), got ('a',)"
    )


@pytest.mark.parametrize("count", [20, 21])
def test_a_message_shows_the_first_twenty_rows(count: int) -> None:
    found = difference([], [(n,) for n in range(count)]) or ""
    assert "    (19,)" in found
    assert ("(1 more)" in found) == (count == 21)


def test_many_rows_that_all_differ_are_compared_in_little_time() -> None:
    started = time.process_time()
    found = difference([(float(n),) for n in range(20_000)], [(n + 0.5,) for n in range(20_000)])
    assert found is not None
    assert "20000 missing" in found
    assert time.process_time() - started < 5  # a quadratic comparison takes minutes
