"""ShareGroupDescribe (api key 77), version 1: share groups, their members and assignments (KIP-932).

A group with a topic that the client may not describe is TOPIC_AUTHORIZATION_FAILED as a whole. Version 0 was of Kafka
4.0 only.

Source: kafka.server.KafkaApis.handleShareGroupDescribe, ShareGroup.asDescribedGroup 4.4.0.
"""

from __future__ import annotations

from kwire.broker.apis.steps.share_requests import check_enabled
from kwire.broker.authorization import NO_OPERATIONS, Operation, ResourceType, operations_mask
from kwire.broker.context import RequestContext
from kwire.broker.groups.share_protocol import ASSIGNOR
from kwire.broker.node import Node
from kwire.errors import BrokerError
from kwire.internal_topics.group_members import Member as StoredMember
from kwire.internal_topics.names import GROUPS_TOPIC
from kwire.messages import ShareGroupDescribeRequest, ShareGroupDescribeResponse
from kwire.messages.share_group_describe_response import DescribedGroup, Member
from kwire.protocol.error_codes import ErrorCode, refusal

OPERATIONS = (
    Operation.READ,
    Operation.DELETE,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
"""The operations on a group."""


def handle(node: Node, context: RequestContext, request: ShareGroupDescribeRequest) -> ShareGroupDescribeResponse:
    """Describe each group."""
    check_enabled(node)
    response = ShareGroupDescribeResponse()
    for group_id in request.group_ids:
        try:
            described = describe(node, context, group_id)
            if request.include_authorized_operations:
                allowed = [each for each in OPERATIONS if node.may(context, each, ResourceType.GROUP, group_id)]
                described.authorized_operations = operations_mask(allowed)
        except BrokerError as error:
            told = error.code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            described = failed(group_id, ErrorCode(error.code), error.what if told else None)
        response.groups.append(described)
    return response


def describe(node: Node, context: RequestContext, group_id: str) -> DescribedGroup:
    """Describe one group. Raises BrokerError."""
    node.authorize(context, Operation.DESCRIBE, ResourceType.GROUP, group_id)
    if not group_id:
        raise refusal(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
    node.check_coordinator(GROUPS_TOPIC, group_id)
    group = node.groups.store.share_group(group_id)
    members = [describe_member(node, member) for member in group.members.values()]
    topics = {name for member in members for name in member.subscribed_topic_names}
    topics.update(topic.topic_name for member in members for topic in member.assignment.topic_partitions)
    if not all(node.may(context, Operation.DESCRIBE, ResourceType.TOPIC, topic) for topic in topics):
        raise refusal(
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            "The group has described topic(s) that the client is not authorized to describe.",
        )
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=ASSIGNOR,
        members=members,
        authorized_operations=NO_OPERATIONS,
    )


def describe_member(node: Node, member: StoredMember) -> Member:
    """Describe one member; deleted topics are omitted."""
    cls = ShareGroupDescribeResponse
    return Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topics),
        assignment=cls.Assignment(
            topic_partitions=[
                cls.TopicPartitions(topic_id=topic.topic_id, topic_name=topic.name, partitions=sorted(each.partitions))
                for each in member.assigned
                if each.partitions and each.topic_id and (topic := node.topics.with_id(each.topic_id)) is not None
            ]
        ),
    )


def failed(group_id: str, code: ErrorCode, what: str | None) -> DescribedGroup:
    """Build the response for a group with an error."""
    return DescribedGroup(
        group_id=group_id, error_code=int(code), error_message=what, authorized_operations=NO_OPERATIONS
    )


def error_response(request: ShareGroupDescribeRequest, code: ErrorCode, message: str) -> ShareGroupDescribeResponse:
    """Build a response with the same error for every group."""
    return ShareGroupDescribeResponse(groups=[failed(group_id, code, message) for group_id in request.group_ids])
