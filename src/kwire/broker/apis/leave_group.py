"""LeaveGroup (api key 13), versions 0 to 5: remove members from a group of either protocol.

    1  throttle time    3  several members, also by instance id (KIP-345)    5  reason (KIP-800)

Up to version 2 the response has the result of the one member.

Source: kafka.server.KafkaApis.handleLeaveGroupRequest; GroupMetadataManager.classicGroupLeaveToConsumerGroup 4.4.0.
"""

from __future__ import annotations

from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.errors import BrokerError
from kwire.internal_topics.names import GROUPS_TOPIC
from kwire.messages import LeaveGroupRequest, LeaveGroupResponse
from kwire.protocol.error_codes import ErrorCode

MEMBERS_VERSION = 3


def handle(node: Node, context: RequestContext, request: LeaveGroupRequest) -> LeaveGroupResponse:
    """Remove the members."""
    node.authorize(context, Operation.READ, ResourceType.GROUP, request.group_id)
    node.check_coordinator(GROUPS_TOPIC, request.group_id)
    one = context.api_version < MEMBERS_VERSION
    if one:
        request.members = [LeaveGroupRequest.MemberIdentity(member_id=request.member_id)]
    try:
        response: LeaveGroupResponse = node.groups.leave(request)
    except BrokerError as error:
        if error.code != ErrorCode.UNKNOWN_MEMBER_ID:
            raise
        response = LeaveGroupResponse(
            members=[
                LeaveGroupResponse.MemberResponse(
                    member_id=each.member_id, group_instance_id=each.group_instance_id, error_code=error.code
                )
                for each in request.members
            ]
        )
    if one:
        return LeaveGroupResponse(error_code=response.members[0].error_code)
    return response
