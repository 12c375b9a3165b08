"""ShareGroupHeartbeat (api key 76), version 1: join, stay in or leave a share group; get the assignment (KIP-932).

UNSUPPORTED_VERSION if the feature share.version is 0, as in Kafka. Version 0 was of Kafka 4.0 only.

Source: kafka.server.KafkaApis.handleShareGroupHeartbeat 4.4.0.
"""

from __future__ import annotations

from kwire.broker.apis.steps.share_requests import check_member
from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.errors import BrokerError
from kwire.internal_topics.names import GROUPS_TOPIC
from kwire.messages import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from kwire.protocol.error_codes import ErrorCode, refusal


def handle(node: Node, context: RequestContext, request: ShareGroupHeartbeatRequest) -> ShareGroupHeartbeatResponse:
    """Process a member's heartbeat; returns its assignment."""
    try:
        check_member(node, context, request.group_id, request.member_id)
        for topic in request.subscribed_topic_names or ():
            if not node.may(context, Operation.DESCRIBE, ResourceType.TOPIC, topic):
                raise refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed.")
    except BrokerError as error:  # without a message, unlike the coordinator's errors
        return ShareGroupHeartbeatResponse(error_code=error.code)
    node.check_coordinator(GROUPS_TOPIC, request.group_id)
    response: ShareGroupHeartbeatResponse = node.groups.shares.heartbeat(context, request)
    return response
