"""AlterPartitionReassignments (api key 45), versions 0 and 1: move partitions to other brokers (KIP-455).

    1  whether the replication factor may change

Replicas on running nodes catch up at once, so a reassignment is complete with the response. It continues while one of
its new replicas is not running, until that node starts or the reassignment is cancelled (null replicas).

Source: org.apache.kafka.controller.ReplicationControlManager.alterPartitionReassignments 4.4.0.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from kwire.broker.apis.create_topics import check_replicas
from kwire.broker.apis.list_partition_reassignments import is_reassigned
from kwire.broker.authorization import CLUSTER, Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.broker.topics import Partition
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
    """Move each partition."""
    node.authorize(context, Operation.ALTER, ResourceType.CLUSTER, CLUSTER)
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None if request.topics else "",
        responses=topic_responses(
            request, functools.partial(reassign, node, may_change_factor=request.allow_replication_factor_change)
        ),
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


def reassign(
    node: Node, topic_name: str, partition: ReassignablePartition, *, may_change_factor: bool
) -> ReassignablePartitionResponse:
    """Move one partition, or cancel its reassignment."""
    index, code, message = partition.partition_index, ErrorCode.NONE, None
    try:
        topic = node.topics.get(topic_name)
        if topic is None:
            raise refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {topic_name}.")
        if index not in topic.partitions:
            raise refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {topic_name}:{index}.")
        target = topic.partitions[index]
        if partition.replicas is None:
            node.leadership.cancel_reassignment(target)
        else:
            check_replicas(node, partition.replicas)
            check_factor(target, len(partition.replicas), may_change_factor=may_change_factor)
            if partition.replicas != list(target.state.replicas) or is_reassigned(target):
                node.leadership.reassign(target, partition.replicas)
    except BrokerError as error:
        code, message = ErrorCode(error.code), error.what or None
    return ReassignablePartitionResponse(partition_index=index, error_code=code, error_message=message)


def check_factor(partition: Partition, factor: int, *, may_change_factor: bool) -> None:
    """Raise BrokerError if the replication factor of a partition changes without permission (KIP-860)."""
    current = len(set(partition.state.replicas) - set(partition.state.adding_replicas))
    if factor != current and not may_change_factor:
        raise refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {current} to {factor}",
        )


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
