"""The options that say where a query starts and ends: offsets and timestamps.

Options, precedence and the wording of errors are those of Spark's Kafka source (KafkaSourceProvider's
getKafkaOffsetRangeLimit and checkOffsetLimitValidity). Standard library only.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from kwire.errors import OptionError
from kwire.identifiers import TopicPartition
from kwire.spark.options.topics import load_json_object

__all__ = [
    "EARLIEST",
    "LATEST",
    "Edge",
    "GlobalOffset",
    "GlobalTimestamp",
    "NoMatch",
    "OffsetLimit",
    "SpecificOffsets",
    "SpecificTimestamps",
    "check_offset_limits",
    "parse_offset_limit",
    "render_partitions",
]

EARLIEST = -2
LATEST = -1

OFFSETS_EXAMPLE = '{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}'
TIMESTAMPS_EXAMPLE = '{"topicA":{"0":123456789,"1":123456789},"topicB":{"0":123456789}}'

Edge = Literal["starting", "ending"]
NoMatch = Literal["error", "latest"]
"""startingOffsetsByTimestampStrategy: what to do when no record is recent enough for a starting timestamp."""


@dataclass(frozen=True, slots=True)
class GlobalOffset:
    """The same limit in all partitions: EARLIEST or LATEST."""

    offset: int


@dataclass(frozen=True, slots=True)
class SpecificOffsets:
    """An offset for each partition, EARLIEST and LATEST included."""

    offsets: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class GlobalTimestamp:
    """In all partitions the first offset whose timestamp is at or after timestamp_ms."""

    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class SpecificTimestamps:
    """A timestamp in milliseconds for each partition."""

    timestamps: Mapping[TopicPartition, int]


OffsetLimit = GlobalOffset | SpecificOffsets | GlobalTimestamp | SpecificTimestamps


def parse_offset_limit(
    edge: Edge, timestamp: str | None, by_timestamp: str | None, offsets: str | None, *, is_stream: bool = False
) -> OffsetLimit:
    """Parse the options `{edge}Timestamp`, `{edge}OffsetsByTimestamp` and `{edge}Offsets`; the first one wins.

    The default is earliest for "starting" and latest for "ending"; a stream starts at latest by default, and only a
    stream may. Raises OptionError.
    """
    wrong_end, wrong_name = (LATEST, "latest") if edge == "starting" else (EARLIEST, "earliest")
    if timestamp is not None:
        text = timestamp.strip()
        try:
            return GlobalTimestamp(_timestamp(int(text)))
        except ValueError:
            raise OptionError(f"Option '{edge}Timestamp': expected a single long value, got {text}") from None
    if by_timestamp is not None:
        name = f"{edge}OffsetsByTimestamp"
        expected = OptionError(f"Option '{name}': expected e.g. {TIMESTAMPS_EXAMPLE}, got {by_timestamp}")
        return SpecificTimestamps(_per_partition(by_timestamp, expected, lowest=0))
    if offsets is None:
        return GlobalOffset(EARLIEST if edge == "starting" and not is_stream else LATEST)
    text = offsets.strip()
    if text.lower() in ("earliest", "latest"):
        if text.lower() == wrong_name and not is_stream:
            raise OptionError(f"{edge} offset can't be {wrong_name} for batch queries on Kafka logs")
        return GlobalOffset(EARLIEST if text.lower() == "earliest" else LATEST)
    expected = OptionError(
        f"Option '{edge}Offsets': expected 'earliest', 'latest' or e.g. {OFFSETS_EXAMPLE}, got {text}"
    )
    found = _per_partition(text, expected, lowest=EARLIEST)
    for (topic, partition), offset in found.items():
        if offset == wrong_end and not is_stream:
            raise OptionError(
                f"{edge}Offsets for {topic}-{partition} can't be {wrong_name} for batch queries on Kafka logs"
            )
    return SpecificOffsets(found)


def _timestamp(value: int) -> int:
    if not 0 <= value < 2**63:
        raise ValueError(value)
    return value


def _per_partition(text: str, expected: OptionError, *, lowest: int) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for topic, values in load_json_object(text, expected).items():
        if not isinstance(values, dict):
            raise expected
        for partition, value in values.items():
            if not (partition.isascii() and partition.isdigit()) or int(partition) >= 2**31:
                raise expected
            if type(value) is not int or not lowest <= value < 2**63:
                raise expected
            found[topic, int(partition)] = value
    return found


def check_offset_limits(start: OffsetLimit, end: OffsetLimit) -> None:
    """Check the two limits against each other, before the log is opened.

    Raises OptionError unless JSON objects for both name the same partitions, and for a start after its end.
    """
    if isinstance(start, SpecificOffsets) and isinstance(end, SpecificOffsets):
        first, last, what = start.offsets, end.offsets, "offset"
    elif isinstance(start, SpecificTimestamps) and isinstance(end, SpecificTimestamps):
        first, last, what = start.timestamps, end.timestamps, "timestamp"
    elif (
        isinstance(start, GlobalTimestamp)
        and isinstance(end, GlobalTimestamp)
        and start.timestamp_ms > end.timestamp_ms
    ):
        raise OptionError(
            f"The specified start timestamp {start.timestamp_ms} is greater than the end timestamp {end.timestamp_ms}"
        )
    else:
        return
    if first.keys() != last.keys():
        raise OptionError(
            "The specified start offset and end offset should have the same topic-partitions. Topic-partitions for "
            f"start offset: {render_partitions(first)}, topic-partitions for end offset: {render_partitions(last)}"
        )
    for (topic, partition), low in first.items():
        high = last[topic, partition]
        if low > high >= 0:
            raise OptionError(
                f"The specified start {what} {low} is greater than the end {what} {high} "
                f"for topic {topic} partition {partition}"
            )


def render_partitions(keys: Collection[TopicPartition], most: int = 20) -> str:
    """Render partitions as `[orders-0, orders-1]`, sorted; at most `most` of them, and the number of others."""
    names = [f"{topic}-{partition}" for topic, partition in sorted(keys)]
    more = f", and {len(names) - most} more" if len(names) > most else ""
    return f"[{', '.join(names[:most])}{more}]"
