"""Configs as DescribeConfigs returns them: value, source, synonyms, and whether they are dynamic.

    topic config     the topic's own value, then the broker config that is its default (settings.TOPIC_DEFAULTS)
    broker config    dynamic config of this broker, of all brokers, setting at start, Kafka's default

A broker has the configs of Kafka 4.4.0 and those of Settings. Configs that are not in Settings have no effect; they are
stored, and described with Kafka's default until they are changed. Values of passwords and of unknown configs, which
could be a plugin's passwords, are never described.

Source: kafka.server.ConfigHelper, DynamicBrokerConfig 3.9.1 and 4.4.0; KIP-133, KIP-226, KIP-569.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from enum import IntEnum
from typing import TYPE_CHECKING

import msgspec

from kwire.broker.configs.definitions import ConfigDefinition, ConfigType, Resource, definitions
from kwire.broker.configs.secret_values import Secret, Users
from kwire.broker.configs.settings import FIELDS, TOPIC_DEFAULTS, Settings, parse_value, render
from kwire.errors import OptionError
from kwire.internal_topics.enums import ConfigResource
from kwire.log.writing.log_config import LogConfig

if TYPE_CHECKING:
    from kwire.broker.node import Node

__all__ = [
    "DYNAMIC",
    "ConfigOperation",
    "ConfigSource",
    "Entry",
    "broker_entries",
    "broker_synonyms",
    "client_metrics_entries",
    "default_broker_entries",
    "dynamic_settings",
    "is_dynamic",
    "listener_base",
    "topic_entries",
    "topic_log_config",
]


class ConfigSource(IntEnum):
    """Source of a value. Source: DescribeConfigsResponse.ConfigSource."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class ConfigOperation(IntEnum):
    """Operation on a config. Source: org.apache.kafka.clients.admin.AlterConfigOp.OpType."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


Synonym = tuple[str, str | None, ConfigSource]


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A config. synonyms: (name, value, source) in order of precedence; the first one is in effect."""

    name: str
    value: str | None
    source: ConfigSource
    kind: ConfigType
    read_only: bool
    synonyms: list[Synonym]
    is_sensitive: bool = False

    @property
    def is_default(self) -> bool:
        """Whether the value is the default."""
        return self.source == ConfigSource.DEFAULT


BROKER_CONFIG = "producer.id.expiration.ms"
"""A broker config that LogConfig contains because logs need it; not a topic config."""
DYNAMIC = frozenset(TOPIC_DEFAULTS.values()) | {
    "max_connections",
    "max_connections_per_ip",
    "log_cleaner_backoff_ms",
    "log_cleaner_dedupe_buffer_size",
    "producer_id_expiration_ms",
    "transaction_partition_verification_enable",
}
"""Settings that take effect when they are changed dynamically."""


def dotted(name: str) -> str:
    """Return Kafka's name of a field of Settings."""
    return name.replace("_", ".")


def topic_log_config(settings: Settings, configs: Mapping[str, str]) -> LogConfig:
    """Return the log config of a topic with these configs. Raises OptionError."""
    if BROKER_CONFIG in configs:
        raise OptionError(f"Unknown topic config name: {BROKER_CONFIG}")
    base = {**settings.topic_defaults(), BROKER_CONFIG: str(settings.producer_id_expiration_ms)}
    return parsed_log_config(tuple({**base, **configs}.items()))


@functools.lru_cache(maxsize=256)
def parsed_log_config(configs: tuple[tuple[str, str], ...]) -> LogConfig:
    """Parse the configs of a topic. Most topics have the same ones, so their logs share the result."""
    return LogConfig.parse(dict(configs))


def topic_entries(node: Node, configs: Mapping[str, str]) -> list[Entry]:
    """Describe all configs of a topic with these own configs, by name."""
    config = topic_log_config(node.settings, configs)
    known = definitions(Resource.TOPIC)
    entries = []
    for name, value in sorted(config.render().items()):
        if name == BROKER_CONFIG:
            continue
        default = TOPIC_DEFAULTS.get(name)
        synonyms = broker_synonyms(node, dotted(default), known.get(name)) if default else []
        if name in configs:
            synonyms.insert(0, (name, value, ConfigSource.TOPIC))
        source = synonyms[0][2] if synonyms else ConfigSource.DEFAULT
        kind = known[name].kind
        entries.append(Entry(name=name, value=value, source=source, kind=kind, read_only=False, synonyms=synonyms))
    return entries


def type_of(value: object) -> ConfigType:
    """Return the config type of a setting that Kafka does not have, from its value."""
    if isinstance(value, bool):
        return ConfigType.BOOLEAN
    if isinstance(value, int):
        return ConfigType.LONG if abs(value) >= 1 << 31 else ConfigType.INT
    return ConfigType.DOUBLE if isinstance(value, float) else ConfigType.STRING


def broker_synonyms(node: Node, name: str, definition: ConfigDefinition | None) -> list[Synonym]:
    """Return the synonyms of a broker config, the one that applies first."""
    synonyms: list[Synonym] = []
    for resource, source in (
        (str(node.node_id), ConfigSource.DYNAMIC_BROKER),
        ("", ConfigSource.DYNAMIC_DEFAULT_BROKER),
    ):
        found = node.cluster.configs_of(ConfigResource.BROKER, resource)
        if name in found:
            synonyms.append((name, found[name], source))
    field, actual = FIELDS.get(name), node_configs(node).get(name)
    if actual is not None:
        synonyms.append((name, actual, ConfigSource.STATIC_BROKER))
    elif field is not None:
        default, given = render(field.default), render(getattr(node.given_settings, field.name))
        if given != default:
            synonyms.append((name, given, ConfigSource.STATIC_BROKER))
        synonyms.append((name, default, ConfigSource.DEFAULT))
    else:
        if name in node.given_settings.others:
            synonyms.append((name, node.given_settings.others[name], ConfigSource.STATIC_BROKER))
        if definition is not None and definition.default is not None:
            synonyms.append((name, definition.default, ConfigSource.DEFAULT))
    return synonyms


def node_configs(node: Node) -> dict[str, str]:
    """Return the configs that Kafka requires and this broker determines by itself."""
    address = ",".join(f"{name}://{host}:{port}" for name, (host, port) in node.endpoints.items())
    return {
        "advertised.listeners": address,
        "broker.id": str(node.node_id),
        "log.dirs": str(node.log_manager.path),
        "node.id": str(node.node_id),
        "process.roles": "broker,controller",
    }


def broker_entry(name: str, synonyms: list[Synonym]) -> Entry:
    """Describe a broker config with these synonyms."""
    definition, field = definitions(Resource.BROKER).get(listener_base(name)), FIELDS.get(name)
    kind = ConfigType.UNKNOWN
    if definition is not None:
        kind = definition.kind
    elif field is not None:
        kind = type_of(field.default)
    secret_field = field is not None and isinstance(field.default, Secret | Users)
    is_sensitive = secret_field or kind in (ConfigType.PASSWORD, ConfigType.UNKNOWN)
    if is_sensitive:
        synonyms = [(each, None, source) for each, _, source in synonyms]
    return Entry(
        name=name,
        value=synonyms[0][1] if synonyms else None,
        source=synonyms[0][2] if synonyms else ConfigSource.DEFAULT,
        kind=kind,
        read_only=not is_dynamic(name),
        synonyms=synonyms,
        is_sensitive=is_sensitive,
    )


def listener_base(name: str) -> str:
    """Return the config's name without its listener prefix (listener.name.NAME.)."""
    if name.startswith("listener.name."):
        return name.split(".", 3)[-1]
    return name


def is_dynamic(name: str) -> bool:
    """Return whether a broker config is dynamic."""
    definition = definitions(Resource.BROKER).get(name)
    if definition is None:
        return name in FIELDS and FIELDS[name].name in DYNAMIC
    return definition.scope != "read-only"


def broker_entries(node: Node) -> list[Entry]:
    """Describe all configs of the broker, by name."""
    known = definitions(Resource.BROKER)
    changed = dynamic_configs(node)
    names = {*(name for name, each in known.items() if not each.is_internal), *FIELDS, *changed}
    return [broker_entry(name, broker_synonyms(node, name, known.get(name))) for name in sorted(names)]


def default_broker_entries(node: Node) -> list[Entry]:
    """Describe the dynamic default configs of all brokers, by name."""
    changed = node.cluster.configs_of(ConfigResource.BROKER, "")
    source = ConfigSource.DYNAMIC_DEFAULT_BROKER
    return [broker_entry(name, [(name, changed[name], source)]) for name in sorted(changed)]


def client_metrics_entries(node: Node, name: str) -> list[Entry]:
    """Describe a client metrics subscription; one that does not exist has the defaults."""
    own = node.cluster.configs_of(ConfigResource.CLIENT_METRICS, name)
    entries = []
    for definition in definitions(Resource.CLIENT_METRICS).values():
        given = own.get(definition.name)
        source = ConfigSource.DEFAULT if given is None else ConfigSource.CLIENT_METRICS
        entries.append(
            Entry(
                name=definition.name,
                value=definition.default if given is None else given,
                source=source,
                kind=definition.kind,
                read_only=False,
                synonyms=[] if given is None else [(definition.name, given, source)],
            )
        )
    return entries


def dynamic_configs(node: Node) -> dict[str, str]:
    """Return the broker configs that were set while the broker was running; its own replace those of all brokers."""
    configs_of = node.cluster.configs_of
    return {**configs_of(ConfigResource.BROKER, ""), **configs_of(ConfigResource.BROKER, str(node.node_id))}


def dynamic_settings(node: Node) -> Settings:
    """Return the settings at start, overridden by the dynamic broker configs."""
    values = {}
    for name, text in dynamic_configs(node).items():
        field = FIELDS.get(name)
        if field is not None and field.name in DYNAMIC:
            values[field.name] = parse_value(field.name, type(field.default), text)
    return node.given_settings.replace(**values)
