"""Filters as bounds: they exclude no matching record."""

from __future__ import annotations

import operator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.spark.log.filters import HIGHEST, LOWEST, PushedFilters, parse_filters

datasource = pytest.importorskip("pyspark.sql.datasource")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
COMPARISONS = {
    "EqualTo": operator.eq,
    "EqualNullSafe": operator.eq,
    "GreaterThan": operator.gt,
    "GreaterThanOrEqual": operator.ge,
    "LessThan": operator.lt,
    "LessThanOrEqual": operator.le,
}


def make(name: str, column: str, value: object) -> object:
    return getattr(datasource, name)((column,), value)


def test_no_filter_reads_everything() -> None:
    assert parse_filters([]) == PushedFilters(LOWEST, HIGHEST, LOWEST, ())
    assert parse_filters([]).may_match("t", 0)


@given(name=st.sampled_from(sorted(COMPARISONS)), bound=st.integers(-5, 5), offset=st.integers(-5, 5))
def test_offset_bounds_are_exact_for_comparisons(name: str, bound: int, offset: int) -> None:
    found = parse_filters([make(name, "offset", bound)])
    assert (found.first_offset <= offset <= found.last_offset) == COMPARISONS[name](offset, bound)


def test_offset_bounds_intersect_and_lists_become_ranges() -> None:
    found = parse_filters(
        [make("GreaterThan", "offset", 10), make("LessThan", "offset", 20), make("In", "offset", (3, 15, None))]
    )
    assert (found.first_offset, found.last_offset) == (11, 15)


@pytest.mark.parametrize(
    "condition",
    [
        make("EqualTo", "offset", 1.5),
        make("EqualTo", "offset", True),
        make("EqualTo", "key", b"x"),
        make("In", "offset", ()),
        make("In", "offset", (1, "2")),
        make("StringContains", "topic", "x"),
        datasource.Not(make("EqualTo", "offset", 5)),
        datasource.Not(make("GreaterThan", "offset", 5)),
        datasource.IsNull(("offset",)),
        datasource.EqualTo(("headers", "key"), "x"),
        make("GreaterThan", "timestamp", datetime(2020, 1, 1)),  # ambiguous without a time zone
        make("LessThan", "timestamp", EPOCH),
        datasource.Not(make("GreaterThan", "timestamp", EPOCH)),
    ],
    ids=repr,
)
def test_unsupported_filters_narrow_nothing(condition: object) -> None:
    found = parse_filters([condition])
    assert (found.first_offset, found.last_offset, found.first_timestamp_ms) == (LOWEST, HIGHEST, LOWEST)


@given(
    name=st.sampled_from(sorted(COMPARISONS)),
    bound_us=st.integers(-3000, 3000),
    timestamp_ms=st.integers(-4, 4),
)
def test_timestamp_bounds_exclude_no_matching_record(name: str, bound_us: int, timestamp_ms: int) -> None:
    found = parse_filters([make(name, "timestamp", EPOCH + timedelta(microseconds=bound_us))])
    if COMPARISONS[name](timestamp_ms * 1000, bound_us):
        assert found.first_timestamp_ms <= timestamp_ms
    elif name == "GreaterThanOrEqual":
        assert found.first_timestamp_ms >= timestamp_ms


TOPIC_FILTERS = [
    (make("EqualTo", "topic", "b"), {"b"}),
    (make("EqualNullSafe", "topic", "b"), {"b"}),
    (make("In", "topic", ("a", "c")), {"a", "c"}),
    (make("In", "topic", ("a", None)), {"a", "b", "c"}),  # left to Spark
    (make("GreaterThan", "topic", "a"), {"b", "c"}),
    (make("GreaterThanOrEqual", "topic", "b"), {"b", "c"}),
    (make("LessThan", "topic", "b"), {"a"}),
    (make("LessThanOrEqual", "topic", "b"), {"a", "b"}),
    (make("StringStartsWith", "topic", "b"), {"b"}),
    (make("StringEndsWith", "topic", "c"), {"c"}),
    (make("StringContains", "topic", ""), {"a", "b", "c"}),
    (datasource.Not(make("EqualTo", "topic", "b")), {"a", "c"}),
    (datasource.Not(make("In", "topic", ("a", None))), {"a", "b", "c"}),
    (datasource.IsNull(("topic",)), set()),
    (datasource.IsNotNull(("topic",)), {"a", "b", "c"}),
    (make("EqualTo", "topic", 5), {"a", "b", "c"}),
    (make("EqualTo", "partition", 0), {"a"}),
    (make("GreaterThan", "partition", 0), {"b", "c"}),
    (datasource.Not(make("LessThan", "partition", 2)), {"c"}),
]


@pytest.mark.parametrize(("condition", "wanted"), TOPIC_FILTERS, ids=[repr(case[0]) for case in TOPIC_FILTERS])
def test_topics_and_partitions_are_pruned(condition: object, wanted: set[str]) -> None:
    found = parse_filters([condition])
    assert {topic for partition, topic in enumerate("abc") if found.may_match(topic, partition)} == wanted


def test_conditions_are_combined_with_and() -> None:
    found = parse_filters([make("EqualTo", "topic", "a"), make("EqualTo", "partition", 1)])
    assert found.may_match("a", 1)
    assert not found.may_match("a", 0)
    assert not found.may_match("b", 1)
