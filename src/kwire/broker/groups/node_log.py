"""The group coordinator of a node: its log `__consumer_offsets`, and notifications of topic changes.

Source: kafka.coordinator.group.CoordinatorPartitionWriter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kwire.broker.coordinator_log import read_topic
from kwire.broker.groups.coordinator import GroupCoordinator
from kwire.broker.groups.store import GroupStore
from kwire.broker.topic_creation import create_missing
from kwire.broker.topics import Topic
from kwire.broker.transactions.metadata import NO_PRODUCER, ProducerIdAndEpoch
from kwire.internal_topics.coordinator_records import decode_group
from kwire.internal_topics.enums import ConfigResource
from kwire.internal_topics.names import GROUPS_TOPIC
from kwire.internal_topics.typed_record import TypedRecord
from kwire.records import BatchBuilder

if TYPE_CHECKING:
    from kwire.broker.node import Node

__all__ = ["NodeOffsetsLog", "open_coordinator", "watch_topics"]


def open_coordinator(node: Node) -> GroupCoordinator:
    """Start the coordinator of a node: read its log and start its timers. Raises LogError.

    The topics' logs must be open. Call `stop()` before they are closed.
    """
    store = GroupStore(
        node.clock,
        node.timers,
        node.settings,
        node.topics,
        NodeOffsetsLog(node),
        lambda group_id: node.cluster.configs_of(ConfigResource.GROUP, group_id),
    )
    coordinator = GroupCoordinator(store)
    coordinator.start()
    return coordinator


def watch_topics(node: Node) -> None:
    """Notify the node's coordinator, which may change, of topics that are created or deleted."""

    def topic_changed(topic: Topic, exists: bool) -> None:
        if exists:
            node.groups.topics_changed()
        elif topic.name != GROUPS_TOPIC:
            node.groups.topics_deleted([topic.name])

    node.topics.observers.append(topic_changed)


class NodeOffsetsLog:
    """The topic `__consumer_offsets`, created with the first record."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def partition_count(self) -> int:
        """See OffsetsLog."""
        topic = self._node.topics.get(GROUPS_TOPIC)
        return self._node.settings.offsets_topic_num_partitions if topic is None else len(topic.partitions)

    def append(
        self, partition: int, records: Sequence[tuple[bytes, bytes | None]], producer: ProducerIdAndEpoch = NO_PRODUCER
    ) -> int:
        """See OffsetsLog."""
        topic = create_missing(self._node, GROUPS_TOPIC)
        now_ms = self._node.clock.now_ms()
        builder = BatchBuilder(
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            base_sequence=0,  # Kafka's coordinator numbers records, with a producer or without
            is_transactional=producer != NO_PRODUCER,
        )
        for key, value in records:
            builder.append(key, value, timestamp=now_ms)
        appended = topic.partitions[partition].append(builder.build(), now_ms=now_ms)
        return appended.first_offset

    def replay(self) -> Iterator[TypedRecord]:
        """See OffsetsLog."""
        return read_topic(self._node.topics.get(GROUPS_TOPIC), decode_group)
