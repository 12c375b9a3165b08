"""ListPartitionReassignments (api key 46), version 0: list partition reassignments in progress (KIP-455).

Those that wait for a node that is not running are in progress. Requested partitions that do not exist are omitted.

Source: org.apache.kafka.controller.ReplicationControlManager.listPartitionReassignments 4.4.0.
"""

from __future__ import annotations

from kwire.broker.authorization import CLUSTER, Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.broker.topics import Partition
from kwire.messages import ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse
from kwire.messages.list_partition_reassignments_response import (
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


def handle(
    node: Node, context: RequestContext, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """List the requested partitions that are moved; null topics select all."""
    node.authorize(context, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER)
    requested = None if request.topics is None else {each.name: each.partition_indexes for each in request.topics}
    topics = []
    for topic in node.topics:
        if requested is not None and topic.name not in requested:
            continue
        moved = [
            describe(partition)
            for index, partition in topic.partitions.items()
            if is_reassigned(partition) and (requested is None or index in requested[topic.name])
        ]
        if moved:
            topics.append(OngoingTopicReassignment(name=topic.name, partitions=moved))
    return ListPartitionReassignmentsResponse(error_message=None, topics=topics)


def is_reassigned(partition: Partition) -> bool:
    """Return whether a partition is being moved to other replicas."""
    return bool(partition.state.adding_replicas or partition.state.removing_replicas)


def describe(partition: Partition) -> OngoingPartitionReassignment:
    """Describe the reassignment of a partition."""
    state = partition.state
    return OngoingPartitionReassignment(
        partition_index=partition.index,
        replicas=list(state.replicas),
        adding_replicas=list(state.adding_replicas),
        removing_replicas=list(state.removing_replicas),
    )
