"""SyncGroup (api key 14), versions 0 to 5: distribute the leader's assignment to the members of a generation.

    1  throttle time    3  static members (KIP-345)    5  protocol type and name, required (KIP-559)

The response to a follower is sent when the leader's assignment has been written.

Source: kafka.server.KafkaApis.handleSyncGroupRequest 3.9.1.
"""

from __future__ import annotations

from collections.abc import Awaitable

from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.groups.responses import PendingResponse
from kwire.broker.node import Node
from kwire.internal_topics.names import GROUPS_TOPIC
from kwire.messages import SyncGroupRequest, SyncGroupResponse
from kwire.protocol.error_codes import ErrorCode, refusal

NAMES_VERSION = 5


def handle(
    node: Node, context: RequestContext, request: SyncGroupRequest
) -> SyncGroupResponse | Awaitable[SyncGroupResponse]:
    """Submit or await the assignment of the generation."""
    if context.api_version >= NAMES_VERSION and (request.protocol_type is None or request.protocol_name is None):
        raise refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "protocol type and name are required")
    node.authorize(context, Operation.READ, ResourceType.GROUP, request.group_id)
    node.check_coordinator(GROUPS_TOPIC, request.group_id)
    pending: PendingResponse[SyncGroupResponse] = PendingResponse()
    node.groups.sync(request, pending)
    return pending.response()
