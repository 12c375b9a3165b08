"""Heartbeat (api key 12), versions 0 to 4: keep a member of the classic protocol in its group.

    1  throttle time    3  static members (KIP-345)

REBALANCE_IN_PROGRESS asks the member to join again.

Source: kafka.server.KafkaApis.handleHeartbeatRequest 3.9.1.
"""

from __future__ import annotations

from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.internal_topics.names import GROUPS_TOPIC
from kwire.messages import HeartbeatRequest, HeartbeatResponse


def handle(node: Node, context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
    """Record the heartbeat of a member."""
    node.authorize(context, Operation.READ, ResourceType.GROUP, request.group_id)
    node.check_coordinator(GROUPS_TOPIC, request.group_id)
    node.groups.heartbeat(request.group_id, request.member_id, request.group_instance_id, request.generation_id)
    return HeartbeatResponse()
