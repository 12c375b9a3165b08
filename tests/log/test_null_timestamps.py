"""Timestamps that do not fit a column of microseconds are counted once each."""

from __future__ import annotations

import pyarrow as pa
import pytest

from kwire.log.reading.arrow import NullTimestamps

TIMES = pa.timestamp("us")


def rows(offsets: list[int], times: list[int | None]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(offsets, pa.int64()), pa.array(times, TIMES)], ["offset", "timestamp"])


@pytest.mark.parametrize(("times", "first"), [([None, 1, 2], 5), ([1, None, 2], 6), ([1, 2, None], 7)])
def test_the_first_one_is_named(times: list[int | None], first: int) -> None:
    found = NullTimestamps()
    found.add(rows([5, 6, 7], times))
    assert (found.count, found.problem) == (
        1,
        f"the timestamp of offset {first} is beyond the year 294247, the last that fits the column, and null there",
    )


def test_offsets_that_come_again_are_not_counted_again() -> None:
    found = NullTimestamps()
    found.add(rows([5, 6, 7], [1, None, None]))
    found.add(rows([6, 7], [None, None]))
    assert found.count == 2
    found.add(rows([7, 8], [None, None]))
    assert found.count == 3
    assert found.problem is not None
    assert "of offset 6 and of 2 more" in found.problem
    assert NullTimestamps().problem is None
