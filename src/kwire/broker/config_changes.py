"""One change of settings, from either API that makes them: who may, whether it can be, and done.

Source: kafka.server.ControllerApis, ConfigAdminManager 3.9.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kwire.broker.authorization import CLUSTER, Operation, ResourceType
from kwire.broker.configs import check_broker_configs
from kwire.broker.image import BROKER_RESOURCE, TOPIC_RESOURCE
from kwire.broker.topics import check_name
from kwire.protocol.error_codes import ErrorCode, refusal

if TYPE_CHECKING:
    from kwire.broker.context import RequestContext
    from kwire.broker.node import Node

__all__ = ["change", "current"]


def current(node: Node, kind: int, name: str) -> dict[str, str]:
    """The settings that a resource has of its own."""
    return node.image.configs.get((kind, name), {})


def change(
    node: Node, context: RequestContext, kind: int, name: str, changes: Mapping[str, str | None], *, validate_only: bool
) -> None:
    """Set settings of a topic (TOPIC_RESOURCE) or broker, None to remove them. Raises BrokerError."""
    if kind == TOPIC_RESOURCE:
        change_topic(node, context, name, changes, validate_only=validate_only)
    elif kind == BROKER_RESOURCE:
        if not node.may(context, Operation.ALTER_CONFIGS, ResourceType.CLUSTER, CLUSTER):
            raise refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
        if name not in ("", str(node.node_id)):
            raise refusal(ErrorCode.INVALID_REQUEST, f"Unexpected broker id {name}, this is {node.node_id}")
        check_broker_configs(changes)
        if not validate_only:
            node.controller.alter_broker_configs(name, changes)
    else:
        raise refusal(ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {kind}")


def change_topic(
    node: Node, context: RequestContext, name: str, changes: Mapping[str, str | None], *, validate_only: bool
) -> None:
    """See change."""
    if not node.may(context, Operation.ALTER_CONFIGS, ResourceType.TOPIC, name):
        raise refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed.")
    check_name(name)
    topic = node.topics.get(name)
    if topic is None:
        raise refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    if validate_only:
        kept = {key: value for key, value in topic.configs.items() if key not in changes}
        node.controller.check_topic_configs({**kept, **{k: v for k, v in changes.items() if v is not None}})
    else:
        node.controller.alter_topic_configs(topic, changes)
