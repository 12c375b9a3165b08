"""The options of reading `kafka-live`: those of Spark's Kafka source, with its names, defaults and precedence.

kafka.* options are passed to kwire.client, whose settings have Kafka's names. docs/live.md has the options as a table.
Standard library only. Source: KafkaSourceProvider.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kwire.errors import OptionError
from kwire.spark.options.given import user_options
from kwire.spark.options.option import Option, check_names
from kwire.spark.options.query import (
    SHARED_OPTIONS,
    SUBSCRIBE_PATTERN,
    Query,
    QueryOptions,
    parse_query,
    parse_selection,
)
from kwire.spark.options.query import UNSUPPORTED as UNSUPPORTED_FOR_ALL
from kwire.spark.options.topics import Matching
from kwire.spark.options.values import positive, text

__all__ = ["OPTIONS", "UNSUPPORTED", "LiveOptions", "parse_options"]

PAGE = "docs/live.md"

BOOTSTRAP_SERVERS = Option[str | None](
    name="kafka.bootstrap.servers",
    parse=text,
    default=None,
    value="comma-separated list of `host:port`",
    shown_default="required",
    meaning="The brokers to connect to first.",
)
POLL_TIMEOUT = Option[int | None](
    name="kafkaConsumer.pollTimeoutMs",
    parse=positive,
    default=None,
    value="long",
    shown_default="60000",
    meaning="The timeout in milliseconds of a request, retries included.",
)
NUM_RETRIES = Option[int | None](
    name="fetchOffset.numRetries",
    parse=positive,
    default=None,
    value="int",
    shown_default="none",
    meaning="Accepted without effect: requests are retried until `kafkaConsumer.pollTimeoutMs` is over.",
)
RETRY_INTERVAL = Option[int | None](
    name="fetchOffset.retryIntervalMs",
    parse=positive,
    default=None,
    value="long",
    shown_default="100",
    meaning="Milliseconds to wait before a request is retried.",
)
GROUP_ID_PREFIX = Option[str | None](
    name="groupIdPrefix",
    parse=text,
    default=None,
    value="string",
    shown_default="none",
    meaning="Accepted without effect: there is no consumer group.",
)
CLIENT_SETTINGS = Option[str | None](
    name="kafka.*",
    parse=text,
    default=None,
    value="string",
    shown_default="none",
    meaning="Configurations of the client. See [Kafka configurations](#kafka-configurations).",
)
_CHANGED = {
    SUBSCRIBE_PATTERN.name: replace(
        SUBSCRIBE_PATTERN,
        meaning="The pattern used to subscribe to topics. As in Spark's source it may match a part of the name; "
        "`^orders$` matches a whole name.",
    )
}
OPTIONS: tuple[Option[object], ...] = (
    BOOTSTRAP_SERVERS,
    *(_CHANGED.get(option.name, option) for option in SHARED_OPTIONS),
    POLL_TIMEOUT,
    NUM_RETRIES,
    RETRY_INTERVAL,
    GROUP_ID_PREFIX,
    CLIENT_SETTINGS,
)
UNSUPPORTED = {
    **UNSUPPORTED_FOR_ALL,
    "kafka.enable.auto.commit": "offsets are stored in Spark's checkpoint and never committed to Kafka",
    "kafka.interceptor.classes": "there is no Java consumer to intercept",
    "path": "this source reads from brokers; use kafka-log to read a log directory",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveOptions(QueryOptions):
    """The options of a query. kafka: settings of the client; may contain secrets, so not in repr."""

    kafka: Mapping[str, str] = field(repr=False)

    @property
    def mode(self) -> str:
        """How to handle corrupt batches: fail, as Spark's source does."""
        return "FAILFAST"

    @property
    def isolation(self) -> str:
        """kafka.isolation.level, with Kafka's default."""
        return self.kafka.get("isolation.level", "read_uncommitted").strip().lower()


def is_client_setting(key: str) -> bool:
    """Whether an option is passed to the client."""
    return key.startswith("kafka.")


def parse_options(options: Mapping[str, str], query: Query) -> LiveOptions:
    """Parse the options of one query. Raises OptionError."""
    given = user_options(options)
    check_names(given, OPTIONS, UNSUPPORTED, source="kafka-live", page=PAGE, passed_on=is_client_setting)
    fields = parse_query(given, query)
    selection = parse_selection(given)
    if selection is None:
        raise OptionError(
            "One of the following options must be specified for Kafka source: assign, subscribe, subscribePattern"
        )
    if isinstance(selection, Matching):
        selection = replace(selection, in_part=True)
    return LiveOptions(**fields, selection=selection, kafka=_client_settings(given))


def _client_settings(given: Mapping[str, str]) -> dict[str, str]:
    """kafka.* options without the prefix, and the settings that correspond to Spark's own options."""
    if not (BOOTSTRAP_SERVERS.of(given) or "").strip():
        raise OptionError(
            "Option 'kafka.bootstrap.servers' must be specified for configuring Kafka consumer: host:port, ..."
        )
    settings = {key.removeprefix("kafka."): value for key, value in given.items() if is_client_setting(key)}
    NUM_RETRIES.of(given)
    for option, setting in ((POLL_TIMEOUT, "default.api.timeout.ms"), (RETRY_INTERVAL, "retry.backoff.ms")):
        if (value := option.of(given)) is not None:
            settings.setdefault(setting, str(value))
    from kwire.client import ClientSettings

    ClientSettings.parse(settings)
    return settings
