"""Which row groups hold the rows of a partition in order."""

from __future__ import annotations

import pytest

from kwire.errors import OptionError
from kwire.maintenance.from_parquet import FromParquetOptions
from kwire.maintenance.from_parquet.directory import LARGEST_SEGMENT_BYTES, SMALLEST_SEGMENT_BYTES
from kwire.maintenance.from_parquet.ordered_rows import is_in_order
from kwire.maintenance.from_parquet.parquet_input import Piece


def piece(low: int, high: int, *, is_ascending: bool = True) -> Piece:
    return Piece(file=0, row_group=0, rows=high - low + 1, low=low, high=high, is_ascending=is_ascending)


@pytest.mark.parametrize(("low", "expected"), [(8, False), (9, False), (10, True), (11, True)])
def test_a_piece_begins_above_the_end_of_the_one_before(low: int, expected: bool) -> None:
    """An offset in both is a duplicate, which only sorting finds."""
    assert is_in_order([piece(0, 9), piece(low, 20)]) is expected
    assert not is_in_order([piece(low, 20), piece(0, 9)])
    assert not is_in_order([piece(0, 9), piece(low, 20, is_ascending=False)])


def test_the_first_offset_may_be_0() -> None:
    assert is_in_order([])
    assert is_in_order([piece(0, 0)])


@pytest.mark.parametrize("limit", [SMALLEST_SEGMENT_BYTES, LARGEST_SEGMENT_BYTES])
def test_segments_have_a_size_that_brokers_accept(limit: int) -> None:
    assert FromParquetOptions(segment_bytes=limit).segment_bytes == limit
    outside = limit - 1 if limit == SMALLEST_SEGMENT_BYTES else limit + 1
    with pytest.raises(OptionError, match=f"segment_bytes {outside}: expected"):
        FromParquetOptions(segment_bytes=outside)
