"""AlterShareGroupOffsets (api key 91), version 0: set where a share group without members continues (KIP-932).

The group is created if it does not exist. The state of the partitions begins again at their new offsets.

Source: kafka.server.KafkaApis.handleAlterShareGroupOffsetsRequest, GroupMetadataManager.alterShareGroupOffsets 4.4.0.
"""

from __future__ import annotations

from uuid import UUID

from kwire.broker.apis.steps.share_requests import UNKNOWN, check_enabled
from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.broker.topics import Topic
from kwire.errors import BrokerError
from kwire.internal_topics.names import GROUPS_TOPIC
from kwire.messages import AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse
from kwire.messages.alter_share_group_offsets_request import AlterShareGroupOffsetsRequestTopic
from kwire.messages.alter_share_group_offsets_response import (
    AlterShareGroupOffsetsResponsePartition as AlteredPartition,
)
from kwire.messages.alter_share_group_offsets_response import AlterShareGroupOffsetsResponseTopic as AlteredTopic
from kwire.protocol.error_codes import ErrorCode, refusal


def handle(
    node: Node, context: RequestContext, request: AlterShareGroupOffsetsRequest
) -> AlterShareGroupOffsetsResponse:
    """Alter the offsets of each partition."""
    check_enabled(node)
    node.authorize(context, Operation.READ, ResourceType.GROUP, request.group_id)
    if not request.group_id:
        raise refusal(ErrorCode.INVALID_GROUP_ID, "The group id is invalid.")
    node.check_coordinator(GROUPS_TOPIC, request.group_id)
    starts: dict[tuple[UUID, int], int] = {}
    errors: dict[tuple[str, int], tuple[ErrorCode, str]] = {}
    for asked in request.topics:
        topic, refused = find(node, context, asked)
        for each in asked.partitions:
            if topic is None:
                errors[asked.topic_name, each.partition_index] = refused
            elif each.partition_index not in topic.partitions:
                errors[asked.topic_name, each.partition_index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN
            else:
                starts[topic.topic_id, each.partition_index] = each.start_offset
    failed = node.groups.shares.alter_offsets(request.group_id, starts)
    response = []
    for asked in request.topics:
        topic = node.topics.get(asked.topic_name)
        altered = AlteredTopic(topic_name=asked.topic_name, partitions=[])
        if topic is not None:
            altered.topic_id = topic.topic_id
        for each in asked.partitions:
            code, what = errors.get((asked.topic_name, each.partition_index), (ErrorCode.NONE, None))
            error: BrokerError | None = failed.get((altered.topic_id, each.partition_index))
            if error is not None:
                code, what = ErrorCode(error.code), error.what
            altered.partitions.append(
                AlteredPartition(partition_index=each.partition_index, error_code=int(code), error_message=what)
            )
        response.append(altered)
    return AlterShareGroupOffsetsResponse(responses=response)


def find(
    node: Node, context: RequestContext, asked: AlterShareGroupOffsetsRequestTopic
) -> tuple[Topic | None, tuple[ErrorCode, str]]:
    """Return a topic that the client may read, None with the error."""
    if not node.may(context, Operation.READ, ResourceType.TOPIC, asked.topic_name):
        return None, (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed.")
    return node.topics.get(asked.topic_name), (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN)
