"""The options of reading `kafka-log`; docs/spark.md has them as a table. Standard library only.

Names, defaults and precedence are as in Spark's Kafka source (KafkaSourceProvider) wherever it has the option.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from kwire.errors import OptionError, did_you_mean
from kwire.log.reading.paths import StorageOptions
from kwire.spark.offsets import Query, for_query
from kwire.spark.options.decoding import DECODE_OPTIONS, is_registry_setting
from kwire.spark.options.option import (
    PATH,
    PATHS,
    STORAGE,
    Option,
    check_names,
    choice,
    flag_option,
    is_storage,
    parse_paths,
    parse_storage,
    user_options,
)
from kwire.spark.options.query import (
    ASSIGN,
    INCLUDE_INTERNAL,
    MAX_RECORDS,
    MIN_PARTITIONS,
    SHARED_OPTIONS,
    SUBSCRIBE,
    SUBSCRIBE_PATTERN,
    Matching,
    QueryOptions,
    limits_set,
    parse_query,
    parse_selection,
)
from kwire.spark.options.query import UNSUPPORTED as UNSUPPORTED_FOR_ALL

__all__ = ["OPTIONS", "UNSUPPORTED", "Isolation", "LogOptions", "Mode", "check_query", "parse_options"]

Mode = Literal["FAILFAST", "DROPMALFORMED", "PERMISSIVE"]
Isolation = Literal["read_uncommitted", "read_committed"]

PAGE = "docs/spark.md"

ISOLATION = Option[Isolation](
    name="kafka.isolation.level",
    parse=choice("read_uncommitted", "read_committed"),
    default="read_uncommitted",
    value="`read_uncommitted` or `read_committed`",
    meaning="With `read_committed`, records of aborted transactions are skipped, and the query ends at the last stable "
    "offset.",
)
MODE = Option[Mode](
    name="mode",
    parse=choice("FAILFAST", "DROPMALFORMED", "PERMISSIVE"),
    default="FAILFAST",
    value="`FAILFAST`, `DROPMALFORMED` or `PERMISSIVE`",
    meaning="How to handle corrupt batches. See [Corrupt batches](#corrupt-batches).",
)
CHECK_CRC = flag_option(name="checkCrc", default=True, meaning="Whether to verify the checksum of each batch.")
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
    MIN_PARTITIONS.name: replace(MIN_PARTITIONS, shown_default="by size"),
    MAX_RECORDS.name: replace(MAX_RECORDS, shown_default="by size"),
}
OPTIONS: tuple[Option[object], ...] = (
    replace(PATH, meaning="The log directory: a path, a glob or a URL. See [Paths](#paths)."),
    PATHS,
    *(_CHANGED.get(option.name, option) for option in SHARED_OPTIONS),
    ISOLATION,
    MODE,
    CHECK_CRC,
    replace(STORAGE, meaning=f"{STORAGE.meaning} See [Paths](#paths)."),
)

_NO_BROKER = "this source reads files, not brokers"
_STREAMING_ONLY = "it limits the micro-batches of a streaming query, and this is a batch query"

UNSUPPORTED = {
    **UNSUPPORTED_FOR_ALL,
    "kafka.bootstrap.servers": f"{_NO_BROKER}; specify the log directory as path",
    "kafka.group.id": "this source reads files, without a consumer group",
    "groupIdPrefix": "this source reads files, without a consumer group",
    "kafkaConsumer.pollTimeoutMs": "this source reads files, and polls no broker",
    "fetchOffset.numRetries": "this source reads files, and fetches no offsets",
    "fetchOffset.retryIntervalMs": "this source reads files, and fetches no offsets",
    "kafka.enable.auto.commit": "this source reads files, and commits no offsets",
    "kafka.interceptor.classes": "this source reads files, without a consumer",
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
    check_crc: bool = True
    mode: Mode = "FAILFAST"


def parse_options(options: Mapping[str, str], query: Query = "batch") -> LogOptions:
    """Parse the options of one query. Raises OptionError."""
    given = user_options(options)
    known = {*(option.name.lower() for option in OPTIONS), *(name.lower() for name in UNSUPPORTED)}
    for key in given:
        if key.startswith("kafka.") and key not in known and not did_you_mean(key, [ISOLATION.name]):
            raise OptionError(
                f"Option '{key}' is not supported: {_NO_BROKER}; the only kafka.* option is {ISOLATION.name}"
            )
    check_names(
        given,
        (*OPTIONS, *DECODE_OPTIONS),
        UNSUPPORTED,
        source="kafka-log",
        page=PAGE,
        passed_on=lambda key: is_storage(key) or is_registry_setting(key),
    )
    parsed = parse_query(
        given,
        LogOptions,
        selection=parse_selection(given) or Matching(None, INCLUDE_INTERNAL.of(given)),
        paths=parse_paths(given),
        storage=parse_storage(given),
        isolation=ISOLATION.of(given),
        check_crc=CHECK_CRC.of(given),
        mode=MODE.of(given),
    )
    return check_query(parsed, query)


def check_query(options: LogOptions, query: Query) -> LogOptions:
    """Check that options are valid for a kind of query, and set its defaults. Raises OptionError."""
    if query == "batch" and (names := limits_set(options.limits)):
        raise OptionError(f"Option '{names[0]}' is not supported: {_STREAMING_ONLY}")
    return for_query(options, query)
