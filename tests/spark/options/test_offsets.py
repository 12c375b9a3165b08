"""Where a query starts and ends in each partition."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.errors import LogError, OptionError
from kwire.spark.options.offsets import (
    EARLIEST,
    LATEST,
    AtOffsets,
    AtTime,
    AtTimes,
    Edge,
    Everywhere,
    Limit,
    OffsetRange,
    check_limits,
    check_named,
    cut_ranges,
    offsets_per_task,
    parse_limit,
    resolve,
)

KEY = ("orders", 0)


@dataclass
class Log:
    earliest: int = 10
    latest: int = 100
    times: dict[int, int] = field(default_factory=dict)

    def offset_for_time(self, timestamp_ms: int) -> int | None:
        return self.times.get(timestamp_ms)


def resolved(start: Limit, end: Limit, log: Log, **settings: object) -> tuple[int, int]:
    reported: list[str] = []
    arguments = {"no_match": "error", "fail_on_data_loss": True, "report": reported.append} | settings
    found = resolve(KEY, start, end, log, **arguments)  # type: ignore[arg-type]
    assert (found.topic, found.partition) == KEY
    return found.start, found.end


def test_the_first_of_timestamp_timestamps_and_offsets_wins() -> None:
    by_time, by_offset = '{"orders":{"0":5}}', '{"orders":{"0":23}}'
    assert parse_limit("starting", " 7 ", by_time, by_offset) == AtTime(7)
    assert parse_limit("starting", None, by_time, by_offset) == AtTimes({KEY: 5})
    assert parse_limit("starting", None, None, by_offset) == AtOffsets({KEY: 23})
    assert parse_limit("starting", None, None, None) == Everywhere(EARLIEST)
    assert parse_limit("ending", None, None, None) == Everywhere(LATEST)
    assert parse_limit("starting", None, None, " Earliest ") == Everywhere(EARLIEST)
    assert parse_limit("ending", None, None, "LATEST") == Everywhere(LATEST)
    assert parse_limit("starting", None, None, '{"orders":{"0":-2}}') == AtOffsets({KEY: EARLIEST})


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
def test_wrong_offsets_are_refused(edge: Edge, offsets: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        parse_limit(edge, None, None, offsets)


@pytest.mark.parametrize("text", ["soon", "", "1.5", "-1", "9223372036854775808"])
def test_wrong_timestamps_are_refused(text: str) -> None:
    with pytest.raises(OptionError, match=r"startingTimestamp.*single long value"):
        parse_limit("starting", text, None, None)
    with pytest.raises(OptionError, match="endingOffsetsByTimestamp"):
        parse_limit("ending", None, f'{{"orders":{{"0":{text or "null"}}}}}', None)


def test_start_and_end_must_name_the_same_partitions_in_order() -> None:
    both = {KEY: 5, ("orders", 1): 5}
    check_limits(AtOffsets(both), AtOffsets(both))
    check_limits(AtOffsets({KEY: 5}), AtOffsets({KEY: LATEST}))
    check_limits(AtOffsets({KEY: 5}), AtTimes({("orders", 1): 1}))
    with pytest.raises(OptionError, match=r"same topic-partitions.*\[orders-0\].*\[orders-0, orders-1\]"):
        check_limits(AtOffsets({KEY: 5}), AtOffsets(both))
    with pytest.raises(
        OptionError, match="start offset 6 is greater than the end offset 5 for topic orders partition 0"
    ):
        check_limits(AtOffsets({KEY: 6}), AtOffsets({KEY: 5}))
    with pytest.raises(OptionError, match="start timestamp 6 is greater than the end timestamp 5"):
        check_limits(AtTimes({KEY: 6}), AtTimes({KEY: 5}))
    with pytest.raises(OptionError, match="start timestamp 6 is greater than the end timestamp 5"):
        check_limits(AtTime(6), AtTime(5))


def test_maps_must_name_every_partition_that_is_read() -> None:
    check_named("starting", AtOffsets({KEY: 5}), [KEY])
    check_named("starting", AtTime(5), [KEY, ("orders", 1)])
    for wrong in ([KEY, ("orders", 1)], []):
        with pytest.raises(OptionError, match=r"specify all TopicPartitions.*Specified: \[orders-0\] Assigned"):
            check_named("starting", AtOffsets({KEY: 5}), wrong)
    with pytest.raises(OptionError, match=r"endingOffsetsByTimestamp.*specify all TopicPartitions"):
        check_named("ending", AtTimes({KEY: 5}), [KEY, ("orders", 1)])


def test_edges_resolve_against_what_the_log_holds() -> None:
    everything = (Everywhere(EARLIEST), Everywhere(LATEST))
    assert resolved(*everything, Log()) == (10, 100)
    assert resolved(*everything, Log(5, 5)) == (5, 5)
    assert resolved(AtOffsets({KEY: EARLIEST}), AtOffsets({KEY: LATEST}), Log()) == (10, 100)
    assert resolved(AtOffsets({KEY: 20}), AtOffsets({KEY: 30}), Log()) == (20, 30)
    assert resolved(AtOffsets({KEY: 100}), Everywhere(LATEST), Log()) == (100, 100)
    assert resolved(AtTime(7), AtTimes({KEY: 8}), Log(times={7: 40, 8: 50})) == (40, 50)


def test_no_record_that_young_is_an_error_at_the_start_and_the_end_of_the_log_at_the_end() -> None:
    with pytest.raises(OptionError, match="No offset matched from request of topic-partition orders-0 and timestamp 9"):
        resolved(AtTime(9), Everywhere(LATEST), Log())
    assert resolved(AtTime(9), Everywhere(LATEST), Log(), no_match="latest") == (100, 100)
    assert resolved(Everywhere(EARLIEST), AtTime(9), Log()) == (10, 100)


@pytest.mark.parametrize(
    ("start", "end", "clamped"),
    [(5, 50, (10, 50)), (50, 500, (50, 100)), (500, LATEST, (100, 100)), (1, 9, (10, 10)), (101, 102, (100, 100))],
)
def test_offsets_that_are_gone_fail_or_give_what_is_there(start: int, end: int, clamped: tuple[int, int]) -> None:
    limits = AtOffsets({KEY: start}), AtOffsets({KEY: end})
    with pytest.raises(
        LogError, match=r"of orders-0 is out of range: the log holds offsets \[10, 100\).*failOnDataLoss"
    ):
        resolved(*limits, Log())
    reported: list[str] = []
    assert resolved(*limits, Log(), fail_on_data_loss=False, report=reported.append) == clamped
    assert reported
    assert "out of range" in reported[0]


def test_a_start_behind_its_end_is_refused_after_resolution() -> None:
    with pytest.raises(OptionError, match="resolved start offset 50 is greater than the resolved end offset 40"):
        resolved(AtOffsets({KEY: 50}), AtTime(7), Log(times={7: 40}))


def test_tasks_are_as_long_as_the_hints_ask() -> None:
    def per_task(sizes: list[int], min_partitions: int | None, max_records: int | None) -> list[int | None]:
        ranges = [OffsetRange("t", n, 7, 7 + size) for n, size in enumerate(sizes)]
        return offsets_per_task(ranges, min_partitions, max_records)

    assert per_task([100], None, None) == [None]
    assert per_task([100], 1, None) == [None]
    assert per_task([100], 4, None) == [25]
    assert per_task([100], None, 30) == [30]
    assert per_task([100], 4, 30) == [25]
    assert per_task([100], 4, 10) == [10]
    # A short partition stays whole and leaves the rest of the hint to the long one.
    assert per_task([1, 100], 5, None) == [None, 25]
    assert per_task([0, 0], 5, 9) == [9, 9]
    assert per_task([], 5, 9) == []


@given(
    sizes=st.lists(st.integers(0, 10**6), max_size=8),
    min_partitions=st.none() | st.integers(1, 200),
    max_records=st.none() | st.integers(1000, 10**7),
)
def test_hints_are_kept(sizes: list[int], min_partitions: int | None, max_records: int | None) -> None:
    limits = offsets_per_task([OffsetRange("t", 0, 0, size) for size in sizes], min_partitions, max_records)
    tasks = sum(-(-size // (limit or max(size, 1))) for size, limit in zip(sizes, limits, strict=True))
    if max_records is not None:
        assert all(limit is not None and 0 < limit <= max_records for limit in limits)
    if min_partitions is not None:
        assert tasks >= min(min_partitions // 2, sum(sizes))


def test_parts_are_those_of_sparks_own_source() -> None:
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
def test_parts_are_all_of_the_ranges_in_order(
    sizes: list[int], min_partitions: int | None, max_records: int | None
) -> None:
    ranges = [OffsetRange("t", n, 7, 7 + size) for n, size in enumerate(sizes)]
    parts = cut_ranges(ranges, min_partitions, max_records)
    read = [(part.partition, offset) for part in parts for offset in range(part.start, part.end)]
    assert read == [(found.partition, offset) for found in ranges for offset in range(found.start, found.end)]
    assert all(part.size for part in parts)
    assert max_records is None or all(part.size <= max_records for part in parts)
