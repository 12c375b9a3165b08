"""Records of the metadata log that create topics, and clusters that consist of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kwire.internal_topics.cluster_state import ClusterState
from kwire.internal_topics.cluster_values import Topic
from kwire.internal_topics.enums import ConfigResource
from kwire.internal_topics.metadata_records import VersionedMessage, metadata_record
from kwire.internal_topics.metadata_versions import ELR_VERSION, MetadataRelease

if TYPE_CHECKING:
    pass

__all__ = ["new_cluster", "topic_records"]


def topic_records(
    topic: Topic, release: MetadataRelease, configs: Mapping[str, str] | None = None
) -> list[VersionedMessage]:
    """Return the records that create a topic with its partitions and configs, as controllers of a release write them.

    Directories of replicas are left out in releases before 3.7, which do not know them.
    """
    from kwire.messages import ConfigRecord, PartitionRecord, TopicRecord

    records: list[VersionedMessage] = [(TopicRecord(name=topic.name, topic_id=topic.topic_id), 0)]
    version = release.partition_record_version
    for _, partition in sorted(topic.partitions.items()):
        record = PartitionRecord(
            partition_id=partition.partition,
            topic_id=topic.topic_id,
            replicas=list(partition.replicas),
            isr=list(partition.isr),
            leader=partition.leader,
            leader_epoch=partition.leader_epoch,
            partition_epoch=partition.partition_epoch,
            directories=list(partition.directories) if version else [],
        )
        records.append((record, version))
    resource_type = ConfigResource.TOPIC.value
    for name, value in sorted((configs or {}).items()):
        records.append((ConfigRecord(resource_type=resource_type, resource_name=topic.name, name=name, value=value), 0))
    return records


def new_cluster(
    topics: Iterable[Topic],
    release: MetadataRelease,
    *,
    configs: Mapping[str, Mapping[str, str]] | None = None,
    next_producer_id: int = 0,
    others: Iterable[VersionedMessage] = (),
) -> ClusterState:
    """Return a cluster with the features of a release, and topics without leaders.

    Without registrations of brokers: they register when they start, and the controller elects a member of the ISR.
    Eligible leader replicas (KIP-966) are disabled: with them, a controller takes a broker whose former registration it
    does not know for one that lost records, and removes it from every ISR, so that no leader can be elected.

    configs: of topics. next_producer_id: above all producer ids in the logs. others: records of brokers' configs,
    users, ACLs, quotas and delegation tokens.
    """
    from kwire.messages import FeatureLevelRecord, ProducerIdsRecord, ZkMigrationStateRecord

    records: list[VersionedMessage] = [
        (FeatureLevelRecord(name=name, feature_level=level), 0)
        for name, level in release.features.items()
        if name != ELR_VERSION
    ]
    if release.has_zk_migration_state:
        records.append((ZkMigrationStateRecord(), 0))
    for topic in topics:
        records += topic_records(topic, release, (configs or {}).get(topic.name))
    if next_producer_id:
        records.append((ProducerIdsRecord(next_producer_id=next_producer_id), 0))
    cluster = ClusterState()
    for offset, (message, version) in enumerate([*records, *others]):
        cluster.apply(metadata_record(message, version, offset=offset))
    return cluster
