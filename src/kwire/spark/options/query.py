"""The options that `kafka-log` and `kafka-live` share: what to read, from where to where, in which tasks.

Names, defaults and precedence are those of Spark's Kafka source. Standard library only.
Source: KafkaSourceProvider, KafkaOffsetReader.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from kwire.errors import OptionError
from kwire.spark.options.offsets import NoMatch, OffsetLimit, check_offset_limits, parse_offset_limit
from kwire.spark.options.rate_limits import RateLimits, parse_rate_limits
from kwire.spark.options.topics import Selection, parse_assign, parse_pattern, parse_subscribe
from kwire.spark.options.values import parse_choice, parse_columns, parse_flag, parse_positive

__all__ = ["QUERY_NAMES", "REFUSED_SETTINGS", "STREAM_NAMES", "Query", "QueryOptions", "parse_query", "parse_selection"]

Query = Literal["batch", "stream", "any"]  # any: Spark asks for the schema before it says which
NO_LIMITS = RateLimits()

QUERY_NAMES = (
    "assign",
    "subscribe",
    "subscribePattern",
    "includeInternal",
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsets",
    "endingTimestamp",
    "endingOffsetsByTimestamp",
    "endingOffsets",
    "startingOffsetsByTimestampStrategy",
    "failOnDataLoss",
    "includeHeaders",
    "minPartitions",
    "maxRecordsPerPartition",
    "columns",
)
STREAM_NAMES = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
# As Spark's source refuses them (KafkaSourceProvider.validateGeneralOptions).
REFUSED_SETTINGS = {
    "kafka.auto.offset.reset": "set startingOffsets to say where to start",
    "kafka.key.deserializer": "keys are binary; use DataFrame operations to deserialize them",
    "kafka.value.deserializer": "values are binary; use DataFrame operations to deserialize them",
    "topic": "it belongs to writing; to read, name topics with subscribe",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryOptions:
    """What a query reads. min_partitions, max_records, columns: None where not asked for. limits: of a stream."""

    selection: Selection
    start: OffsetLimit
    end: OffsetLimit
    no_match: NoMatch = "error"
    fail_on_data_loss: bool = True
    include_headers: bool = False
    min_partitions: int | None = None
    max_records: int | None = None
    columns: tuple[str, ...] | None = None
    limits: RateLimits = NO_LIMITS


def parse_query(given: Mapping[str, str], query: Query) -> dict[str, Any]:
    """The fields of QueryOptions but selection, checked. given: options by names in lower case. Raises OptionError."""
    start = parse_offset_limit(
        "starting",
        given.get("startingtimestamp"),
        given.get("startingoffsetsbytimestamp"),
        given.get("startingoffsets"),
        is_stream=query != "batch",
    )
    if query == "stream":
        for name in ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets"):
            if name.lower() in given:
                raise OptionError(f"Option '{name}': ending offset not valid in streaming queries")
    end = parse_offset_limit(
        "ending", given.get("endingtimestamp"), given.get("endingoffsetsbytimestamp"), given.get("endingoffsets")
    )
    check_offset_limits(start, end)
    return {
        "start": start,
        "end": end,
        "no_match": parse_choice(given, "startingOffsetsByTimestampStrategy", "error", ("error", "latest")),
        "fail_on_data_loss": parse_flag(given, "failOnDataLoss", True),
        "include_headers": parse_flag(given, "includeHeaders", False),
        "min_partitions": parse_positive(given, "minPartitions"),
        "max_records": parse_positive(given, "maxRecordsPerPartition"),
        "columns": parse_columns(given),
        "limits": parse_rate_limits(given),
    }


def parse_selection(given: Mapping[str, str]) -> Selection | None:
    """The one of assign, subscribe, subscribePattern that is given, None without. Raises OptionError."""
    include_internal = parse_flag(given, "includeInternal", False)
    parsers: dict[str, Callable[[str], Selection]] = {
        "assign": parse_assign,
        "subscribe": parse_subscribe,
        "subscribepattern": lambda text: parse_pattern(text, include_internal=include_internal),
    }
    chosen = [name for name in parsers if name in given]
    if len(chosen) > 1:
        raise OptionError("Only one of the following options can be specified: assign, subscribe, subscribePattern")
    return parsers[chosen[0]](given[chosen[0]]) if chosen else None
