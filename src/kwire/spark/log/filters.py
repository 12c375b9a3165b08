"""Filters that Spark offers to push down, as bounds on what has to be read. Standard library only.

Nothing is filtered here: every filter goes back to Spark, which evaluates it on each row. A filter only narrows what is
read, and only where each row left out would have failed it; whatever is not understood narrows nothing. Filters are
recognised by the names of their classes (pyspark.sql.datasource), so that this module needs no Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

LOWEST = -(2**63)
HIGHEST = 2**63 - 1

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Narrowing:
    """What a query needs at most: rows with an offset in [first_offset, last_offset] and a timestamp (ms) from
    first_timestamp_ms on, of partitions that `wants` accepts.

    There is no upper bound for timestamps: producers set them, so a later record can be older than an earlier one, and
    the time index only tells the largest timestamp so far.
    """

    first_offset: int = LOWEST
    last_offset: int = HIGHEST
    first_timestamp_ms: int = LOWEST
    conditions: tuple[Any, ...] = ()

    def wants(self, topic: str, partition: int) -> bool:
        """Whether rows of this partition can pass all filters on the columns topic and partition."""
        return all(_can_hold(found, {"topic": topic, "partition": partition}) for found in self.conditions)


def narrow(filters: Iterable[Any]) -> Narrowing:
    """The narrowing that a conjunction of pyspark.sql.datasource filters allows."""
    found = Narrowing()
    for condition in filters:
        column = _column(condition)
        if column == "offset":
            first, last = _whole_bounds(condition, lambda value: value if type(value) is int else None)
            found = replace(
                found, first_offset=max(found.first_offset, first), last_offset=min(found.last_offset, last)
            )
        elif column == "timestamp":
            first = _first_timestamp_ms(condition)
            found = replace(found, first_timestamp_ms=max(found.first_timestamp_ms, first))
        elif column in ("topic", "partition"):
            found = replace(found, conditions=(*found.conditions, condition))
    return found


def _column(condition: Any) -> str | None:
    """The column of a filter, None for nested ones. The column of a Not is that of its child."""
    child = getattr(condition, "child", None)
    if child is not None:
        return _column(child)
    attribute: tuple[str, ...] = getattr(condition, "attribute", ())
    return attribute[0] if len(attribute) == 1 else None


def _whole_bounds(condition: Any, number: Callable[[Any], int | None]) -> tuple[int, int]:
    """The whole numbers that pass a filter lie in [first, last]."""
    name = type(condition).__name__
    if name == "In":
        values = [number(value) for value in condition.value if value is not None]
        known = [value for value in values if value is not None]
        # An empty list would be "none passes"; Spark does not push one, so it is left to Spark.
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


def _first_timestamp_ms(condition: Any) -> int:
    """No row with a smaller timestamp (ms) passes. Spark compares microseconds, Kafka has ms: rounded down."""

    def milliseconds(value: Any) -> int | None:
        if not isinstance(value, datetime) or value.tzinfo is None:
            return None
        return (value - _EPOCH) // _MILLISECOND

    name = type(condition).__name__
    if name == "GreaterThan":
        value = milliseconds(condition.value)
        return LOWEST if value is None else value
    return _whole_bounds(condition, milliseconds)[0]


def _can_hold(condition: Any, row: dict[str, Any]) -> bool:
    """Whether a filter on `topic` or `partition` holds for the values in row; True where it is not understood."""
    result = _evaluate(condition, row)
    return True if result is None else result


def _evaluate(condition: Any, row: dict[str, Any]) -> bool | None:
    """The filter's answer for known, non-null values; None: not understood."""
    name = type(condition).__name__
    if name == "Not":
        result = _evaluate(condition.child, row)
        return None if result is None else not result
    actual = row[condition.attribute[0]]
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
