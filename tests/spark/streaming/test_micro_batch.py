"""Offset ranges of micro-batches."""

from __future__ import annotations

import json
import logging
import math
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.errors import LogError, Malformed, OptionError
from kwire.spark.offsets import OffsetRange, SpecificOffsets, parse_offset_limits
from kwire.spark.options.query import RateLimits, parse_duration
from kwire.spark.streaming.micro_batch import has_enough_offsets, next_ranges, rate_limit
from kwire.spark.streaming.position import Position

A0, A1, B0 = ("a", 0), ("a", 1), ("b", 0)
OLD, NEW = uuid.UUID(int=1), uuid.UUID(int=2)


def test_positions_have_the_form_of_sparks_kafka_source_offsets() -> None:
    offsets = {B0: 7, A1: 2**40, A0: 0}
    assert Position(offsets).render() == {"a": {"0": 0, "1": 2**40}, "b": {"0": 7}}
    assert Position.parse(Position(offsets).render()) == Position(offsets)


def test_topic_ids_are_stored_without_changing_the_offsets() -> None:
    position = Position({B0: 7, A0: 3}, {"a": OLD, "gone": NEW})
    written = position.render()
    assert written == {"a": {"0": 3}, "b": {"0": 7}, "a#AAAAAAAAAAAAAAAAAAAAAQ": {}}
    assert Position.parse(written) == Position({B0: 7, A0: 3}, {"a": OLD})
    # What Spark's JsonUtils.partitionOffsets does, and kwire 0.1 did.
    assert {(topic, int(p)): offset for topic, each in written.items() for p, offset in each.items()} == {A0: 3, B0: 7}
    for name in ("a#", "a#short", "a#AAAAAAAAAAAAAAAAAAAAAQ#"):
        with pytest.raises(Malformed, match="not an id of 22"):
            Position.parse({name: {}})


def test_a_checkpoint_of_another_format_is_rejected() -> None:
    position = Position({A0: 3}, {"a": OLD})
    written = position.render("kafka-log")
    assert written == {"a": {"0": 3}, "a#AAAAAAAAAAAAAAAAAAAAAQ": {}, "#kafka-log": {}}
    assert Position.parse(written, "kafka-log") == Position.parse(written) == position
    assert Position.parse(position.render(), "kafka-live") == position  # of kwire 0.1, or of Spark's Kafka source
    with pytest.raises(
        OptionError, match=r"belongs to a query on kafka-log, and this query is on kafka-live.*\{\"a\": \{\"0\": 3\}\}"
    ):
        Position.parse(written, "kafka-live")
    assert parse_offset_limits({"startingoffsets": json.dumps(written)})[0] == SpecificOffsets({A0: 3})


def test_a_limit_is_split_in_proportion_to_the_data() -> None:
    assert rate_limit(10, {A0: 0, A1: 100}, {A0: 75, A1: 125}) == {A0: 7, A1: 102}
    assert rate_limit(1000, {A0: 0, A1: 100}, {A0: 75, A1: 125}) == {A0: 75, A1: 125}
    assert rate_limit(2, {A0: 0, A1: 0, B0: 5}, {A0: 1000, A1: 3, B0: 5}) == {A0: 1, A1: 1, B0: 5}


@given(
    st.dictionaries(
        st.tuples(st.sampled_from("ab"), st.integers(0, 3)),
        st.tuples(st.integers(0, 99), st.integers(0, 99)),
        min_size=1,
    ),
    st.integers(1, 50),
)
def test_every_partition_advances_within_any_limit(sizes: dict[tuple[str, int], tuple[int, int]], limit: int) -> None:
    start = {key: first for key, (first, _) in sizes.items()}
    latest = {key: first + more for key, (first, more) in sizes.items()}
    ends = rate_limit(limit, start, latest)
    assert ends.keys() == latest.keys()
    for key, end in ends.items():
        assert start[key] <= end <= latest[key]
        assert (end > start[key]) == (latest[key] > start[key])
    assert sum(ends[key] - start[key] for key in ends) <= limit + len(sizes)


def test_a_batch_waits_for_min_offsets_up_to_max_delay() -> None:
    limits = RateLimits(min_offsets=10, max_delay_ms=1000)
    assert not has_enough_offsets(limits, {A0: 0}, {A0: 9}, 999)
    assert has_enough_offsets(limits, {A0: 0}, {A0: 10}, 0)
    assert has_enough_offsets(limits, {A0: 0}, {A0: 1}, 1000)
    assert has_enough_offsets(limits, {A0: 0}, {A0: 0}, math.inf)
    assert has_enough_offsets(RateLimits(), {A0: 0}, {A0: 0}, 0)


@pytest.mark.parametrize(
    ("text", "ms"), [("15m", 900_000), ("30 s", 30_000), ("500ms", 500), ("2h", 7_200_000), ("42", 42)]
)
def test_durations_are_parsed_as_in_spark(text: str, ms: int) -> None:
    assert parse_duration("maxTriggerDelay", text) == ms


def test_invalid_limits_are_rejected() -> None:
    for text in ("soon", "-1s", "3 weeks", "", "9" * 5000):
        with pytest.raises(OptionError, match="maxTriggerDelay"):
            parse_duration("maxTriggerDelay", text)
    with pytest.raises(OptionError, match="above maxOffsetsPerTrigger"):
        RateLimits(min_offsets=5, max_offsets=4)


@contextmanager
def warnings_of_kwire() -> Iterator[list[str]]:
    """The messages of the logger kwire.spark."""
    found: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: found.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("kwire.spark")
    logger.addHandler(handler)
    try:
        yield found
    finally:
        logger.removeHandler(handler)


def ranges(
    start: dict[tuple[str, int], int], end: dict[tuple[str, int], int], first: int, **options: bool
) -> list[OffsetRange]:
    with warnings_of_kwire() as warnings:
        found = next_ranges(
            Position(start),
            Position(end),
            lambda keys: dict.fromkeys(keys, first),
            lambda topics: {},
            fail_on_data_loss=options.get("fail", True),
        )
    assert bool(warnings) == options.get("reported", False)
    return found


def test_ranges_continue_at_the_last_end_and_new_partitions_start_at_earliest() -> None:
    assert ranges({A0: 5}, {A0: 9, A1: 3}, 0) == [OffsetRange("a", 0, 5, 9), OffsetRange("a", 1, 0, 3)]
    assert ranges({A0: 5, A1: 3}, {A0: 5, A1: 4}, 0) == [OffsetRange("a", 1, 3, 4)]


@pytest.mark.parametrize(
    ("start", "end", "first", "message", "left"),
    [
        ({A0: 5}, {A0: 9}, 7, r"offsets \[5, 7\) of a-0 were deleted", [OffsetRange("a", 0, 7, 9)]),
        ({A0: 5}, {A0: 9}, 20, r"offsets \[5, 9\) of a-0 were deleted", []),
        ({A0: 5}, {A0: 3}, 0, "a-0 ends at offset 3, before the next offset to read, 5", []),
        (
            {A0: 5, A1: 1},
            {A0: 6},
            0,
            "a-1 was deleted; the query had read it up to offset 1",
            [OffsetRange("a", 0, 5, 6)],
        ),
        ({}, {A0: 9}, 4, "the new partition a-0 starts at offset 4", [OffsetRange("a", 0, 4, 9)]),
    ],
)
def test_lost_data_fails_or_is_reported(
    start: dict[tuple[str, int], int],
    end: dict[tuple[str, int], int],
    first: int,
    message: str,
    left: list[OffsetRange],
) -> None:
    with pytest.raises(LogError, match=message + ".*failOnDataLoss"):
        ranges(start, end, first)
    assert ranges(start, end, first, fail=False, reported=True) == left


@pytest.mark.parametrize(
    ("start", "end", "now", "message", "left"),
    [
        # between two micro-batches: the new topic has more partitions, fewer, or more records than were read
        (
            Position({A0: 5, B0: 1}, {"a": OLD}),
            Position({A0: 9, A1: 3, B0: 2}, {"a": NEW}),
            {"a": NEW},
            r"topic 'a' was deleted and created again: its id was A{21}Q and is A{21}g now.*\(a-0 5\).*"
            "read the new topic from its beginning",
            [OffsetRange("a", 0, 0, 9), OffsetRange("a", 1, 0, 3), OffsetRange("b", 0, 1, 2)],
        ),
        (
            Position({A0: 5, A1: 7}, {"a": OLD}),
            Position({A0: 2}, {"a": NEW}),
            {"a": NEW},
            "topic 'a' was deleted and created again",
            [OffsetRange("a", 0, 0, 2)],
        ),
        # after the micro-batch was planned: what it was to read is gone, and the next one begins the new topic
        (
            Position({A0: 5, B0: 1}, {"a": OLD}),
            Position({A0: 9, B0: 2}, {"a": OLD}),
            {"a": NEW},
            "created again.* after this micro-batch was planned",
            [OffsetRange("b", 0, 1, 2)],
        ),
    ],
)
def test_a_recreated_topic_is_data_loss_and_is_read_from_its_start(
    start: Position, end: Position, now: dict[str, uuid.UUID], message: str, left: list[OffsetRange]
) -> None:
    def planned(*, fail: bool) -> list[OffsetRange]:
        return next_ranges(start, end, lambda keys: dict.fromkeys(keys, 0), lambda topics: now, fail_on_data_loss=fail)

    with pytest.raises(LogError, match=message + ".*failOnDataLoss to false"):
        planned(fail=True)
    with warnings_of_kwire() as warnings:
        assert planned(fail=False) == left
    assert len(warnings) == 1
    assert "created again" in warnings[0]


@pytest.mark.parametrize(("before", "after"), [({}, {"a": OLD}), ({"a": OLD}, {}), ({}, {}), ({"a": OLD}, {"a": OLD})])
def test_a_topic_with_the_same_or_an_unknown_id_continues(
    before: dict[str, uuid.UUID], after: dict[str, uuid.UUID]
) -> None:
    found = next_ranges(
        Position({A0: 5}, before),
        Position({A0: 9}, after),
        lambda keys: dict.fromkeys(keys, 0),
        lambda topics: after,
        fail_on_data_loss=True,
    )
    assert found == [OffsetRange("a", 0, 5, 9)]
