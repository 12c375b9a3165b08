"""A running broker made new: no topics, groups, transactions, entries of access control, users, quotas or settings but
those it was started with. Connections stay.

Groups and transactions end as if their coordinator went elsewhere: who waits is told to look for it again. Topics are
deleted as a client deletes them, so ids are never used again, and the metadata log tells the whole story.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.broker.groups.node_log import open_coordinator as open_groups
from kwire.broker.security.acls import AclFilter
from kwire.broker.throttling import Throttling
from kwire.broker.transactions.partitions import open_coordinator as open_transactions
from kwire.internal_topics.enums import ConfigResource

if TYPE_CHECKING:
    from kwire.broker.node import Node
    from kwire.broker.topics import Topic

__all__ = ["reset"]


def reset(node: Node) -> None:
    """Make the node new; on its own thread."""
    node.faults.clear()
    node.requests.clear()
    node.groups.stop()
    node.transactions.stop()
    delete(node, [topic for topic in node.topics if topic.is_internal])
    node.groups = open_groups(node)  # new ones first: what was stopped must not be told of deleted topics
    node.transactions = open_transactions(node)
    delete(node, list(node.topics))
    node.security.acls.remove(AclFilter())
    node.security.tokens.clear()
    node.security.quotas.clear()
    node.security.credentials.clear()
    node.throttling = Throttling(node)
    for (kind, name), configs in list(node.cluster.configs.items()):
        if kind == ConfigResource.BROKER.label:
            node.controller.alter_broker_configs(name, dict.fromkeys(configs))
        elif kind == ConfigResource.CLIENT_METRICS.label:
            node.controller.alter_client_metrics(name, dict.fromkeys(configs))


def delete(node: Node, topics: list[Topic]) -> None:
    """Delete topics as a client does."""
    for topic in topics:
        node.controller.delete_topic(topic)
