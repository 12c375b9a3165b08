"""JoinGroup (api key 11), versions 0 to 9: join the next generation of a group of the classic protocol.

    1  rebalance timeout (version 0: session timeout)    2  throttle time    4  a member without an id gets one and has
    to join again with it (KIP-394)    5  static members (KIP-345)    7  protocol type, nullable protocol name
    8  reason (KIP-800)    9  skip assignment (KIP-814)

The response is sent when the generation begins. A group of the consumer protocol accepts classic members if
group.consumer.migration.policy allows it.

Source: kafka.server.KafkaApis.handleJoinGroupRequest 3.9.1.
"""

from __future__ import annotations

from collections.abc import Awaitable

from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.groups.responses import PendingResponse
from kwire.broker.node import Node
from kwire.errors import BrokerError
from kwire.internal_topics.names import GROUPS_TOPIC
from kwire.messages import JoinGroupRequest, JoinGroupResponse
from kwire.protocol.error_codes import ErrorCode

NULL_NAMES_VERSION = 7


def handle(
    node: Node, context: RequestContext, request: JoinGroupRequest
) -> JoinGroupResponse | Awaitable[JoinGroupResponse]:
    """Join the group; the response follows when the next generation begins."""
    if context.api_version == 0:
        request.rebalance_timeout_ms = request.session_timeout_ms
    pending: PendingResponse[JoinGroupResponse] = PendingResponse()

    def respond(response: JoinGroupResponse) -> None:
        pending(adapt(response, context.api_version))

    try:
        node.authorize(context, Operation.READ, ResourceType.GROUP, request.group_id)
        node.check_coordinator(GROUPS_TOPIC, request.group_id)
        node.groups.join(
            context,
            request,
            respond,
            lambda topic: node.may(context, Operation.DESCRIBE, ResourceType.TOPIC, topic),
        )
    except BrokerError as error:
        return adapt(error_response(request, ErrorCode(error.code), error.what), context.api_version)
    return pending.response()


def adapt(response: JoinGroupResponse, version: int) -> JoinGroupResponse:
    """Encode the absence of a protocol name: null, or an empty string in versions that are not nullable."""
    if not response.protocol_name:
        response.protocol_name = None if version >= NULL_NAMES_VERSION else ""
    return response


def error_response(request: JoinGroupRequest, code: ErrorCode, message: str) -> JoinGroupResponse:
    """Build an error response, which repeats the member id."""
    return JoinGroupResponse(member_id=request.member_id, error_code=int(code))
