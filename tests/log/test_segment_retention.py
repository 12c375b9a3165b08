"""Boundaries of retention, as in UnifiedLog.deleteOldSegments."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwire.log import PartitionWriter
from kwire.log.writing.retention import below_log_start, over_size, over_time
from tests.log.writing import NOW, SMALL, batch, open_log

END = 30


@pytest.fixture
def log(tmp_path: Path) -> PartitionWriter:
    """Three segments of ten records and equal sizes; the newest timestamps are 9 ms after NOW + 100, + 300, + 200."""
    log = open_log(tmp_path, SMALL.replace(segment_bytes=1 << 20))
    for number, at in enumerate((100, 300, 200)):
        if number:
            log.roll(NOW)
        log.append(batch(*(b"%02d" % n for n in range(10)), timestamp=NOW + at), now_ms=NOW)
    assert [each.base_offset for each in log.segments] == [0, 10, 20]
    return log


def bases(found: list[object]) -> list[int]:
    return [each.base_offset for each in found]  # type: ignore[attr-defined]


@pytest.mark.requirement("F-62")
@pytest.mark.parametrize(("age", "expected"), [(0, []), (1, [0])])
def test_a_segment_expires_when_it_is_older_than_retention_ms(
    age: int, expected: list[int], log: PartitionWriter
) -> None:
    config = SMALL.replace(retention_ms=1000)
    now_ms = NOW + 109 + 1000 + age
    assert bases([*over_time(log.segments, config, END, END, now_ms)]) == expected


def test_a_newer_segment_keeps_older_timestamps_after_it(log: PartitionWriter) -> None:
    now_ms = NOW + 209 + 1001  # past the third, not the second
    assert bases([*over_time(log.segments, SMALL.replace(retention_ms=1000), END, END, now_ms)]) == [0]
    assert bases([*over_time(log.segments, SMALL.replace(retention_ms=1000), END, END, now_ms + 100)]) == [0, 10, 20]
    assert bases([*over_time(log.segments, SMALL.replace(retention_ms=0), END, END, NOW + 110)]) == [0]
    assert over_time(log.segments, SMALL.replace(retention_ms=-1), END, END, NOW + 10**9) == []


@pytest.mark.requirement("F-62")
@pytest.mark.parametrize(("more", "expected"), [(-1, [0]), (0, [0]), (1, [])])
def test_a_segment_goes_when_the_rest_still_has_retention_bytes(
    more: int, expected: list[int], log: PartitionWriter
) -> None:
    one, rest = log.segments[0].size_bytes, log.size_bytes - log.segments[0].size_bytes
    config = SMALL.replace(retention_bytes=rest + more)
    assert one > 1
    assert bases([*over_size(log.segments, config, END, END)]) == expected


def test_all_segments_go_for_zero_bytes_and_none_without_a_limit(log: PartitionWriter) -> None:
    assert bases([*over_size(log.segments, SMALL.replace(retention_bytes=0), END, END)]) == [0, 10, 20]
    assert over_size(log.segments, SMALL.replace(retention_bytes=-1), END, END) == []
    assert over_size(log.segments, SMALL.replace(retention_bytes=log.size_bytes), END, END) == []
    assert over_size(log.segments, SMALL.replace(retention_bytes=log.size_bytes + 1), END, END) == []


@pytest.mark.parametrize(
    ("high_watermark", "expected"), [(9, []), (10, [0]), (19, [0]), (20, [0, 10]), (29, [0, 10]), (30, [0, 10, 20])]
)
def test_segments_above_the_high_watermark_stay(high_watermark: int, expected: list[int], log: PartitionWriter) -> None:
    config = SMALL.replace(retention_ms=0, retention_bytes=0)
    assert bases([*over_time(log.segments, config, high_watermark, END, NOW + 10**6)]) == expected
    assert bases([*over_size(log.segments, config, high_watermark, END)]) == expected


@pytest.mark.parametrize(("start", "expected"), [(9, []), (10, [0]), (11, [0]), (20, [0, 10]), (30, [0, 10])])
def test_segments_that_end_at_the_log_start_go_except_the_last(
    start: int, expected: list[int], log: PartitionWriter
) -> None:
    assert bases([*below_log_start(log.segments, start, END, END)]) == expected


def test_an_empty_last_segment_stays(log: PartitionWriter) -> None:
    log.roll(NOW)
    config = SMALL.replace(retention_ms=0, retention_bytes=0)
    assert bases([*over_time(log.segments, config, END, END, NOW + 10**6)]) == [0, 10, 20]
    assert bases([*over_size(log.segments, config, END, END)]) == [0, 10, 20]


def test_an_empty_first_segment_goes_where_the_rest_is_exactly_retention_bytes(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    log.roll(NOW, 5)  # as after compaction of everything below
    log.append_as_given(batch(b"value", base_offset=5), now_ms=NOW)
    assert [each.size_bytes > 0 for each in log.segments] == [False, True]
    assert bases([*over_size(log.segments, SMALL.replace(retention_bytes=log.size_bytes), 6, 6)]) == [0]
    assert over_size(log.segments, SMALL.replace(retention_bytes=log.size_bytes + 1), 6, 6) == []
