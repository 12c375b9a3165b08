"""The options of reading `kafka-live`: as for Spark's Kafka source, with its names, defaults and precedence.

kafka.* options are passed to kwire.client, whose settings have Kafka's names. docs/live.md has the options as a table.
Standard library only. Source: KafkaSourceProvider.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from kwire.errors import OptionError
from kwire.spark.offsets import Query, for_query
from kwire.spark.options.decoding import DECODE_OPTIONS, is_registry_setting
from kwire.spark.options.option import Option, check_names, number_option, text_option, user_options
from kwire.spark.options.query import (
    SHARED_OPTIONS,
    SUBSCRIBE_PATTERN,
    Matching,
    QueryOptions,
    parse_query,
    parse_selection,
)
from kwire.spark.options.query import UNSUPPORTED as UNSUPPORTED_FOR_ALL

__all__ = [
    "BOOTSTRAP_SERVERS",
    "CLIENT_SETTINGS",
    "OPTIONS",
    "UNSUPPORTED",
    "LiveOptions",
    "client_settings",
    "options_of_user",
    "parse_options",
]

PAGE = "docs/live.md"

BOOTSTRAP_SERVERS = text_option(
    name="kafka.bootstrap.servers",
    value="comma-separated list of `host:port`",
    shown_default="required",
    meaning="The brokers to connect to first.",
)
POLL_TIMEOUT = number_option(
    name="kafkaConsumer.pollTimeoutMs",
    value="long",
    shown_default="60000",
    meaning="The timeout in milliseconds of a request, retries included, of tasks and of the driver, which plans the "
    "query.",
)
NUM_RETRIES = number_option(
    name="fetchOffset.numRetries",
    value="int",
    meaning="Accepted without effect: requests are retried until `kafkaConsumer.pollTimeoutMs` is over.",
)
RETRY_INTERVAL = number_option(
    name="fetchOffset.retryIntervalMs",
    value="long",
    shown_default="100",
    meaning="The retry backoff in milliseconds.",
)
GROUP_ID_PREFIX = text_option(
    name="groupIdPrefix", value="string", meaning="Accepted without effect: kwire reads without a consumer group."
)
CLIENT_SETTINGS = text_option(
    name="kafka.*",
    value="string",
    meaning="Configurations of the client. See [Kafka configurations](#kafka-configurations).",
)
_CHANGED = {
    SUBSCRIBE_PATTERN.name: replace(
        SUBSCRIBE_PATTERN,
        meaning="A pattern of the topics to read. As in Spark's source, it may match a part of a name; "
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
    "kafka.interceptor.classes": "kwire reads without a Java consumer",
    "path": "this source reads from brokers; use kafka-log to read a log directory",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveOptions(QueryOptions):
    """The options of a query. kafka: settings of the client; may contain secrets, so not in repr."""

    kafka: Mapping[str, str] = field(repr=False)
    isolation: str
    mode: ClassVar[str] = "FAILFAST"  # corrupt batches fail a query, as with Spark's source


def parse_options(options: Mapping[str, str], query: Query) -> LiveOptions:
    """Parse the options of one query. Raises OptionError."""
    from kwire.client import ClientSettings

    given = options_of_user(options)
    check_names(
        given,
        (*OPTIONS, *DECODE_OPTIONS),
        UNSUPPORTED,
        source="kafka-live",
        page=PAGE,
        passed_on=lambda key: is_client_setting(key) or is_registry_setting(key),
    )
    selection = parse_selection(given)
    if selection is None:
        raise OptionError(
            "One of the following options must be specified for Kafka source: assign, subscribe, subscribePattern"
        )
    if isinstance(selection, Matching):
        selection = replace(selection, in_part=True)
    kafka = client_settings(given, "consumer")
    NUM_RETRIES.of(given)
    for option, setting in ((POLL_TIMEOUT, "default.api.timeout.ms"), (RETRY_INTERVAL, "retry.backoff.ms")):
        if (value := option.of(given)) is not None:
            kafka.setdefault(setting, str(value))
    isolation = ClientSettings.parse(kafka).isolation_level
    parsed = parse_query(given, LiveOptions, selection=selection, kafka=kafka, isolation=isolation)
    return for_query(parsed, query)


def options_of_user(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options that the user set, kafka.* with dots as in Kafka. Raises OptionError for two of one name."""
    given: dict[str, str] = {}
    for key, value in user_options(options).items():
        name = key.replace("_", ".") if is_client_setting(key) else key
        if given.setdefault(name, value) != value:
            raise OptionError(f"Option '{name}': set to different values, with dots and underscores; remove one")
    return given


def is_client_setting(key: str) -> bool:
    """Return whether an option is passed to the client."""
    return key.startswith("kafka.")


def client_settings(given: Mapping[str, str], client: str) -> dict[str, str]:
    """Return kafka.* options without the prefix. client: consumer or producer. Raises OptionError without brokers."""
    if not (BOOTSTRAP_SERVERS.of(given) or "").strip():
        raise OptionError(
            f"Option 'kafka.bootstrap.servers' must be specified for configuring Kafka {client}: host:port, ..."
        )
    return {key.removeprefix("kafka."): value for key, value in given.items() if is_client_setting(key)}
