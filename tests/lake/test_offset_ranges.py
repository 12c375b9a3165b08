"""Ranges of offsets, against sets of numbers."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from kwire.errors import TableError
from kwire.lake.offset_ranges import (
    Ranges,
    Spans,
    holes_of,
    hull_of,
    intersection,
    parse_spans,
    render_spans,
    subtract,
    text_of,
    union,
)


def numbers(ranges: Ranges) -> set[int]:
    return {number for start, end in ranges for number in range(start, end)}


def drawn(choose: random.Random) -> Ranges:
    return union(
        *(((start, start + choose.randint(0, 5)),) for start in choose.choices(range(25), k=choose.randint(0, 6)))
    )


@pytest.mark.parametrize(
    ("operation", "expected"),
    [(union, set.union), (intersection, set.intersection), (subtract, set.difference)],
)
def test_operations_are_those_of_sets(
    operation: Callable[[Ranges, Ranges], Ranges], expected: Callable[[set[int], set[int]], set[int]]
) -> None:
    choose = random.Random(5)
    for _ in range(2000):
        left, right = drawn(choose), drawn(choose)
        found = operation(left, right)
        assert numbers(found) == expected(numbers(left), numbers(right)), (left, right)
        assert found == union(found), "ranges are sorted, not empty, and do not touch"


def test_ranges_that_touch_become_one() -> None:
    assert union(((5, 7), (0, 5)), ((8, 9),), ((3, 3),)) == ((0, 7), (8, 9))
    assert holes_of(((0, 7), (8, 9), (20, 30))) == ((7, 8), (9, 20))
    assert holes_of(((0, 7),)) == ()
    assert text_of(((7, 8), (9, 20))) == "7, 9 to 19"


def test_a_hull_has_one_range_of_each_partition() -> None:
    first: Spans = {("a", 0): ((5, 8),), ("b", 1): ((1, 2), (4, 5))}
    assert hull_of([first, {("a", 0): ((2, 3),)}]) == {("a", 0): ((2, 8),), ("b", 1): ((1, 5),)}


def test_spans_as_json_and_back() -> None:
    spans: Spans = {("b", 0): ((0, 300), (500, 600)), ("a", 10): ((7, 8),)}
    text = '{"a":{"10":[[7,8]]},"b":{"0":[[0,300],[500,600]]}}'
    assert render_spans(spans) == text
    assert parse_spans(text, "t") == spans
    for bad in ("nonsense", "[1]", '{"a":{"0":[1,2]}}', '{"a":{"0":[[1,2,3]]}}', '{"a":{"x":[[1,2]]}}'):
        with pytest.raises(TableError, match=r"table t: kwire\.offsets cannot be read"):
            parse_spans(bad, "t")
