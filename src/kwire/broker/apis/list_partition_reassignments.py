"""ListPartitionReassignments (api key 46), version 0: list partition reassignments in progress (KIP-455).

On a single node there are none. Requested partitions that do not exist are omitted.

Source: org.apache.kafka.controller.ReplicationControlManager.listPartitionReassignments 4.4.0.
"""

from __future__ import annotations

from kwire.broker.authorization import CLUSTER, Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.messages import ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse


def handle(
    node: Node, context: RequestContext, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """Return an empty list."""
    node.authorize(context, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER)
    return ListPartitionReassignmentsResponse(error_message=None)
