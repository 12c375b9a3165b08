"""Requests for the state of share partitions: what brokers send to the share coordinator.

Source: org.apache.kafka.coordinator.share.ShareCoordinatorService 4.4.0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar
from uuid import UUID

from kwire.broker.authorization import CLUSTER, Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.broker.shares.coordinator import ShareKey
from kwire.errors import BrokerError
from kwire.internal_topics.names import SHARE_STATE_TOPIC

__all__ = ["each_partition"]


class PartitionData(Protocol):
    """A partition in a request."""

    partition: int


Data = TypeVar("Data", bound=PartitionData)
Result = TypeVar("Result")


def each_partition(
    node: Node,
    context: RequestContext,
    group_id: str,
    topics: Sequence[tuple[UUID, Sequence[Data]]],
    serve: Callable[[ShareKey, Data], Result],
    failed: Callable[[Data, BrokerError], Result],
) -> dict[UUID, list[Result]]:
    """Serve each partition of a request; return the results by topic.

    As in Kafka, nothing is served without a group id, or if a topic has no partitions. serve: raises BrokerError.
    """
    results: dict[UUID, list[Result]] = {}
    if not group_id or not all(partitions for _, partitions in topics):
        return results
    for topic_id, partitions in topics:
        for data in partitions:
            key = ShareKey(group_id, topic_id, data.partition)
            try:
                node.authorize(context, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER)
                node.check_coordinator(SHARE_STATE_TOPIC, str(key))
                result = serve(key, data)
            except BrokerError as error:
                result = failed(data, error)
            results.setdefault(topic_id, []).append(result)
    return results
