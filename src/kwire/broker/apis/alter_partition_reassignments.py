"""AlterPartitionReassignments (api key 45), versions 0 and 1: move partitions to other brokers (KIP-455).

    1  whether the replication factor may change

All partitions are on this broker. Assigning one to this broker is a no-op; any other broker is
INVALID_REPLICA_ASSIGNMENT. Cancelling (null replicas) is NO_REASSIGNMENT_IN_PROGRESS.

Source: org.apache.kafka.controller.ReplicationControlManager.alterPartitionReassignments 4.4.0.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from kwire.broker.apis.create_topics import check_replicas
from kwire.broker.authorization import CLUSTER, Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.errors import BrokerError
from kwire.messages import AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse
from kwire.messages.alter_partition_reassignments_request import ReassignablePartition
from kwire.messages.alter_partition_reassignments_response import (
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from kwire.protocol.error_codes import ErrorCode, refusal


def handle(
    node: Node, context: RequestContext, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    """Check the target of each partition."""
    node.authorize(context, Operation.ALTER, ResourceType.CLUSTER, CLUSTER)
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None if request.topics else "",
        responses=topic_responses(request, functools.partial(reassign, node)),
    )


def topic_responses(
    request: AlterPartitionReassignmentsRequest,
    respond: Callable[[str, ReassignablePartition], ReassignablePartitionResponse],
) -> list[ReassignableTopicResponse]:
    """Build the response of each partition, by topic. respond: called with topic and partition."""
    return [
        ReassignableTopicResponse(
            name=topic.name, partitions=[respond(topic.name, partition) for partition in topic.partitions]
        )
        for topic in request.topics
    ]


def reassign(node: Node, topic_name: str, partition: ReassignablePartition) -> ReassignablePartitionResponse:
    """Check the target of one partition."""
    index, code, message = partition.partition_index, ErrorCode.NONE, None
    try:
        topic = node.topics.get(topic_name)
        if topic is None:
            raise refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {topic_name}.")
        if index not in topic.partitions:
            raise refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {topic_name}:{index}.")
        if partition.replicas is None:
            code = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        else:
            check_replicas(node, partition.replicas)
    except BrokerError as error:
        code, message = ErrorCode(error.code), error.what
    return ReassignablePartitionResponse(partition_index=index, error_code=code, error_message=message)


def error_response(
    request: AlterPartitionReassignmentsRequest, code: ErrorCode, message: str
) -> AlterPartitionReassignmentsResponse:
    """Build a response with the same error for the request and every partition."""

    def fail(_topic: str, partition: ReassignablePartition) -> ReassignablePartitionResponse:
        index = partition.partition_index
        return ReassignablePartitionResponse(partition_index=index, error_code=code, error_message=message)

    return AlterPartitionReassignmentsResponse(
        error_code=code, error_message=message, responses=topic_responses(request, fail)
    )
