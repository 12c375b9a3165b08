"""DeleteTopics (api key 20), versions 0 to 6: delete topics, by name or id.

    1  throttle time    3  TOPIC_DELETION_DISABLED    5  error messages, THROTTLING_QUOTA_EXCEEDED    6  topic ids

Source: kafka.server.ControllerApis.deleteTopics 3.9.1.
"""

from __future__ import annotations

from uuid import UUID

from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.network.throttling import MutationQuota
from kwire.broker.node import Node
from kwire.broker.topics import Topic
from kwire.errors import BrokerError
from kwire.internal_topics.names import METADATA_TOPIC
from kwire.messages import DeleteTopicsRequest, DeleteTopicsResponse
from kwire.messages.base import ZERO_UUID
from kwire.messages.delete_topics_response import DeletableTopicResult
from kwire.protocol.error_codes import ErrorCode, refusal

BY_ID_VERSION, DISABLED_VERSION, STRICT_QUOTA_VERSION = 6, 3, 5


def handle(node: Node, context: RequestContext, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    """Delete each topic."""
    if not node.settings.delete_topic_enable:
        disabled = context.api_version >= DISABLED_VERSION
        raise refusal(
            ErrorCode.TOPIC_DELETION_DISABLED if disabled else ErrorCode.INVALID_REQUEST, "Topic deletion is disabled."
        )
    quota = node.throttling.mutations(context, strict_since=STRICT_QUOTA_VERSION)
    results = [delete(node, context, name, uid, quota) for name, uid in requested_topics(context, request)]
    context.throttle_ms = quota.throttle_ms
    return DeleteTopicsResponse(responses=results)


def requested_topics(context: RequestContext, request: DeleteTopicsRequest) -> list[tuple[str | None, UUID]]:
    """Return (name, id) of each topic in the request; by name, the id is zero."""
    if context.api_version >= BY_ID_VERSION:
        return [(topic.name, topic.topic_id) for topic in request.topics]
    return [(name, ZERO_UUID) for name in request.topic_names]


def delete(
    node: Node, context: RequestContext, name: str | None, topic_id: UUID, quota: MutationQuota
) -> DeletableTopicResult:
    """Delete one topic."""
    result = DeletableTopicResult(name=name, topic_id=topic_id)
    try:
        topic = find(node, context, name, topic_id)
        result.name, result.topic_id = topic.name, topic.topic_id
        quota.record(len(topic.partitions))
        node.controller.delete_topic(topic)
    except BrokerError as error:
        result.error_code, result.error_message = error.code, error.what or None
    return result


def find(node: Node, context: RequestContext, name: str | None, topic_id: UUID) -> Topic:
    """Return the topic to delete. Raises BrokerError."""
    if name is not None and topic_id != ZERO_UUID:
        raise refusal(ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")
    if name is None and topic_id == ZERO_UUID:
        raise refusal(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    topic = node.topics.with_id(topic_id) if name is None else node.topics.get(name)
    if topic is None and name is None:
        raise refusal(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
    topic_name = topic.name if topic is not None else name or ""
    node.authorize(context, Operation.DELETE, ResourceType.TOPIC, topic_name)
    if topic_name == METADATA_TOPIC or topic is None:
        raise refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
    return topic


def error_response(request: DeleteTopicsRequest, code: ErrorCode, message: str) -> DeleteTopicsResponse:
    """Build a response with the same error for every topic."""
    names = [(topic.name, topic.topic_id) for topic in request.topics] or [(n, ZERO_UUID) for n in request.topic_names]
    return DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(name=name, topic_id=uid, error_code=code, error_message=message) for name, uid in names
        ]
    )
