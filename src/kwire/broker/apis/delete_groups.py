"""DeleteGroups (api key 42), versions 0 to 3: delete empty groups with their offsets.

    3  error messages

Source: kafka.server.KafkaApis.handleDeleteGroupsRequest 3.9.1.
"""

from __future__ import annotations

from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.errors import BrokerError
from kwire.internal_topics.names import GROUPS_TOPIC
from kwire.messages import DeleteGroupsRequest, DeleteGroupsResponse
from kwire.messages.delete_groups_response import DeletableGroupResult
from kwire.protocol.error_codes import ErrorCode


def handle(node: Node, context: RequestContext, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    """Delete each group."""
    return DeleteGroupsResponse(
        results=[delete(node, context, group_id) for group_id in dict.fromkeys(request.groups_names)]
    )


def delete(node: Node, context: RequestContext, group_id: str) -> DeletableGroupResult:
    """Delete one group."""
    try:
        node.authorize(context, Operation.DELETE, ResourceType.GROUP, group_id)
        node.check_coordinator(GROUPS_TOPIC, group_id)
        node.groups.delete(group_id)
    except BrokerError as error:
        if error.code == ErrorCode.GROUP_ID_NOT_FOUND or node.groups.store.is_share_group(group_id):  # as in Kafka
            return DeletableGroupResult(group_id=group_id, error_code=error.code)
        return DeletableGroupResult(group_id=group_id, error_code=error.code, error_message=error.what)
    return DeletableGroupResult(group_id=group_id)


def error_response(request: DeleteGroupsRequest, code: ErrorCode, message: str) -> DeleteGroupsResponse:
    """Build a response with the same error for every group."""
    return DeleteGroupsResponse(
        results=[
            DeletableGroupResult(group_id=group_id, error_code=int(code), error_message=message)
            for group_id in dict.fromkeys(request.groups_names)
        ]
    )
