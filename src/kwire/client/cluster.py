"""What a cluster says of itself: brokers, topics, who leads which partition."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any

from kwire.protocol.error_codes import ErrorCode

__all__ = ["Cluster", "Partition", "Topic", "parse_metadata"]

TopicPartition = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """One partition. leader: node id, -1 without one. leader_epoch: -1 where the broker does not tell."""

    leader: int
    leader_epoch: int = -1
    error_code: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """One topic. topic_id: None before Kafka 2.8. error_code: why its partitions are not known."""

    name: str
    topic_id: uuid.UUID | None
    is_internal: bool
    partitions: dict[int, Partition]
    error_code: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A cluster as one broker saw it at one moment. brokers: node id -> (host, port)."""

    brokers: dict[int, tuple[str, int]]
    controller_id: int = -1
    cluster_id: str | None = None
    topics: dict[str, Topic] = field(default_factory=dict)

    @property
    def leaders(self) -> dict[TopicPartition, int]:
        """(topic, partition) -> node id, for partitions that have a leader."""
        return {
            (name, number): partition.leader
            for name, topic in self.topics.items()
            for number, partition in topic.partitions.items()
            if partition.leader in self.brokers
        }


def parse_metadata(response: Any) -> Cluster:
    """A MetadataResponse of any version."""
    return Cluster(
        brokers={broker.node_id: (broker.host, broker.port) for broker in response.brokers},
        controller_id=response.controller_id,
        cluster_id=response.cluster_id,
        topics={
            topic.name: Topic(
                name=topic.name,
                topic_id=topic.topic_id if topic.topic_id.int else None,
                is_internal=topic.is_internal,
                partitions={
                    each.partition_index: Partition(
                        leader=each.leader_id, leader_epoch=each.leader_epoch, error_code=ErrorCode(each.error_code)
                    )
                    for each in sorted(topic.partitions, key=lambda each: each.partition_index)
                },
                error_code=ErrorCode(topic.error_code),
            )
            for topic in response.topics
        },
    )
