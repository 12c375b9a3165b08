"""JoinGroup (api key 11), versions 0 to 9: become a member of a group's next generation.

    1  rebalance timeout of its own (version 0: the session timeout)    2  throttle time    4  members without an id are
    given one and have to come back with it (KIP-394)    5  static members (KIP-345)    7  protocol type, null names
    8  reason (KIP-800)    9  skip assignment (KIP-814)

The answer comes when the generation begins. A group of the consumer protocol takes members of this one too, where
group.consumer.migration.policy made it so. Source: kafka.server.KafkaApis.handleJoinGroupRequest 3.9.1.
"""

from __future__ import annotations

from collections.abc import Awaitable

from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.groups.answers import LaterAnswer
from kwire.broker.node import Node
from kwire.errors import BrokerError
from kwire.messages import JoinGroupRequest, JoinGroupResponse
from kwire.protocol.error_codes import ErrorCode, refusal

NULL_NAMES_VERSION = 7


def handle(
    node: Node, context: RequestContext, request: JoinGroupRequest
) -> JoinGroupResponse | Awaitable[JoinGroupResponse]:
    if context.api_version == 0:
        request.rebalance_timeout_ms = request.session_timeout_ms
    later: LaterAnswer[JoinGroupResponse] = LaterAnswer()

    def answer(response: JoinGroupResponse) -> None:
        later(fit(response, context.api_version))

    try:
        if not node.may(context, Operation.READ, ResourceType.GROUP, request.group_id):
            raise refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED, f"no access to group {request.group_id}")
        node.groups.join(
            context,
            request,
            answer,
            lambda topic: node.may(context, Operation.DESCRIBE, ResourceType.TOPIC, topic),
        )
    except BrokerError as error:
        return fit(error_response(request, ErrorCode(error.code), error.what), context.api_version)
    return later.response()


def fit(response: JoinGroupResponse, version: int) -> JoinGroupResponse:
    """A protocol that is not chosen is null, for which older versions have the empty text."""
    if not response.protocol_name:
        response.protocol_name = None if version >= NULL_NAMES_VERSION else ""
    return response


def error_response(request: JoinGroupRequest, code: ErrorCode, message: str) -> JoinGroupResponse:
    return JoinGroupResponse(member_id=request.member_id, error_code=int(code))
