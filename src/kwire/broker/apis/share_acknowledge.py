"""ShareAcknowledge (api key 79), versions 1 and 2: acknowledge records of a share session without fetching (KIP-932).

    2  renewal of locks (KIP-1222)

Records are accepted, released, rejected or, from version 2 on, kept for longer. Epoch -1 ends the session. Version 0
was of Kafka 4.0 only.

Source: kafka.server.KafkaApis.handleShareAcknowledgeRequest 4.4.0.
"""

from __future__ import annotations

from uuid import UUID

from kwire.broker.apis.steps.current_leaders import current_leader, endpoints_of
from kwire.broker.apis.steps.share_requests import RENEW_VERSION, acknowledge, check_member, close_session
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.broker.shares.sessions import FINAL_EPOCH, INITIAL_EPOCH
from kwire.messages import ShareAcknowledgeRequest, ShareAcknowledgeResponse
from kwire.messages.share_acknowledge_response import ShareAcknowledgeTopicResponse
from kwire.protocol.error_codes import ErrorCode, refusal

LEADER_ERRORS = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


def handle(node: Node, context: RequestContext, request: ShareAcknowledgeRequest) -> ShareAcknowledgeResponse:
    """Acknowledge the records."""
    group_id, member_id = check_member(node, context, request.group_id, request.member_id)
    if request.share_session_epoch == INITIAL_EPOCH:
        raise refusal(ErrorCode.INVALID_SHARE_SESSION_EPOCH, "The share session epoch is invalid.")
    node.share_sessions.proceed(group_id, member_id, request.share_session_epoch)
    results = acknowledge(
        node,
        context,
        group_id,
        member_id,
        [
            (topic.topic_id, each.partition_index, each.acknowledgement_batches)
            for topic in request.topics
            for each in topic.partitions
        ],
        is_renewal=context.api_version >= RENEW_VERSION and request.is_renew_ack,
    )
    if request.share_session_epoch == FINAL_EPOCH:
        close_session(node, group_id, member_id)
    cls = ShareAcknowledgeResponse
    lock_ms = node.coordinators.share_partitions.limits(group_id).lock_duration_ms
    topics: dict[UUID, ShareAcknowledgeTopicResponse] = {}
    leaders = set()
    for (topic_id, index), (code, message) in results.items():
        data = cls.PartitionData(partition_index=index, error_code=int(code), error_message=message)
        partition = node.topics.with_id(topic_id)
        if code in LEADER_ERRORS and partition is not None:
            leader_id, epoch = current_leader(partition.partitions[index])
            data.current_leader = cls.LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=epoch)
            leaders.add(leader_id)
        topic = topics.get(topic_id)
        if topic is None:
            topic = topics[topic_id] = ShareAcknowledgeTopicResponse(topic_id=topic_id, partitions=[])
        topic.partitions.append(data)
    return cls(
        acquisition_lock_timeout_ms=lock_ms if context.api_version >= RENEW_VERSION else 0,
        responses=list(topics.values()),
        node_endpoints=[
            cls.NodeEndpoint(node_id=member.node_id, host=host, port=port, rack=member.rack)
            for member, host, port in endpoints_of(node, context, leaders)
        ],
    )


def error_response(request: ShareAcknowledgeRequest, code: ErrorCode, message: str) -> ShareAcknowledgeResponse:
    """Build the response to a request that fails as a whole, without a message, as in Kafka."""
    return ShareAcknowledgeResponse(error_code=int(code))
