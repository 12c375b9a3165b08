"""The options that `kafka-log` and `kafka-live` share: topics, starting and ending offsets, tasks, columns.

Names, defaults and precedence are those of Spark's Kafka source. Standard library only.
Source: KafkaSourceProvider, KafkaOffsetReader.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypedDict

from kwire.errors import OptionError
from kwire.spark.options.offsets import NoMatch, OffsetLimit, check_offset_limits, parse_offset_limit
from kwire.spark.options.option import Option
from kwire.spark.options.rate_limits import RATE_LIMITS, RateLimits, parse_rate_limits
from kwire.spark.options.topics import Selection, parse_assign, parse_pattern, parse_subscribe
from kwire.spark.options.values import choice, column_list, flag, positive, text

__all__ = ["SHARED_OPTIONS", "UNSUPPORTED", "Query", "QueryFields", "QueryOptions", "parse_query", "parse_selection"]

Query = Literal["batch", "stream", "any"]  # any: Spark asks for the schema before the kind of query is known
NO_LIMITS = RateLimits()

ASSIGN = Option[str | None](
    name="assign",
    parse=text,
    default=None,
    value='JSON object: `{"topicA":[0,1],"topicB":[2,4]}`',
    shown_default="none",
    meaning="The partitions to read. At most one of `assign`, `subscribe` and `subscribePattern` can be set.",
)
SUBSCRIBE = Option[str | None](
    name="subscribe",
    parse=text,
    default=None,
    value="comma-separated list of topics",
    shown_default="none",
    meaning="The topics to read.",
)
SUBSCRIBE_PATTERN = Option[str | None](
    name="subscribePattern",
    parse=text,
    default=None,
    value="Java regular expression",
    shown_default="none",
    meaning="A pattern of the topics to read.",
)
INCLUDE_INTERNAL = Option[bool](
    name="includeInternal",
    parse=flag,
    default=False,
    value="boolean",
    shown_default="false",
    meaning="Whether patterns match `__consumer_offsets`, `__transaction_state`, `__share_group_state`, "
    "`__cluster_metadata` and `__remote_log_metadata`. Topics that are specified by name are always read.",
)
STARTING_TIMESTAMP = Option[str | None](
    name="startingTimestamp",
    parse=text,
    default=None,
    value="timestamp in milliseconds",
    shown_default="none: `startingOffsetsByTimestamp` applies",
    meaning="The timestamp to start at: in each partition, the first offset whose timestamp is at or after it. If "
    "a partition has no such record, `startingOffsetsByTimestampStrategy` applies.",
)
STARTING_BY_TIMESTAMP = Option[str | None](
    name="startingOffsetsByTimestamp",
    parse=text,
    default=None,
    value='JSON object: `{"topicA":{"0":1000,"1":1000},"topicB":{"0":2000}}`',
    shown_default="none: `startingOffsets` applies",
    meaning="The timestamp to start at in each partition. All partitions of the query must be listed.",
)
STARTING_OFFSETS = Option[str | None](
    name="startingOffsets",
    parse=text,
    default=None,
    value='`earliest`, `latest` (streaming only), or JSON object: `{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}`',
    shown_default="`latest` for streaming, `earliest` for batch",
    meaning="The offsets to start at. In a JSON object, -2 means earliest and -1 means latest; all partitions of "
    "the query must be listed. A restarted streaming query continues from its checkpoint instead, and "
    "reads new partitions from their first offset.",
)
ENDING_TIMESTAMP = Option[str | None](
    name="endingTimestamp",
    parse=text,
    default=None,
    value="timestamp in milliseconds",
    shown_default="none: `endingOffsetsByTimestamp` applies",
    query="batch",
    meaning="The timestamp to end at, exclusive: in each partition, the first offset whose timestamp is at or "
    "after it, or else the end of the log.",
)
ENDING_BY_TIMESTAMP = Option[str | None](
    name="endingOffsetsByTimestamp",
    parse=text,
    default=None,
    value='JSON object: `{"topicA":{"0":1000,"1":1000},"topicB":{"0":2000}}`',
    shown_default="none: `endingOffsets` applies",
    query="batch",
    meaning="The timestamp to end at in each partition, exclusive.",
)
ENDING_OFFSETS = Option[str | None](
    name="endingOffsets",
    parse=text,
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
    shown_default="`error`",
    meaning="What to do with partitions that have no record at or after the starting timestamp: fail the query, "
    "or start at the end of the partition.",
)
FAIL_ON_DATA_LOSS = Option[bool](
    name="failOnDataLoss",
    parse=flag,
    default=True,
    value="boolean",
    shown_default="true",
    meaning="Whether data loss fails the query: missing topics or partitions, deleted records, offsets out of "
    "range. With false, the available data is read and a warning is logged.",
)
INCLUDE_HEADERS = Option[bool](
    name="includeHeaders",
    parse=flag,
    default=False,
    value="boolean",
    shown_default="false",
    meaning="Whether to add the column `headers`.",
)
MIN_PARTITIONS = Option[int | None](
    name="minPartitions",
    parse=positive,
    default=None,
    value="int",
    shown_default="none",
    meaning="Approximate minimum number of tasks. By default a partition is read by one task; with this option, "
    "large partitions are divided by offsets.",
)
MAX_RECORDS = Option[int | None](
    name="maxRecordsPerPartition",
    parse=positive,
    default=None,
    value="long",
    shown_default="none",
    meaning="Maximum number of offsets in a task.",
)
COLUMNS = Option[tuple[str, ...] | None](
    name="columns",
    parse=column_list,
    default=None,
    value="comma-separated list of columns",
    shown_default="all but `headers` and `_corrupt`",
    meaning="The columns to read, in this order. Columns that are not listed are not decoded.",
)
SHARED_OPTIONS: tuple[Option[object], ...] = (
    ASSIGN,
    SUBSCRIBE,
    SUBSCRIBE_PATTERN,
    INCLUDE_INTERNAL,
    STARTING_TIMESTAMP,
    STARTING_BY_TIMESTAMP,
    STARTING_OFFSETS,
    ENDING_TIMESTAMP,
    ENDING_BY_TIMESTAMP,
    ENDING_OFFSETS,
    NO_MATCH,
    FAIL_ON_DATA_LOSS,
    INCLUDE_HEADERS,
    COLUMNS,
    MIN_PARTITIONS,
    MAX_RECORDS,
    *RATE_LIMITS,
)
# As Spark's source refuses them (KafkaSourceProvider.validateGeneralOptions).
UNSUPPORTED = {
    "kafka.auto.offset.reset": "use startingOffsets to specify where to start",
    "kafka.key.deserializer": "keys are binary; use DataFrame operations to deserialize them",
    "kafka.value.deserializer": "values are binary; use DataFrame operations to deserialize them",
    "topic": "it applies to writing; use subscribe to read a topic",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryOptions:
    """The options of a query. min_partitions, max_records, columns: None if not set. limits: of a streaming query."""

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


class QueryFields(TypedDict):
    """The fields of QueryOptions except selection."""

    start: OffsetLimit
    end: OffsetLimit
    no_match: NoMatch
    fail_on_data_loss: bool
    include_headers: bool
    min_partitions: int | None
    max_records: int | None
    columns: tuple[str, ...] | None
    limits: RateLimits


def parse_query(given: Mapping[str, str], query: Query) -> QueryFields:
    """Parse the shared options except the choice of topics. given: keys in lower case. Raises OptionError."""
    start = parse_offset_limit(
        "starting",
        STARTING_TIMESTAMP.of(given),
        STARTING_BY_TIMESTAMP.of(given),
        STARTING_OFFSETS.of(given),
        is_stream=query != "batch",
    )
    if query == "stream":
        for option in (ENDING_TIMESTAMP, ENDING_BY_TIMESTAMP, ENDING_OFFSETS):
            if option.of(given) is not None:
                raise OptionError(f"Option '{option.name}': ending offset not valid in streaming queries")
    end = parse_offset_limit(
        "ending", ENDING_TIMESTAMP.of(given), ENDING_BY_TIMESTAMP.of(given), ENDING_OFFSETS.of(given)
    )
    check_offset_limits(start, end)
    return QueryFields(
        start=start,
        end=end,
        no_match=NO_MATCH.of(given),
        fail_on_data_loss=FAIL_ON_DATA_LOSS.of(given),
        include_headers=INCLUDE_HEADERS.of(given),
        min_partitions=MIN_PARTITIONS.of(given),
        max_records=MAX_RECORDS.of(given),
        columns=COLUMNS.of(given),
        limits=parse_rate_limits(given),
    )


def parse_selection(given: Mapping[str, str]) -> Selection | None:
    """Parse the one of assign, subscribe and subscribePattern that is set; None without. Raises OptionError."""
    include_internal = INCLUDE_INTERNAL.of(given)
    parsers: tuple[tuple[str | None, Callable[[str], Selection]], ...] = (
        (ASSIGN.of(given), parse_assign),
        (SUBSCRIBE.of(given), parse_subscribe),
        (SUBSCRIBE_PATTERN.of(given), lambda text: parse_pattern(text, include_internal=include_internal)),
    )
    chosen = [(value, parse) for value, parse in parsers if value is not None]
    if len(chosen) > 1:
        raise OptionError("Only one of the following options can be specified: assign, subscribe, subscribePattern")
    return chosen[0][1](chosen[0][0]) if chosen else None
