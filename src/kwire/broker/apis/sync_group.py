"""SyncGroup (api key 14), versions 0 to 5: what a member is to have in this generation; the leader says it for all.

    1  throttle time    3  static members (KIP-345)    5  protocol type and name, which then have to be there (KIP-559)

Followers wait until the leader's assignment is written. Source: kafka.server.KafkaApis.handleSyncGroupRequest 3.9.1.
"""

from __future__ import annotations

from collections.abc import Awaitable

from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.groups.answers import LaterAnswer
from kwire.broker.node import Node
from kwire.messages import SyncGroupRequest, SyncGroupResponse
from kwire.protocol.error_codes import ErrorCode, refusal

NAMES_VERSION = 5


def handle(
    node: Node, context: RequestContext, request: SyncGroupRequest
) -> SyncGroupResponse | Awaitable[SyncGroupResponse]:
    if context.api_version >= NAMES_VERSION and (request.protocol_type is None or request.protocol_name is None):
        raise refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "protocol type and name have to be there")
    if not node.may(context, Operation.READ, ResourceType.GROUP, request.group_id):
        raise refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED, f"no access to group {request.group_id}")
    later: LaterAnswer[SyncGroupResponse] = LaterAnswer()
    node.groups.sync(request, later)
    return later.response()
