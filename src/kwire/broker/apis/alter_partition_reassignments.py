"""AlterPartitionReassignments (api key 45), versions 0 and 1: move partitions to other brokers (KIP-455).

    1  whether the number of replicas may change

Every partition is on this node. To assign it to this node changes nothing and succeeds; any other broker is
INVALID_REPLICA_ASSIGNMENT, and there is never a reassignment to cancel (null replicas: NO_REASSIGNMENT_IN_PROGRESS).
Source: org.apache.kafka.controller.ReplicationControlManager.alterPartitionReassignments 4.4.0.
"""

from __future__ import annotations

from kwire.broker.apis.create_topics import check_replicas
from kwire.broker.authorization import CLUSTER, Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.errors import BrokerError
from kwire.messages import AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse
from kwire.messages.alter_partition_reassignments_request import ReassignablePartition
from kwire.messages.alter_partition_reassignments_response import ReassignablePartitionResponse
from kwire.protocol.error_codes import ErrorCode, refusal


def handle(
    node: Node, context: RequestContext, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    """Check each partition's target."""
    if not node.may(context, Operation.ALTER, ResourceType.CLUSTER, CLUSTER):
        raise refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
    cls = AlterPartitionReassignmentsResponse
    return cls(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None if request.topics else "",
        responses=[
            cls.ReassignableTopicResponse(
                name=topic.name, partitions=[reassign(node, topic.name, partition) for partition in topic.partitions]
            )
            for topic in request.topics
        ],
    )


def reassign(node: Node, name: str, partition: ReassignablePartition) -> ReassignablePartitionResponse:
    """The result of one partition."""
    result = ReassignablePartitionResponse(partition_index=partition.partition_index, error_message=None)
    try:
        topic = node.topics.get(name)
        if topic is None:
            raise refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
        if partition.partition_index not in topic.partitions:
            what = f"Unable to find partition {name}:{partition.partition_index}."
            raise refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, what)
        if partition.replicas is None:
            result.error_code = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        else:
            check_replicas(node, partition.replicas)
    except BrokerError as error:
        result.error_code, result.error_message = error.code, error.what
    return result


def error_response(
    request: AlterPartitionReassignmentsRequest, code: ErrorCode, message: str
) -> AlterPartitionReassignmentsResponse:
    """The same error for the request and every partition."""
    cls = AlterPartitionReassignmentsResponse
    return cls(
        error_code=code,
        error_message=message,
        responses=[
            cls.ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    cls.ReassignablePartitionResponse(
                        partition_index=partition.partition_index, error_code=code, error_message=message
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )
