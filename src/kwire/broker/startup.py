"""Starting and stopping a node on a log directory.

start   lock the directory, read the metadata log, open the logs, win the election, register, lead every partition
stop    give up every partition, say so in the metadata log, close the logs; last of all Kafka's mark of a clean stop

The records are those that Kafka's controller writes when its only broker goes and comes back, so either can follow the
other on the same directory. Logs without a topic in the metadata (a directory of a broker with ZooKeeper, or one made
by copying logs) become topics when the metadata log is new; later on they are left alone, with a warning.
Source: kafka.server.BrokerServer, org.apache.kafka.controller.QuorumController, ClusterControlManager 3.9.1.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from kwire.broker.configs import dynamic_settings, topic_log_config
from kwire.broker.features import FINALIZED, METADATA_VERSION
from kwire.broker.identifiers import new_uuid
from kwire.broker.listeners import PROTOCOLS, parse_listeners
from kwire.broker.metadata_log import MetadataLog
from kwire.broker.metadata_records import read_metadata
from kwire.internal_topics.cluster_state import NO_LEADER
from kwire.internal_topics.metadata_records import VersionedMessage
from kwire.internal_topics.names import METADATA_TOPIC
from kwire.log.log_manager import LogManager
from kwire.messages import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
    ZkMigrationStateRecord,
)
from kwire.messages.base import ZERO_UUID
from kwire.storage.checkpoints import parse_uuid

if TYPE_CHECKING:
    from kwire.broker.node import Node

__all__ = ["start", "stop"]

log = logging.getLogger("kwire.broker")

BOOTSTRAP = "Bootstrap records"
DEFAULT_NODE_ID = 1

Records = list[VersionedMessage]


def start(node: Node, directory: Path) -> None:
    """Open a directory for a node whose endpoints are known. Raises LogError, OptionError."""
    settings, files, now_ms = node.settings, node.files, node.clock.now_ms()
    files.make_directory(str(directory))
    stored = read_metadata(directory / f"{METADATA_TOPIC}-0")
    for record in stored.records:
        node.cluster.apply(record)
    node.settings = settings = dynamic_settings(node)
    manager = node.log_manager = LogManager.open(
        directory,
        now_ms=now_ms,
        file_system=files,
        default_config=topic_log_config(settings, {}),
        configs={topic.name: topic_log_config(settings, topic.configs) for topic in node.topics},
        node_id=None if settings.node_id == DEFAULT_NODE_ID else settings.node_id,
        progress=None,
    )
    try:
        node.node_id, node.cluster_id = manager.node_id, manager.cluster_id
        node.directory_id = parse_uuid(manager.directory_id) if manager.directory_id else ZERO_UUID
        node.metadata_log = MetadataLog.open(
            files,
            manager.path,
            node.clock,
            node_id=node.node_id,
            settings=settings,
            stored=stored,
            cluster=node.cluster,
            clean=manager.was_clean,
        )
        is_new = not stored.records
        if is_new:
            node.controller.commit(bootstrap_records())
        if node.cluster.open_transaction is not None:
            node.controller.commit([(AbortTransactionRecord(reason="The broker was restarted"), 0)])
        node.controller.commit([registration(node)])
        if is_new:
            node.controller.commit(adopted_topics(node))
        node.controller.commit(leader_changes(node, node.node_id))
        attach_logs(node)
    except BaseException:
        manager.close(clean=False)
        raise


def bootstrap_records() -> Records:
    """What a new cluster begins with."""
    features = [(FeatureLevelRecord(name=name, feature_level=level), 0) for name, level in FINALIZED.items()]
    return [
        (BeginTransactionRecord(name=BOOTSTRAP), 0),
        *features,
        (ZkMigrationStateRecord(), 0),
        (EndTransactionRecord(), 0),
    ]


def registration(node: Node) -> VersionedMessage:
    """This node as a broker; its epoch is the offset of this record."""
    listeners = {each.name: each for each in parse_listeners(node.settings, node.settings.listeners)}
    return (
        RegisterBrokerRecord(
            broker_id=node.node_id,
            incarnation_id=new_uuid(),
            broker_epoch=node.metadata_log.last_offset + 1,
            end_points=[
                RegisterBrokerRecord.BrokerEndpoint(
                    name=name, host=host, port=port, security_protocol=PROTOCOLS.index(listeners[name].protocol)
                )
                for name, (host, port) in node.endpoints.items()
            ],
            features=[
                RegisterBrokerRecord.BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in (("kraft.version", (0, 1)), ("metadata.version", (1, METADATA_VERSION)))
            ],
            rack=node.settings.broker_rack or None,
            fenced=False,
            log_dirs=[node.directory_id],
        ),
        3,
    )


def adopted_topics(node: Node) -> Records:
    """Records for logs that are there without any metadata."""
    found: dict[str, list[int]] = defaultdict(list)
    for name, index in node.log_manager.logs:
        found[name].append(index)
    records: Records = []
    me = [node.node_id]
    for name, indexes in sorted(found.items()):
        topic_id = topic_id_of(node, name, indexes) or new_uuid()
        records.append((TopicRecord(name=name, topic_id=topic_id), 0))
        for index in sorted(indexes):
            latest = node.log_manager.logs[name, index].leader_epochs.latest
            record = PartitionRecord(
                partition_id=index,
                topic_id=topic_id,
                replicas=me,
                isr=me,
                leader=NO_LEADER,
                leader_epoch=latest or 0,
                partition_epoch=0,
                directories=[node.directory_id],
            )
            records.append((record, 1))
    return records


def topic_id_of(node: Node, name: str, indexes: list[int]) -> UUID | None:
    """The id that a topic's partition.metadata files have."""
    ids = (node.log_manager.logs[name, index].topic_id for index in indexes)
    return next((topic_id for topic_id in ids if topic_id is not None), None)


def leader_changes(node: Node, leader: int) -> Records:
    """Every partition led by this node, or by nobody (NO_LEADER); its leader epoch rises with each change."""
    return [
        (PartitionChangeRecord(partition_id=index, topic_id=topic.topic_id, leader=leader), 1)
        for topic in node.topics
        for index in sorted(topic.partitions)
    ]


def attach_logs(node: Node) -> None:
    """Give every partition its log; make those that are missing."""
    known = {(topic.name, index) for topic in node.topics for index in topic.partitions}
    for name, index in sorted(set(node.log_manager.logs) - known):
        log.warning("%s-%s is a log of no topic: it is left alone", name, index)
    for topic in node.topics:
        node.open_logs(topic)


def stop(node: Node) -> None:
    """Close what start opened, cleanly."""
    manager = node.log_manager
    broker = node.cluster.brokers.get(node.node_id)
    epoch = -1 if broker is None else broker.epoch
    try:
        node.controller.commit(
            [
                *leader_changes(node, NO_LEADER),
                (BrokerRegistrationChangeRecord(broker_id=node.node_id, broker_epoch=epoch, fenced=1), 2),
            ]
        )
        node.metadata_log.close()
    finally:
        manager.close(broker_epoch=epoch)
