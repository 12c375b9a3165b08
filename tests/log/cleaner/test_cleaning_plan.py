"""The cleanable range of a log, when a log is due, and grouping of segments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import pytest

from kwire.log import LogConfig
from kwire.log.cleaner.cleaning_plan import CleaningPlan, group_segments, make_plan
from kwire.log.cleaner.log_state import LogState, SourceSegment

NOW = 1_000_000


@dataclass
class Facts:
    """The facts of a segment that the plan uses."""

    base_offset: int
    size_bytes: int = 100
    index_bytes: int = 8
    time_index_bytes: int = 12
    first_timestamp: int = 500
    largest_timestamp: int = 900


def segments(*bases: int, **facts: Any) -> Sequence[SourceSegment]:
    return [cast(SourceSegment, Facts(base, **facts)) for base in bases]


def plan(
    parts: Sequence[SourceSegment],
    checkpoint: int | None = None,
    *,
    start: int = 0,
    end: int = 100,
    stable: int | None = None,
    **config: Any,
) -> CleaningPlan:
    log = LogState(
        topic="t",
        partition=0,
        config=LogConfig(**config),
        segments=parts,
        log_start_offset=start,
        log_end_offset=end,
        last_stable_offset=end if stable is None else stable,
        last_records={},
    )
    return make_plan(log, checkpoint, NOW)


@pytest.mark.requirement("X-01")
@pytest.mark.parametrize(
    ("checkpoint", "start", "expected"),
    [
        (None, 0, (0, False)),
        (None, 7, (7, False)),
        (20, 0, (20, False)),
        (100, 0, (100, False)),
        (5, 7, (7, True)),
        (101, 7, (7, True)),
    ],
)
def test_the_first_dirty_offset_is_the_checkpoint_if_that_is_inside_the_log(
    checkpoint: int | None, start: int, expected: tuple[int, bool]
) -> None:
    found = plan(segments(0, 20, 40, 60), checkpoint, start=start)
    assert (found.first_dirty_offset, found.resets_checkpoint) == expected


@pytest.mark.requirement("X-02")
def test_the_active_segment_and_open_transactions_are_never_cleaned() -> None:
    parts = segments(0, 20, 40, 60)
    assert plan(parts).end_offset == 60
    assert plan(parts, stable=60).end_offset == 60
    assert plan(parts, stable=59).end_offset == 40  # rounded down to a segment
    assert plan(parts, stable=40).end_offset == 40
    assert plan(parts, stable=3).end_offset == 0
    assert plan(segments(0)).end_offset == 0
    assert plan(parts, 45, stable=41).end_offset == 40
    assert plan(parts, 45, stable=41).cleanable_bytes == 0


@pytest.mark.requirement("X-02", "F-64")
def test_segments_within_the_compaction_lag_are_not_cleaned() -> None:
    parts = [*segments(0, largest_timestamp=NOW - 51), *segments(20, largest_timestamp=NOW - 49), *segments(40, 60)]
    assert plan(parts, min_compaction_lag_ms=50).end_offset == 20
    assert plan(parts, min_compaction_lag_ms=0).end_offset == 60
    assert plan(parts, 20, min_compaction_lag_ms=50).end_offset == 20
    assert plan(parts, 40, min_compaction_lag_ms=50).end_offset == 60  # clean segments have no say


@pytest.mark.requirement("X-03")
def test_a_log_is_due_above_the_dirty_ratio() -> None:
    parts = segments(0, 20, 40, 60)
    half = plan(parts, 20)
    assert (half.clean_bytes, half.cleanable_bytes) == (100, 200)
    assert half.is_due(LogConfig(min_cleanable_dirty_ratio=0.5))
    assert not half.is_due(LogConfig(min_cleanable_dirty_ratio=2 / 3))
    inside = plan(parts, 30)  # a segment with clean and dirty offsets counts as both
    assert (inside.clean_bytes, inside.cleanable_bytes) == (200, 200)
    clean = plan(parts, 60)
    assert (clean.dirty_ratio, clean.is_due(LogConfig(min_cleanable_dirty_ratio=0.0))) == (0, False)
    assert plan(segments(0)).dirty_ratio == 0


@pytest.mark.requirement("X-03")
def test_a_log_is_due_when_its_oldest_dirty_segment_has_waited_too_long() -> None:
    parts = [*segments(0, first_timestamp=NOW - 100), *segments(20, first_timestamp=-1), *segments(40)]
    config = LogConfig(max_compaction_lag_ms=90, min_cleanable_dirty_ratio=1.0)
    found = plan(parts, max_compaction_lag_ms=90)
    assert found.overdue_ms == 10
    assert found.is_due(config)
    assert plan(parts, max_compaction_lag_ms=100).overdue_ms == 0
    assert plan(parts, 20, max_compaction_lag_ms=90).overdue_ms == 0  # without a time nobody knows
    assert not plan(parts, stable=0, max_compaction_lag_ms=90).is_due(config)


def bases(groups: list[list[SourceSegment]]) -> list[list[int]]:
    return [[each.base_offset for each in group] for group in groups]


@pytest.mark.requirement("X-34")
def test_adjacent_segments_are_grouped_while_data_and_indexes_fit() -> None:
    parts = segments(0, 20, 40, 60, 80)

    def groups(max_bytes: int = 10**6, max_index_bytes: int = 10**6) -> list[list[int]]:
        return bases(group_segments(parts, max_bytes=max_bytes, max_index_bytes=max_index_bytes, end_offset=100))

    assert groups() == [[0, 20, 40, 60, 80]]
    assert groups(200) == [[0, 20], [40, 60], [80]]
    assert groups(299) == [[0, 20], [40, 60], [80]]
    assert groups(50) == [[0], [20], [40], [60], [80]]
    assert groups(max_index_bytes=36) == [[0, 20, 40], [60, 80]]  # by the time index, which is larger
    assert bases(group_segments([], max_bytes=1, max_index_bytes=1, end_offset=0)) == []


@pytest.mark.requirement("X-34")
def test_a_group_spans_at_most_the_offsets_of_an_index() -> None:
    span = (1 << 31) - 1

    def groups(parts: Sequence[SourceSegment], end_offset: int) -> list[list[int]]:
        return bases(group_segments(parts, max_bytes=10**6, max_index_bytes=10**6, end_offset=end_offset))

    assert groups(segments(0, 50), span + 1) == [[0, 50]]
    assert groups(segments(0, 50), span + 2) == [[0], [50]]
    assert groups(segments(0, 50, span + 2), span + 10) == [[0], [50, span + 2]]
    empty = [*segments(0), *segments(50, size_bytes=0)]
    assert groups(empty, span + 2) == [[0, 50]]
