"""The configs of a running broker and its topics: settings at start, dynamic configs, and their description.

    topic config     the topic's own value, then the broker config that is its default (settings.TOPIC_DEFAULTS)
    broker config    dynamic config of this broker, of all brokers, setting at start, Kafka's default

A broker has the configs of Kafka 4.4.0 and of Settings. Configs that are not in Settings have no effect; they are
stored, and described with Kafka's default until they are changed. Values of passwords and of unknown configs, which
could be a plugin's passwords, are never described.

Source: kafka.server.ConfigHelper, DynamicBrokerConfig 3.9.1 and 4.4.0; KIP-133, KIP-226, KIP-569.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from kwire.broker.configs.definitions import ConfigType, Resource, definitions
from kwire.broker.configs.entries import ConfigSource, Entry, Synonym
from kwire.broker.configs.secret_values import Secret, Users
from kwire.broker.configs.settings import FIELDS, TOPIC_DEFAULTS, Settings, parse_value, render
from kwire.errors import OptionError
from kwire.internal_topics.cluster_state import ClusterState
from kwire.internal_topics.enums import ConfigResource
from kwire.log.writing.log_config import LogConfig

__all__ = [
    "DYNAMIC",
    "BrokerConfigs",
    "client_metrics_entries",
    "dynamic_settings",
    "is_dynamic",
    "listener_base",
    "topic_log_config",
]


BROKER_CONFIG = "producer.id.expiration.ms"
"""A broker config that LogConfig contains because logs need it; not a topic config."""
DYNAMIC = frozenset(TOPIC_DEFAULTS.values()) | {
    "max_connections",
    "max_connections_per_ip",
    "errors_deadletterqueue_auto_create_topics_enable",
    "errors_deadletterqueue_topic_name_prefix",
    "log_cleaner_backoff_ms",
    "log_cleaner_dedupe_buffer_size",
    "producer_id_expiration_ms",
    "transaction_partition_verification_enable",
}
"""Settings that take effect when they are changed dynamically."""


class BrokerConfigs:
    """The configs of a running broker, and of topics, whose defaults they are.

    given: the settings at start. settings: with the dynamic broker configs of the cluster's state, as of the last
    `reload`. endpoints: advertised (host, port) by listener name. directory: the log directory.
    """

    def __init__(
        self,
        given: Settings,
        cluster: ClusterState,
        *,
        node_id: int,
        endpoints: Mapping[str, tuple[str, int]],
        directory: str,
    ) -> None:
        self.given, self.node_id, self.endpoints, self.directory = given, node_id, endpoints, directory
        self._cluster = cluster
        self._required = {
            "advertised.listeners": ",".join(f"{name}://{host}:{port}" for name, (host, port) in endpoints.items()),
            "broker.id": str(node_id),
            "log.dirs": directory,
            "node.id": str(node_id),
            "process.roles": "broker,controller",
        }
        """Configs that Kafka requires and this broker determines by itself."""
        self.reload()

    def reload(self) -> None:
        """Apply the dynamic broker configs."""
        self.settings = dynamic_settings(self.given, self._cluster, self.node_id)

    def synonyms(self, name: str) -> list[Synonym]:
        """Return the synonyms of a broker config, the one that applies first."""
        synonyms: list[Synonym] = []
        for resource, source in (
            (str(self.node_id), ConfigSource.DYNAMIC_BROKER),
            ("", ConfigSource.DYNAMIC_DEFAULT_BROKER),
        ):
            changed = self._cluster.configs_of(ConfigResource.BROKER, resource)
            if name in changed:
                synonyms.append((name, changed[name], source))
        field, definition = FIELDS.get(name), definitions(Resource.BROKER).get(name)
        if name in self._required:
            synonyms.append((name, self._required[name], ConfigSource.STATIC_BROKER))
        elif field is not None:
            default, given = render(field.default), render(getattr(self.given, field.name))
            if given != default:
                synonyms.append((name, given, ConfigSource.STATIC_BROKER))
            synonyms.append((name, default, ConfigSource.DEFAULT))
        else:
            if name in self.given.others:
                synonyms.append((name, self.given.others[name], ConfigSource.STATIC_BROKER))
            if definition is not None and definition.default is not None:
                synonyms.append((name, definition.default, ConfigSource.DEFAULT))
        return synonyms

    def entries(self) -> list[Entry]:
        """Describe all configs of the broker, by name."""
        known = definitions(Resource.BROKER)
        changed = dynamic_configs(self._cluster, self.node_id)
        internal = {name for name, each in known.items() if each.is_internal}
        names = {*known, *FIELDS} - internal | set(changed)
        return [broker_entry(name, self.synonyms(name)) for name in sorted(names)]

    def default_entries(self) -> list[Entry]:
        """Describe the dynamic default configs of all brokers, by name."""
        changed = self._cluster.configs_of(ConfigResource.BROKER, "")
        source = ConfigSource.DYNAMIC_DEFAULT_BROKER
        return [broker_entry(name, [(name, changed[name], source)]) for name in sorted(changed)]

    def topic_entries(self, configs: Mapping[str, str]) -> list[Entry]:
        """Describe all configs of a topic with these own configs, by name."""
        config = topic_log_config(self.settings, configs)
        known = definitions(Resource.TOPIC)
        entries = []
        for name, value in sorted(config.render().items()):
            if name == BROKER_CONFIG:
                continue
            default = TOPIC_DEFAULTS.get(name)
            synonyms = self.synonyms(dotted(default)) if default else []
            if name in configs:
                synonyms.insert(0, (name, value, ConfigSource.TOPIC))
            source = synonyms[0][2] if synonyms else ConfigSource.DEFAULT
            kind = known[name].kind
            entries.append(Entry(name=name, value=value, source=source, kind=kind, read_only=False, synonyms=synonyms))
        return entries


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


def type_of(value: object) -> ConfigType:
    """Return the config type of a setting that Kafka does not have, from its value."""
    if isinstance(value, bool):
        return ConfigType.BOOLEAN
    if isinstance(value, int):
        return ConfigType.LONG if abs(value) >= 1 << 31 else ConfigType.INT
    return ConfigType.DOUBLE if isinstance(value, float) else ConfigType.STRING


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


def client_metrics_entries(own: Mapping[str, str]) -> list[Entry]:
    """Describe a client metrics subscription with these own configs; one that does not exist has the defaults."""
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


def dynamic_configs(cluster: ClusterState, node_id: int) -> dict[str, str]:
    """Return the broker configs that were set while the broker was running: of all brokers, then its own on top."""
    of_all, own = (cluster.configs_of(ConfigResource.BROKER, resource) for resource in ("", str(node_id)))
    return {**of_all, **own}


def dynamic_settings(given: Settings, cluster: ClusterState, node_id: int) -> Settings:
    """Return the settings at start, overridden by the dynamic broker configs."""
    values = {}
    for name, text in dynamic_configs(cluster, node_id).items():
        field = FIELDS.get(name)
        if field is not None and field.name in DYNAMIC:
            values[field.name] = parse_value(field.name, type(field.default), text)
    return given.replace(**values)
