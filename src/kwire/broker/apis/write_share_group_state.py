"""WriteShareGroupState (api key 85), versions 0 and 1: change the delivery state of share partitions (KIP-932).

    1  number of records that are done (KIP-1226)

Brokers send it to the share coordinator of each partition; it needs CLUSTER_ACTION on the cluster.

Source: kafka.server.KafkaApis.handleWriteShareGroupStateRequest, ShareCoordinatorShard.writeState 4.4.0.
"""

from __future__ import annotations

from kwire.broker.apis.steps.share_state import each_partition
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.broker.shares.coordinator import ShareKey
from kwire.errors import BrokerError
from kwire.internal_topics.share_state import DeliveredRange
from kwire.messages import WriteShareGroupStateRequest, WriteShareGroupStateResponse
from kwire.messages.write_share_group_state_request import PartitionData
from kwire.messages.write_share_group_state_response import PartitionResult, WriteStateResult


def handle(node: Node, context: RequestContext, request: WriteShareGroupStateRequest) -> WriteShareGroupStateResponse:
    """Change the state of each partition."""

    def serve(key: ShareKey, data: PartitionData) -> PartitionResult:
        node.coordinators.share_states.write(
            key,
            data.leader_epoch,
            data.state_epoch,
            data.start_offset,
            data.delivery_complete_count,
            [
                DeliveredRange(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
                for each in data.state_batches
            ],
        )
        return PartitionResult(partition=data.partition)

    topics = [(topic.topic_id, topic.partitions) for topic in request.topics]
    results = each_partition(node, context, request.group_id, topics, serve, failed)
    return WriteShareGroupStateResponse(
        results=[WriteStateResult(topic_id=topic_id, partitions=each) for topic_id, each in results.items()]
    )


def failed(data: PartitionData, error: BrokerError) -> PartitionResult:
    """Build the result of a partition with an error."""
    return PartitionResult(partition=data.partition, error_code=error.code, error_message=error.what)
