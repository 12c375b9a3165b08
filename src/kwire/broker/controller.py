"""Changes of the cluster: topics created and deleted, partitions added, configs altered.

A change is a list of metadata records, written to the metadata log in one batch and applied to the cluster state. Then
the logs are changed to match. All validation is done before the first record is written.

Source: org.apache.kafka.controller.ReplicationControlManager, ConfigurationControlManager 3.9.1.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from kwire.broker.configs.checks import check_topic_configs
from kwire.broker.network.long_requests import complete
from kwire.broker.topics import Topic, check_name
from kwire.identifiers import new_uuid
from kwire.internal_topics.cluster_values import NO_LEADER
from kwire.internal_topics.enums import ConfigResource
from kwire.internal_topics.metadata_records import VersionedMessage
from kwire.internal_topics.metadata_versions import KRAFT_VERSION
from kwire.messages import (
    ConfigRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
)
from kwire.messages.base import Message
from kwire.protocol.error_codes import ErrorCode, refusal

if TYPE_CHECKING:
    from kwire.broker.configs.broker_configs import BrokerConfigs
    from kwire.broker.metadata_log import MetadataLog
    from kwire.broker.replication.members import Members
    from kwire.broker.replication.placement import Placement
    from kwire.broker.topic_logs import TopicLogs
    from kwire.broker.topics import TopicRegistry
    from kwire.internal_topics.cluster_state import ClusterState

__all__ = ["MAX_PARTITIONS", "Controller"]

MAX_PARTITIONS = 10_000
"""Maximum per topic and request: each partition is a directory with several files."""


class Controller:
    """Changes of the cluster. Methods raise BrokerError with Kafka's codes and messages.

    node_id: of the node that has the logs. node_configs: by id of each node, its own among them.
    """

    def __init__(
        self,
        *,
        metadata_log: MetadataLog,
        cluster: ClusterState,
        topics: TopicRegistry,
        topic_logs: TopicLogs,
        configs: BrokerConfigs,
        members: Members,
        placement: Placement,
    ) -> None:
        self.metadata_log, self.cluster, self.topics = metadata_log, cluster, topics
        self.node_id, self.members, self.placement = configs.node_id, members, placement
        self._topic_logs, self._configs = topic_logs, configs
        self.node_configs = {configs.node_id: configs}

    def commit(self, records: Sequence[VersionedMessage]) -> None:
        """Write records to the metadata log and apply them."""
        self.metadata_log.append(records)

    # Topics

    def check_new_topic(
        self, name: str, partition_count: int, configs: Mapping[str, str], replication_factor: int = 1
    ) -> None:
        """Validate a new topic. Raises BrokerError."""
        check_name(name)
        if self.topics.get(name) is not None:
            raise refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        self._check_collision(name)
        if replication_factor < 1:
            raise refusal(ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0.")
        if partition_count < 1:
            raise refusal(
                ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value."
            )
        brokers = len(self.members.all)
        if replication_factor > brokers:
            raise refusal(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"Unable to replicate the partition {replication_factor} time(s): The target replication factor of "
                f"{replication_factor} cannot be reached because only {brokers} broker(s) are registered "
                "or some brokers have all their log directories cordoned.",
            )
        if partition_count > MAX_PARTITIONS:
            raise refusal(
                ErrorCode.POLICY_VIOLATION,
                f"Excessively large number of partitions per request: {partition_count}, at most {MAX_PARTITIONS}",
            )
        self.check_topic_configs(configs)

    def _check_collision(self, name: str) -> None:
        """Reject names that differ in dots and underscores only, which collide in Kafka's metrics."""
        other = self.topics.colliding(name)
        if other is not None:
            raise refusal(
                ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other.name}"
            )

    def check_topic_configs(self, configs: Mapping[str, str]) -> None:
        """Validate the configs of a topic. Raises BrokerError."""
        check_topic_configs(self._configs.settings, configs)

    @property
    def replication_factor(self) -> int:
        """The replication factor of new topics, at most the number of nodes: default.replication.factor."""
        return min(self._configs.settings.default_replication_factor, len(self.members.all))

    def create_topic(
        self,
        name: str,
        partition_count: int,
        configs: Mapping[str, str] | None = None,
        replication_factor: int | None = None,
    ) -> Topic:
        """Create a topic and the logs of its partitions."""
        factor = self.replication_factor if replication_factor is None else replication_factor
        return complete(self.creating_topic(name, partition_count, configs or {}, factor))

    def creating_topic(
        self,
        name: str,
        partition_count: int,
        configs: Mapping[str, str],
        replication_factor: int,
        assignment: Sequence[Sequence[int]] = (),
    ) -> Generator[None, None, Topic]:
        """Create a topic and the logs of its partitions; yields after each log.

        assignment: the replicas of each partition; chosen by default.
        """
        self.check_new_topic(name, partition_count, configs, replication_factor)
        replicas = assignment or self.placement.place(partition_count, replication_factor)
        topic_id = new_uuid()
        records: list[VersionedMessage] = [(TopicRecord(name=name, topic_id=topic_id), 0)]
        records += [(self._config_record(ConfigResource.TOPIC, name, key, value), 0) for key, value in configs.items()]
        records += [(self._partition_record(topic_id, index, each), 1) for index, each in enumerate(replicas)]
        self.commit(records)
        topic = self.topics.get(name)
        assert topic is not None  # its record was just applied
        yield from self._open_logs(topic)
        return topic

    def _open_logs(self, topic: Topic) -> Iterator[None]:
        topic.is_opening = True
        try:
            yield from self._topic_logs.open(topic)
        finally:
            topic.is_opening = False

    def _partition_record(self, topic_id: UUID, index: int, replicas: Sequence[int]) -> Message:
        isr = [each for each in replicas if each in self.members.running]
        return PartitionRecord(
            partition_id=index,
            topic_id=topic_id,
            replicas=list(replicas),
            isr=isr or list(replicas[:1]),
            leader=isr[0] if isr else NO_LEADER,
            leader_epoch=0,
            partition_epoch=0,
            directories=self.members.directories(replicas),
        )

    def delete_topic(self, topic: Topic) -> None:
        """Delete a topic; its files are deleted after file.delete.delay.ms."""
        configs = [(self._config_record(ConfigResource.TOPIC, topic.name, key, None), 0) for key in topic.configs]
        self.commit([*configs, (RemoveTopicRecord(topic_id=topic.topic_id), 0)])
        self._topic_logs.delete(topic)

    def adding_partitions(
        self, topic: Topic, partition_count: int, assignment: Sequence[Sequence[int]] = ()
    ) -> Iterator[None]:
        """Increase the number of partitions of a topic to partition_count; yields after each new log.

        assignment: the replicas of each new partition; chosen by default.
        """
        first = len(topic.partitions)
        factor = min(len(topic.partitions[0].state.replicas), len(self.members.all)) if first else 1
        replicas = assignment or self.placement.place(partition_count - first, factor, first)
        records = [self._partition_record(topic.topic_id, index, each) for index, each in enumerate(replicas, first)]
        self.commit([(record, 1) for record in records])
        yield from self._open_logs(topic)

    def unregister_broker(self, broker_id: int) -> None:
        """Remove another broker's registration, and the broker from in-sync replicas."""
        changes: list[VersionedMessage] = [
            (
                PartitionChangeRecord(
                    partition_id=index,
                    topic_id=topic.topic_id,
                    isr=[each for each in partition.state.isr if each != broker_id],
                ),
                1,
            )
            for topic in self.topics
            for index, partition in topic.partitions.items()
            if broker_id in partition.state.isr and len(partition.state.isr) > 1
        ]
        broker = self.cluster.brokers[broker_id]
        self.commit([(UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=broker.epoch), 0), *changes])

    def unregister_controller(self, controller_id: int) -> None:
        """Remove another controller's registration."""
        self.commit([(UnregisterControllerRecord(controller_id=controller_id), 0)])

    def update_features(self, levels: Mapping[str, int]) -> None:
        """Write the levels of features; kraft.version has no record of this kind, and is not changed."""
        self.commit(
            [
                (FeatureLevelRecord(name=name, feature_level=level), 0)
                for name, level in levels.items()
                if name != KRAFT_VERSION
            ]
        )

    def claim_producer_ids(self, count: int) -> int:
        """Take the next producer ids of the cluster; returns the first of them."""
        first = max(self.cluster.next_producer_id, 0)
        broker = self.cluster.brokers.get(self.node_id)
        record = ProducerIdsRecord(
            broker_id=self.node_id,
            broker_epoch=-1 if broker is None else broker.epoch,
            next_producer_id=first + count,
        )
        self.commit([(record, 0)])
        return first

    # Configs

    def alter_topic_configs(self, topic: Topic, changes: Mapping[str, str | None]) -> None:
        """Set configs of a topic, None to delete them."""
        after = {**topic.configs, **{key: value for key, value in changes.items() if value is not None}}
        after = {key: value for key, value in after.items() if changes.get(key, value) is not None}
        self.check_topic_configs(after)
        self.commit([(self._config_record(ConfigResource.TOPIC, topic.name, k, v), 0) for k, v in changes.items()])
        self._topic_logs.apply_configs(topic)

    def alter_broker_configs(self, name: str, changes: Mapping[str, str | None]) -> None:
        """Set dynamic configs of the broker with an id, or of all brokers ("")."""
        self.commit([(self._config_record(ConfigResource.BROKER, name, k, v), 0) for k, v in changes.items()])
        for configs in self.node_configs.values():
            configs.reload()
        self._topic_logs.apply_default_configs()

    def alter_client_metrics(self, name: str, changes: Mapping[str, str | None]) -> None:
        """Set configs of a client metrics subscription."""
        self.commit([(self._config_record(ConfigResource.CLIENT_METRICS, name, k, v), 0) for k, v in changes.items()])

    def alter_group_configs(self, name: str, changes: Mapping[str, str | None]) -> None:
        """Set configs of a group."""
        self.commit([(self._config_record(ConfigResource.GROUP, name, k, v), 0) for k, v in changes.items()])

    @staticmethod
    def _config_record(kind: ConfigResource, resource: str, key: str, value: str | None) -> Message:
        return ConfigRecord(resource_type=kind, resource_name=resource, name=key, value=value)
