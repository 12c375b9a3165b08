"""Validation of config changes: Kafka's checks, in Kafka's order, with Kafka's error messages.

Each check takes the configs that the resource would have after the change. Configs without an effect here (threads,
plugins, key stores) are validated as far as possible without one.
Source: org.apache.kafka.storage.internals.log.LogConfig.validate, org.apache.kafka.server.config.DynamicBrokerConfig,
kafka.server.KafkaConfig.validateValues, org.apache.kafka.server.metrics.ClientMetricsConfigs 4.4.0.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kwire.broker.configs.broker_configs import is_dynamic, listener_base, topic_log_config
from kwire.broker.configs.definitions import ConfigValue, Resource, definitions
from kwire.broker.configs.settings import FIELDS
from kwire.broker.groups.topic_regex import TopicRegex
from kwire.errors import BrokerError, OptionError
from kwire.protocol.error_codes import ErrorCode, refusal

if TYPE_CHECKING:
    from kwire.broker.configs.broker_configs import BrokerConfigs
    from kwire.broker.configs.settings import Settings

__all__ = ["check_broker_configs", "check_client_metrics", "check_topic_configs", "parse_match"]

MIN_INTERVAL_MS, MAX_INTERVAL_MS = 100, 3_600_000
MATCH_KEYS = frozenset(
    {
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)
LISTENER_CONFIGS = frozenset({"max.connections", "max.connection.creation.rate", "num.network.threads"})
"""Per-listener configs that can be changed at the cluster level."""
KEY_STORES = frozenset(
    {
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)
THREADS = (
    "background.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.follower.thread.pool.size",
    "remote.log.reader.threads",
)
"""Thread counts, which one change may at most double or halve."""
BYTES_PER_CLEANER = 1 << 20
PRINTABLE = frozenset(string.printable)
IP_LIMIT = re.compile(r".+:\d+", re.ASCII)


def check_topic_configs(settings: Settings, configs: Mapping[str, str]) -> None:
    """Validate a topic's configs. Raises BrokerError: INVALID_CONFIG."""
    known = definitions(Resource.TOPIC)
    try:
        for name in configs:
            if name not in known:
                raise OptionError(f"Unknown topic config name: {name}")
        values = {name: known[name].parse(text) for name, text in configs.items()}
        defaults = settings.topic_defaults()
        least, most = (
            int(configs.get(name, defaults[name])) for name in ("min.compaction.lag.ms", "max.compaction.lag.ms")
        )
        if least > most:
            raise OptionError(
                f"conflict topic config setting min.compaction.lag.ms ({least}) > max.compaction.lag.ms ({most})"
            )
        if values.get("remote.storage.enable"):
            raise OptionError(
                "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log "
                "storage."
            )
        topic_log_config(settings, configs)
    except OptionError as error:
        raise refusal(ErrorCode.INVALID_CONFIG, str(error)) from None


def check_broker_configs(broker: BrokerConfigs, resource: str, configs: Mapping[str, str]) -> None:
    """Validate the dynamic configs of the broker with that id, or of all brokers (""). Raises BrokerError.

    broker: its current configs.
    """
    known = definitions(Resource.BROKER)
    reject_names(
        [name for name in configs if (name in known or name in FIELDS) and not is_dynamic(name)],
        "Cannot update these configs dynamically",
    )
    reject_names(
        [name for name in configs if name in KEY_STORES],
        "These security configs can be dynamically updated only per-listener using the listener prefix",
    )
    try:
        values = {
            name: known[listener_base(name)].parse(text)
            for name, text in configs.items()
            if listener_base(name) in known
        }
    except OptionError as error:
        raise invalid(str(error)) from None
    if not resource:
        reject_names(
            [name for name in configs if is_per_broker(name)],
            "Cannot update these configs at default cluster level, broker id must be specified",
        )
    check_combinations(broker, values)


def is_per_broker(name: str) -> bool:
    """Return whether a config can only be changed for one broker."""
    base = listener_base(name)
    if base != name:
        return base not in LISTENER_CONFIGS
    definition = definitions(Resource.BROKER).get(name)
    return definition is not None and definition.scope == "per-broker"


def check_combinations(broker: BrokerConfigs, values: Mapping[str, ConfigValue]) -> None:
    """Validate configs that depend on each other or on their current values."""

    def now(name: str) -> ConfigValue:
        return definitions(Resource.BROKER)[name].parse(broker.synonyms(name)[0][1] or "")

    def number(name: str) -> int:
        return int(str(values.get(name, now(name))))

    for name, low in (("log.roll.ms", 1), ("log.roll.jitter.ms", 0)):
        if name in values and number(name) < low:
            raise failed(f"{name} must be greater than or equal to {low}")
    if values.get("log.retention.ms") == 0:
        raise failed("log.retention.ms must be unlimited (-1) or, greater than or equal to 1")
    if values.keys() & {"log.cleaner.threads", "log.cleaner.dedupe.buffer.size"}:
        threads = number("log.cleaner.threads")
        if threads and number("log.cleaner.dedupe.buffer.size") // threads <= BYTES_PER_CLEANER:
            raise failed("log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.")
    if values.get("max.connections.per.ip") == 0 and not values.get("max.connections.per.ip.overrides"):
        raise failed(
            "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set."
        )
    for limit in filter(None, str(values.get("max.connections.per.ip.overrides", "")).split(",")):
        if not IP_LIMIT.fullmatch(limit.strip()):
            raise invalid(f"max.connections.per.ip.overrides: {limit!r} is not of the form 127.0.0.1:100")
    for name in ("max.connections", "max.connection.creation.rate"):
        if values.get(name) == 0:
            raise component_error(f"Invalid {name} 0")
    check_threads({name: (number(name), int(str(now(name)))) for name in THREADS if name in values})
    if "log.cleaner.threads" in values:
        check_cleaner_threads(number("log.cleaner.threads"), int(str(now("log.cleaner.threads"))))
    reporters = values.get("metric.reporters")
    if reporters and reporters != now("metric.reporters"):
        raise component_error(
            "Validation of dynamic config update of Set(metric.reporters) failed with class class "
            "kafka.server.DynamicMetricsReporters"
        )
    for kind in ("consumer", "share", "streams"):
        name, most = f"group.{kind}.assignment.interval.ms", f"group.{kind}.max.assignment.interval.ms"
        if name in values and number(name) > number(most):
            raise invalid(f"{name} must be less than or equal to {most}")
    check_addresses_and_directories(broker.directory, values)


def check_addresses_and_directories(directory: str, values: Mapping[str, ConfigValue]) -> None:
    """Validate configs that name addresses or directories; listeners cannot be changed dynamically here.

    directory: the log directory.
    """
    for name in ("listeners", "listener.security.protocol.map"):
        if name in values:
            raise invalid(f"{name} cannot be changed dynamically: set it when starting the broker")
    cordoned = values.get("cordoned.log.dirs")
    if isinstance(cordoned, list) and cordoned != ["*"]:
        missing = [path for path in cordoned if path != directory]
        if missing:
            what = "All entries in cordoned.log.dirs must be present in log.dirs or log.dir. Missing entries : "
            raise failed(what + ", ".join(missing))


def check_threads(changes: Mapping[str, tuple[int, int]]) -> None:
    """Validate thread counts: name -> (new value, current value)."""
    for name, (value, current) in changes.items():
        start = f"Dynamic thread count update validation failed for {name}={value}, value should"
        if value < current // 2:
            raise component_error(f"{start} be at least half the current value {current}")
        if value > current * 2:
            raise component_error(f"{start} not be greater than double the current value {current}")


def check_cleaner_threads(value: int, current: int) -> None:
    """Validate the number of cleaner threads. Raises BrokerError."""
    if value < 1:
        raise component_error("Log cleaner threads should be at least 1")
    if value < current // 2:
        raise component_error(f"Log cleaner threads cannot be reduced to less than half the current value {current}")
    if value > current * 2:
        raise component_error(
            f"Log cleaner threads cannot be increased to more than double the current value {current}"
        )


def check_client_metrics(name: str, configs: Mapping[str, str]) -> None:
    """Validate the configs of a client metrics subscription. Raises BrokerError."""
    if not name:
        raise invalid("Subscription name can't be empty")
    known = definitions(Resource.CLIENT_METRICS)
    for each in configs:
        if each not in known:
            raise invalid(f"Unknown client metrics configuration: {each}")
    try:
        values = {each: known[each].parse(text) for each, text in configs.items()}
    except OptionError as error:
        raise refusal(ErrorCode.INVALID_CONFIG, str(error)) from None
    interval_ms = values.get("interval.ms")
    if isinstance(interval_ms, int) and not MIN_INTERVAL_MS <= interval_ms <= MAX_INTERVAL_MS:
        raise invalid(
            f"Invalid value {interval_ms} for interval.ms, interval must be between {MIN_INTERVAL_MS} and "
            f"{MAX_INTERVAL_MS} (1 hour)"
        )
    parse_match(configs.get("match", ""))


def parse_match(text: str) -> dict[str, TopicRegex]:
    """Parse a subscription's match: client attribute -> pattern. Raises BrokerError: INVALID_CONFIG."""
    patterns: dict[str, TopicRegex] = {}
    for each in filter(None, (part.strip() for part in text.split(","))):
        key, equals, pattern = (part.strip() for part in each.partition("="))
        illegal = refusal(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {each}")
        if not equals or key not in MATCH_KEYS:
            raise illegal
        try:
            patterns[key] = TopicRegex(pattern, PRINTABLE)
        except BrokerError:
            raise illegal from None
    return patterns


def reject_names(names: list[str], what: str) -> None:
    """Raise BrokerError unless the list is empty."""
    if names:
        raise invalid(f"{what}: [{', '.join(names)}]")


def invalid(what: str) -> BrokerError:
    """Return the error for an invalid request."""
    return refusal(ErrorCode.INVALID_REQUEST, what)


def failed(what: str) -> BrokerError:
    """Return the error of a failed `require` in Kafka's Scala code."""
    return invalid(f"requirement failed: {what}")


def component_error(what: str) -> BrokerError:
    """Return the error for a value that a component rejects; Kafka wraps the exception's message twice."""
    return invalid(
        f"Invalid value org.apache.kafka.common.config.ConfigException: {what} for configuration Invalid dynamic "
        "configuration"
    )
