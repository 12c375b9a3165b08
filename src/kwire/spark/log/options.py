"""The options of `kafka-log`, from strings to checked values. Standard library only; docs/spark.md has the same table.

Names, defaults and precedence are those of Spark's Kafka source (KafkaSourceProvider) wherever it has the option. Keys
are case-insensitive, and arrive in lower case. An option that is not known is refused: a typing error must not change
a result silently.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from kwire.errors import OptionError, did_you_mean
from kwire.spark.options.given import user_options
from kwire.spark.options.query import (
    QUERY_NAMES,
    REFUSED_SETTINGS,
    STREAM_NAMES,
    Query,
    QueryOptions,
    parse_query,
    parse_selection,
)
from kwire.spark.options.topics import Matching
from kwire.spark.options.values import is_storage, parse_choice, parse_flag, parse_paths, parse_storage

Mode = Literal["FAILFAST", "DROPMALFORMED", "PERMISSIVE"]
Isolation = Literal["read_uncommitted", "read_committed"]

PAGE = "docs/spark.md"

NAMES = (*QUERY_NAMES, "path", "paths", "kafka.isolation.level", "pushdown", "checkCrc", "mode")

_NO_BROKER = "this source reads files and talks to no broker"
_STREAMS_ONLY = "it limits the batches of a streaming query, and this is a batch query"

# Options of Spark's Kafka source and of its neighbours that have no meaning for files: refused, with the reason.
REFUSED = {
    **REFUSED_SETTINGS,
    "kafka.bootstrap.servers": f"{_NO_BROKER}; give the log directory as path",
    "kafka.group.id": f"{_NO_BROKER}, so there is no consumer group",
    "groupIdPrefix": f"{_NO_BROKER}, so there is no consumer group",
    "kafkaConsumer.pollTimeoutMs": f"{_NO_BROKER}, so nothing is polled",
    "fetchOffset.numRetries": f"{_NO_BROKER}, so no offset is fetched",
    "fetchOffset.retryIntervalMs": f"{_NO_BROKER}, so no offset is fetched",
    "maxOffsetsPerTrigger": _STREAMS_ONLY,
    "minOffsetsPerTrigger": _STREAMS_ONLY,
    "maxTriggerDelay": _STREAMS_ONLY,
    "kafka.enable.auto.commit": f"{_NO_BROKER}, so nothing is committed",
    "kafka.interceptor.classes": f"{_NO_BROKER}, so there is no consumer to intercept",
    "columnNameOfCorruptRecord": "the column is always called _corrupt",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions(QueryOptions):
    """Everything a query asked for, checked as far as that is possible without looking at the log.

    paths: log directories, globs or URLs. storage: arguments of the file system driver, not shown by repr.
    """

    paths: tuple[str, ...]
    storage: Mapping[str, Any] = field(default_factory=dict, repr=False)
    isolation: Isolation = "read_uncommitted"
    pushdown: bool = False
    check_crc: bool = True
    mode: Mode = "FAILFAST"


def parse_options(options: Mapping[str, str], query: Query = "batch") -> LogOptions:
    """Check the options of one query; raises OptionError naming the option and what would be right."""
    given = user_options(options)
    _refuse_others(given, query)
    include_internal = parse_flag(given, "includeInternal", False)
    return LogOptions(
        **parse_query(given, query),
        selection=parse_selection(given) or Matching(None, include_internal),
        paths=parse_paths(given),
        storage=parse_storage(given),
        isolation=parse_choice(
            given, "kafka.isolation.level", "read_uncommitted", ("read_uncommitted", "read_committed")
        ),
        pushdown=parse_flag(given, "pushdown", False),
        check_crc=parse_flag(given, "checkCrc", True),
        mode=parse_choice(given, "mode", "FAILFAST", ("FAILFAST", "DROPMALFORMED", "PERMISSIVE")),
    )


def _refuse_others(given: Mapping[str, str], query: Query) -> None:
    known = {name.lower() for name in (NAMES if query == "batch" else (*NAMES, *STREAM_NAMES))}
    if query == "stream" and parse_flag(given, "pushdown", False):
        raise OptionError("Option 'pushdown' is not supported: Spark offers no filters of streaming queries")
    refused = {name.lower(): (name, reason) for name, reason in REFUSED.items()}
    for key in given:
        if key in known or is_storage(key):
            continue
        if key in refused:
            name, reason = refused[key]
            raise OptionError(f"Option '{name}' is not supported: {reason}")
        if key.startswith("kafka.") and not (hint := did_you_mean(key, ["kafka.isolation.level"])):
            raise OptionError(
                f"Option '{key}' is not supported: {_NO_BROKER}; of kafka.* only kafka.isolation.level is"
            )
        hint = did_you_mean(key, [*NAMES, *REFUSED])
        raise OptionError(f"Unknown option '{key}'{hint}; {PAGE} lists the options of kafka-log")
