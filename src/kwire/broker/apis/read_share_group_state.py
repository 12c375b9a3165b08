"""ReadShareGroupState (api key 84), version 0: read the delivery state of share partitions (KIP-932).

Brokers send it to the share coordinator of each partition; it needs CLUSTER_ACTION on the cluster. It also has the
epoch of the partition's leader, which fences out former leaders.

Source: kafka.server.KafkaApis.handleReadShareGroupStateRequest,
ShareCoordinatorShard.readStateAndMaybeUpdateLeaderEpoch 4.4.0.
"""

from __future__ import annotations

from kwire.broker.apis.steps.share_state import each_partition
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.broker.shares.coordinator import ShareKey
from kwire.errors import BrokerError
from kwire.messages import ReadShareGroupStateRequest, ReadShareGroupStateResponse
from kwire.messages.read_share_group_state_request import PartitionData
from kwire.messages.read_share_group_state_response import PartitionResult, ReadStateResult, StateBatch


def handle(node: Node, context: RequestContext, request: ReadShareGroupStateRequest) -> ReadShareGroupStateResponse:
    """Read the state of each partition."""

    def serve(key: ShareKey, data: PartitionData) -> PartitionResult:
        stored = node.coordinators.share_states.read(key, data.leader_epoch)
        return PartitionResult(
            partition=data.partition,
            state_epoch=stored.state_epoch,
            start_offset=stored.start_offset,
            state_batches=[
                StateBatch(
                    first_offset=each.first_offset,
                    last_offset=each.last_offset,
                    delivery_state=each.delivery_state,
                    delivery_count=each.delivery_count,
                )
                for each in stored.ranges
            ],
        )

    topics = [(topic.topic_id, topic.partitions) for topic in request.topics]
    results = each_partition(node, context, request.group_id, topics, serve, failed)
    return ReadShareGroupStateResponse(
        results=[ReadStateResult(topic_id=topic_id, partitions=each) for topic_id, each in results.items()]
    )


def failed(data: PartitionData, error: BrokerError) -> PartitionResult:
    """Build the result of a partition with an error."""
    return PartitionResult(partition=data.partition, error_code=error.code, error_message=error.what)
