"""DeleteShareGroupOffsets (api key 92), version 0: forget topics of a share group without members (KIP-932).

Source: kafka.server.KafkaApis.handleDeleteShareGroupOffsetsRequest,
GroupMetadataManager.sharePartitionsEligibleForOffsetDeletion 4.4.0.
"""

from __future__ import annotations

from kwire.broker.apis.steps.share_requests import UNKNOWN, check_enabled
from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.errors import BrokerError
from kwire.internal_topics.names import GROUPS_TOPIC
from kwire.messages import DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse
from kwire.messages.delete_share_group_offsets_response import DeleteShareGroupOffsetsResponseTopic as DeletedTopic
from kwire.protocol.error_codes import ErrorCode, refusal


def handle(
    node: Node, context: RequestContext, request: DeleteShareGroupOffsetsRequest
) -> DeleteShareGroupOffsetsResponse:
    """Delete the offsets of each topic."""
    check_enabled(node)
    node.authorize(context, Operation.DELETE, ResourceType.GROUP, request.group_id)
    if not request.group_id:
        raise refusal(ErrorCode.INVALID_GROUP_ID, "The group id is invalid.")
    node.check_coordinator(GROUPS_TOPIC, request.group_id)
    refused, failed, found = [], [], []
    for asked in request.topics:
        name = asked.topic_name
        topic = node.topics.get(name)
        if not node.may(context, Operation.READ, ResourceType.TOPIC, name):
            what = "Topic authorization failed."
            refused.append(deleted(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED, what))
        elif topic is None:
            failed.append(deleted(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN))
        else:
            found.append(topic)
    results = node.groups.shares.delete_offsets(request.group_id, [topic.topic_id for topic in found])
    done = []
    for topic in found:
        error: BrokerError | None = results[topic.topic_id]
        if error is None:
            done.append(DeletedTopic(topic_name=topic.name, topic_id=topic.topic_id))
        else:
            failed.append(deleted(topic.name, ErrorCode(error.code), error.what))
    return DeleteShareGroupOffsetsResponse(responses=[*refused, *done, *failed])


def deleted(name: str, code: ErrorCode, what: str) -> DeletedTopic:
    """Build the response for a topic with an error."""
    return DeletedTopic(topic_name=name, error_code=int(code), error_message=what)
