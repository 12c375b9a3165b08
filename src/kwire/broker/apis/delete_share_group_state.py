"""DeleteShareGroupState (api key 86), version 0: delete the delivery state of share partitions (KIP-932).

Brokers send it to the share coordinator of each partition; it needs CLUSTER_ACTION on the cluster.

Source: kafka.server.KafkaApis.handleDeleteShareGroupStateRequest, ShareCoordinatorShard.deleteState 4.4.0.
"""

from __future__ import annotations

from kwire.broker.apis.steps.share_state import each_partition
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.broker.shares.coordinator import ShareKey
from kwire.errors import BrokerError
from kwire.messages import DeleteShareGroupStateRequest, DeleteShareGroupStateResponse
from kwire.messages.delete_share_group_state_request import PartitionData
from kwire.messages.delete_share_group_state_response import DeleteStateResult, PartitionResult


def handle(node: Node, context: RequestContext, request: DeleteShareGroupStateRequest) -> DeleteShareGroupStateResponse:
    """Delete the state of each partition."""

    def serve(key: ShareKey, data: PartitionData) -> PartitionResult:
        node.coordinators.share_states.delete(key)
        return PartitionResult(partition=data.partition)

    topics = [(topic.topic_id, topic.partitions) for topic in request.topics]
    results = each_partition(node, context, request.group_id, topics, serve, failed)
    return DeleteShareGroupStateResponse(
        results=[DeleteStateResult(topic_id=topic_id, partitions=each) for topic_id, each in results.items()]
    )


def failed(data: PartitionData, error: BrokerError) -> PartitionResult:
    """Build the result of a partition with an error."""
    return PartitionResult(partition=data.partition, error_code=error.code, error_message=error.what)
