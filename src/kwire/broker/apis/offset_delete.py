"""OffsetDelete (api key 47), version 0: delete a group's offsets of topics that it does not subscribe to.

Source: kafka.server.KafkaApis.handleOffsetDeleteRequest 3.9.1; OffsetMetadataManager.deleteOffsets; KIP-496.
"""

from __future__ import annotations

from kwire.broker.apis.steps.offset_commits import check_partition
from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.groups.offsets import subscription
from kwire.broker.node import Node
from kwire.internal_topics.names import GROUPS_TOPIC
from kwire.messages import OffsetDeleteRequest, OffsetDeleteResponse
from kwire.protocol.error_codes import ErrorCode, refusal


def handle(node: Node, context: RequestContext, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    """Delete the offsets of each partition."""
    node.authorize(context, Operation.DELETE, ResourceType.GROUP, request.group_id)
    node.check_coordinator(GROUPS_TOPIC, request.group_id)
    if not request.group_id:
        raise refusal(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
    subscribes = subscription(node.groups.offsets.check_delete(request.group_id))
    response = OffsetDeleteResponse()
    deleted = []
    for topic in request.topics:
        result = OffsetDeleteResponse.OffsetDeleteResponseTopic(name=topic.name, partitions=[])
        subscribed = subscribes(topic.name)
        for partition in topic.partitions:
            index = partition.partition_index
            code = check_partition(node, context, topic.name, index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            if code is ErrorCode.NONE and subscribed:
                code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
            if code is ErrorCode.NONE:
                deleted.append((topic.name, index))
            result.partitions.append(
                OffsetDeleteResponse.OffsetDeleteResponsePartition(partition_index=index, error_code=int(code))
            )
        response.topics.append(result)
    node.groups.offsets.delete(request.group_id, deleted)
    return response
