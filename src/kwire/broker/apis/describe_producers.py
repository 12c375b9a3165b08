"""DescribeProducers (api key 61), version 0: list the active producers of partitions (KIP-664).

Source: kafka.server.KafkaApis.handleDescribeProducersRequest, UnifiedLog.activeProducers 3.9.1.
"""

from __future__ import annotations

from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.errors import BrokerError
from kwire.messages import DescribeProducersRequest, DescribeProducersResponse
from kwire.messages.describe_producers_response import PartitionResponse
from kwire.protocol.error_codes import ErrorCode, refusal


def handle(node: Node, context: RequestContext, request: DescribeProducersRequest) -> DescribeProducersResponse:
    """List the producers of each partition."""
    return DescribeProducersResponse(
        topics=[
            DescribeProducersResponse.TopicResponse(
                name=topic.name,
                partitions=[describe(node, context, topic.name, index) for index in topic.partition_indexes],
            )
            for topic in request.topics
        ]
    )


def describe(node: Node, context: RequestContext, topic: str, index: int) -> PartitionResponse:
    """List the producers of one partition."""
    response = PartitionResponse(partition_index=index)
    try:
        node.authorize(context, Operation.READ, ResourceType.TOPIC, topic)
        partition = node.topics.partition(topic, index)
        if partition is None:
            known = node.topics.get(topic) is not None  # then without a message, as in Kafka
            what = "" if known else "This server does not host this topic-partition."
            raise refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, what)
        response.active_producers = [
            DescribeProducersResponse.ProducerState(
                producer_id=each.producer_id,
                producer_epoch=each.producer_epoch,
                last_sequence=each.last_sequence,
                last_timestamp=each.last_timestamp,
                coordinator_epoch=each.coordinator_epoch,
                current_txn_start_offset=-1 if each.transaction_first_offset is None else each.transaction_first_offset,
            )
            for each in partition.at(node.node_id, may_follow=True).producers.entries.values()
        ]
    except BrokerError as error:
        response.error_code, response.error_message = error.code, error.what or None
    return response
