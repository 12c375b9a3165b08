"""Settings as clients see them: value, where it comes from, what else it could come from, and what may be changed.

    topic's setting     the topic's own, then the broker's setting that is its default (see settings.TOPIC_DEFAULTS)
    broker's setting    of this broker while it runs, of all brokers while they run, given at start, Kafka's default

Source: kafka.server.ConfigHelper, DynamicBrokerConfig 3.9.1; KIP-133, KIP-226, KIP-569.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from kwire.broker.image import BROKER_RESOURCE
from kwire.broker.settings import TOPIC_DEFAULTS, Settings, parse_value, render
from kwire.errors import OptionError
from kwire.log.log_config import LogConfig
from kwire.protocol.error_codes import ErrorCode, refusal

if TYPE_CHECKING:
    from kwire.broker.node import Node

__all__ = [
    "DYNAMIC",
    "ConfigSource",
    "ConfigType",
    "Entry",
    "broker_entries",
    "check_broker_configs",
    "dynamic_settings",
    "topic_entries",
    "topic_log_config",
]


class ConfigSource(IntEnum):
    """Where a value comes from. Source: DescribeConfigsResponse.ConfigSource."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5


class ConfigType(IntEnum):
    """What a value is. Source: DescribeConfigsResponse.ConfigType."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One setting. synonyms: (name, value, source) of all that could give its value, the one that does first."""

    name: str
    value: str
    source: ConfigSource
    kind: ConfigType
    read_only: bool
    synonyms: list[tuple[str, str, ConfigSource]]

    @property
    def is_default(self) -> bool:
        """Whether nobody has set it."""
        return self.source == ConfigSource.DEFAULT


LISTS = frozenset(
    {"cleanup.policy", "follower.replication.throttled.replicas", "leader.replication.throttled.replicas"}
)
INTS = frozenset(
    {
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.zstd.level",
        "index.interval.bytes",
        "max.message.bytes",
        "min.insync.replicas",
        "segment.bytes",
        "segment.index.bytes",
    }
)
"""Settings of topics that are int32 in Kafka; the other numbers are int64."""
OF_THE_BROKER = "producer.id.expiration.ms"
"""In LogConfig because a log needs it, and no setting of topics."""
DYNAMIC = frozenset(TOPIC_DEFAULTS.values()) | {
    "max_connections",
    "max_connections_per_ip",
    "log_cleaner_backoff_ms",
    "log_cleaner_dedupe_buffer_size",
    "producer_id_expiration_ms",
    "transaction_partition_verification_enable",
}
"""Settings of brokers that can be changed while they run."""


def dotted(name: str) -> str:
    """A field's name as Kafka writes it."""
    return name.replace("_", ".")


def topic_log_config(settings: Settings, configs: Mapping[str, str]) -> LogConfig:
    """The settings of a topic's logs. Raises OptionError."""
    if OF_THE_BROKER in configs:
        raise OptionError(f"Unknown topic config name: {OF_THE_BROKER}")
    base = {**settings.topic_defaults(), OF_THE_BROKER: str(settings.producer_id_expiration_ms)}
    return LogConfig.parse({**base, **configs})


def topic_entries(node: Node, configs: Mapping[str, str]) -> list[Entry]:
    """All settings of a topic that has these of its own, by name."""
    config = topic_log_config(node.settings, configs)
    by_broker = {entry.name: entry for entry in broker_entries(node)}
    entries = []
    for name, value in sorted(config.render().items()):
        if name == OF_THE_BROKER:
            continue
        default = TOPIC_DEFAULTS.get(name)
        synonyms = list(by_broker[dotted(default)].synonyms) if default else []
        if name in configs:
            synonyms.insert(0, (name, value, ConfigSource.TOPIC))
        source = synonyms[0][2] if synonyms else ConfigSource.DEFAULT
        kind = topic_type(name, getattr(config, name.replace(".", "_")))
        entries.append(Entry(name=name, value=value, source=source, kind=kind, read_only=False, synonyms=synonyms))
    return entries


def topic_type(name: str, value: object) -> ConfigType:
    """A topic setting's type."""
    if name in LISTS:
        return ConfigType.LIST
    if isinstance(value, int) and not isinstance(value, bool):
        return ConfigType.INT if name in INTS else ConfigType.LONG
    return type_of(value)


def type_of(value: object) -> ConfigType:
    """The type that a value has."""
    if isinstance(value, bool):
        return ConfigType.BOOLEAN
    if isinstance(value, int):
        return ConfigType.LONG if abs(value) >= 1 << 31 else ConfigType.INT
    return ConfigType.DOUBLE if isinstance(value, float) else ConfigType.STRING


def broker_entries(node: Node) -> list[Entry]:
    """All settings of the broker, by name."""
    configs = node.image.configs
    own = configs.get((BROKER_RESOURCE, str(node.node_id)), {})
    all_brokers = configs.get((BROKER_RESOURCE, ""), {})
    entries = []
    for field in sorted(dataclasses.fields(Settings), key=lambda field: field.name):
        name, default = dotted(field.name), render(field.default)
        given = render(getattr(node.given_settings, field.name))
        synonyms = [
            *((name, own[name], ConfigSource.DYNAMIC_BROKER) for _ in (1,) if name in own),
            *((name, all_brokers[name], ConfigSource.DYNAMIC_DEFAULT_BROKER) for _ in (1,) if name in all_brokers),
            *((name, given, ConfigSource.STATIC_BROKER) for _ in (1,) if given != default),
            (name, default, ConfigSource.DEFAULT),
        ]
        entries.append(
            Entry(
                name=name,
                value=synonyms[0][1],
                source=synonyms[0][2],
                kind=type_of(field.default),
                read_only=field.name not in DYNAMIC,
                synonyms=synonyms,
            )
        )
    return entries


def check_broker_configs(changes: Mapping[str, str | None]) -> None:
    """Raises BrokerError for a setting that there is not, that cannot be changed, or not to that value."""
    fields = {dotted(field.name): field for field in dataclasses.fields(Settings)}
    fixed = [name for name in changes if name in fields and fields[name].name not in DYNAMIC]
    if fixed:
        raise refusal(ErrorCode.INVALID_REQUEST, f"Cannot update these configs dynamically: {', '.join(fixed)}")
    for name, value in changes.items():
        if name not in fields:
            raise refusal(ErrorCode.INVALID_CONFIG, f"Unknown broker config name: {name}")
        if value is not None:
            try:
                parse_value(name, type(fields[name].default), value)
            except OptionError as error:
                raise refusal(ErrorCode.INVALID_CONFIG, str(error)) from None


def dynamic_settings(node: Node) -> Settings:
    """The settings given at start with those over them that were changed since."""
    configs = node.image.configs
    changed = {**configs.get((BROKER_RESOURCE, ""), {}), **configs.get((BROKER_RESOURCE, str(node.node_id)), {})}
    values = {}
    for field in dataclasses.fields(Settings):
        if field.name in DYNAMIC and dotted(field.name) in changed:
            values[field.name] = parse_value(field.name, type(field.default), changed[dotted(field.name)])
    return node.given_settings.replace(**values)
