"""What OffsetCommit and TxnOffsetCommit do alike: look at each partition, commit what is fine as one, answer in order.

Source: kafka.server.KafkaApis.handleOffsetCommitRequest, handleTxnOffsetCommitRequest 3.9.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.errors import BrokerError
from kwire.identifiers import TopicPartition
from kwire.messages import OffsetCommitValue
from kwire.protocol.error_codes import ErrorCode

__all__ = ["Commits", "Outcome", "answer_topics", "check_partition", "commit_each", "of_all"]

Outcome = dict[TopicPartition, int]
Commits = list[tuple[TopicPartition, OffsetCommitValue]]


def commit_each(
    node: Node,
    context: RequestContext,
    request: Any,
    *,
    by_id: bool,
    value_of: Callable[[Any], OffsetCommitValue],
    commit: Callable[[Commits], None],
) -> Outcome:
    """Error codes of a request's partitions after commit() had those that are fine.

    by_id: topics are named by their ids; their names are filled in. value_of: what is kept of a partition.
    """
    if by_id:
        for topic in request.topics:
            found = node.topics.with_id(topic.topic_id)
            topic.name = found.name if found is not None else ""
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


def check_partition(node: Node, context: RequestContext, name: str, index: int, unknown_topic: ErrorCode) -> ErrorCode:
    """Whether the sender may commit for the partition, and there is one."""
    if not name:
        return unknown_topic
    if not node.may(context, Operation.READ, ResourceType.TOPIC, name):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if node.topics.partition(name, index) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE


def of_all(request: Any, code: ErrorCode) -> Outcome:
    """The same code for all partitions of a request."""
    return {(topic.name, each.partition_index): int(code) for topic in request.topics for each in topic.partitions}


def answer_topics(request: Any, outcome: Outcome, topic_class: Any, partition_class: Any) -> list[Any]:
    """The topics of a response: the outcome in the request's order."""
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
