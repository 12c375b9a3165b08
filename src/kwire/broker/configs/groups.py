"""Configs of groups (KIP-848, KIP-932, KIP-1071): described, validated, stored as records of resource type GROUP.

Each is a value of one group in the place of a broker config of all groups, its synonym. Values have to be within the
broker's limits, group.KIND.min.X and group.KIND.max.X. Those of streams groups have no effect, because the broker has
none, nor have consumer.assignment.interval.ms and share.assignor.offload.enable.

Source: kafka.server.ConfigHelper, org.apache.kafka.coordinator.group.GroupConfig 4.4.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kwire.broker.configs.definitions import ConfigDefinition, ConfigValue, Resource, definitions
from kwire.broker.configs.durations import DURATION
from kwire.broker.configs.entries import ConfigSource, Entry, Synonym
from kwire.broker.configs.settings import render
from kwire.errors import BrokerError, OptionError
from kwire.protocol.error_codes import ErrorCode, refusal

if TYPE_CHECKING:
    from kwire.broker.configs.broker_configs import BrokerConfigs

__all__ = ["check_group_configs", "group_entries"]

LIMITED = (
    "consumer.heartbeat.interval.ms",
    "consumer.session.timeout.ms",
    "consumer.assignment.interval.ms",
    "share.heartbeat.interval.ms",
    "share.session.timeout.ms",
    "share.record.lock.duration.ms",
    "share.delivery.count.limit",
    "share.partition.max.record.locks",
    "share.assignment.interval.ms",
    "streams.heartbeat.interval.ms",
    "streams.session.timeout.ms",
    "streams.num.standby.replicas",
    "streams.assignment.interval.ms",
    "streams.task.offset.interval.ms",
    "streams.num.warmup.replicas",
)
"""Configs with limits of the broker, in the order in which Kafka checks them."""
ASSIGNOR, ASSIGNORS = "streams.assignor.name", "group.streams.assignors"
OTHER_NAMES = {ASSIGNOR: ASSIGNORS}
"""Broker configs in whose place a group config stands, where their names differ in more than `group.`."""
LIMITS_OF = {
    "streams.num.standby.replicas": "standby.replicas",
    "streams.num.warmup.replicas": "warmup.replicas",
}
"""Configs whose limits have shorter names."""
DEAD_LETTERS, OFFSET_RESET, TAGS = (
    "errors.deadletterqueue.topic.name",
    "share.auto.offset.reset",
    "streams.rack.aware.assignment.tags",
)
BY_DURATION = "by_duration:"


def group_entries(broker: BrokerConfigs, own: Mapping[str, str]) -> list[Entry]:
    """Describe all configs of a group with these own configs; one that does not exist has none."""
    return [
        group_entry(broker, definition, own.get(definition.name))
        for definition in definitions(Resource.GROUP).values()
        if not definition.is_internal
    ]


def group_entry(broker: BrokerConfigs, definition: ConfigDefinition, given: str | None) -> Entry:
    """Describe a config of a group. given: the value that is set on the group."""
    name = definition.name
    synonyms = broker_values(broker, name) or [(name, definition.default, ConfigSource.DEFAULT)]
    if given is not None:
        value = parse(definition, given)
        text = ",".join(value) if isinstance(value, list) else render(value)
        synonyms.insert(0, (name, text, ConfigSource.GROUP))
    return Entry(
        name=name,
        value=synonyms[0][1],
        source=synonyms[0][2],
        kind=definition.kind,
        read_only=False,
        synonyms=synonyms,
    )


def broker_values(broker: BrokerConfigs, name: str) -> list[Synonym]:
    """Return the values of the broker config in whose place a group config stands; the first one is in effect."""
    return broker.synonyms(OTHER_NAMES.get(name, f"group.{name}"))


def check_group_configs(broker: BrokerConfigs, group_id: str, configs: Mapping[str, str]) -> None:
    """Validate the configs of a group. Raises BrokerError."""
    if not group_id:
        raise refusal(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    known = definitions(Resource.GROUP)
    for name in configs:
        if name not in known:
            raise invalid(f"Unknown group config name: {name}")
    tags = [tag.strip() for tag in configs.get(TAGS, "").split(",")]
    if len(set(tags)) < len(tags):
        raise invalid(f"{TAGS} must not contain duplicate tag keys.")
    try:
        values = {name: parse(known[name], text) for name, text in configs.items()}
    except OptionError as error:
        raise invalid(str(error)) from None
    check_limits(broker, values)
    assignors = broker_values(broker, ASSIGNOR)[0][1]
    if ASSIGNOR in values and values[ASSIGNOR] not in (assignors or "").split(","):
        raise invalid(
            f"{ASSIGNOR} '{values[ASSIGNOR]}' is not a registered task assignor. Registered assignors are: "
            f"[{assignors}]."
        )
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        timeout_ms, interval_ms = (
            int(str(values.get(name, broker_values(broker, name)[0][1]))) for name in (session, heartbeat)
        )
        if values.keys() & {session, heartbeat} and timeout_ms <= interval_ms:
            raise invalid(f"{session} must be greater than {heartbeat}")
    if str(values.get(DEAD_LETTERS, "")).startswith("__"):
        raise invalid(f"{DEAD_LETTERS}: DLQ topic name must not start with '__'")


def parse(definition: ConfigDefinition, text: str) -> ConfigValue:
    """Parse a value. Raises OptionError with Kafka's message."""
    if definition.name != OFFSET_RESET:
        parsed = definition.parse(text)
        if isinstance(parsed, list) and "" in parsed:
            raise OptionError(f"Configuration '{definition.name}' values must not be empty.")
        return parsed
    value = text.strip()
    is_duration = value.startswith(BY_DURATION) and DURATION.fullmatch(value.removeprefix(BY_DURATION))
    if value not in ("earliest", "latest") and not is_duration:
        raise OptionError(
            f"Invalid value {value} for configuration {OFFSET_RESET}: Invalid value `{value}` for configuration "
            f"{OFFSET_RESET}. The value must be either 'earliest', 'latest' or of the format "
            "'by_duration:<PnDTnHnMn.nS>'."
        )
    return value


def check_limits(broker: BrokerConfigs, values: Mapping[str, ConfigValue]) -> None:
    """Check that values are within the broker's limits. Raises BrokerError."""
    for name in LIMITED:
        if name not in values:
            continue
        kind, _, rest = name.partition(".")
        rest = LIMITS_OF.get(name, rest)
        value = int(str(values[name]))
        low, high = (limit(broker, f"group.{kind}.{which}.{rest}") for which in ("min", "max"))
        if low is not None and high is not None:
            if not low <= value <= high:
                raise invalid(f"{name} must be in the range {low} to {high} inclusive.")
        elif low is not None and value < low:
            raise invalid(f"{name} must be greater than or equal to {low}")
        elif high is not None and value > high:
            raise invalid(f"{name} must be less than or equal to {high}")


def limit(broker: BrokerConfigs, name: str) -> int | None:
    """Return a limit of the broker, None if there is none."""
    return int(broker.synonyms(name)[0][1] or 0) if name in definitions(Resource.BROKER) else None


def invalid(what: str) -> BrokerError:
    """Return the error for an invalid value or name."""
    return refusal(ErrorCode.INVALID_CONFIG, what)
