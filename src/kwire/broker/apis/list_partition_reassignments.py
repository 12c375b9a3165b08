"""ListPartitionReassignments (api key 46), version 0: the reassignments in progress (KIP-455).

One node never has any; partitions that do not exist are not in the response.
Source: org.apache.kafka.controller.ReplicationControlManager.listPartitionReassignments 4.4.0.
"""

from __future__ import annotations

from kwire.broker.authorization import CLUSTER, Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.messages import ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse
from kwire.protocol.error_codes import ErrorCode, refusal


def handle(
    node: Node, context: RequestContext, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """Return the empty list."""
    if not node.may(context, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER):
        raise refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
    return ListPartitionReassignmentsResponse(error_message=None)
