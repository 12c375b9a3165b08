"""The options of `kafka-live`: those of Spark's Kafka source, with its names, defaults and precedence.

kafka.* options go to kwire.client, whose settings have Kafka's names. Standard library only; docs/live.md has the
same table. Source: KafkaSourceProvider.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from kwire.errors import OptionError
from kwire.spark.offsets import Limit, NoMatch, check_limits, parse_limit
from kwire.spark.option_values import (
    parse_choice,
    parse_columns,
    parse_flag,
    parse_positive,
    refuse_unknown,
)
from kwire.spark.stream import Limits, parse_limits
from kwire.spark.topics import Matching, Selection, parse_assign, parse_pattern, parse_subscribe

__all__ = ["LiveOptions", "parse_options"]

PAGE = "docs/live.md"

NAMES = (
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
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "groupIdPrefix",
    "columns",
    "includeInternal",
)
# As Spark's source refuses them (KafkaSourceProvider.validateGeneralOptions).
REFUSED = {
    "kafka.auto.offset.reset": "set startingOffsets to say where to start",
    "kafka.key.deserializer": "keys are binary; use DataFrame operations to deserialize them",
    "kafka.value.deserializer": "values are binary; use DataFrame operations to deserialize them",
    "kafka.enable.auto.commit": "offsets are kept in Spark's checkpoint and never committed to Kafka",
    "kafka.interceptor.classes": "there is no Java consumer to intercept",
    "topic": "it belongs to writing; to read, name topics with subscribe",
    "path": "this source talks to brokers; to read a log directory, use kafka-log",
}
Query = Literal["batch", "stream", "any"]  # any: Spark asks for the schema before it says which


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveOptions:
    """Everything a query asked for. kafka: settings of the client, which may hold secrets and are in no repr."""

    kafka: Mapping[str, str] = field(repr=False)
    selection: Selection
    start: Limit
    end: Limit
    limits: Limits
    no_match: NoMatch = "error"
    fail_on_data_loss: bool = True
    include_headers: bool = False
    min_partitions: int | None = None
    max_records: int | None = None
    columns: tuple[str, ...] | None = None

    @property
    def mode(self) -> str:
        """What to do about corrupt data: as Spark's source, fail."""
        return "FAILFAST"

    @property
    def isolation(self) -> str:
        """kafka.isolation.level, Kafka's default without it."""
        return self.kafka.get("isolation.level", "read_uncommitted")


def parse_options(options: Mapping[str, str], query: Query) -> LiveOptions:
    """Check the options of one query; raises OptionError naming the option and what would be right."""
    given = {key.lower(): value for key, value in options.items()}
    for name, reason in REFUSED.items():
        if name.lower() in given:
            raise OptionError(f"Option '{name}' is not supported: {reason}")
    refuse_unknown(
        {key: value for key, value in given.items() if not key.startswith("kafka.")}, NAMES, "kafka-live", PAGE
    )
    start = parse_limit(
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
    end = parse_limit(
        "ending", given.get("endingtimestamp"), given.get("endingoffsetsbytimestamp"), given.get("endingoffsets")
    )
    check_limits(start, end)
    return LiveOptions(
        kafka=client_settings(given),
        selection=selection(given),
        start=start,
        end=end,
        no_match=parse_choice(given, "startingOffsetsByTimestampStrategy", "error", ("error", "latest")),
        fail_on_data_loss=parse_flag(given, "failOnDataLoss", True),
        include_headers=parse_flag(given, "includeHeaders", False),
        min_partitions=parse_positive(given, "minPartitions"),
        max_records=parse_positive(given, "maxRecordsPerPartition"),
        columns=parse_columns(given),
        limits=parse_limits(given),
    )


def client_settings(given: Mapping[str, str]) -> dict[str, str]:
    """kafka.* without the prefix, and what Spark's own options say about waiting."""
    if not given.get("kafka.bootstrap.servers", "").strip():
        raise OptionError(
            "Option 'kafka.bootstrap.servers' must be specified for configuring Kafka consumer: host:port, ..."
        )
    settings = {key.removeprefix("kafka."): value for key, value in given.items() if key.startswith("kafka.")}
    if "kafkaconsumer.polltimeoutms" in given:
        wait = parse_positive(given, "kafkaConsumer.pollTimeoutMs")
        settings.setdefault("default.api.timeout.ms", str(wait))
    for name in ("fetchOffset.numRetries", "fetchOffset.retryIntervalMs"):
        parse_positive(given, name)
    if "fetchoffset.retryintervalms" in given:
        settings.setdefault("retry.backoff.ms", given["fetchoffset.retryintervalms"])
    from kwire.client import ClientSettings

    ClientSettings.parse(settings)
    return settings


def selection(given: Mapping[str, str]) -> Selection:
    """Exactly one of assign, subscribe, subscribePattern."""
    chosen = [name for name in ("assign", "subscribe", "subscribePattern") if name.lower() in given]
    if len(chosen) > 1:
        raise OptionError("Only one of the following options can be specified: assign, subscribe, subscribePattern")
    if not chosen:
        raise OptionError(
            "One of the following options must be specified for Kafka source: assign, subscribe, subscribePattern"
        )
    text = given[chosen[0].lower()]
    if chosen[0] == "assign":
        return parse_assign(text)
    if chosen[0] == "subscribe":
        return parse_subscribe(text)
    found = parse_pattern(text, include_internal=parse_flag(given, "includeInternal", False))
    assert isinstance(found, Matching)
    return found
