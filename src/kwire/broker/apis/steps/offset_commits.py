"""Common part of OffsetCommit and TxnOffsetCommit: check each partition, commit the valid ones together, respond.

Source: kafka.server.KafkaApis.handleOffsetCommitRequest, handleTxnOffsetCommitRequest 3.9.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar
from uuid import UUID

from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.errors import BrokerError
from kwire.identifiers import TopicPartition
from kwire.messages import OffsetCommitValue
from kwire.protocol.error_codes import ErrorCode

__all__ = ["Commits", "Outcome", "check_partition", "commit_each", "commit_value", "response_topics", "same_error"]

Outcome = dict[TopicPartition, int]
"""Error codes by partition."""
Commits = list[tuple[TopicPartition, OffsetCommitValue]]


class CommitPartition(Protocol):
    """A partition in a request of either API."""

    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    committed_metadata: str | None


Partition = TypeVar("Partition", bound=CommitPartition)
PartitionCo = TypeVar("PartitionCo", bound=CommitPartition, covariant=True)
Topic = TypeVar("Topic")


class CommitTopic(Protocol[PartitionCo]):
    """A topic in a request of either API."""

    name: str
    topic_id: UUID

    @property
    def partitions(self) -> Sequence[PartitionCo]:
        """The partitions of the topic."""


class CommitRequest(Protocol[PartitionCo]):
    """A request of either API."""

    @property
    def topics(self) -> Sequence[CommitTopic[PartitionCo]]:
        """The topics of the request."""


def commit_each(
    node: Node,
    context: RequestContext,
    request: CommitRequest[Partition],
    *,
    by_id: bool,
    value_of: Callable[[Partition], OffsetCommitValue],
    commit: Callable[[Commits], None],
) -> Outcome:
    """Check each partition and commit the valid ones; returns the error code of each.

    by_id: topics have ids; their names are filled in. value_of: builds the record value of a partition. commit: may
    raise BrokerError, which is then the error of the valid partitions.
    """
    if by_id:
        for topic in request.topics:
            known = node.topics.with_id(topic.topic_id)
            topic.name = known.name if known is not None else ""
    unknown = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    outcome: Outcome = {}
    commits: Commits = []
    for topic in request.topics:
        for partition in topic.partitions:
            which = (topic.name, partition.partition_index)
            code = check_partition(node, context, *which, unknown_topic=unknown)
            if code is ErrorCode.NONE and node.groups.offsets.is_too_large(partition.committed_metadata):
                code = ErrorCode.OFFSET_METADATA_TOO_LARGE
            outcome[which] = int(code)
            if code is ErrorCode.NONE:
                commits.append((which, value_of(partition)))
    if commits:
        try:
            commit(commits)
        except BrokerError as error:
            outcome.update((which, error.code) for which, _ in commits)
    return outcome


def commit_value(partition: CommitPartition, commit_timestamp: int, expire_timestamp: int = -1) -> OffsetCommitValue:
    """Build the record value of a partition's commit. Timestamps in ms; expire_timestamp: -1 without."""
    return OffsetCommitValue(
        offset=partition.committed_offset,
        leader_epoch=partition.committed_leader_epoch,
        metadata=partition.committed_metadata or "",
        commit_timestamp=commit_timestamp,
        expire_timestamp=expire_timestamp,
    )


def check_partition(node: Node, context: RequestContext, name: str, index: int, unknown_topic: ErrorCode) -> ErrorCode:
    """Return NONE, or the error for a partition that is unknown or that the client may not commit to."""
    if not name:
        return unknown_topic
    if not node.may(context, Operation.READ, ResourceType.TOPIC, name):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if node.topics.partition(name, index) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE


def same_error(request: CommitRequest[Partition], code: ErrorCode) -> Outcome:
    """Return the same error code for all partitions of a request."""
    return {(topic.name, each.partition_index): int(code) for topic in request.topics for each in topic.partitions}


def response_topics(
    request: CommitRequest[Partition],
    outcome: Outcome,
    topic_class: Callable[..., Topic],
    partition_class: Callable[..., object],
) -> list[Topic]:
    """Build the topics of a response, in the order of the request."""
    return [
        topic_class(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[
                partition_class(
                    partition_index=each.partition_index, error_code=outcome[topic.name, each.partition_index]
                )
                for each in topic.partitions
            ],
        )
        for topic in request.topics
    ]
