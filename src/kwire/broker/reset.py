"""Reset of a running broker to the state after its first start; connections stay open.

Groups and transactions end as if their coordinator had moved: waiting members get NOT_COORDINATOR. Topics are deleted
as by a client, so their ids are never reused and the metadata log remains complete. The clock returns
to the system's time; otherwise new records would be as old as the clock was advanced before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.broker.security.acls import AclFilter
from kwire.internal_topics.enums import ConfigResource

if TYPE_CHECKING:
    from kwire.broker.node import Node
    from kwire.broker.topics import Topic

__all__ = ["reset"]


def reset(node: Node) -> None:
    """Reset the node, on its own thread."""
    node.faults.clear()
    node.requests.clear()
    node.loggers.restore()
    node.controller.update_features(node.features.as_new())
    node.log_manager.take_clock_back(node.clock.take_back())
    node.coordinators.stop()
    delete(node, [topic for topic in node.topics if topic.is_internal])
    node.coordinators.start()  # before deleting the other topics, of which they are notified
    delete(node, list(node.topics))
    node.security.acls.remove(AclFilter())
    node.security.tokens.clear()
    node.security.quotas.clear()
    node.security.credentials.clear()
    node.throttling.clear()
    node.leadership.forget()
    node.controller.placement.start_again()
    for (kind, name), configs in list(node.cluster.configs.items()):
        if kind == ConfigResource.BROKER.label:
            node.controller.alter_broker_configs(name, dict.fromkeys(configs))
        elif kind == ConfigResource.CLIENT_METRICS.label:
            node.controller.alter_client_metrics(name, dict.fromkeys(configs))
        elif kind == ConfigResource.GROUP.label:
            node.controller.alter_group_configs(name, dict.fromkeys(configs))


def delete(node: Node, topics: list[Topic]) -> None:
    """Delete topics as a client does."""
    for topic in topics:
        node.controller.delete_topic(topic)
