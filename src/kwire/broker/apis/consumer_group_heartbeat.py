"""ConsumerGroupHeartbeat (api key 68), versions 0 and 1: join, stay in, change or leave a group, with its assignment.

    1  regular expressions (KIP-848), member ids made by the client (KIP-1082)

group.coordinator.rebalance.protocols without "consumer" makes it UNSUPPORTED_VERSION, as in Kafka.
Source: kafka.server.KafkaApis.handleConsumerGroupHeartbeat 4.0.
"""

from __future__ import annotations

from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from kwire.protocol.error_codes import ErrorCode, refusal


def handle(
    node: Node, context: RequestContext, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse:
    check_enabled(node)

    def may_see(topic: str) -> bool:
        return node.may(context, Operation.DESCRIBE, ResourceType.TOPIC, topic)

    if not node.may(context, Operation.READ, ResourceType.GROUP, request.group_id):
        raise refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED, f"no access to group {request.group_id}")
    if not all(may_see(topic) for topic in request.subscribed_topic_names or ()):
        raise refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "no access to a topic that is subscribed to")
    response: ConsumerGroupHeartbeatResponse = node.groups.consumer_heartbeat(context, request, may_see)
    return response


def check_enabled(node: Node) -> None:
    """Raises BrokerError: UNSUPPORTED_VERSION."""
    protocols = node.settings.group_coordinator_rebalance_protocols.split(",")
    if "consumer" not in [protocol.strip().lower() for protocol in protocols]:
        raise refusal(ErrorCode.UNSUPPORTED_VERSION, "the consumer protocol is not enabled")
