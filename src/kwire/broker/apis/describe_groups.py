"""DescribeGroups (api key 15), versions 0 to 6: the state and members of classic groups.

    1  throttle time    3  authorized operations    4  static members (KIP-345)    6  GROUP_ID_NOT_FOUND with a message

A missing group, or one of the consumer protocol, has the state Dead. Member metadata is returned only in the state
Stable.

Source: kafka.server.KafkaApis.handleDescribeGroupsRequest 3.9.1; GroupMetadataManager.describeGroups.
"""

from __future__ import annotations

from kwire.broker.authorization import NO_OPERATIONS, Operation, ResourceType, operations_mask
from kwire.broker.context import RequestContext
from kwire.broker.groups.classic_group import ClassicGroup, ClassicState
from kwire.broker.groups.store import GroupStore
from kwire.broker.node import Node
from kwire.internal_topics.names import GROUPS_TOPIC
from kwire.messages import DescribeGroupsRequest, DescribeGroupsResponse
from kwire.messages.describe_groups_response import DescribedGroup, DescribedGroupMember
from kwire.protocol.error_codes import ErrorCode

NOT_FOUND_VERSION = 6
DEAD = "Dead"
GROUP_OPERATIONS = [Operation.READ, Operation.DELETE, Operation.DESCRIBE]


def handle(node: Node, context: RequestContext, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    """Describe each group."""
    response = DescribeGroupsResponse()
    for group_id in request.groups:
        if not node.may(context, Operation.DESCRIBE, ResourceType.GROUP, group_id):
            response.groups.append(failed(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED))
            continue
        if not node.coordinates(GROUPS_TOPIC, group_id):
            response.groups.append(failed(group_id, ErrorCode.NOT_COORDINATOR))
            continue
        described = describe(node.groups.store, group_id, context.api_version)
        if request.include_authorized_operations and not described.error_code:
            described.authorized_operations = allowed_operations(node, context, group_id)
        response.groups.append(described)
    return response


def allowed_operations(node: Node, context: RequestContext, group_id: str) -> int:
    """Return the operations on a group that the client is authorized for, as bits."""
    return operations_mask([op for op in GROUP_OPERATIONS if node.may(context, op, ResourceType.GROUP, group_id)])


def describe(store: GroupStore, group_id: str, version: int) -> DescribedGroup:
    """Describe one group."""
    group = store.find(group_id)
    if not isinstance(group, ClassicGroup):
        described = DescribedGroup(group_id=group_id, group_state=DEAD, authorized_operations=NO_OPERATIONS)
        if version >= NOT_FOUND_VERSION:
            described.error_code = int(ErrorCode.GROUP_ID_NOT_FOUND)
            problem = "is not a classic group" if store.has(group_id) else "not found"
            described.error_message = f"Group {group_id} {problem}."
        return described
    stable = group.state is ClassicState.STABLE
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state,
        protocol_type=group.protocol_type or "",
        protocol_data=group.protocol_name or "" if stable else "",
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(group.protocol_name) if stable else b"",
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
        authorized_operations=NO_OPERATIONS,
    )


def failed(group_id: str, code: ErrorCode) -> DescribedGroup:
    """Build the response for a group that the client may not describe."""
    return DescribedGroup(group_id=group_id, error_code=int(code), authorized_operations=NO_OPERATIONS)


def error_response(request: DescribeGroupsRequest, code: ErrorCode, message: str) -> DescribeGroupsResponse:
    """Build a response with the same error for every group."""
    return DescribeGroupsResponse(groups=[failed(group_id, code) for group_id in request.groups])
