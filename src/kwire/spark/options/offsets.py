"""Where a query starts and ends in each partition: offsets, timestamps, and their check against what the log holds.

Options, precedence and the sense of the messages are those of Spark's Kafka source (KafkaSourceProvider's
getKafkaOffsetRangeLimit and checkOffsetLimitValidity, KafkaOffsetReaderAdmin). Standard library only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, Protocol

from kwire.errors import LogError, OptionError
from kwire.spark.options.topics import TopicPartition, load_json_object

EARLIEST = -2
LATEST = -1

OFFSETS_EXAMPLE = '{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}'
TIMESTAMPS_EXAMPLE = '{"topicA":{"0":123456789,"1":123456789},"topicB":{"0":123456789}}'

Edge = Literal["starting", "ending"]
# What to do when no record of a partition is as young as a starting timestamp asks.
NoMatch = Literal["error", "latest"]


@dataclass(frozen=True, slots=True)
class Everywhere:
    """The same edge in all partitions. position: EARLIEST or LATEST."""

    position: int


@dataclass(frozen=True, slots=True)
class AtOffsets:
    """An offset for each partition, or EARLIEST, or LATEST."""

    offsets: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class AtTime:
    """In all partitions the first offset whose timestamp is at or after timestamp_ms."""

    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class AtTimes:
    """The same with a timestamp (ms) for each partition."""

    timestamps: Mapping[TopicPartition, int]


Limit = Everywhere | AtOffsets | AtTime | AtTimes


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets [start, end) of one partition."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def size(self) -> int:
        """Offsets in the range; records can be fewer (compaction, transaction markers)."""
        return self.end - self.start


class Bounds(Protocol):
    """What resolving an edge needs to know of a partition; offsets as the query's isolation level sees them."""

    @property
    def earliest(self) -> int:
        """First offset there is."""

    @property
    def latest(self) -> int:
        """Offset behind the last one there is."""

    def offset_for_time(self, timestamp_ms: int) -> int | None:
        """First offset with a timestamp at or after timestamp_ms, None when there is none below `latest`."""


def parse_limit(
    edge: Edge, timestamp: str | None, by_timestamp: str | None, offsets: str | None, *, is_stream: bool = False
) -> Limit:
    """The edge that the options `{edge}Timestamp`, `{edge}OffsetsByTimestamp`, `{edge}Offsets` ask for, first one wins.

    None of them: earliest for "starting", latest for "ending" and where a stream starts. Only a stream may start at the
    latest offsets. Raises OptionError.
    """
    wrong_end, wrong_name = (LATEST, "latest") if edge == "starting" else (EARLIEST, "earliest")
    if timestamp is not None:
        text = timestamp.strip()
        try:
            return AtTime(_timestamp(int(text)))
        except ValueError:
            raise OptionError(f"Option '{edge}Timestamp': expected a single long value, got {text}") from None
    if by_timestamp is not None:
        name = f"{edge}OffsetsByTimestamp"
        expected = OptionError(f"Option '{name}': expected e.g. {TIMESTAMPS_EXAMPLE}, got {by_timestamp}")
        return AtTimes(_per_partition(by_timestamp, expected, lowest=0))
    if offsets is None:
        return Everywhere(EARLIEST if edge == "starting" and not is_stream else LATEST)
    text = offsets.strip()
    if text.lower() in ("earliest", "latest"):
        if text.lower() == wrong_name and not is_stream:
            raise OptionError(f"{edge} offset can't be {wrong_name} for batch queries on Kafka logs")
        return Everywhere(EARLIEST if text.lower() == "earliest" else LATEST)
    expected = OptionError(
        f"Option '{edge}Offsets': expected 'earliest', 'latest' or e.g. {OFFSETS_EXAMPLE}, got {text}"
    )
    found = _per_partition(text, expected, lowest=EARLIEST)
    for (topic, partition), offset in found.items():
        if offset == wrong_end and not is_stream:
            raise OptionError(
                f"{edge}Offsets for {topic}-{partition} can't be {wrong_name} for batch queries on Kafka logs"
            )
    return AtOffsets(found)


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


def check_limits(start: Limit, end: Limit) -> None:
    """Refuse what cannot be right whatever the log holds; raises OptionError.

    Maps for both edges must name the same partitions, and no start may lie behind its end.
    """
    if isinstance(start, AtOffsets) and isinstance(end, AtOffsets):
        first, last, what = start.offsets, end.offsets, "offset"
    elif isinstance(start, AtTimes) and isinstance(end, AtTimes):
        first, last, what = start.timestamps, end.timestamps, "timestamp"
    elif isinstance(start, AtTime) and isinstance(end, AtTime) and start.timestamp_ms > end.timestamp_ms:
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


def check_named(edge: Edge, limit: Limit, chosen: Collection[TopicPartition]) -> None:
    """A map for an edge must name every partition that is read, and no other; raises OptionError."""
    match limit:
        case AtOffsets(named):
            what = (
                f"If {edge}Offsets contains specific offsets, you must specify all TopicPartitions. Use -1 for latest, "
            )
            what += "-2 for earliest."
        case AtTimes(named):
            what = f"If {edge}OffsetsByTimestamp contains specific timestamps, you must specify all TopicPartitions."
        case _:
            return
    if named.keys() != set(chosen):
        raise OptionError(f"{what} Specified: {render_partitions(named)} Assigned: {render_partitions(chosen)}")


def render_partitions(keys: Collection[TopicPartition], most: int = 20) -> str:
    """`[orders-0, orders-1]`, sorted; of very many only the first, and how many more."""
    names = [f"{topic}-{partition}" for topic, partition in sorted(keys)]
    more = f", and {len(names) - most} more" if len(names) > most else ""
    return f"[{', '.join(names[:most])}{more}]"


def resolve(
    key: TopicPartition,
    start: Limit,
    end: Limit,
    bounds: Bounds,
    *,
    no_match: NoMatch,
    fail_on_data_loss: bool,
    report: Callable[[str], None],
) -> OffsetRange:
    """The offsets [start, end) that a query reads of one partition.

    An offset outside [bounds.earliest, bounds.latest] is data that is gone: LogError, or with fail_on_data_loss False
    the nearest offset there is and a call of `report`. Raises OptionError when the start lies behind the end.
    """
    topic, partition = key
    first = _resolve_edge("starting", key, start, bounds, no_match)
    last = _resolve_edge("ending", key, end, bounds, no_match)
    for edge, offset in (("start", first), ("end", last)):
        if not bounds.earliest <= offset <= bounds.latest:
            lost = (
                f"{edge} offset {offset} of {topic}-{partition} is out of range: "
                f"the log holds offsets [{bounds.earliest}, {bounds.latest})"
            )
            if fail_on_data_loss:
                raise LogError(f"{lost}; to read what is there, set the option failOnDataLoss to false")
            report(f"{lost}; reading what is there")
    first = min(max(first, bounds.earliest), bounds.latest)
    last = min(max(last, bounds.earliest), bounds.latest)
    if first > last:
        raise OptionError(
            f"The resolved start offset {first} is greater than the resolved end offset {last} "
            f"for topic {topic} partition {partition}"
        )
    return OffsetRange(topic, partition, first, last)


def _resolve_edge(edge: Edge, key: TopicPartition, limit: Limit, bounds: Bounds, no_match: NoMatch) -> int:
    match limit:
        case Everywhere(position):
            asked = position
        case AtOffsets(offsets):
            asked = offsets[key]
        case AtTime(timestamp_ms):
            asked = _offset_for_time(edge, key, timestamp_ms, bounds, no_match)
        case AtTimes(timestamps):
            asked = _offset_for_time(edge, key, timestamps[key], bounds, no_match)
    return bounds.earliest if asked == EARLIEST else bounds.latest if asked == LATEST else asked


def _offset_for_time(edge: Edge, key: TopicPartition, timestamp_ms: int, bounds: Bounds, no_match: NoMatch) -> int:
    found = bounds.offset_for_time(timestamp_ms)
    if found is not None:
        return found
    if edge == "starting" and no_match == "error":
        raise OptionError(
            f"No offset matched from request of topic-partition {key[0]}-{key[1]} and timestamp {timestamp_ms}; "
            "to start at the end of such partitions, set startingOffsetsByTimestampStrategy to latest"
        )
    return LATEST


def offsets_per_task(
    ranges: Sequence[OffsetRange], min_partitions: int | None, max_records: int | None
) -> list[int | None]:
    """How many offsets of each range one task may get; None where all of them.

    max_records: never more than this. min_partitions: a hint, about so many tasks in all; ranges too short to be cut
    leave their part of it to the long ones (Spark's KafkaOffsetRangeCalculator).
    """
    limits = [max_records] * len(ranges)
    total = sum(found.size for found in ranges)
    if min_partitions is None or not total:
        return limits
    shares = [round(found.size / total * min_partitions) for found in ranges]
    long_total = sum(found.size for found, share in zip(ranges, shares, strict=True) if share > 1)
    long_tasks = max(min_partitions - sum(share <= 1 for share in shares), 1)
    for n, (found, share) in enumerate(zip(ranges, shares, strict=True)):
        if share > 1:
            tasks = max(1, round(found.size / long_total * long_tasks))
            limits[n] = min(-(-found.size // tasks), max_records or found.size)
    return limits


def cut_ranges(ranges: Sequence[OffsetRange], min_partitions: int | None, max_records: int | None) -> list[OffsetRange]:
    """The parts of some ranges that are a task each, to the offset those that Spark's own source makes of them.

    max_records: of a part at most. min_partitions: a hint, about so many parts in all; ranges that are too short to be
    cut leave their share of it to the long ones. Empty ranges are left out. A function of offsets and options alone.
    Source: KafkaOffsetRangeCalculator.getRanges.
    """
    parts = [found for found in ranges if found.size]
    if max_records is not None:
        parts = [part for found in parts for part in cut_evenly(found, -(-found.size // max_records))]
    if min_partitions is None or len(parts) >= min_partitions:
        return parts

    def share(size: int, total: int, tasks: int) -> int:
        return max(1, math.floor(size / total * tasks + 0.5))  # Java's Math.round

    total = sum(found.size for found in parts)
    short = [found for found in parts if share(found.size, total, min_partitions) == 1]
    whole = {(found.topic, found.partition) for found in short}
    long_total, long_tasks = total - sum(found.size for found in short), max(min_partitions - len(short), 1)
    return [
        part
        for found in parts
        for part in cut_evenly(
            found, 1 if (found.topic, found.partition) in whole else share(found.size, long_total, long_tasks)
        )
    ]


def cut_evenly(found: OffsetRange, parts: int) -> list[OffsetRange]:
    """A range in so many parts, the longer ones last; fewer where it has fewer offsets."""
    starts = [found.start]
    for left in range(parts, 0, -1):
        starts.append(starts[-1] + (found.end - starts[-1]) // left)
    return [OffsetRange(found.topic, found.partition, *each) for each in pairwise(starts) if each[0] < each[1]]
