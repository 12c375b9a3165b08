"""OffsetCommit (api key 8), versions 0 to 10: commit a group's offsets.

    1  member and generation, a timestamp for each partition    2  retention for the request, no timestamps (to 4)
    3  throttle time    5  no retention time: it is a broker config (KIP-211)    6  leader epochs (KIP-320)
    7  static members    9  members of the consumer protocol, STALE_MEMBER_EPOCH    10  topic ids (KIP-848)

Kafka stored version 0 in ZooKeeper; here it is a commit without member and generation. Partitions of unknown topics get
an error; the others are committed together.

Source: kafka.server.KafkaApis.handleOffsetCommitRequest 3.9.1; OffsetMetadataManager.commitOffset.
"""

from __future__ import annotations

from kwire.broker.apis.steps.offset_commits import (
    Commits,
    Outcome,
    commit_each,
    commit_value,
    response_topics,
    same_error,
)
from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.groups.offsets import NO_RETENTION
from kwire.broker.node import Node
from kwire.internal_topics.names import GROUPS_TOPIC
from kwire.messages import OffsetCommitRequest, OffsetCommitResponse, OffsetCommitValue
from kwire.messages.offset_commit_request import OffsetCommitRequestPartition
from kwire.protocol.error_codes import ErrorCode

TOPIC_ID_VERSION = 10
NO_TIMESTAMP = -1


def handle(node: Node, context: RequestContext, request: OffsetCommitRequest) -> OffsetCommitResponse:
    """Commit the offsets of each partition."""
    node.authorize(context, Operation.READ, ResourceType.GROUP, request.group_id)
    node.check_coordinator(GROUPS_TOPIC, request.group_id)
    now_ms = node.clock.now_ms()
    outcome = commit_each(
        node,
        context,
        request,
        by_id=context.api_version >= TOPIC_ID_VERSION,
        value_of=lambda partition: to_value(partition, request.retention_time_ms, now_ms),
        commit=lambda commits: commit(node, context, request, commits),
    )
    return respond(request, outcome)


def to_value(partition: OffsetCommitRequestPartition, retention_time_ms: int, now_ms: int) -> OffsetCommitValue:
    """Build the record value of a partition's commit."""
    commit_ms = now_ms if partition.commit_timestamp == NO_TIMESTAMP else partition.commit_timestamp
    expire_ms = NO_RETENTION if retention_time_ms == NO_RETENTION else now_ms + retention_time_ms
    return commit_value(partition, commit_ms, expire_ms)


def commit(node: Node, context: RequestContext, request: OffsetCommitRequest, commits: Commits) -> None:
    """Commit the valid offsets. Raises BrokerError."""
    group = node.groups.offsets.check_commit(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        request.generation_id_or_member_epoch,
        version=context.api_version,
        transactional=False,
    )
    node.groups.restart_session(group, request.member_id)
    node.groups.offsets.commit(request.group_id, commits)


def respond(request: OffsetCommitRequest, outcome: Outcome) -> OffsetCommitResponse:
    """Build the response, in the order of the request."""
    kind = OffsetCommitResponse
    return kind(
        topics=response_topics(request, outcome, kind.OffsetCommitResponseTopic, kind.OffsetCommitResponsePartition)
    )


def error_response(request: OffsetCommitRequest, code: ErrorCode, message: str) -> OffsetCommitResponse:
    """Build a response with the same error for every partition."""
    return respond(request, same_error(request, code))
