"""Steps of starting and stopping a node on its log directory; Node calls them in order.

start   lock the directory, open the logs, register the broker, become leader of every partition
stop    give up leadership, fence the broker, close the logs, write Kafka's clean shutdown file

The metadata records are those that Kafka's controller writes when its only broker stops and starts, so Kafka and this
broker can take over each other's directories. Logs without a topic in the metadata (the directory of a broker that used
ZooKeeper, or copied logs) become topics if the metadata log is new. Otherwise they are ignored, with a warning.

Source: kafka.server.BrokerServer, org.apache.kafka.controller.QuorumController, ClusterControlManager 3.9.1.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from kwire.broker.configs.broker_configs import topic_log_config
from kwire.broker.features import RELEASE
from kwire.broker.network.listeners import PROTOCOLS, parse_listeners
from kwire.identifiers import new_uuid
from kwire.internal_topics.cluster_state import NO_LEADER
from kwire.internal_topics.cluster_values import Partition, Topic
from kwire.internal_topics.metadata_records import VersionedMessage
from kwire.internal_topics.topic_records import topic_records
from kwire.log.writing.log_manager import LogManager
from kwire.messages import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    ZkMigrationStateRecord,
)

if TYPE_CHECKING:
    from kwire.broker.configs.broker_configs import BrokerConfigs
    from kwire.broker.configs.settings import Settings
    from kwire.broker.controller import Controller
    from kwire.broker.replication.members import Member
    from kwire.broker.topic_logs import TopicLogs
    from kwire.broker.topics import TopicRegistry
    from kwire.storage.file_system import FileSystem

__all__ = ["fence", "open_logs", "register", "register_again", "unregister"]

BOOTSTRAP = "Bootstrap records"
DEFAULT_NODE_ID = 1
FENCE, UNFENCE = 1, -1

Records = list[VersionedMessage]


def open_logs(directory: Path, settings: Settings, topics: TopicRegistry, files: FileSystem, now_ms: int) -> LogManager:
    """Lock a log directory and open its logs. Raises LogError, OptionError."""
    return LogManager.open(
        directory,
        now_ms=now_ms,
        file_system=files,
        default_config=topic_log_config(settings, {}),
        configs={topic.name: topic_log_config(settings, topic.configs) for topic in topics},
        node_id=None if settings.node_id == DEFAULT_NODE_ID else settings.node_id,
    )


def register(controller: Controller, topic_logs: TopicLogs, configs: BrokerConfigs, *, is_new: bool) -> None:
    """Register the nodes of the cluster, elect the leader of every partition, and open all logs.

    is_new: whether the metadata log was empty. Raises LogError.
    """
    if is_new:
        controller.commit(bootstrap_records())
    if controller.cluster.open_transaction is not None:
        controller.commit([(AbortTransactionRecord(reason="The broker was restarted"), 0)])
    for member in controller.members.all.values():
        controller.commit([registration(controller, configs, member)])
    if is_new:
        controller.commit(adopted_topics(controller, topic_logs.manager))
    controller.commit(first_leaders(controller))
    topic_logs.open_all()


def bootstrap_records() -> Records:
    """Return the first records of a new cluster."""
    features = [(FeatureLevelRecord(name=name, feature_level=level), 0) for name, level in RELEASE.features.items()]
    return [
        (BeginTransactionRecord(name=BOOTSTRAP), 0),
        *features,
        (ZkMigrationStateRecord(), 0),
        (EndTransactionRecord(), 0),
    ]


def registration(
    controller: Controller, configs: BrokerConfigs, member: Member, *, fenced: bool = False
) -> VersionedMessage:
    """Return the registration of a node; its broker epoch is the offset of the record.

    configs: with the listeners, which all nodes have.
    """
    listeners = {each.name: each for each in parse_listeners(configs.settings, configs.settings.listeners)}
    return (
        RegisterBrokerRecord(
            broker_id=member.node_id,
            incarnation_id=new_uuid(),
            broker_epoch=controller.metadata_log.last_offset + 1,
            end_points=[
                RegisterBrokerRecord.BrokerEndpoint(
                    name=name, host=host, port=port, security_protocol=PROTOCOLS.index(listeners[name].protocol)
                )
                for name, (host, port) in member.endpoints.items()
            ],
            features=[
                RegisterBrokerRecord.BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in (("kraft.version", (0, 1)), ("metadata.version", (1, RELEASE.level)))
            ],
            rack=member.rack,
            fenced=fenced,
            log_dirs=[member.directory_id],
        ),
        3,
    )


def adopted_topics(controller: Controller, manager: LogManager) -> Records:
    """Return records that create topics for the logs in the directory."""
    partitions: dict[str, list[int]] = defaultdict(list)
    for name, index in manager.logs:
        partitions[name].append(index)
    records: Records = []
    for name, indexes in sorted(partitions.items()):
        topic = Topic(name=name, topic_id=topic_id_of(manager, name, indexes) or new_uuid())
        for index in indexes:
            topic.partitions[index] = Partition(
                partition=index,
                replicas=(controller.node_id,),
                isr=(controller.node_id,),
                leader_epoch=manager.logs[name, index].leader_epochs.latest or 0,
                directories=tuple(controller.members.directories([controller.node_id])),
            )
        records += topic_records(topic, RELEASE)
    return records


def topic_id_of(manager: LogManager, name: str, indexes: list[int]) -> UUID | None:
    """Return the topic id in the partition.metadata files of a topic, None without one."""
    ids = (manager.logs[name, index].topic_id for index in indexes)
    return next((topic_id for topic_id in ids if topic_id is not None), None)


def first_leaders(controller: Controller) -> Records:
    """Return records that elect the leader of every partition: its first replica of this cluster, else this node.

    All nodes have the same log, so all of their replicas are in sync. The only node of a cluster leads every partition;
    it may be in no ISR, but eligible, after a controlled shutdown of Kafka 4 (KIP-966).
    """
    records: Records = []
    members = controller.members
    for topic in controller.topics:
        for index in sorted(topic.partitions):
            state = topic.partitions[index].state
            record = PartitionChangeRecord(partition_id=index, topic_id=topic.topic_id, leader=controller.node_id)
            version = 1
            if members.is_single:
                record.isr = None if controller.node_id in state.isr else [controller.node_id]
            else:
                isr = [each for each in state.replicas if each in members.all]
                record.leader = isr[0] if isr else controller.node_id
                record.isr = isr if isr and isr != list(state.isr) else None
            if state.elr or state.last_known_elr:
                record.eligible_leader_replicas, record.last_known_elr, version = [], [], 2
            records.append((record, version))
    return records


def unregister(controller: Controller, manager: LogManager) -> None:
    """Give up leadership and registration, and close all logs cleanly."""
    brokers = controller.cluster.brokers
    own = brokers.get(controller.node_id)
    gone: Records = []
    for topic in controller.topics:
        for index in sorted(topic.partitions):
            record = PartitionChangeRecord(partition_id=index, topic_id=topic.topic_id, leader=NO_LEADER)
            state, version = topic.partitions[index].state, 1
            if state.elr or state.last_known_elr:  # the next broker may not have the feature
                record.eligible_leader_replicas, record.last_known_elr, version = [], [], 2
            gone.append((record, version))
    for node_id in controller.members.all:
        epoch = brokers[node_id].epoch if node_id in brokers else -1
        gone.append((BrokerRegistrationChangeRecord(broker_id=node_id, broker_epoch=epoch, fenced=FENCE), 2))
    try:
        controller.commit(gone)
        controller.metadata_log.close()
    finally:
        manager.close(broker_epoch=-1 if own is None else own.epoch)


def fence(controller: Controller, node_id: int) -> None:
    """Fence a node that stops."""
    epoch = controller.cluster.brokers[node_id].epoch
    controller.commit([(BrokerRegistrationChangeRecord(broker_id=node_id, broker_epoch=epoch, fenced=FENCE), 2)])


def register_again(controller: Controller, configs: BrokerConfigs, member: Member) -> None:
    """Register a node that starts again, and unfence it."""
    controller.commit([registration(controller, configs, member, fenced=True)])
    epoch = controller.cluster.brokers[member.node_id].epoch
    change = BrokerRegistrationChangeRecord(broker_id=member.node_id, broker_epoch=epoch, fenced=UNFENCE)
    controller.commit([(change, 2)])
