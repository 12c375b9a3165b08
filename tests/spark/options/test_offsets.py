"""The options that say where a query starts and ends."""

from __future__ import annotations

import pytest

from kwire.errors import OptionError
from kwire.spark.options.offsets import (
    EARLIEST,
    LATEST,
    Edge,
    GlobalOffset,
    GlobalTimestamp,
    SpecificOffsets,
    SpecificTimestamps,
    check_offset_limits,
    parse_offset_limit,
)

KEY = ("orders", 0)


def test_a_timestamp_takes_precedence_over_timestamps_over_offsets() -> None:
    by_time, by_offset = '{"orders":{"0":5}}', '{"orders":{"0":23}}'
    assert parse_offset_limit("starting", " 7 ", by_time, by_offset) == GlobalTimestamp(7)
    assert parse_offset_limit("starting", None, by_time, by_offset) == SpecificTimestamps({KEY: 5})
    assert parse_offset_limit("starting", None, None, by_offset) == SpecificOffsets({KEY: 23})
    assert parse_offset_limit("starting", None, None, None) == GlobalOffset(EARLIEST)
    assert parse_offset_limit("ending", None, None, None) == GlobalOffset(LATEST)
    assert parse_offset_limit("starting", None, None, " Earliest ") == GlobalOffset(EARLIEST)
    assert parse_offset_limit("ending", None, None, "LATEST") == GlobalOffset(LATEST)
    assert parse_offset_limit("starting", None, None, '{"orders":{"0":-2}}') == SpecificOffsets({KEY: EARLIEST})


@pytest.mark.parametrize(
    ("edge", "offsets", "message"),
    [
        ("starting", "latest", "starting offset can't be latest for batch queries"),
        ("ending", "earliest", "ending offset can't be earliest for batch queries"),
        ("starting", '{"orders":{"0":-1}}', "startingOffsets for orders-0 can't be latest for batch queries"),
        ("ending", '{"orders":{"0":-2}}', "endingOffsets for orders-0 can't be earliest for batch queries"),
        ("starting", '{"orders":{"0":-3}}', "startingOffsets"),
        ("starting", '{"orders":{"0":1.5}}', "startingOffsets"),
        ("starting", '{"orders":{"0":true}}', "startingOffsets"),
        ("starting", '{"orders":{"zero":1}}', "startingOffsets"),
        ("starting", '{"orders":{"0":9223372036854775808}}', "startingOffsets"),
        ("starting", '{"orders":[0]}', "startingOffsets"),
        ("starting", "[]", "startingOffsets"),
        ("starting", "23", "startingOffsets"),
    ],
)
def test_invalid_offsets_are_rejected(edge: Edge, offsets: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        parse_offset_limit(edge, None, None, offsets)


@pytest.mark.parametrize("text", ["soon", "", "1.5", "-1", "9223372036854775808"])
def test_invalid_timestamps_are_rejected(text: str) -> None:
    with pytest.raises(OptionError, match=r"startingTimestamp.*single long value"):
        parse_offset_limit("starting", text, None, None)
    with pytest.raises(OptionError, match="endingOffsetsByTimestamp"):
        parse_offset_limit("ending", None, f'{{"orders":{{"0":{text or "null"}}}}}', None)


def test_start_and_end_must_name_the_same_partitions_in_order() -> None:
    both = {KEY: 5, ("orders", 1): 5}
    check_offset_limits(SpecificOffsets(both), SpecificOffsets(both))
    check_offset_limits(SpecificOffsets({KEY: 5}), SpecificOffsets({KEY: LATEST}))
    check_offset_limits(SpecificOffsets({KEY: 5}), SpecificTimestamps({("orders", 1): 1}))
    with pytest.raises(OptionError, match=r"same topic-partitions.*\[orders-0\].*\[orders-0, orders-1\]"):
        check_offset_limits(SpecificOffsets({KEY: 5}), SpecificOffsets(both))
    with pytest.raises(
        OptionError, match="start offset 6 is greater than the end offset 5 for topic orders partition 0"
    ):
        check_offset_limits(SpecificOffsets({KEY: 6}), SpecificOffsets({KEY: 5}))
    with pytest.raises(OptionError, match="start timestamp 6 is greater than the end timestamp 5"):
        check_offset_limits(SpecificTimestamps({KEY: 6}), SpecificTimestamps({KEY: 5}))
    with pytest.raises(OptionError, match="start timestamp 6 is greater than the end timestamp 5"):
        check_offset_limits(GlobalTimestamp(6), GlobalTimestamp(5))
