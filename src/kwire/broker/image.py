"""What the metadata log says, applied record by record: the same code at start and while the broker runs.

    TopicRecord, PartitionRecord, PartitionChangeRecord, RemoveTopicRecord     topics
    ConfigRecord                                                              settings of topics and brokers
    FeatureLevelRecord                                                        features
    ProducerIdsRecord                                                         the next block of producer ids
    RegisterBrokerRecord, BrokerRegistrationChangeRecord, UnregisterBroker    brokers

Other owners of state (access control, credentials, quotas) subscribe to their record types; what was read before they
did is given to them then. Source: org.apache.kafka.image.MetadataDelta.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kwire.broker.topics import Partition, Topic, TopicRegistry
from kwire.messages.base import Message

__all__ = ["BROKER_RESOURCE", "CLIENT_METRICS_RESOURCE", "NO_LEADER", "TOPIC_RESOURCE", "MetadataImage"]

TOPIC_RESOURCE, BROKER_RESOURCE, CLIENT_METRICS_RESOURCE = 2, 4, 16
"""ConfigRecord.resource_type. Source: org.apache.kafka.common.config.ConfigResource."""
NO_LEADER, NO_LEADER_CHANGE = -1, -2


class MetadataImage:
    """The state that the records make.

    features: name -> level. configs: (resource type, name) -> settings. brokers: id -> its last registration.
    topic_watchers: told of a topic that has got a partition (True), or is gone (False).
    """

    def __init__(self) -> None:
        self.topics = TopicRegistry()
        self.features: dict[str, int] = {}
        self.configs: dict[tuple[int, str], dict[str, str]] = {}
        self.brokers: dict[int, Any] = {}
        self.next_producer_id = 0
        self.topic_watchers: list[Callable[[Topic, bool], object]] = []
        self._kept: dict[str, list[Any]] = {}
        self._subscribers: dict[str, Callable[[Any], object]] = {}

    def apply(self, record: Message) -> None:
        """Take one record in. Records of a kind that nobody knows are kept for a later subscriber."""
        name = type(record).__name__
        method = getattr(self, f"_apply_{name}", None)
        if method is not None:
            method(record)
        elif name in self._subscribers:
            self._subscribers[name](record)
        elif name != "NoOpRecord":
            self._kept.setdefault(name, []).append(record)

    def subscribe(self, name: str, callback: Callable[[Any], object]) -> None:
        """Give records of that message to a function: those there were, then those to come."""
        self._subscribers[name] = callback
        for record in self._kept.pop(name, ()):
            callback(record)

    # Topics

    def _apply_TopicRecord(self, record: Any) -> None:  # noqa: N802  # named for its record
        configs = self.configs.setdefault((TOPIC_RESOURCE, record.name), {})
        self.topics.add(Topic(name=record.name, topic_id=record.topic_id, configs=configs))

    def _apply_RemoveTopicRecord(self, record: Any) -> None:  # noqa: N802
        topic = self.topics.with_id(record.topic_id)
        if topic is not None:
            self.topics.remove(topic)
            self.configs.pop((TOPIC_RESOURCE, topic.name), None)
            self._tell_watchers(topic, exists=False)

    def _tell_watchers(self, topic: Topic, *, exists: bool) -> None:
        for watch in self.topic_watchers:
            watch(topic, exists)

    def _apply_PartitionRecord(self, record: Any) -> None:  # noqa: N802
        topic = self.topics.with_id(record.topic_id)
        if topic is None:
            return
        topic.partitions[record.partition_id] = Partition(
            topic=topic,
            index=record.partition_id,
            leader=record.leader,
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
        )
        self._tell_watchers(topic, exists=True)

    def _apply_PartitionChangeRecord(self, record: Any) -> None:  # noqa: N802
        topic = self.topics.with_id(record.topic_id)
        partition = None if topic is None else topic.partitions.get(record.partition_id)
        if partition is None:
            return
        partition.partition_epoch += 1
        if record.leader != NO_LEADER_CHANGE:
            partition.leader = record.leader
            partition.leader_epoch += 1

    # The rest

    def _apply_ConfigRecord(self, record: Any) -> None:  # noqa: N802
        configs = self.configs.setdefault((record.resource_type, record.resource_name), {})
        if record.value is None:
            configs.pop(record.name, None)
            if not configs and record.resource_type == CLIENT_METRICS_RESOURCE:
                del self.configs[record.resource_type, record.resource_name]
        else:
            configs[record.name] = record.value

    def _apply_FeatureLevelRecord(self, record: Any) -> None:  # noqa: N802
        if record.feature_level:
            self.features[record.name] = record.feature_level
        else:
            self.features.pop(record.name, None)

    def _apply_ProducerIdsRecord(self, record: Any) -> None:  # noqa: N802
        self.next_producer_id = record.next_producer_id

    def _apply_RegisterBrokerRecord(self, record: Any) -> None:  # noqa: N802
        self.brokers[record.broker_id] = record

    def _apply_BrokerRegistrationChangeRecord(self, record: Any) -> None:  # noqa: N802
        broker = self.brokers.get(record.broker_id)
        if broker is not None and broker.broker_epoch == record.broker_epoch and record.fenced:
            broker.fenced = record.fenced > 0

    def _apply_UnregisterBrokerRecord(self, record: Any) -> None:  # noqa: N802
        self.brokers.pop(record.broker_id, None)
