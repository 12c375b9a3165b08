"""Starting and ending offsets: parsed from options, resolved to ranges, and divided among tasks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.errors import LogError, OptionError
from kwire.spark.offsets import (
    EARLIEST,
    LATEST,
    Edge,
    GlobalOffset,
    GlobalTimestamp,
    OffsetLimit,
    OffsetOptions,
    OffsetRange,
    SpecificOffsets,
    SpecificTimestamps,
    check_offset_limits,
    cut_ranges,
    for_query,
    parse_offset_limits,
    resolve_range,
    resolve_ranges,
)
from kwire.spark.options.query import QueryOptions, Subscribe

KEY = ("orders", 0)
FROM_THE_START, TO_THE_END = GlobalOffset(EARLIEST), GlobalOffset(LATEST)


@dataclass
class Log:
    earliest: int = 10
    latest: int = 100
    times: dict[int, int] = field(default_factory=dict)

    def offset_for_time(self, timestamp_ms: int) -> int | None:
        return self.times.get(timestamp_ms)


def parse(
    edge: str, timestamp: str | None = None, by_timestamp: str | None = None, offsets: str | None = None
) -> OffsetLimit | None:
    """Parse the start or end of a batch query with these options."""
    texts = {"timestamp": timestamp, "offsetsbytimestamp": by_timestamp, "offsets": offsets}
    start, end = parse_offset_limits({f"{edge}{name}": text for name, text in texts.items() if text is not None})
    checked = for_query(OffsetOptions(start=start, end=end), "batch")
    return checked.start if edge == "starting" else checked.end


def query(start: OffsetLimit, end: OffsetLimit, **settings: Any) -> QueryOptions:
    return QueryOptions(selection=Subscribe(frozenset({"orders"})), start=start, end=end, **settings)


def resolved(start: OffsetLimit, end: OffsetLimit, log: Log, **settings: Any) -> tuple[int, int]:
    found = resolve_range(KEY, log, query(start, end, **settings))
    assert (found.topic, found.partition) == KEY
    return found.start, found.end


def test_offset_maps_must_name_every_partition() -> None:
    resolve_ranges(dict.fromkeys([KEY], Log()), query(SpecificOffsets({KEY: 50}), TO_THE_END))
    resolve_ranges(dict.fromkeys([KEY, ("orders", 1)], Log(times={5: 20})), query(GlobalTimestamp(5), TO_THE_END))
    for wrong in ([KEY, ("orders", 1)], []):
        with pytest.raises(OptionError, match=r"specify all TopicPartitions.*Specified: \[orders-0\] Assigned"):
            resolve_ranges(dict.fromkeys(wrong, Log()), query(SpecificOffsets({KEY: 5}), TO_THE_END))
    with pytest.raises(OptionError, match=r"endingOffsetsByTimestamp.*specify all TopicPartitions"):
        resolve_ranges(dict.fromkeys([KEY, ("orders", 1)], Log()), query(FROM_THE_START, SpecificTimestamps({KEY: 5})))


def test_earliest_and_latest_resolve_to_the_log_ends() -> None:
    everything = (GlobalOffset(EARLIEST), GlobalOffset(LATEST))
    assert resolved(*everything, Log()) == (10, 100)
    assert resolved(*everything, Log(5, 5)) == (5, 5)
    assert resolved(SpecificOffsets({KEY: EARLIEST}), SpecificOffsets({KEY: LATEST}), Log()) == (10, 100)
    assert resolved(SpecificOffsets({KEY: 20}), SpecificOffsets({KEY: 30}), Log()) == (20, 30)
    assert resolved(SpecificOffsets({KEY: 100}), GlobalOffset(LATEST), Log()) == (100, 100)
    assert resolved(GlobalTimestamp(7), SpecificTimestamps({KEY: 8}), Log(times={7: 40, 8: 50})) == (40, 50)


def test_a_timestamp_without_a_match_is_an_error_at_the_start_and_latest_at_the_end() -> None:
    with pytest.raises(OptionError, match="No offset matched from request of topic-partition orders-0 and timestamp 9"):
        resolved(GlobalTimestamp(9), GlobalOffset(LATEST), Log())
    assert resolved(GlobalTimestamp(9), GlobalOffset(LATEST), Log(), no_match="latest") == (100, 100)
    assert resolved(GlobalOffset(EARLIEST), GlobalTimestamp(9), Log()) == (10, 100)


@pytest.mark.parametrize(
    ("start", "end", "clamped"),
    [(5, 50, (10, 50)), (50, 500, (50, 100)), (500, LATEST, (100, 100)), (1, 9, (10, 10)), (101, 102, (100, 100))],
)
def test_lost_offsets_fail_or_return_the_remaining_records(
    start: int, end: int, clamped: tuple[int, int], caplog: pytest.LogCaptureFixture
) -> None:
    limits = SpecificOffsets({KEY: start}), SpecificOffsets({KEY: end})
    with pytest.raises(
        LogError, match=r"of orders-0 is out of range: the log holds offsets \[10, 100\).*failOnDataLoss"
    ):
        resolved(*limits, Log())
    assert resolved(*limits, Log(), fail_on_data_loss=False) == clamped
    assert "out of range" in caplog.text


def test_a_start_after_its_end_is_rejected_after_resolution() -> None:
    with pytest.raises(OptionError, match="resolved start offset 50 is greater than the resolved end offset 40"):
        resolved(SpecificOffsets({KEY: 50}), GlobalTimestamp(7), Log(times={7: 40}))


def test_parts_equal_those_of_sparks_source() -> None:
    # As KafkaOffsetRangeCalculator cuts them: even parts, the longer ones last.
    def parts(sizes: list[int], min_partitions: int | None, max_records: int | None) -> list[tuple[int, int, int]]:
        ranges = [OffsetRange("t", n, 100, 100 + size) for n, size in enumerate(sizes)]
        return [
            (found.partition, found.start - 100, found.end - 100)
            for found in cut_ranges(ranges, min_partitions, max_records)
        ]

    assert parts([5, 0, 2], None, None) == [(0, 0, 5), (2, 0, 2)]
    assert parts([5, 0, 2], 2, None) == [(0, 0, 5), (2, 0, 2)]
    assert parts([10], 3, None) == [(0, 0, 3), (0, 3, 6), (0, 6, 10)]
    assert parts([5], 4, None) == [(0, 0, 1), (0, 1, 2), (0, 2, 3), (0, 3, 5)]
    assert parts([2], 5, None) == [(0, 0, 1), (0, 1, 2)]
    assert parts([100, 1], 3, None) == [(0, 0, 50), (0, 50, 100), (1, 0, 1)]
    assert parts([100], None, 33) == [(0, 0, 25), (0, 25, 50), (0, 50, 75), (0, 75, 100)]
    assert parts([], 3, 3) == []


@given(
    sizes=st.lists(st.integers(0, 2000), max_size=6),
    min_partitions=st.none() | st.integers(1, 50),
    max_records=st.none() | st.integers(20, 10**7),
)
def test_parts_cover_the_ranges_in_order(sizes: list[int], min_partitions: int | None, max_records: int | None) -> None:
    ranges = [OffsetRange("t", n, 7, 7 + size) for n, size in enumerate(sizes)]
    parts = cut_ranges(ranges, min_partitions, max_records)
    read = [(part.partition, offset) for part in parts for offset in range(part.start, part.end)]
    assert read == [(found.partition, offset) for found in ranges for offset in range(found.start, found.end)]
    assert all(part.size for part in parts)
    assert max_records is None or all(part.size <= max_records for part in parts)


def test_a_timestamp_takes_precedence_over_timestamps_over_offsets() -> None:
    by_time, by_offset = '{"orders":{"0":5}}', '{"orders":{"0":23}}'
    assert parse("starting", " 7 ", by_time, by_offset) == GlobalTimestamp(7)
    assert parse("starting", None, by_time, by_offset) == SpecificTimestamps({KEY: 5})
    assert parse("starting", None, None, by_offset) == SpecificOffsets({KEY: 23})
    assert parse("starting") is None
    assert parse("ending") is None
    assert parse("starting", None, None, " Earliest ") == GlobalOffset(EARLIEST)
    assert parse("ending", None, None, "LATEST") == GlobalOffset(LATEST)
    assert parse("starting", None, None, '{"orders":{"0":-2}}') == SpecificOffsets({KEY: EARLIEST})


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
        parse(edge, None, None, offsets)


@pytest.mark.parametrize("text", ["soon", "", "1.5", "-1", "9223372036854775808"])
def test_invalid_timestamps_are_rejected(text: str) -> None:
    with pytest.raises(OptionError, match=r"startingTimestamp.*single long value"):
        parse("starting", text, None, None)
    with pytest.raises(OptionError, match="endingOffsetsByTimestamp"):
        parse("ending", None, f'{{"orders":{{"0":{text or "null"}}}}}', None)


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
