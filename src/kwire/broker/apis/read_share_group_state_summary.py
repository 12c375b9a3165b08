"""ReadShareGroupStateSummary (api key 87), versions 0 and 1: read the start offsets of share partitions (KIP-932).

    1  number of records that are done (KIP-1226)

Brokers send it to the share coordinator of each partition; it needs CLUSTER_ACTION on the cluster.

Source: kafka.server.KafkaApis.handleReadShareGroupStateSummaryRequest, ShareCoordinatorShard.readStateSummary 4.4.0.
"""

from __future__ import annotations

from kwire.broker.apis.steps.share_state import each_partition
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.broker.shares.coordinator import ShareKey
from kwire.errors import BrokerError
from kwire.internal_topics.share_state import UNSET
from kwire.messages import ReadShareGroupStateSummaryRequest, ReadShareGroupStateSummaryResponse
from kwire.messages.read_share_group_state_summary_request import PartitionData
from kwire.messages.read_share_group_state_summary_response import PartitionResult, ReadStateSummaryResult


def handle(
    node: Node, context: RequestContext, request: ReadShareGroupStateSummaryRequest
) -> ReadShareGroupStateSummaryResponse:
    """Read the summary of each partition."""

    def serve(key: ShareKey, data: PartitionData) -> PartitionResult:
        stored = node.coordinators.share_states.summary(key)
        if stored is None:
            return PartitionResult(partition=data.partition, start_offset=UNSET)
        return PartitionResult(
            partition=data.partition,
            state_epoch=stored.state_epoch,
            leader_epoch=stored.leader_epoch,
            start_offset=stored.start_offset,
            delivery_complete_count=stored.delivery_complete_count,
        )

    topics = [(topic.topic_id, topic.partitions) for topic in request.topics]
    results = each_partition(node, context, request.group_id, topics, serve, failed)
    return ReadShareGroupStateSummaryResponse(
        results=[ReadStateSummaryResult(topic_id=topic_id, partitions=each) for topic_id, each in results.items()]
    )


def failed(data: PartitionData, error: BrokerError) -> PartitionResult:
    """Build the result of a partition with an error."""
    return PartitionResult(partition=data.partition, error_code=error.code, error_message=error.what)
