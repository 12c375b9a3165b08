"""A change of configs by AlterConfigs or IncrementalAlterConfigs: authorize, validate, apply.

Source: kafka.server.ControllerApis, ConfigAdminManager 3.9.1.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Protocol

from kwire.broker.authorization import CLUSTER, Operation, ResourceType
from kwire.broker.configs.checks import check_broker_configs, check_client_metrics
from kwire.broker.configs.groups import check_group_configs
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.broker.topics import check_name
from kwire.internal_topics.enums import ConfigResource
from kwire.protocol.error_codes import ErrorCode, refusal

__all__ = ["change", "check_logger_resource", "check_once", "current", "repeated", "to_node_id"]

ALTERED = frozenset({ConfigResource.TOPIC, ConfigResource.BROKER, ConfigResource.CLIENT_METRICS, ConfigResource.GROUP})
"""Resources whose configs are in the metadata log."""
INTEGER = re.compile(r"[+-]?[0-9]+")
MAX_INT32 = 2**31 - 1


class Named(Protocol):
    """A resource of a request."""

    resource_type: int
    resource_name: str


def repeated(resources: Iterable[Named]) -> set[tuple[int, str]]:
    """Return the type and name of resources that a request has several times."""
    counts = Counter((each.resource_type, each.resource_name) for each in resources)
    return {each for each, count in counts.items() if count > 1}


def check_once(kind: int, name: str, several: set[tuple[int, str]]) -> None:
    """Raise BrokerError for one of the repeated resources of a request."""
    if (kind, name) in several:
        raise refusal(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")


def to_node_id(text: str) -> int | None:
    """Parse a node id as Java's Integer.parseInt; None for what is not one."""
    number = int(text) if INTEGER.fullmatch(text) and len(text) <= 20 else None
    return number if number is not None and -MAX_INT32 - 1 <= number <= MAX_INT32 else None


def check_logger_resource(node: Node, context: RequestContext, name: str) -> None:
    """Raise BrokerError unless the sender may change this broker's loggers. name: of the resource, its id."""
    node.authorize(context, Operation.ALTER_CONFIGS, ResourceType.CLUSTER, CLUSTER)
    _check_node_id(node, name, f"Unexpected node id. Expected {node.node_id}, but received {name}")


def current(node: Node, kind: int, name: str) -> Mapping[str, str]:
    """Return the configs that are set on a resource. Raises BrokerError for an unknown resource type."""
    if kind not in ALTERED:
        raise refusal(ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}")
    return node.cluster.configs_of(ConfigResource(kind), name)


def change(
    node: Node, context: RequestContext, kind: int, name: str, changes: Mapping[str, str | None], *, validate_only: bool
) -> None:
    """Set configs of a topic, broker, client metrics subscription or group, None to delete them.

    kind: ConfigResource. Raises BrokerError.
    """
    if kind == ConfigResource.TOPIC:
        change_topic(node, context, name, changes, validate_only=validate_only)
    elif kind == ConfigResource.BROKER:
        node.authorize(context, Operation.ALTER_CONFIGS, ResourceType.CLUSTER, CLUSTER)
        check_broker_id(node, name)
        check_broker_configs(node.configs, name, apply_changes(current(node, kind, name), changes))
        if not validate_only:
            node.controller.alter_broker_configs(name, changes)
    elif kind == ConfigResource.CLIENT_METRICS:
        node.authorize(context, Operation.ALTER_CONFIGS, ResourceType.CLUSTER, CLUSTER)
        check_client_metrics(name, apply_changes(current(node, kind, name), changes))
        if not validate_only:
            node.controller.alter_client_metrics(name, changes)
    elif kind == ConfigResource.GROUP:
        node.authorize(context, Operation.ALTER_CONFIGS, ResourceType.GROUP, name)
        check_group_configs(node.configs, name, apply_changes(current(node, kind, name), changes))
        if not validate_only:
            node.controller.alter_group_configs(name, changes)
    else:
        raise refusal(ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}")


def check_broker_id(node: Node, name: str) -> None:
    """Raise BrokerError unless a resource name is this broker's id, or empty for all brokers."""
    if name:
        _check_node_id(node, name, f"Unexpected broker id, expected {node.node_id}, but received {name}")


def _check_node_id(node: Node, name: str, other: str) -> None:
    """Raise BrokerError unless a resource name is this broker's id. other: the message for the id of another one."""
    node_id = to_node_id(name)
    if node_id is None:
        raise refusal(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if node_id != node.node_id:
        raise refusal(ErrorCode.INVALID_REQUEST, other)


def apply_changes(configs: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    """Return the configs after a change."""
    after = {**configs, **changes}
    return {name: value for name, value in after.items() if value is not None}


def change_topic(
    node: Node, context: RequestContext, name: str, changes: Mapping[str, str | None], *, validate_only: bool
) -> None:
    """Set configs of a topic, None to delete them. Raises BrokerError."""
    node.authorize(context, Operation.ALTER_CONFIGS, ResourceType.TOPIC, name)
    check_name(name)
    topic = node.topics.get(name)
    if topic is None:
        node.controller.check_topic_configs(apply_changes({}, changes))
        raise refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    if validate_only:
        node.controller.check_topic_configs(apply_changes(topic.configs, changes))
    else:
        node.controller.alter_topic_configs(topic, changes)
