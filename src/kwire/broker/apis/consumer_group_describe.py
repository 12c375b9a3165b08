"""ConsumerGroupDescribe (api key 69), versions 0 and 1: groups of the consumer protocol, their members and assignments.

    1  whether a member uses the classic protocol (KIP-1099)

A group with a topic that the client may not describe is TOPIC_AUTHORIZATION_FAILED as a whole (KIP-848).

Source: kafka.server.KafkaApis.handleConsumerGroupDescribe 4.0; ConsumerGroup.asDescribedGroup.
"""

from __future__ import annotations

from collections.abc import Iterable

from kwire.broker.apis.consumer_group_heartbeat import check_enabled
from kwire.broker.apis.describe_groups import allowed_operations
from kwire.broker.authorization import NO_OPERATIONS, Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.groups.consumer_group import preferred_assignor
from kwire.broker.node import Node
from kwire.errors import BrokerError
from kwire.internal_topics.group_members import AssignedPartitions
from kwire.internal_topics.group_members import Member as StoredMember
from kwire.internal_topics.names import GROUPS_TOPIC
from kwire.messages import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from kwire.messages.consumer_group_describe_response import Assignment as AssignmentMessage
from kwire.messages.consumer_group_describe_response import DescribedGroup, Member
from kwire.protocol.error_codes import ErrorCode, refusal

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1


def handle(node: Node, context: RequestContext, request: ConsumerGroupDescribeRequest) -> ConsumerGroupDescribeResponse:
    """Describe each group."""
    check_enabled(node)
    response = ConsumerGroupDescribeResponse()
    for group_id in request.group_ids:
        try:
            described = describe(node, context, group_id)
            if request.include_authorized_operations:
                described.authorized_operations = allowed_operations(node, context, group_id)
        except BrokerError as error:
            described = failed(group_id, ErrorCode(error.code), error.what)
        response.groups.append(described)
    return response


def describe(node: Node, context: RequestContext, group_id: str) -> DescribedGroup:
    """Describe one group. Raises BrokerError."""
    node.authorize(context, Operation.DESCRIBE, ResourceType.GROUP, group_id)
    if not group_id:
        raise refusal(ErrorCode.INVALID_GROUP_ID, "")
    node.check_coordinator(GROUPS_TOPIC, group_id)
    group = node.groups.store.consumer_group(group_id)
    described = DescribedGroup(
        group_id=group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=preferred_assignor(group.members.values(), node.groups.consumers.default_assignor()),
        members=[describe_member(node, member) for member in group.members.values()],
        authorized_operations=NO_OPERATIONS,
    )
    topics = {name for member in described.members for name in member.subscribed_topic_names}
    for member in described.members:
        for assignment in (member.assignment, member.target_assignment):
            topics.update(topic.topic_name for topic in assignment.topic_partitions)
    if not all(node.may(context, Operation.DESCRIBE, ResourceType.TOPIC, topic) for topic in topics):
        raise refusal(
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            "The group has described topic(s) that the client is not authorized to describe.",
        )
    return described


def describe_member(node: Node, member: StoredMember) -> Member:
    """Describe one member."""
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topics),
        subscribed_topic_regex=member.subscribed_regex,
        assignment=to_message(node, member.assigned),
        target_assignment=to_message(node, member.target or ()),
        member_type=CLASSIC_MEMBER if member.uses_classic_protocol else CONSUMER_MEMBER,
    )


def to_message(node: Node, assignment: Iterable[AssignedPartitions]) -> AssignmentMessage:
    """Convert an assignment, with topic names; deleted topics are omitted."""
    return AssignmentMessage(
        topic_partitions=[
            ConsumerGroupDescribeResponse.TopicPartitions(
                topic_id=topic.topic_id, topic_name=topic.name, partitions=sorted(each.partitions)
            )
            for each in assignment
            if each.partitions and each.topic_id and (topic := node.topics.with_id(each.topic_id)) is not None
        ]
    )


def failed(group_id: str, code: ErrorCode, what: str) -> DescribedGroup:
    """Build the response for a group with an error."""
    return DescribedGroup(
        group_id=group_id, error_code=int(code), error_message=what or None, authorized_operations=NO_OPERATIONS
    )


def error_response(
    request: ConsumerGroupDescribeRequest, code: ErrorCode, message: str
) -> ConsumerGroupDescribeResponse:
    """Build a response with the same error for every group."""
    return ConsumerGroupDescribeResponse(groups=[failed(group_id, code, message) for group_id in request.group_ids])
