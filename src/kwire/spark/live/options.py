"""The options of `kafka-live`: those of Spark's Kafka source, with its names, defaults and precedence.

kafka.* options go to kwire.client, whose settings have Kafka's names. Standard library only; docs/live.md has the
same table. Source: KafkaSourceProvider.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kwire.errors import OptionError
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
from kwire.spark.options.values import parse_positive, refuse_unknown

__all__ = ["LiveOptions", "parse_options"]

PAGE = "docs/live.md"

NAMES = (
    *QUERY_NAMES,
    *STREAM_NAMES,
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "groupIdPrefix",
)
REFUSED = {
    **REFUSED_SETTINGS,
    "kafka.enable.auto.commit": "offsets are kept in Spark's checkpoint and never committed to Kafka",
    "kafka.interceptor.classes": "there is no Java consumer to intercept",
    "path": "this source talks to brokers; to read a log directory, use kafka-log",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveOptions(QueryOptions):
    """Everything a query asked for. kafka: settings of the client, which may hold secrets and are in no repr."""

    kafka: Mapping[str, str] = field(repr=False)

    @property
    def mode(self) -> str:
        """What to do about corrupt data: as Spark's source, fail."""
        return "FAILFAST"

    @property
    def isolation(self) -> str:
        """kafka.isolation.level, Kafka's default without it."""
        return self.kafka.get("isolation.level", "read_uncommitted").strip().lower()


def parse_options(options: Mapping[str, str], query: Query) -> LiveOptions:
    """Check the options of one query; raises OptionError naming the option and what would be right."""
    given = user_options(options)
    for name, reason in REFUSED.items():
        if name.lower() in given:
            raise OptionError(f"Option '{name}' is not supported: {reason}")
    refuse_unknown(
        {key: value for key, value in given.items() if not key.startswith("kafka.")}, NAMES, "kafka-live", PAGE
    )
    values = parse_query(given, query)
    selection = parse_selection(given)
    if selection is None:
        raise OptionError(
            "One of the following options must be specified for Kafka source: assign, subscribe, subscribePattern"
        )
    if isinstance(selection, Matching):
        selection = replace(selection, in_part=True)
    return LiveOptions(**values, selection=selection, kafka=client_settings(given))


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
