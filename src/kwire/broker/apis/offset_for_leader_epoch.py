"""OffsetForLeaderEpoch (api key 23), versions 0 to 4: the end offset of a leader epoch, to detect log truncation.

    1  leader epoch in the response    2  throttle time, current leader epoch    3  replica id    4  flexible

Source: kafka.server.KafkaApis.handleOffsetForLeaderEpochRequest, Partition.lastOffsetForLeaderEpoch; KIP-101, KIP-320.
"""

from __future__ import annotations

from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.errors import BrokerError
from kwire.messages import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from kwire.messages.offset_for_leader_epoch_request import OffsetForLeaderPartition
from kwire.messages.offset_for_leader_epoch_response import EpochEndOffset
from kwire.protocol.error_codes import ErrorCode


def handle(node: Node, context: RequestContext, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
    """Look up the epoch of each partition."""
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[look_up(node, context, topic.topic, requested) for requested in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def look_up(node: Node, context: RequestContext, topic: str, requested: OffsetForLeaderPartition) -> EpochEndOffset:
    """Look up the epoch of one partition."""
    if not node.may(context, Operation.DESCRIBE, ResourceType.TOPIC, topic):
        return EpochEndOffset(partition=requested.partition, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    partition = node.topics.partition(topic, requested.partition)
    if partition is None:
        return EpochEndOffset(partition=requested.partition, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    try:
        log = partition.at(node.node_id, requested.current_leader_epoch)
        epoch, end_offset = log.end_offset_for(requested.leader_epoch)
    except BrokerError as error:
        return EpochEndOffset(partition=requested.partition, error_code=error.code)
    return EpochEndOffset(partition=requested.partition, leader_epoch=epoch, end_offset=end_offset)
