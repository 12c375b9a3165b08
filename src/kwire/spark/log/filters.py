"""Pushed filters as bounds of what has to be read, and the ranges of offsets within them. Standard library only.

No rows are filtered here: Spark evaluates every filter on each row. A filter narrows what is read only where each
dropped row would fail it; filters that are not understood are ignored. Filters are recognized by the names of their
classes in pyspark.sql.datasource, so that this module does not need Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol, cast

from kwire.identifiers import TopicPartition
from kwire.log import PartitionLog
from kwire.log.segment import Segment
from kwire.spark.offsets import OffsetRange
from kwire.storage.header_walk import HeaderWalk

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

__all__ = ["HIGHEST", "LOWEST", "PushedFilters", "narrow_ranges", "parse_filters"]

LOWEST = -(2**63)
HIGHEST = 2**63 - 1

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


Row = Mapping[str, object]


class Condition(Protocol):
    """The attributes of Spark's filters; which ones a filter has depends on its class."""

    attribute: tuple[str, ...]
    value: Any
    child: Condition


@dataclass(frozen=True, slots=True)
class PushedFilters:
    """Bounds of the rows that can pass a query's filters: offsets in [first_offset, last_offset], timestamps (ms) from
    first_timestamp_ms on, and conditions on topic and partition.

    Timestamps have no upper bound: producers set them, so a later record can have an earlier timestamp, and the time
    index has the largest timestamp so far only.
    """

    first_offset: int = LOWEST
    last_offset: int = HIGHEST
    first_timestamp_ms: int = LOWEST
    conditions: tuple[Condition, ...] = ()

    def may_match(self, topic: str, partition: int) -> bool:
        """Return whether rows of this partition can pass the filters on topic and partition."""
        return all(_may_hold(found, {"topic": topic, "partition": partition}) for found in self.conditions)


def parse_filters(filters: Iterable[Filter]) -> PushedFilters:
    """Return the bounds that a conjunction of filters allows."""
    found = PushedFilters()
    for condition in cast("Iterable[Condition]", filters):
        column = _column(condition)
        if column == "offset":
            first, last = _bounds(condition, lambda value: value if type(value) is int else None)
            found = replace(
                found, first_offset=max(found.first_offset, first), last_offset=min(found.last_offset, last)
            )
        elif column == "timestamp":
            first = _first_timestamp_ms(condition)
            found = replace(found, first_timestamp_ms=max(found.first_timestamp_ms, first))
        elif column in ("topic", "partition"):
            found = replace(found, conditions=(*found.conditions, condition))
    return found


def narrow_ranges(
    ranges: Iterable[OffsetRange], logs: Mapping[TopicPartition, PartitionLog], filters: PushedFilters
) -> list[OffsetRange]:
    """Return the parts of ranges in which rows can pass the filters."""
    return [
        part
        for found in ranges
        if filters.may_match(found.topic, found.partition)
        for part in _narrow(logs[found.topic, found.partition], found, filters)
    ]


def _narrow(log: PartitionLog, found: OffsetRange, filters: PushedFilters) -> list[OffsetRange]:
    """Return the parts of a range in which rows can pass the filters on offset and timestamp."""
    start = max(found.start, filters.first_offset)
    end = min(found.end, filters.last_offset + 1)
    if start >= end:
        return []
    if filters.first_timestamp_ms < 0:  # a record without a timestamp counts as -1 ms
        return [OffsetRange(found.topic, found.partition, start, end)]
    parts: list[OffsetRange] = []
    for segment in log.segments_between(start, end):
        high = end if segment.next_base is None else min(end, segment.next_base)
        low = _first_recent_offset(segment, max(start, segment.base_offset), filters.first_timestamp_ms)
        if low is None or low >= high:
            continue
        if parts and parts[-1].end == low:
            low = parts.pop().start
        parts.append(OffsetRange(found.topic, found.partition, low, high))
    return parts


def _first_recent_offset(segment: Segment, start: int, timestamp_ms: int) -> int | None:
    """Return an offset from `start` on before which no record has timestamp_ms or later; None if no record has.

    Reads batch headers from the position in the time index, so records that the index does not cover count too. (The
    log's offset_for_time is Kafka's, which can return nothing although a later segment has such a record.)
    """
    with segment.open() as file:
        walk = HeaderWalk(file, segment.time_start(file, timestamp_ms, start))
        low = start
        for header in walk:
            if header.max_timestamp >= timestamp_ms and header.last_offset >= start:
                # The header of magic 0 and 1 has the last offset only.
                return max(low, header.stored_offset) if header.magic == 2 else low
            low = max(low, header.last_offset + 1)
        # Damaged bytes must reach the reader, which reports them.
        is_cut = walk.position < file.size() and not segment.is_active
        return start if walk.damage or is_cut else None


def _column(condition: Condition) -> str | None:
    """Return the column of a filter, or of the child of a Not; None for nested columns."""
    child = getattr(condition, "child", None)
    if child is not None:
        return _column(child)
    attribute: tuple[str, ...] = getattr(condition, "attribute", ())
    return attribute[0] if len(attribute) == 1 else None


def _bounds(condition: Condition, number: Callable[[object], int | None]) -> tuple[int, int]:
    """Return [first, last] of the whole numbers that pass a filter."""
    name = type(condition).__name__
    if name == "In":
        values = [number(value) for value in condition.value if value is not None]
        known = [value for value in values if value is not None]
        # An empty list would mean that no row passes; Spark does not push one.
        return (min(known), max(known)) if known and len(known) == len(values) else (LOWEST, HIGHEST)
    value = number(getattr(condition, "value", None))
    if value is None:
        return LOWEST, HIGHEST
    match name:
        case "EqualTo" | "EqualNullSafe":
            return value, value
        case "GreaterThan":
            return value + 1, HIGHEST
        case "GreaterThanOrEqual":
            return value, HIGHEST
        case "LessThan":
            return LOWEST, value - 1
        case "LessThanOrEqual":
            return LOWEST, value
    return LOWEST, HIGHEST


def _first_timestamp_ms(condition: Condition) -> int:
    """Return the smallest timestamp (ms) that can pass, rounded down: Spark compares microseconds."""

    def milliseconds(value: object) -> int | None:
        if not isinstance(value, datetime) or value.tzinfo is None:
            return None
        return (value - _EPOCH) // _MILLISECOND

    name = type(condition).__name__
    if name == "GreaterThan":
        value = milliseconds(condition.value)
        return LOWEST if value is None else value
    return _bounds(condition, milliseconds)[0]


def _may_hold(condition: Condition, row: Row) -> bool:
    """Return whether a filter on `topic` or `partition` holds for row; True for a filter that is not understood."""
    result = _evaluate(condition, row)
    return True if result is None else result


def _evaluate(condition: Condition, row: Row) -> bool | None:
    """Return the result of a filter for non-null values; None for a filter that is not understood."""
    name = type(condition).__name__
    if name == "Not":
        result = _evaluate(condition.child, row)
        return None if result is None else not result
    actual: Any = row[condition.attribute[0]]
    if name in ("IsNull", "IsNotNull"):
        return name == "IsNotNull"
    value = condition.value
    if name == "In":
        if any(type(item) is not type(actual) for item in value):
            return None
        return actual in value
    if type(value) is not type(actual):
        return None
    match name:
        case "EqualTo" | "EqualNullSafe":
            return bool(actual == value)
        case "GreaterThan":
            return bool(actual > value)
        case "GreaterThanOrEqual":
            return bool(actual >= value)
        case "LessThan":
            return bool(actual < value)
        case "LessThanOrEqual":
            return bool(actual <= value)
        case "StringStartsWith":
            return bool(actual.startswith(value))
        case "StringEndsWith":
            return bool(actual.endswith(value))
        case "StringContains":
            return value in actual
    return None
