"""The options that `kafka-log` and `kafka-live` share: topics, tasks, columns, limits of micro-batches.

The options of starting and ending offsets are in kwire.spark.offsets. Names, defaults and precedence are those of
Spark's Kafka source. Standard library only.
Source: KafkaSourceProvider, ConsumerStrategy, JsonUtils (spark-sql-kafka-0-10); Kafka's Topic.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from kwire.errors import OptionError
from kwire.identifiers import TopicPartition
from kwire.internal_topics.names import COORDINATOR_TOPICS, METADATA_TOPIC, REMOTE_LOG_METADATA_TOPIC
from kwire.spark.offsets import (
    FAIL_ON_DATA_LOSS,
    NO_MATCH,
    OFFSET_OPTIONS,
    OffsetOptions,
    parse_offset_limits,
)
from kwire.spark.options.decoding import DecodeOptions, TextOptions, parse_decoding
from kwire.spark.options.java_regex import translate_java_regex
from kwire.spark.options.option import (
    COLUMNS,
    MAX_DIGITS,
    Option,
    byte_size,
    flag_option,
    load_json_object,
    number_option,
)
from kwire.spark.packing import TaskSizes

if TYPE_CHECKING:
    from kwire.spark.decoded_columns import DecodedColumn

__all__ = [
    "RATE_LIMITS",
    "SHARED_OPTIONS",
    "UNSUPPORTED",
    "Assign",
    "Matching",
    "QueryOptions",
    "RateLimits",
    "Selection",
    "Subscribe",
    "limits_set",
    "parse_query",
    "parse_selection",
    "select",
]

# ---- topics and partitions

# Topics that Kafka itself writes. Kafka's clients do not count __cluster_metadata and __remote_log_metadata as internal
# (they cannot see the former), but a query of all topics should not read them.
INTERNAL_TOPICS = COORDINATOR_TOPICS | {METADATA_TOPIC, REMOTE_LOG_METADATA_TOPIC}

ASSIGN_EXAMPLE = '{"topicA":[0,1],"topicB":[0,1]}'


@dataclass(frozen=True, slots=True)
class Assign:
    """`assign`: exactly these partitions."""

    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class Subscribe:
    """`subscribe`: all partitions of exactly these topics."""

    topics: frozenset[str]


@dataclass(frozen=True, slots=True)
class Matching:
    """`subscribePattern`: all topics that match; with pattern None, all topics.

    pattern: in Python's syntax. include_internal: whether to match INTERNAL_TOPICS. in_part: whether a match of a part
    of the name suffices, as in Spark's Kafka source.
    """

    pattern: str | None
    include_internal: bool = False
    in_part: bool = False


Selection = Assign | Subscribe | Matching


def parse_assign(name: str, value: str) -> Assign:
    """Parse `{"topicA":[0,1]}`. Raises OptionError."""
    nothing = OptionError(f"No topicpartitions to assign as specified value for option '{name}' is '{value}'")
    if not value.strip().startswith("{"):
        raise nothing
    expected = OptionError(f"Option '{name}': expected e.g. {ASSIGN_EXAMPLE}, got {value}")
    chosen: set[TopicPartition] = set()
    for topic, partitions in load_json_object(value, expected).items():
        if not isinstance(partitions, list):
            raise expected
        for partition in partitions:
            if type(partition) is not int or not 0 <= partition < 2**31:
                raise expected
            chosen.add((topic, partition))
    if not chosen:
        raise nothing
    return Assign(frozenset(chosen))


def parse_subscribe(name: str, value: str) -> Subscribe:
    """Parse a comma-separated list of topics. Raises OptionError for an empty list."""
    topics = frozenset(topic.strip() for topic in value.split(",")) - {""}
    if not topics:
        raise OptionError(f"No topics to subscribe to as specified value for option '{name}' is '{value}'")
    return Subscribe(topics)


def parse_pattern(name: str, value: str) -> Matching:
    """Parse a Java regular expression. Raises OptionError if it is empty, invalid, or not supported."""
    if not value.strip():
        raise OptionError(f"Pattern to subscribe is empty as specified value for option '{name}' is '{value}'")
    pattern = translate_java_regex(value.strip())
    try:
        re.compile(pattern, re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise OptionError(f"Option '{name}': {error} in '{value}'") from None
    return Matching(pattern)


ASSIGN = Option[Assign | None](
    name="assign",
    parse=parse_assign,
    default=None,
    value='JSON object: `{"topicA":[0,1],"topicB":[2,4]}`',
    meaning="The partitions to read. At most one of `assign`, `subscribe` and `subscribePattern` can be set.",
)
SUBSCRIBE = Option[Subscribe | None](
    name="subscribe",
    parse=parse_subscribe,
    default=None,
    value="comma-separated list of topics",
    meaning="The topics to read.",
)
SUBSCRIBE_PATTERN = Option[Matching | None](
    name="subscribePattern",
    parse=parse_pattern,
    default=None,
    value="Java regular expression",
    meaning="A pattern of the topics to read.",
)
INCLUDE_INTERNAL = flag_option(
    name="includeInternal",
    default=False,
    meaning="Whether patterns match `__consumer_offsets`, `__transaction_state`, `__share_group_state`, "
    "`__cluster_metadata` and `__remote_log_metadata`. Topics that are specified by name are always read.",
)


def parse_selection(given: Mapping[str, str]) -> Selection | None:
    """Parse the one of assign, subscribe and subscribePattern that is set; None without. Raises OptionError."""
    options: tuple[Option[Selection | None], ...] = (ASSIGN, SUBSCRIBE, SUBSCRIBE_PATTERN)
    include_internal = INCLUDE_INTERNAL.of(given)
    chosen = [option for option in options if option.name.lower() in given]
    if len(chosen) > 1:
        raise OptionError("Only one of the following options can be specified: assign, subscribe, subscribePattern")
    selection = chosen[0].of(given) if chosen else None
    return replace(selection, include_internal=include_internal) if isinstance(selection, Matching) else selection


def select(selection: Selection, available: Collection[TopicPartition]) -> tuple[list[TopicPartition], list[str]]:
    """Return the selected partitions of `available`, and the names of missing topics and partitions; both sorted.

    Missing names have the form `topic` or `topic-partition`; patterns have none.
    """
    match selection:
        case Assign(partitions):
            existing = set(available)
            missing = [f"{topic}-{partition}" for topic, partition in sorted(partitions - existing)]
            return sorted(partitions & existing), missing
        case Subscribe(topics):
            return (
                sorted(key for key in available if key[0] in topics),
                sorted(topics - {topic for topic, _ in available}),
            )
        case Matching(pattern, include_internal, in_part):
            compiled = re.compile(pattern if pattern is not None else r"[\s\S]*", re.ASCII)
            matches = compiled.search if in_part else compiled.fullmatch
            return (
                sorted(
                    key
                    for key in available
                    if (include_internal or key[0] not in INTERNAL_TOPICS) and matches(key[0]) is not None
                ),
                [],
            )


# ---- limits of micro-batches

DEFAULT_TRIGGER_DELAY_MS = 15 * 60 * 1000
UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def parse_duration(name: str, text: str) -> int:
    """Parse `15m`, `30 s` or `500ms`, as Spark does, into milliseconds. Raises OptionError."""
    digits = text.strip().rstrip("abcdefghijklmnopqrstuvwxyz ").strip()
    unit = text.strip()[len(digits) :].strip() or "ms"
    if not digits.isdecimal() or len(digits) > MAX_DIGITS or unit not in UNITS_MS:
        raise OptionError(f"Option '{name}': expected a duration such as 15m, 30s or 500ms, got '{text}'")
    return int(digits) * UNITS_MS[unit]


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimits:
    """maxOffsetsPerTrigger, minOffsetsPerTrigger (None: no limit) and maxTriggerDelay in milliseconds."""

    max_offsets: int | None = None
    min_offsets: int | None = None
    max_delay_ms: int = DEFAULT_TRIGGER_DELAY_MS

    def __post_init__(self) -> None:
        if self.max_offsets is not None and self.min_offsets is not None and self.min_offsets > self.max_offsets:
            raise OptionError(
                f"Option 'minOffsetsPerTrigger' ({self.min_offsets}) is above maxOffsetsPerTrigger ({self.max_offsets})"
            )


NO_LIMITS = RateLimits()

MAX_OFFSETS = number_option(
    name="maxOffsetsPerTrigger",
    value="long",
    query="streaming",
    meaning="Maximum number of offsets in a micro-batch, divided among partitions in proportion to their backlogs.",
)
MIN_OFFSETS = number_option(
    name="minOffsetsPerTrigger",
    value="long",
    query="streaming",
    meaning="Minimum number of offsets in a micro-batch. The first micro-batch after a start does not wait for it.",
)
MAX_DELAY = Option[int](
    name="maxTriggerDelay",
    parse=parse_duration,
    default=DEFAULT_TRIGGER_DELAY_MS,
    value="duration: `15m`, `30s`, `500ms`",
    shown_default="15m",
    query="streaming",
    meaning="Maximum time to wait for `minOffsetsPerTrigger`.",
)
RATE_LIMITS: tuple[Option[object], ...] = (MAX_OFFSETS, MIN_OFFSETS, MAX_DELAY)


def limits_set(limits: RateLimits) -> list[str]:
    """Return the names of the options of limits that differ from their defaults."""
    values = (limits.max_offsets, limits.min_offsets, limits.max_delay_ms)
    return [option.name for option, value in zip(RATE_LIMITS, values, strict=True) if value != option.default]


# ---- columns, tasks, and all together

INCLUDE_HEADERS = flag_option(name="includeHeaders", default=False, meaning="Whether to add the column `headers`.")
MIN_PARTITIONS = number_option(
    name="minPartitions",
    value="int",
    meaning="Approximate minimum number of tasks: large partitions are divided by offsets, and none share a task. "
    "See [Tasks](#tasks).",
)
MAX_RECORDS = number_option(
    name="maxRecordsPerPartition",
    value="long",
    meaning="Maximum number of offsets in a task; partitions do not share tasks. See [Tasks](#tasks).",
)
MAX_PARTITION_BYTES = Option[int | None](
    name="maxPartitionBytes",
    parse=byte_size,
    default=None,
    value="bytes: `134217728`, `128m`",
    shown_default="128m",
    meaning="Maximum size of a task that reads several ranges, or a part of a large segment. See [Tasks](#tasks).",
)
OPEN_COST = Option[int | None](
    name="openCostInBytes",
    parse=byte_size,
    default=None,
    value="bytes: `1048576`, `1m`",
    shown_default="1m",
    meaning="What a range counts in the size of a task in addition to its records: the number of bytes that could be "
    "read in the time that opening it takes.",
)
SHARED_OPTIONS: tuple[Option[object], ...] = (
    ASSIGN,
    SUBSCRIBE,
    SUBSCRIBE_PATTERN,
    INCLUDE_INTERNAL,
    *OFFSET_OPTIONS,
    INCLUDE_HEADERS,
    replace(
        COLUMNS,
        shown_default="all but `headers` and `_corrupt`",
        meaning=f"{COLUMNS.meaning} Columns that are not listed are not decoded.",
    ),
    MIN_PARTITIONS,
    MAX_RECORDS,
    MAX_PARTITION_BYTES,
    OPEN_COST,
    *RATE_LIMITS,
)
# As Spark's source refuses them (KafkaSourceProvider.validateGeneralOptions).
UNSUPPORTED = {
    "kafka.auto.offset.reset": "use startingOffsets to specify where to start",
    "kafka.key.deserializer": "keys are binary; use DataFrame operations to deserialize them",
    "kafka.value.deserializer": "values are binary; use DataFrame operations to deserialize them",
    "startFrom": "it is an option of copy_stream; elsewhere, use startingOffsets with kwire.spark.starting_offsets",
    "topic": "it applies to writing; use subscribe to read a topic",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryOptions(OffsetOptions):
    """The options of a query. min_partitions, max_records, columns: None if not set. limits: of a streaming query.

    decoding: of values and keys. decoded: the same by column, once the source has asked the registry.
    """

    selection: Selection
    include_headers: bool = False
    min_partitions: int | None = None
    max_records: int | None = None
    columns: tuple[str, ...] | None = None
    limits: RateLimits = NO_LIMITS
    task_sizes: TaskSizes = field(default_factory=TaskSizes)
    decoding: tuple[DecodeOptions | TextOptions, ...] = ()
    decoded: Mapping[str, DecodedColumn] = field(default_factory=dict)

    @property
    def topic(self) -> str | None:
        """The one topic that the query reads, or None if there may be several."""
        match self.selection:
            case Subscribe(topics) if len(topics) == 1:
                return next(iter(topics))
            case Assign(partitions) if len({topic for topic, _ in partitions}) == 1:
                return next(iter(partitions))[0]
        return None

    @property
    def is_cut(self) -> bool:
        """Whether minPartitions or maxRecordsPerPartition divides the query by offsets, as Spark's source does."""
        return self.min_partitions is not None or self.max_records is not None


Options = TypeVar("Options", bound=QueryOptions)


def parse_query(given: Mapping[str, str], options: Callable[..., Options], **more: object) -> Options:
    """Parse the shared options. given: names in lower case. options, more: a source's class, and its own fields.

    Raises OptionError.
    """
    start, end = parse_offset_limits(given)
    return options(
        start=start,
        end=end,
        no_match=NO_MATCH.of(given),
        fail_on_data_loss=FAIL_ON_DATA_LOSS.of(given),
        include_headers=INCLUDE_HEADERS.of(given),
        min_partitions=MIN_PARTITIONS.of(given),
        max_records=MAX_RECORDS.of(given),
        columns=COLUMNS.of(given),
        task_sizes=TaskSizes(
            max_partition_bytes=MAX_PARTITION_BYTES.of(given) or None, open_cost_bytes=OPEN_COST.of(given)
        ),
        limits=RateLimits(
            max_offsets=MAX_OFFSETS.of(given), min_offsets=MIN_OFFSETS.of(given), max_delay_ms=MAX_DELAY.of(given)
        ),
        decoding=parse_decoding(given),
        **more,
    )
