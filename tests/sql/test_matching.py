"""The partitions, offsets and times that filters can match, at their borders."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from kwire.records.columns.reader import arrow_schema
from kwire.sql.dataset import COLUMNS
from kwire.sql.matching import Matching, named_columns

SCHEMA = arrow_schema(COLUMNS)
OFFSET, PARTITION, TIME = pc.field("offset"), pc.field("partition"), pc.field("timestamp")


def matching(filter: pc.Expression | None) -> Matching:
    return Matching(filter, SCHEMA, "orders")


def at(us: int) -> pa.Scalar:
    return pa.scalar(us, pa.timestamp("us", "UTC"))


@pytest.mark.parametrize(
    ("filter", "ranges"),
    [
        (None, [(0, 1000)]),
        (OFFSET >= 20, [(20, 1000)]),
        (OFFSET > 20, [(21, 1000)]),
        (OFFSET < 20, [(0, 20)]),
        (OFFSET <= 998, [(0, 999)]),
        (OFFSET <= 999, [(0, 1000)]),
        (OFFSET == 0, [(0, 1)]),
        (OFFSET == 999, [(999, 1000)]),
        (OFFSET == 1000, []),
        (OFFSET.isin([3, 500, 501, 5000]), [(3, 4), (500, 502)]),
        ((OFFSET < 10) | (OFFSET >= 990), [(0, 10), (990, 1000)]),
        ((OFFSET < 41) | (OFFSET > 43), [(0, 41), (44, 1000)]),
        ((OFFSET <= 41) | (OFFSET >= 43), [(0, 42), (43, 1000)]),
        (~((OFFSET >= 500) & (OFFSET <= 500)), [(0, 500), (501, 1000)]),
        (OFFSET != 42, [(0, 1000)]),
        (~(OFFSET < 990), [(990, 1000)]),
        ((PARTITION == 1) & (OFFSET >= 5), [(5, 1000)]),
        ((PARTITION == 2) & (OFFSET >= 5), []),
        ((PARTITION == 2) | (OFFSET >= 995), [(995, 1000)]),
        (pc.field("topic") == "other", []),
        ((OFFSET > 10) & (OFFSET < 11), []),
        ((OFFSET == 872) & OFFSET.isin([777, 876]), []),
        (OFFSET + 1 > 500, [(0, 1000)]),  # not understood: everything
        (pc.field("key") == b"x", [(0, 1000)]),
    ],
    ids=str,
)
def test_offset_ranges(filter: pc.Expression | None, ranges: list[tuple[int, int]]) -> None:
    assert matching(filter).offset_ranges(1, 0, 1000) == ranges


@pytest.mark.parametrize("value", [b"0" * 5000, "7" * 5000], ids=["bytes", "text"])
def test_long_values_of_digits_are_no_offsets(value: bytes | str) -> None:
    """Python converts no text of more than 4,300 digits to a number."""
    long = pc.field("key") == value
    assert matching(long).offset_ranges(1, 0, 1000) == [(0, 1000)]
    assert matching(long & ((OFFSET < 41) | (OFFSET > 43))).offset_ranges(1, 0, 1000) == [(0, 41), (44, 1000)]


def test_offset_ranges_of_a_large_partition_stay_few() -> None:
    many = OFFSET.isin(list(range(0, 10**12, 10**9)))
    ranges = matching(many).offset_ranges(0, 0, 10**12)
    assert len(ranges) <= 64
    assert all(any(start <= each < end for start, end in ranges) for each in range(0, 10**12, 10**9))
    assert matching(OFFSET == 123_456_789_012).offset_ranges(0, 0, 2**62) == [(123_456_789_012, 123_456_789_013)]
    assert matching(OFFSET >= 0).offset_ranges(0, 7, 7) == []


@pytest.mark.parametrize(
    ("filter", "earliest"),
    [
        (None, None),
        (at(5_000) <= TIME, 5),
        (at(4_999) < TIME, 5),
        (at(5_000) < TIME, 6),
        (at(5_001) <= TIME, 6),
        (at(7_000) == TIME, 7),
        (at(5_000) >= TIME, None),
        ((at(5_000) < TIME) | TIME.is_null(), None),
        ((at(5_000) < TIME) & (OFFSET > 3), 6),
        ((at(5_000) < TIME) | (OFFSET > 3), None),
        (TIME.is_valid(), None),
        (~(at(5_000) >= TIME), 6),
        (at(-1) < TIME, 0),
    ],
    ids=str,
)
def test_earliest_time(filter: pc.Expression | None, earliest: int | None) -> None:
    """In ms, rounded up: records have no microseconds."""
    assert matching(filter).earliest_time() == earliest


def test_partitions() -> None:
    assert matching(PARTITION.isin([1, 4])).partitions([0, 1, 2, 3, 4]) == [1, 4]
    assert matching(None).partitions([0, 1]) == [0, 1]


def test_columns_that_a_filter_names() -> None:
    filter = (pc.field("value", "status") == "key") & (OFFSET > 3)
    assert named_columns(filter, SCHEMA) == ["offset", "key", "value"]  # "key" is too many, which is harmless
    assert named_columns(None, SCHEMA) == []
