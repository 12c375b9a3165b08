"""The offsets that a query reads: starting and ending options, their resolution, and ranges for tasks.

    parse       startingOffsets, startingTimestamp ...      -> OffsetLimit
    resolve     limits, offsets of a log or a cluster       -> OffsetRange, for each partition
    divide      ranges, minPartitions ...                   -> ranges, each for a task

Options, precedence and the wording of errors are as in Spark's Kafka source. Ranges depend on the options and on the
offsets that the log or the cluster reports, and on nothing else. Standard library only.
Source: KafkaSourceProvider (getKafkaOffsetRangeLimit, checkOffsetLimitValidity), KafkaOffsetReaderAdmin,
KafkaOffsetRangeCalculator.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, Protocol, TypeVar

from kwire.errors import LogError, OptionError
from kwire.identifiers import TopicPartition
from kwire.spark.options.option import MAX_DIGITS, Option, choice, flag_option, load_json_object

__all__ = [
    "DELETED",
    "EARLIEST",
    "FAIL_ON_DATA_LOSS",
    "LATEST",
    "NO_MATCH",
    "OFFSET_OPTIONS",
    "Bounds",
    "GlobalOffset",
    "GlobalTimestamp",
    "NoMatch",
    "OffsetLimit",
    "OffsetOptions",
    "OffsetRange",
    "Query",
    "SpecificOffsets",
    "SpecificTimestamps",
    "check_offset_limits",
    "cut_ranges",
    "for_query",
    "parse_offset_limits",
    "render_offsets",
    "render_partitions",
    "report_data_loss",
    "resolve_range",
    "resolve_ranges",
]

logger = logging.getLogger("kwire.spark")

EARLIEST = -2
LATEST = -1
DELETED = 2**63 - 1  # first offset of a partition that no longer exists: all of its records were deleted

OFFSETS_EXAMPLE = '{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}'
TIMESTAMPS_EXAMPLE = '{"topicA":{"0":123456789,"1":123456789},"topicB":{"0":123456789}}'

Edge = Literal["starting", "ending"]
NoMatch = Literal["error", "latest"]
"""startingOffsetsByTimestampStrategy: what to do when no record is recent enough for a starting timestamp."""
Query = Literal["batch", "stream", "any"]  # any: Spark asks for the schema before the kind of query is known


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


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetOptions:
    """Where a query starts and ends. start: None for earliest. end: None for latest."""

    start: OffsetLimit | None = None
    end: OffsetLimit | None = None
    no_match: NoMatch = "error"
    fail_on_data_loss: bool = True


Options = TypeVar("Options", bound=OffsetOptions)

# ---- parse


def _global_timestamp(name: str, value: str) -> GlobalTimestamp:
    text = value.strip()
    try:
        timestamp_ms = int(text)
    except ValueError:
        timestamp_ms = -1
    if not 0 <= timestamp_ms < 2**63:
        raise OptionError(f"Option '{name}': expected a single long value, got {text}")
    return GlobalTimestamp(timestamp_ms)


def _specific_timestamps(name: str, value: str) -> SpecificTimestamps:
    expected = OptionError(f"Option '{name}': expected e.g. {TIMESTAMPS_EXAMPLE}, got {value}")
    return SpecificTimestamps(_per_partition(value, expected, lowest=0))


def _offsets(name: str, value: str) -> GlobalOffset | SpecificOffsets:
    text = value.strip()
    if text.lower() in ("earliest", "latest"):
        return GlobalOffset(EARLIEST if text.lower() == "earliest" else LATEST)
    expected = OptionError(f"Option '{name}': expected 'earliest', 'latest' or e.g. {OFFSETS_EXAMPLE}, got {text}")
    return SpecificOffsets(_per_partition(text, expected, lowest=EARLIEST))


def _per_partition(text: str, expected: OptionError, *, lowest: int) -> dict[TopicPartition, int]:
    offsets: dict[TopicPartition, int] = {}
    for topic, values in load_json_object(text, expected).items():
        if not isinstance(values, dict):
            raise expected
        for partition, value in values.items():
            is_number = partition.isascii() and partition.isdigit() and len(partition) <= MAX_DIGITS
            if not is_number or int(partition) >= 2**31:
                raise expected
            if type(value) is not int or not lowest <= value < 2**63:
                raise expected
            offsets[topic, int(partition)] = value
    return offsets


STARTING_TIMESTAMP = Option[OffsetLimit | None](
    name="startingTimestamp",
    parse=_global_timestamp,
    default=None,
    value="timestamp in milliseconds",
    shown_default="none: `startingOffsetsByTimestamp` applies",
    meaning="The timestamp to start at: in each partition, the first offset whose timestamp is at or after it. If "
    "a partition has no such record, `startingOffsetsByTimestampStrategy` applies.",
)
STARTING_BY_TIMESTAMP = Option[OffsetLimit | None](
    name="startingOffsetsByTimestamp",
    parse=_specific_timestamps,
    default=None,
    value='JSON object: `{"topicA":{"0":1000,"1":1000},"topicB":{"0":2000}}`',
    shown_default="none: `startingOffsets` applies",
    meaning="The timestamp to start at in each partition. All partitions of the query must be listed.",
)
STARTING_OFFSETS = Option[OffsetLimit | None](
    name="startingOffsets",
    parse=_offsets,
    default=None,
    value='`earliest`, `latest` (streaming only), or JSON object: `{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}`',
    shown_default="`latest` for streaming, `earliest` for batch",
    meaning="The offsets to start at. In a JSON object, -2 means earliest and -1 means latest; all partitions of "
    "the query must be listed. A restarted streaming query continues from its checkpoint instead, and "
    "reads new partitions from their first offset.",
)
ENDING_TIMESTAMP = Option[OffsetLimit | None](
    name="endingTimestamp",
    parse=_global_timestamp,
    default=None,
    value="timestamp in milliseconds",
    shown_default="none: `endingOffsetsByTimestamp` applies",
    query="batch",
    meaning="The timestamp to end at, exclusive: in each partition, the first offset whose timestamp is at or "
    "after it, or else the end of the log.",
)
ENDING_BY_TIMESTAMP = Option[OffsetLimit | None](
    name="endingOffsetsByTimestamp",
    parse=_specific_timestamps,
    default=None,
    value='JSON object: `{"topicA":{"0":1000,"1":1000},"topicB":{"0":2000}}`',
    shown_default="none: `endingOffsets` applies",
    query="batch",
    meaning="The timestamp to end at in each partition, exclusive.",
)
ENDING_OFFSETS = Option[OffsetLimit | None](
    name="endingOffsets",
    parse=_offsets,
    default=None,
    value='`latest`, or JSON object: `{"topicA":{"0":23,"1":-1},"topicB":{"0":-1}}`',
    shown_default="`latest`",
    query="batch",
    meaning="The offsets to end at, exclusive. In a JSON object, -1 means latest.",
)
NO_MATCH = Option[NoMatch](
    name="startingOffsetsByTimestampStrategy",
    parse=choice("error", "latest"),
    default="error",
    value="`error` or `latest`",
    meaning="What to do with partitions that have no record at or after the starting timestamp: fail the query, "
    "or start at the end of the partition.",
)
FAIL_ON_DATA_LOSS = flag_option(
    name="failOnDataLoss",
    default=True,
    meaning="Whether data loss fails the query: missing topics or partitions, deleted records, offsets out of "
    "range. With false, the available data is read and a warning is logged.",
)
# In the order of precedence: the first one that is set wins.
LIMIT_OPTIONS = {
    "starting": (STARTING_TIMESTAMP, STARTING_BY_TIMESTAMP, STARTING_OFFSETS),
    "ending": (ENDING_TIMESTAMP, ENDING_BY_TIMESTAMP, ENDING_OFFSETS),
}
OFFSET_OPTIONS: tuple[Option[object], ...] = (
    *LIMIT_OPTIONS["starting"],
    *LIMIT_OPTIONS["ending"],
    NO_MATCH,
    FAIL_ON_DATA_LOSS,
)


def parse_offset_limits(given: Mapping[str, str]) -> tuple[OffsetLimit | None, OffsetLimit | None]:
    """Parse the starting and the ending options. given: names in lower case. Raises OptionError."""
    start, end = (
        next((limit for option in LIMIT_OPTIONS[edge] if (limit := option.of(given)) is not None), None)
        for edge in ("starting", "ending")
    )
    _check_edge("ending", end)
    check_offset_limits(start, end)
    return start, end


def for_query(options: Options, query: Query) -> Options:
    """Check that offset options are valid for a kind of query; a stream starts at latest by default.

    Raises OptionError.
    """
    if query == "batch":
        _check_edge("starting", options.start)
    elif query == "stream":
        if options.end is not None:
            kinds = {GlobalTimestamp: "endingTimestamp", SpecificTimestamps: "endingOffsetsByTimestamp"}
            name = kinds.get(type(options.end), "endingOffsets")
            raise OptionError(f"Option '{name}': ending offset not valid in streaming queries")
        if options.start is None:
            return replace(options, start=GlobalOffset(LATEST))
    return options


def _check_edge(edge: Edge, limit: OffsetLimit | None) -> None:
    """Raise OptionError for a batch query that starts at latest or ends at earliest."""
    wrong, name = (LATEST, "latest") if edge == "starting" else (EARLIEST, "earliest")
    if limit == GlobalOffset(wrong):
        raise OptionError(f"{edge} offset can't be {name} for batch queries on Kafka logs")
    if isinstance(limit, SpecificOffsets):
        for (topic, partition), offset in limit.offsets.items():
            if offset == wrong:
                raise OptionError(
                    f"{edge}Offsets for {topic}-{partition} can't be {name} for batch queries on Kafka logs"
                )


def check_offset_limits(start: OffsetLimit | None, end: OffsetLimit | None) -> None:
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


# ---- resolve


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets [start, end) of one partition."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def size(self) -> int:
        """Number of offsets; there can be fewer records (compaction, transaction markers)."""
        return self.end - self.start


class Bounds(Protocol):
    """The offsets of a partition that a query can read under its isolation level."""

    @property
    def earliest(self) -> int:
        """First available offset."""

    @property
    def latest(self) -> int:
        """Last available offset + 1."""

    def offset_for_time(self, timestamp_ms: int) -> int | None:
        """Return the first offset below `latest` with a timestamp at or after timestamp_ms, or None."""


def resolve_ranges(bounds: Mapping[TopicPartition, Bounds], options: OffsetOptions) -> list[OffsetRange]:
    """Resolve the starting and ending options to offsets, partition by partition.

    Raises OptionError, also unless JSON objects for the options name exactly these partitions; LogError for offsets
    that are out of range.
    """
    _check_partitions("starting", options.start, bounds)
    _check_partitions("ending", options.end, bounds)
    return [resolve_range(key, each, options) for key, each in bounds.items()]


def _check_partitions(edge: Edge, limit: OffsetLimit | None, assigned: Collection[TopicPartition]) -> None:
    match limit:
        case SpecificOffsets(named):
            what = (
                f"If {edge}Offsets contains specific offsets, you must specify all TopicPartitions. Use -1 for latest, "
            )
            what += "-2 for earliest."
        case SpecificTimestamps(named):
            what = f"If {edge}OffsetsByTimestamp contains specific timestamps, you must specify all TopicPartitions."
        case _:
            return
    if named.keys() != set(assigned):
        raise OptionError(f"{what} Specified: {render_partitions(named)} Assigned: {render_partitions(assigned)}")


def resolve_range(key: TopicPartition, bounds: Bounds, options: OffsetOptions) -> OffsetRange:
    """Resolve the offsets [start, end) to read from one partition.

    Offsets outside [bounds.earliest, bounds.latest] are data loss: LogError, or with failOnDataLoss false a warning and
    the nearest available offset. Raises OptionError for a start after its end.
    """
    topic, partition = key
    first = _resolve_limit("starting", key, options.start, bounds, options.no_match)
    last = _resolve_limit("ending", key, options.end, bounds, options.no_match)
    for edge, offset in (("start", first), ("end", last)):
        if not bounds.earliest <= offset <= bounds.latest:
            lost = (
                f"{edge} offset {offset} of {topic}-{partition} is out of range: "
                f"the log holds offsets [{bounds.earliest}, {bounds.latest})"
            )
            report_data_loss(lost, "read the available offsets", fail=options.fail_on_data_loss)
    first = min(max(first, bounds.earliest), bounds.latest)
    last = min(max(last, bounds.earliest), bounds.latest)
    if first > last:
        raise OptionError(
            f"The resolved start offset {first} is greater than the resolved end offset {last} "
            f"for topic {topic} partition {partition}"
        )
    return OffsetRange(topic, partition, first, last)


def _resolve_limit(
    edge: Edge, key: TopicPartition, limit: OffsetLimit | None, bounds: Bounds, no_match: NoMatch
) -> int:
    match limit:
        case None:
            offset = EARLIEST if edge == "starting" else LATEST
        case GlobalOffset(offset):
            pass
        case SpecificOffsets(offsets):
            offset = offsets[key]
        case GlobalTimestamp(timestamp_ms):
            offset = _offset_for_time(edge, key, timestamp_ms, bounds, no_match)
        case SpecificTimestamps(timestamps):
            offset = _offset_for_time(edge, key, timestamps[key], bounds, no_match)
    return bounds.earliest if offset == EARLIEST else bounds.latest if offset == LATEST else offset


def _offset_for_time(edge: Edge, key: TopicPartition, timestamp_ms: int, bounds: Bounds, no_match: NoMatch) -> int:
    offset = bounds.offset_for_time(timestamp_ms)
    if offset is not None:
        return offset
    if edge == "starting" and no_match == "error":
        raise OptionError(
            f"No offset matched from request of topic-partition {key[0]}-{key[1]} and timestamp {timestamp_ms}; "
            "to start such partitions at their end, set startingOffsetsByTimestampStrategy to latest"
        )
    return LATEST


def render_partitions(keys: Collection[TopicPartition], most: int = 20) -> str:
    """Render partitions as `[orders-0, orders-1]`, sorted; at most `most` of them, and the number of others."""
    return _render_list([f"{topic}-{partition}" for topic, partition in sorted(keys)], most)


def render_offsets(offsets: Mapping[TopicPartition, int], most: int = 20) -> str:
    """Render offsets as `[orders-0: 23, orders-1: 42]`, as render_partitions does."""
    return _render_list(
        [f"{topic}-{partition}: {offset}" for (topic, partition), offset in sorted(offsets.items())], most
    )


def _render_list(items: Sequence[str], most: int) -> str:
    more = f", and {len(items) - most} more" if len(items) > most else ""
    return f"[{', '.join(items[:most])}{more}]"


def report_data_loss(lost: str, remedy: str, *, fail: bool) -> None:
    """Raise LogError for data loss, or log a warning. fail: failOnDataLoss. remedy: what the query does without it."""
    if fail:
        raise LogError(f"{lost}; to {remedy}, set failOnDataLoss to false")
    logger.warning("%s; failOnDataLoss is false: the query will %s", lost, remedy)


# ---- divide


def cut_ranges(ranges: Sequence[OffsetRange], min_partitions: int | None, max_records: int | None) -> list[OffsetRange]:
    """Divide ranges into one part per task, at the same offsets as Spark's Kafka source.

    max_records: maximum offsets in a part. min_partitions: approximate minimum number of parts; ranges that are too
    short to be divided leave their share to longer ones. Empty ranges are dropped. Depends on offsets and options only.
    Source: KafkaOffsetRangeCalculator.getRanges.
    """
    parts = [span for span in ranges if span.size]
    if max_records is not None:
        parts = [part for span in parts for part in _cut_evenly(span, -(-span.size // max_records))]
    if min_partitions is None or len(parts) >= min_partitions:
        return parts

    def share(size: int, total: int, tasks: int) -> int:
        return max(1, math.floor(size / total * tasks + 0.5))  # Java's Math.round

    total = sum(span.size for span in parts)
    short = [span for span in parts if share(span.size, total, min_partitions) == 1]
    whole = {(span.topic, span.partition) for span in short}
    long_total, long_tasks = total - sum(span.size for span in short), max(min_partitions - len(short), 1)
    return [
        part
        for span in parts
        for part in _cut_evenly(
            span, 1 if (span.topic, span.partition) in whole else share(span.size, long_total, long_tasks)
        )
    ]


def _cut_evenly(span: OffsetRange, parts: int) -> list[OffsetRange]:
    """Divide a range into even parts, longer ones last; fewer parts if it has fewer offsets."""
    starts = [span.start]
    for remaining in range(parts, 0, -1):
        starts.append(starts[-1] + (span.end - starts[-1]) // remaining)
    return [OffsetRange(span.topic, span.partition, *each) for each in pairwise(starts) if each[0] < each[1]]
