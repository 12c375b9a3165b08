"""DescribeTopicPartitions (api key 75), version 0: the partitions of topics, in pages.

Source: kafka.server.handlers.DescribeTopicPartitionsRequestHandler 3.9.1; KIP-966.
"""

from __future__ import annotations

from kwire.broker.apis.metadata import TOPIC_OPERATIONS
from kwire.broker.authorization import Operation, ResourceType, operations_mask
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.broker.topics import Partition, Topic
from kwire.messages import DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse
from kwire.messages.describe_topic_partitions_response import DescribeTopicPartitionsResponsePartition
from kwire.messages.describe_topic_partitions_response import DescribeTopicPartitionsResponseTopic as TopicResponse
from kwire.protocol.error_codes import ErrorCode, refusal

MAX_PARTITIONS = 2000
"""Kafka's max.request.partition.size.limit."""


def handle(
    node: Node, context: RequestContext, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    """Return a page from the cursor on, and the next cursor. An empty list of topics selects all."""
    cursor = request.cursor
    names = {topic.name for topic in request.topics} or {topic.name for topic in node.topics}
    first = 0
    if cursor is not None:
        if cursor.partition_index < 0:
            what = f"DescribeTopicPartitionsRequest cursor partition must be valid: {cursor.partition_index}"
            raise refusal(ErrorCode.INVALID_REQUEST, what)
        names = {name for name in names if name >= cursor.topic_name}
        first = cursor.partition_index
    room = max(min(request.response_partition_limit, MAX_PARTITIONS), 1)
    responses: list[TopicResponse] = []
    next_cursor = None
    for name in sorted(names):
        if room <= 0:
            next_cursor = DescribeTopicPartitionsResponse.Cursor(topic_name=name, partition_index=0)
            break
        start = first if cursor is not None and name == cursor.topic_name else 0
        response = page(node, context, name, start, room, all_topics=not request.topics)
        if response is None:
            continue
        responses.append(response)
        room -= len(response.partitions)
        topic = node.topics.get(name)
        if topic is not None and not response.error_code and start + len(response.partitions) < len(topic.partitions):
            index = start + len(response.partitions)
            next_cursor = DescribeTopicPartitionsResponse.Cursor(topic_name=name, partition_index=index)
            break
    return DescribeTopicPartitionsResponse(topics=responses, next_cursor=next_cursor)


def page(
    node: Node, context: RequestContext, name: str, start: int, room: int, *, all_topics: bool
) -> TopicResponse | None:
    """Return one topic's part of the page; None if the topic is omitted."""
    if not node.may(context, Operation.DESCRIBE, ResourceType.TOPIC, name):
        return None if all_topics else TopicResponse(name=name, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    topic = node.topics.get(name)
    if topic is None:
        allowed = allowed_operations(node, context, name)
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return TopicResponse(name=name, error_code=code, topic_authorized_operations=allowed)
    return describe(node, context, topic, start, room)


def describe(node: Node, context: RequestContext, topic: Topic, start: int, room: int) -> TopicResponse:
    """Describe up to `room` partitions of a topic, from index `start` on."""
    chosen = [topic.partitions[index] for index in sorted(topic.partitions) if index >= start][:room]
    return TopicResponse(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[describe_partition(node, partition) for partition in chosen],
        topic_authorized_operations=allowed_operations(node, context, topic.name),
    )


def allowed_operations(node: Node, context: RequestContext, topic: str) -> int:
    """Return the operations that the client may do on a topic, as bits."""
    return operations_mask([op for op in TOPIC_OPERATIONS if node.may(context, op, ResourceType.TOPIC, topic)])


def describe_partition(node: Node, partition: Partition) -> DescribeTopicPartitionsResponsePartition:
    """Describe a partition; one without a leader has no error, unlike in Metadata."""
    leader, replicas, isr, offline = node.members.replicas_of(partition.state)
    return DescribeTopicPartitionsResponsePartition(
        partition_index=partition.index,
        leader_id=leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=isr,
        eligible_leader_replicas=list(partition.state.elr),
        last_known_elr=list(partition.state.last_known_elr),
        offline_replicas=offline,
    )


def error_response(
    request: DescribeTopicPartitionsRequest, code: ErrorCode, message: str
) -> DescribeTopicPartitionsResponse:
    """Build a response with the same error for every topic."""
    return DescribeTopicPartitionsResponse(
        topics=[TopicResponse(name=topic.name, error_code=code) for topic in request.topics]
    )
