"""The records of a metadata snapshot (KIP-630): those that make up a ClusterState, and none that were replaced.

Partitions and brokers are written in the version of the newest record they came from, everything else in version 0.
Source: org.apache.kafka.image.MetadataImage.write.
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from kwire import messages as m
from kwire.internal_topics.cluster_state import (
    CORDONED_LOG_DIRS_VERSION,
    Acl,
    ClusterState,
    DelegationToken,
    Node,
    Partition,
    QuotaEntity,
    Topic,
)
from kwire.internal_topics.enums import ConfigResource, NamedNumber, ScramMechanism, SecurityProtocol
from kwire.internal_topics.metadata_records import VersionedMessage

__all__ = ["acl_record", "delegation_token_record", "quota_record", "snapshot_records"]

PRODUCER_IDS_BROKER = -1


def snapshot_records(cluster: ClusterState) -> Iterator[VersionedMessage]:
    """Yield the records of a state with their versions, in the order of Kafka's snapshots."""
    for name, level in cluster.features.items():
        yield m.FeatureLevelRecord(name=name, feature_level=level), 0
    if cluster.zk_migration_state is not None:
        yield m.ZkMigrationStateRecord(zk_migration_state=cluster.zk_migration_state), 0
    for broker in cluster.brokers.values():
        yield _broker(broker), broker.record_version
    for controller in cluster.controllers.values():
        yield _controller(controller), controller.record_version
    for topic in cluster.topics.values():
        yield m.TopicRecord(name=topic.name, topic_id=topic.topic_id), 0
        for partition in topic.partitions.values():
            yield _partition(topic, partition), partition.record_version
    for (kind, resource), configs in cluster.configs.items():
        for key, value in configs.items():
            number = _number(ConfigResource, kind)
            yield m.ConfigRecord(resource_type=number, resource_name=resource, name=key, value=value), 0
    for entity, quotas in cluster.quotas.items():
        for key, limit in quotas.items():
            yield quota_record(entity, key, limit), 0
    if cluster.next_producer_id >= 0:
        yield m.ProducerIdsRecord(broker_id=PRODUCER_IDS_BROKER, next_producer_id=cluster.next_producer_id), 0
    for acl_id, acl in cluster.acls.items():
        yield acl_record(acl_id, acl), 0
    for (user, mechanism), credential in cluster.users.items():
        yield (
            m.UserScramCredentialRecord(
                name=user,
                mechanism=_number(ScramMechanism, mechanism),
                salt=credential.salt,
                stored_key=credential.stored_key,
                server_key=credential.server_key,
                iterations=credential.iterations,
            ),
            0,
        )
    for token in cluster.tokens.values():
        yield delegation_token_record(token), 0


def _number(numbers: type[NamedNumber], word: str) -> int:
    """Return the number of a word that `enums.label` made."""
    for each in numbers:
        if each.label == word:
            return int(each)
    return int(word)


def _broker(broker: Node) -> m.RegisterBrokerRecord:
    has_cordoned_log_dirs = broker.record_version >= CORDONED_LOG_DIRS_VERSION
    return m.RegisterBrokerRecord(
        broker_id=broker.node_id,
        is_migrating_zk_broker=broker.is_migrating_zk_broker,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=[
            m.RegisterBrokerRecord.BrokerEndpoint(
                name=each.name,
                host=each.host,
                port=each.port,
                security_protocol=_number(SecurityProtocol, each.security_protocol or "0"),
            )
            for each in broker.endpoints
        ],
        features=[
            m.RegisterBrokerRecord.BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in broker.features.items()
        ],
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=list(broker.log_dirs),
        cordoned_log_dirs=list(broker.cordoned_log_dirs) if has_cordoned_log_dirs else None,
    )


def _controller(controller: Node) -> m.RegisterControllerRecord:
    return m.RegisterControllerRecord(
        controller_id=controller.node_id,
        incarnation_id=controller.incarnation_id,
        zk_migration_ready=controller.zk_migration_ready,
        end_points=[
            m.RegisterControllerRecord.ControllerEndpoint(
                name=each.name,
                host=each.host,
                port=each.port,
                security_protocol=_number(SecurityProtocol, each.security_protocol or "0"),
            )
            for each in controller.endpoints
        ],
        features=[
            m.RegisterControllerRecord.ControllerFeature(
                name=name, min_supported_version=low, max_supported_version=high
            )
            for name, (low, high) in controller.features.items()
        ],
    )


def _partition(topic: Topic, partition: Partition) -> m.PartitionRecord:
    return m.PartitionRecord(
        partition_id=partition.partition,
        topic_id=topic.topic_id,
        replicas=list(partition.replicas),
        isr=list(partition.isr),
        removing_replicas=list(partition.removing_replicas),
        adding_replicas=list(partition.adding_replicas),
        leader=partition.leader,
        leader_recovery_state=int(partition.recovering),
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        directories=list(partition.directories),
        eligible_leader_replicas=list(partition.elr) or None,
        last_known_elr=list(partition.last_known_elr) or None,
    )


def acl_record(acl_id: UUID, acl: Acl) -> m.AccessControlEntryRecord:
    """Return the record that creates an ACL."""
    return m.AccessControlEntryRecord(
        id=acl_id,
        resource_type=int(acl.resource_type),
        resource_name=acl.resource_name,
        pattern_type=int(acl.pattern_type),
        principal=acl.principal,
        host=acl.host,
        operation=int(acl.operation),
        permission_type=int(acl.permission_type),
    )


def quota_record(entity: QuotaEntity, key: str, value: float | None) -> m.ClientQuotaRecord:
    """Return the record that sets a quota, or removes it (None)."""
    parts = [m.ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
    return m.ClientQuotaRecord(entity=parts, key=key, value=value or 0.0, remove=value is None)


def delegation_token_record(token: DelegationToken) -> m.DelegationTokenRecord:
    """Return the record that creates or replaces a token."""
    return m.DelegationTokenRecord(
        owner=token.owner,
        requester=token.requester,
        renewers=list(token.renewers),
        issue_timestamp=token.issue_timestamp,
        max_timestamp=token.max_timestamp,
        expiration_timestamp=token.expiration_timestamp,
        token_id=token.token_id,
    )
