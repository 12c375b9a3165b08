"""FindCoordinator (api key 10), versions 0 to 6: find the coordinator of a group or transactional id.

    1  transactional ids, error message    4  several keys (KIP-699)    6  share groups

The coordinator is the leader of the partition of `__consumer_offsets`, `__transaction_state` or, for a share partition
(`group:topic id:partition`), `__share_group_state` that holds the key. Kafka first responds with
COORDINATOR_NOT_AVAILABLE until that topic exists. A cluster of several nodes creates it immediately, a single node with
its first record. Share partitions are for brokers, which need CLUSTER_ACTION on the cluster.

Source: kafka.server.KafkaApis.handleFindCoordinatorRequest 3.9.1.
"""

from __future__ import annotations

from kwire.broker.authorization import CLUSTER, Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.errors import BrokerError, Malformed
from kwire.identifiers import parse_uuid
from kwire.internal_topics.names import GROUPS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from kwire.messages import FindCoordinatorRequest, FindCoordinatorResponse
from kwire.protocol.error_codes import MALFORMED, ErrorCode, refusal

GROUP, TRANSACTION, SHARE = 0, 1, 2
SHARE_VERSION = 6
SEVERAL_KEYS_VERSION = 4
SHARE_KEY_PARTS = 3
NOWHERE = (-1, "", -1)
TOPICS = {GROUP: GROUPS_TOPIC, TRANSACTION: TRANSACTIONS_TOPIC, SHARE: SHARE_STATE_TOPIC}
RESOURCES = {
    GROUP: (ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    TRANSACTION: (ResourceType.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
}


def handle(node: Node, context: RequestContext, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    """Return the coordinator of each key. Raises BrokerError for an unknown type of keys."""
    types = {*RESOURCES, SHARE} if context.api_version >= SHARE_VERSION else RESOURCES
    if request.key_type not in types:
        raise refusal(ErrorCode.INVALID_REQUEST, MALFORMED)
    if context.api_version >= SEVERAL_KEYS_VERSION:
        response = FindCoordinatorResponse()
        for key in request.coordinator_keys:
            code, (node_id, host, port) = find(node, context, request.key_type, key)
            response.coordinators.append(
                FindCoordinatorResponse.Coordinator(
                    key=key, error_code=int(code), error_message="", node_id=node_id, host=host, port=port
                )
            )
        return response
    code, (node_id, host, port) = find(node, context, request.key_type, request.key)
    if code:
        return error_response(request, code, code.name)
    return FindCoordinatorResponse(error_message=code.name, node_id=node_id, host=host, port=port)


def find(node: Node, context: RequestContext, key_type: int, key: str) -> tuple[ErrorCode, tuple[int, str, int]]:
    """Return the error for a key, and the id, host and port of its coordinator."""
    code = check(node, context, key_type, key)
    if code:
        return code, NOWHERE
    if node.members.is_single:
        return code, (node.node_id, *node.endpoint(context.listener))
    try:
        leader = node.coordinators.partition_of(TOPICS[key_type], key).state.leader
    except BrokerError:  # the topic cannot be created
        return ErrorCode.COORDINATOR_NOT_AVAILABLE, NOWHERE
    member = node.members.running.get(leader)
    if member is None:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE, NOWHERE
    return code, (leader, *member.endpoint(context.listener))


def check(node: Node, context: RequestContext, key_type: int, key: str) -> ErrorCode:
    """Return NONE, or the error for a key."""
    if key_type == SHARE:
        return check_share_key(node, context, key)
    resource, code = RESOURCES[key_type]
    return ErrorCode.NONE if node.may(context, Operation.DESCRIBE, resource, key) else code


def check_share_key(node: Node, context: RequestContext, key: str) -> ErrorCode:
    """Return NONE, or the error for the key of a share partition: invalid, or the sender is not a broker."""
    if not node.may(context, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER):
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    parts = key.rsplit(":", 2)
    if len(parts) != SHARE_KEY_PARTS or not parts[0] or not parts[2].isdecimal():
        return ErrorCode.INVALID_REQUEST
    try:
        parse_uuid(parts[1])
    except Malformed:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


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
