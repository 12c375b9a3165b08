"""Metadata of a cluster: brokers, topics, and the leader of each partition."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kwire.identifiers import TopicPartition
from kwire.protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from kwire.messages import MetadataResponse

__all__ = ["Cluster", "Partition", "Topic", "parse_metadata"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A partition. leader: node id, -1 without a leader. leader_epoch: -1 if the broker does not report it."""

    leader: int
    leader_epoch: int = -1
    error_code: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic. topic_id: None before Kafka 2.8. error_code: the reason if its partitions are unknown."""

    name: str
    topic_id: uuid.UUID | None
    is_internal: bool
    partitions: dict[int, Partition]
    error_code: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Metadata of a cluster, as a broker reported it. brokers: node id -> (host, port)."""

    brokers: dict[int, tuple[str, int]]
    controller_id: int = -1
    cluster_id: str | None = None
    topics: dict[str, Topic] = field(default_factory=dict)

    @property
    def leaders(self) -> dict[TopicPartition, int]:
        """Leaders of the partitions that have one: (topic, partition) -> node id."""
        return {
            (name, number): partition.leader
            for name, topic in self.topics.items()
            for number, partition in topic.partitions.items()
            if partition.leader in self.brokers
        }


def parse_metadata(response: MetadataResponse) -> Cluster:
    """Convert a MetadataResponse of any version."""
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
            if topic.name is not None
        },
    )
