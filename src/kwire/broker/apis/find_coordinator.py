"""FindCoordinator (api key 10), versions 0 to 6: find the coordinator of a group or transactional id.

    1  transactional ids, error message    4  several keys (KIP-699)    6  share groups

The broker is the only node and coordinates all groups and transactions. Kafka first responds with
COORDINATOR_NOT_AVAILABLE until the internal topic exists; here the topic is created with its first record. Share groups
(key type 2) are not supported.

Source: kafka.server.KafkaApis.handleFindCoordinatorRequest 3.9.1.
"""

from __future__ import annotations

from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.messages import FindCoordinatorRequest, FindCoordinatorResponse
from kwire.protocol.error_codes import ErrorCode

GROUP, TRANSACTION = 0, 1
SEVERAL_KEYS_VERSION = 4
RESOURCES = {
    GROUP: (ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    TRANSACTION: (ResourceType.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
}


def handle(node: Node, context: RequestContext, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    """Return this broker as the coordinator of each key."""
    host, port = node.endpoint(context.listener)
    if context.api_version >= SEVERAL_KEYS_VERSION:
        response = FindCoordinatorResponse()
        for key in request.coordinator_keys:
            code = check(node, context, request.key_type, key)
            coordinator = FindCoordinatorResponse.Coordinator(key=key, error_code=int(code), error_message="")
            coordinator.node_id, coordinator.host, coordinator.port = (
                (node.node_id, host, port) if not code else (-1, "", -1)
            )
            response.coordinators.append(coordinator)
        return response
    code = check(node, context, request.key_type, request.key)
    if code:
        return error_response(request, code, code.name)
    return FindCoordinatorResponse(error_message=code.name, node_id=node.node_id, host=host, port=port)


def check(node: Node, context: RequestContext, key_type: int, key: str) -> ErrorCode:
    """Return NONE, or the error for a key: invalid type or not authorized."""
    if key_type not in RESOURCES:
        return ErrorCode.INVALID_REQUEST
    resource, code = RESOURCES[key_type]
    return ErrorCode.NONE if node.may(context, Operation.DESCRIBE, resource, key) else code


def error_response(request: FindCoordinatorRequest, code: ErrorCode, message: str) -> FindCoordinatorResponse:
    """Build a response with the same error for every key."""
    if not request.coordinator_keys:
        return FindCoordinatorResponse(error_code=int(code), error_message=message, node_id=-1, host="", port=-1)
    return FindCoordinatorResponse(
        coordinators=[
            FindCoordinatorResponse.Coordinator(
                key=key, node_id=-1, host="", port=-1, error_code=int(code), error_message=message
            )
            for key in request.coordinator_keys
        ]
    )
