"""The log of the group coordinator: the topic `__consumer_offsets`.

Source: kafka.coordinator.group.CoordinatorPartitionWriter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from kwire.broker.coordinator_log import read_topic
from kwire.broker.transactions.metadata import NO_PRODUCER, ProducerIdAndEpoch
from kwire.internal_topics.coordinator_records import decode_group
from kwire.internal_topics.names import GROUPS_TOPIC
from kwire.internal_topics.typed_record import TypedRecord
from kwire.records import BatchBuilder

if TYPE_CHECKING:
    from kwire.broker.clock import Clock
    from kwire.broker.configs.settings import Settings
    from kwire.broker.topics import Topic, TopicRegistry

__all__ = ["OffsetsTopic"]


class OffsetsTopic:
    """The topic `__consumer_offsets`, created with the first record.

    create_missing: returns a topic, created if needed.
    """

    def __init__(
        self, topics: TopicRegistry, settings: Settings, clock: Clock, create_missing: Callable[[str], Topic]
    ) -> None:
        self._topics, self._settings, self._clock = topics, settings, clock
        self._create_missing = create_missing

    def partition_count(self) -> int:
        """See OffsetsLog."""
        topic = self._topics.get(GROUPS_TOPIC)
        return self._settings.offsets_topic_num_partitions if topic is None else len(topic.partitions)

    def append(
        self, partition: int, records: Sequence[tuple[bytes, bytes | None]], producer: ProducerIdAndEpoch = NO_PRODUCER
    ) -> int:
        """See OffsetsLog."""
        topic = self._create_missing(GROUPS_TOPIC)
        now_ms = self._clock.now_ms()
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

    def replay(self, partition: int | None = None) -> Iterator[TypedRecord]:
        """See OffsetsLog."""
        return read_topic(self._topics.get(GROUPS_TOPIC), decode_group, partition)
