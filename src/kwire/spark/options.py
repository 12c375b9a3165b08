"""The options of `kafka-log`, from strings to checked values. Standard library only; docs/spark.md has the same table.

Names, defaults and precedence are those of Spark's Kafka source (KafkaSourceProvider) wherever it has the option. Keys
are case-insensitive, and arrive in lower case. An option that is not known is refused: a typing error must not change
a result silently.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from kwire.errors import OptionError
from kwire.spark.offsets import Limit, NoMatch, check_limits, parse_limit
from kwire.spark.option_values import (
    is_storage,
    parse_choice,
    parse_columns,
    parse_flag,
    parse_paths,
    parse_positive,
    parse_storage,
)
from kwire.spark.stream import Limits, parse_limits
from kwire.spark.topics import Matching, Selection, nearest, parse_assign, parse_pattern, parse_subscribe

Query = Literal["batch", "stream", "any"]  # any: Spark asks for the schema before it says which
Mode = Literal["FAILFAST", "DROPMALFORMED", "PERMISSIVE"]
Isolation = Literal["read_uncommitted", "read_committed"]

PAGE = "docs/spark.md"
NO_LIMITS = Limits()

NAMES = (
    "path",
    "paths",
    "assign",
    "subscribe",
    "subscribePattern",
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
    "kafka.isolation.level",
    "columns",
    "pushdown",
    "includeInternal",
    "checkCrc",
    "mode",
)
STREAM_NAMES = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")

_NO_BROKER = "this source reads files and talks to no broker"
_STREAMS_ONLY = "it limits the batches of a streaming query, and this is a batch query"

# Options of Spark's Kafka source and of its neighbours that have no meaning for files: refused, with the reason.
REFUSED = {
    "kafka.bootstrap.servers": f"{_NO_BROKER}; give the log directory as path",
    "kafka.group.id": f"{_NO_BROKER}, so there is no consumer group",
    "groupIdPrefix": f"{_NO_BROKER}, so there is no consumer group",
    "kafkaConsumer.pollTimeoutMs": f"{_NO_BROKER}, so nothing is polled",
    "fetchOffset.numRetries": f"{_NO_BROKER}, so no offset is fetched",
    "fetchOffset.retryIntervalMs": f"{_NO_BROKER}, so no offset is fetched",
    "maxOffsetsPerTrigger": _STREAMS_ONLY,
    "minOffsetsPerTrigger": _STREAMS_ONLY,
    "maxTriggerDelay": _STREAMS_ONLY,
    "kafka.auto.offset.reset": "set startingOffsets to say where to start",
    "kafka.key.deserializer": "keys are binary; use DataFrame operations to deserialize them",
    "kafka.value.deserializer": "values are binary; use DataFrame operations to deserialize them",
    "kafka.enable.auto.commit": f"{_NO_BROKER}, so nothing is committed",
    "kafka.interceptor.classes": f"{_NO_BROKER}, so there is no consumer to intercept",
    "topic": "it belongs to writing; to read, name topics with subscribe",
    "columnNameOfCorruptRecord": "the column is always called _corrupt",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """Everything a query asked for, checked as far as that is possible without looking at the log.

    paths: log directories, globs or URLs. storage: arguments of the file system driver, not shown by repr.
    min_partitions, max_records: None where not asked for. columns: None where not asked for. limits: of a stream.
    """

    paths: tuple[str, ...]
    storage: Mapping[str, Any] = field(default_factory=dict, repr=False)
    selection: Selection
    start: Limit
    end: Limit
    no_match: NoMatch = "error"
    fail_on_data_loss: bool = True
    include_headers: bool = False
    min_partitions: int | None = None
    max_records: int | None = None
    isolation: Isolation = "read_uncommitted"
    columns: tuple[str, ...] | None = None
    pushdown: bool = False
    check_crc: bool = True
    mode: Mode = "FAILFAST"
    limits: Limits = NO_LIMITS


def parse_options(options: Mapping[str, str], query: Query = "batch") -> LogOptions:
    """Check the options of one query; raises OptionError naming the option and what would be right."""
    given = {key.lower(): value for key, value in options.items()}
    _refuse_others(given, query)
    start = parse_limit(
        "starting",
        given.get("startingtimestamp"),
        given.get("startingoffsetsbytimestamp"),
        given.get("startingoffsets"),
        is_stream=query != "batch",
    )
    end = parse_limit(
        "ending", given.get("endingtimestamp"), given.get("endingoffsetsbytimestamp"), given.get("endingoffsets")
    )
    check_limits(start, end)
    return LogOptions(
        paths=parse_paths(given),
        storage=parse_storage(given),
        selection=_selection(given),
        start=start,
        end=end,
        no_match=parse_choice(given, "startingOffsetsByTimestampStrategy", "error", ("error", "latest")),
        fail_on_data_loss=parse_flag(given, "failOnDataLoss", True),
        include_headers=parse_flag(given, "includeHeaders", False),
        min_partitions=parse_positive(given, "minPartitions"),
        max_records=parse_positive(given, "maxRecordsPerPartition"),
        isolation=parse_choice(
            given, "kafka.isolation.level", "read_uncommitted", ("read_uncommitted", "read_committed")
        ),
        columns=parse_columns(given),
        pushdown=parse_flag(given, "pushdown", False),
        check_crc=parse_flag(given, "checkCrc", True),
        mode=parse_choice(given, "mode", "FAILFAST", ("FAILFAST", "DROPMALFORMED", "PERMISSIVE")),
        limits=parse_limits(given),
    )


def _refuse_others(given: Mapping[str, str], query: Query) -> None:
    known = {name.lower() for name in (NAMES if query == "batch" else (*NAMES, *STREAM_NAMES))}
    if query == "stream":
        for name in ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets"):
            if name.lower() in given:
                raise OptionError(f"Option '{name}': ending offset not valid in streaming queries")
        if parse_flag(given, "pushdown", False):
            raise OptionError("Option 'pushdown' is not supported: Spark offers no filters of streaming queries")
    refused = {name.lower(): (name, reason) for name, reason in REFUSED.items()}
    for key in given:
        if key in known or is_storage(key):
            continue
        if key in refused:
            name, reason = refused[key]
            raise OptionError(f"Option '{name}' is not supported: {reason}")
        if key.startswith("kafka.") and not (hint := nearest(key, ["kafka.isolation.level"])):
            raise OptionError(
                f"Option '{key}' is not supported: {_NO_BROKER}; of kafka.* only kafka.isolation.level is"
            )
        hint = nearest(key, [*NAMES, *REFUSED])
        raise OptionError(f"Unknown option '{key}'{hint}; {PAGE} lists the options of kafka-log")


def _selection(given: Mapping[str, str]) -> Selection:
    include_internal = parse_flag(given, "includeInternal", False)
    parsers: dict[str, Callable[[str], Selection]] = {
        "assign": parse_assign,
        "subscribe": parse_subscribe,
        "subscribepattern": lambda text: parse_pattern(text, include_internal=include_internal),
    }
    chosen = [name for name in parsers if name in given]
    if len(chosen) > 1:
        raise OptionError("Only one of the following options can be specified: assign, subscribe, subscribePattern")
    return parsers[chosen[0]](given[chosen[0]]) if chosen else Matching(None, include_internal)
