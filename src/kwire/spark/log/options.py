"""The options of reading `kafka-log`; docs/spark.md has them as a table. Standard library only.

Names, defaults and precedence are those of Spark's Kafka source (KafkaSourceProvider) wherever it has the option.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from kwire.errors import OptionError, did_you_mean
from kwire.log.paths import StorageOptions
from kwire.spark.options.given import user_options
from kwire.spark.options.option import Option, check_names
from kwire.spark.options.query import (
    ASSIGN,
    INCLUDE_INTERNAL,
    MAX_RECORDS,
    MIN_PARTITIONS,
    SHARED_OPTIONS,
    SUBSCRIBE,
    SUBSCRIBE_PATTERN,
    Query,
    QueryOptions,
    parse_query,
    parse_selection,
)
from kwire.spark.options.query import UNSUPPORTED as UNSUPPORTED_FOR_ALL
from kwire.spark.options.rate_limits import RATE_LIMITS
from kwire.spark.options.topics import Matching
from kwire.spark.options.values import choice, flag, is_storage, parse_paths, parse_storage, text

__all__ = ["OPTIONS", "UNSUPPORTED", "Isolation", "LogOptions", "Mode", "parse_options"]

Mode = Literal["FAILFAST", "DROPMALFORMED", "PERMISSIVE"]
Isolation = Literal["read_uncommitted", "read_committed"]

PAGE = "docs/spark.md"

PATH = Option[str | None](
    name="path",
    parse=text,
    default=None,
    value="string, also as the argument of `load`",
    shown_default="required",
    meaning="The log directory: a path, a glob or a URL. See [Paths](#paths).",
)
PATHS = Option[str | None](
    name="paths",
    parse=text,
    default=None,
    value="JSON array of strings",
    shown_default="none",
    meaning="Several log directories; Spark sets it for `load([...])`.",
)
STORAGE = Option[str | None](
    name="storage.*",
    parse=text,
    default=None,
    value="string or JSON",
    shown_default="none",
    meaning="Arguments of the fsspec driver of a URL. See [Paths](#paths).",
)
ISOLATION = Option[Isolation](
    name="kafka.isolation.level",
    parse=choice("read_uncommitted", "read_committed"),
    default="read_uncommitted",
    value="`read_uncommitted` or `read_committed`",
    shown_default="`read_uncommitted`",
    meaning="With `read_committed`, records of aborted transactions are skipped, and the query ends at the last stable "
    "offset.",
)
PUSHDOWN = Option[bool](
    name="pushdown",
    parse=flag,
    default=False,
    value="boolean",
    shown_default="false",
    query="batch",
    meaning="Whether filters of the query narrow what is read. See [Filter pushdown](#filter-pushdown).",
)
MODE = Option[Mode](
    name="mode",
    parse=choice("FAILFAST", "DROPMALFORMED", "PERMISSIVE"),
    default="FAILFAST",
    value="`FAILFAST`, `DROPMALFORMED` or `PERMISSIVE`",
    shown_default="`FAILFAST`",
    meaning="How to handle corrupt batches. See [Corrupt batches](#corrupt-batches).",
)
CHECK_CRC = Option[bool](
    name="checkCrc",
    parse=flag,
    default=True,
    value="boolean",
    shown_default="true",
    meaning="Whether to verify the checksum of each batch.",
)
_CHANGED = {
    ASSIGN.name: replace(ASSIGN, shown_default="all topics"),
    SUBSCRIBE.name: replace(SUBSCRIBE, shown_default="all topics"),
    SUBSCRIBE_PATTERN.name: replace(
        SUBSCRIBE_PATTERN,
        shown_default="all topics",
        meaning="A pattern of the topics to read. It must match the whole name.",
    ),
    INCLUDE_INTERNAL.name: replace(
        INCLUDE_INTERNAL, meaning=INCLUDE_INTERNAL.meaning.replace("patterns match", "patterns and the default include")
    ),
    MIN_PARTITIONS.name: replace(
        MIN_PARTITIONS,
        shown_default="by size",
        meaning="Approximate minimum number of tasks. By default partitions are divided by size, and small ones share "
        "a task; with this option, large partitions are divided by offsets too.",
    ),
    MAX_RECORDS.name: replace(MAX_RECORDS, shown_default="by size"),
}
OPTIONS: tuple[Option[object], ...] = (
    PATH,
    PATHS,
    *(_CHANGED.get(option.name, option) for option in SHARED_OPTIONS),
    ISOLATION,
    MODE,
    CHECK_CRC,
    PUSHDOWN,
    STORAGE,
)

_NO_BROKER = "this source reads files and connects to no broker"
_STREAMING_ONLY = "it limits the micro-batches of a streaming query, and this is a batch query"

UNSUPPORTED = {
    **UNSUPPORTED_FOR_ALL,
    "kafka.bootstrap.servers": f"{_NO_BROKER}; specify the log directory as path",
    "kafka.group.id": f"{_NO_BROKER}, so there is no consumer group",
    "groupIdPrefix": f"{_NO_BROKER}, so there is no consumer group",
    "kafkaConsumer.pollTimeoutMs": f"{_NO_BROKER}, so nothing is polled",
    "fetchOffset.numRetries": f"{_NO_BROKER}, so no offsets are fetched",
    "fetchOffset.retryIntervalMs": f"{_NO_BROKER}, so no offsets are fetched",
    "kafka.enable.auto.commit": f"{_NO_BROKER}, so no offsets are committed",
    "kafka.interceptor.classes": f"{_NO_BROKER}, so there is no consumer to intercept",
    "columnNameOfCorruptRecord": "the column is always called _corrupt",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions(QueryOptions):
    """The options of a query, checked without access to the log.

    paths: log directories, globs or URLs. storage: arguments of the file system driver; secret, so not in repr.
    """

    paths: tuple[str, ...]
    storage: StorageOptions = field(default_factory=dict, repr=False)
    isolation: Isolation = "read_uncommitted"
    pushdown: bool = False
    check_crc: bool = True
    mode: Mode = "FAILFAST"


def parse_options(options: Mapping[str, str], query: Query = "batch") -> LogOptions:
    """Parse the options of one query. Raises OptionError."""
    given = user_options(options)
    _check_names(given, query)
    return LogOptions(
        **parse_query(given, query),
        selection=parse_selection(given) or Matching(None, INCLUDE_INTERNAL.of(given)),
        paths=parse_paths(given),
        storage=parse_storage(given),
        isolation=ISOLATION.of(given),
        pushdown=PUSHDOWN.of(given),
        check_crc=CHECK_CRC.of(given),
        mode=MODE.of(given),
    )


def _check_names(given: Mapping[str, str], query: Query) -> None:
    if query == "stream" and PUSHDOWN.of(given):
        raise OptionError("Option 'pushdown' is not supported: Spark pushes no filters of streaming queries")
    if query == "batch":
        for option in RATE_LIMITS:
            if option.name.lower() in given:
                raise OptionError(f"Option '{option.name}' is not supported: {_STREAMING_ONLY}")
    known = {*(option.name.lower() for option in OPTIONS), *(name.lower() for name in UNSUPPORTED)}
    for key in given:
        if key.startswith("kafka.") and key not in known and not did_you_mean(key, [ISOLATION.name]):
            raise OptionError(
                f"Option '{key}' is not supported: {_NO_BROKER}; the only kafka.* option is {ISOLATION.name}"
            )
    check_names(given, OPTIONS, UNSUPPORTED, source="kafka-log", page=PAGE, passed_on=is_storage)
