"""The current leader in responses of a node that does not lead a partition, so clients need no Metadata (KIP-951).

Source: kafka.server.KafkaApis.getCurrentLeader 3.9.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.broker.replication.members import Member
from kwire.broker.topics import Partition

__all__ = ["current_leader", "endpoints_of"]


def current_leader(partition: Partition) -> tuple[int, int]:
    """Return the id and epoch of a partition's leader."""
    return partition.state.leader, partition.state.leader_epoch


def endpoints_of(node: Node, context: RequestContext, node_ids: Iterable[int]) -> Iterator[tuple[Member, str, int]]:
    """Yield running nodes with their host and port on the client's listener, in order of their ids."""
    for node_id in sorted(node_ids):
        member = node.members.running.get(node_id)
        if member is not None:
            yield member, *member.endpoint(context.listener)
