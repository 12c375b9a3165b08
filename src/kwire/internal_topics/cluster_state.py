"""The state of a cluster, folded from its metadata log: brokers, topics, configs, quotas, users, ACLs, features.

Records between BeginTransactionRecord and EndTransactionRecord apply together or, after AbortTransactionRecord, not at
all (KIP-868). A record about something that does not exist (a broker that never registered, a partition of an unknown
topic) stops a Kafka controller; here it is added to `problems`, and the following records still apply.

A snapshot (KIP-630) consists of the records in effect. The state keeps them as they were read, so tagged fields of a
newer Kafka are not lost. A change of a partition or a registration is merged into the record that it changes. Its own
unknown tagged fields do not fit there: they are kept as a change record without any other field.
Source: MetadataDelta and the deltas it consists of, PartitionRegistration.merge, BrokerRegistration of 3.9 and 4.x;
KIP-631, KIP-866, KIP-966 (eligible leader replicas), KIP-1066 (cordoned log directories).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from uuid import UUID

import msgspec

from kwire.internal_topics.cluster_values import (
    NO_LEADER,
    Acl,
    DelegationToken,
    Endpoint,
    Node,
    Partition,
    ScramCredential,
    Topic,
    Voter,
)
from kwire.internal_topics.enums import (
    ConfigResource,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    ScramMechanism,
    SecurityProtocol,
    label,
)
from kwire.internal_topics.metadata_records import VersionedMessage
from kwire.internal_topics.typed_record import Problems, TypedRecord

if TYPE_CHECKING:
    from kwire import messages as m
    from kwire.messages.base import Message
    from kwire.messages.register_broker_record import BrokerEndpoint, BrokerFeature
    from kwire.messages.register_controller_record import ControllerEndpoint, ControllerFeature

    ChangeRecord: TypeAlias = m.PartitionChangeRecord | m.BrokerRegistrationChangeRecord

__all__ = [
    "NO_LEADER",
    "RECORD_KINDS",
    "Acl",
    "ClusterState",
    "DelegationToken",
    "Endpoint",
    "Node",
    "Partition",
    "QuotaEntity",
    "ScramCredential",
    "Topic",
    "Voter",
]

NO_LEADER_CHANGE = -2
NO_RECOVERY_CHANGE = -1
METADATA_VERSION = "metadata.version"
LOG_DIRS_VERSION, CORDONED_LOG_DIRS_VERSION = 3, 4  # of RegisterBrokerRecord
NO_BROKER = -1
SNAPSHOT_ORDER = (
    "FeatureLevelRecord",
    "ZkMigrationStateRecord",
    "RegisterBrokerRecord",
    "BrokerRegistrationChangeRecord",
    "RegisterControllerRecord",
    "TopicRecord",
    "PartitionRecord",
    "PartitionChangeRecord",
    "ConfigRecord",
    "ClientQuotaRecord",
    "ProducerIdsRecord",
    "AccessControlEntryRecord",
    "UserScramCredentialRecord",
    "DelegationTokenRecord",
)
"""Kinds of records in a snapshot. Source: org.apache.kafka.image.MetadataImage.write."""


QuotaEntity = tuple[tuple[str, str | None], ...]
"""(type, name) pairs in order of their types; a name of None is the default entity of its type."""

Observer = Callable[[Any], object]
RecordKey = tuple[str, *tuple[Hashable, ...]]
"""The kind of a record, and what it is about."""


@dataclass(slots=True, kw_only=True)
class ClusterState:
    """A cluster at one offset of its metadata log.

    end_offset, end_timestamp: the state holds the records below this offset, and the timestamp of the last one (-1
    without). snapshot_offset: the end offset of the snapshot it was loaded from, None without.
    configs: (resource type, name; "" is the cluster's default) -> configs. users: by (name, mechanism). leader: of the
    quorum, -1 before the first election. open_transaction: records of a transaction without an end, not applied.
    disabled_features: those whose level a record set to 0; others without a level never had a record.
    records: those in effect, with their versions; the other attributes are made from them.
    """

    brokers: dict[int, Node] = field(default_factory=dict)
    controllers: dict[int, Node] = field(default_factory=dict)
    topics: dict[str, Topic] = field(default_factory=dict)
    configs: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    quotas: dict[QuotaEntity, dict[str, float]] = field(default_factory=dict)
    users: dict[tuple[str, str], ScramCredential] = field(default_factory=dict)
    acls: dict[UUID, Acl] = field(default_factory=dict)
    tokens: dict[str, DelegationToken] = field(default_factory=dict)
    features: dict[str, int] = field(default_factory=dict)
    disabled_features: set[str] = field(default_factory=set)
    voters: dict[int, Voter] = field(default_factory=dict)
    kraft_version: int = 0
    leader: int = NO_LEADER
    next_producer_id: int = -1
    zk_migration_state: int | None = None
    end_offset: int = 0
    end_timestamp: int = -1
    snapshot_offset: int | None = None
    open_transaction: list[TypedRecord] | None = None
    problems: Problems = field(default_factory=Problems)
    records: dict[RecordKey, VersionedMessage] = field(default_factory=dict, repr=False, compare=False)
    _names: dict[UUID, str] = field(default_factory=dict)
    _observers: dict[str, list[Observer]] = field(default_factory=dict, repr=False, compare=False)

    def apply(self, record: TypedRecord) -> None:
        """Apply one usable record of the log. Kinds that are not in RECORD_KINDS change nothing."""
        self.end_offset, self.end_timestamp = record.offset + 1, record.timestamp
        if record.kind == "BeginTransactionRecord":
            self.open_transaction = []
        elif record.kind == "AbortTransactionRecord":
            self.open_transaction = None
        elif record.kind == "EndTransactionRecord":
            records, self.open_transaction = self.open_transaction, None
            for each in records or ():
                self._change(each)
        elif self.open_transaction is not None and not record.is_control:
            self.open_transaction.append(record)
        else:
            self._change(record)

    def observe(self, kind: str, observer: Observer) -> None:
        """Call a function with the value of every record of a kind, after the record was applied."""
        self._observers.setdefault(kind, []).append(observer)

    def _change(self, record: TypedRecord) -> None:
        change = CHANGES.get(record.kind)
        if change is None or record.value is None:
            return
        try:
            change(self, record.value, record.version or 0)
        except KeyError as missing:
            error = f"{record.kind} about {missing.args[0]}, which does not exist"
            self.problems.add(replace(record, error=error, error_field="value", error_position=0))
            return
        for observer in self._observers.get(record.kind, ()):
            observer(record.value)

    def snapshot_records(self) -> Iterator[VersionedMessage]:
        """Yield the records of a snapshot with their versions, in an order in which they can be applied."""
        order = {kind: index for index, kind in enumerate(SNAPSHOT_ORDER)}
        for key in sorted(self.records, key=lambda key: order[key[0]]):
            record, version = self.records[key]
            if key[0] == "PartitionRecord" and ("PartitionChangeRecord", *key[1:]) in self.records:
                # the change that follows raises the epoch by one
                epoch = getattr(record, "partition_epoch") - 1  # noqa: B009  # of a Message
                record = msgspec.structs.replace(record, partition_epoch=epoch)
            yield record, version

    def keep(self, record: Message, version: int, *about: Hashable) -> None:
        """Store a record for snapshots, replacing the one of its kind about the same object (about: its key)."""
        self.records[type(record).__name__, *about] = record, version

    def drop(self, kind: str, *about: Hashable) -> None:
        """Remove a record, if there is one."""
        self.records.pop((kind, *about), None)

    def configs_of(self, resource_type: ConfigResource, name: str) -> Mapping[str, str]:
        """Return the configs of a topic, broker or other resource; "" is the default of all brokers."""
        return self.configs.get((resource_type.label, name), {})

    def topic_name(self, topic_id: UUID) -> str | None:
        """Return the name of an existing topic; None for an unknown id."""
        return self._names.get(topic_id)

    def topic_of(self, topic_id: UUID) -> Topic:
        """Return a topic by its id. Raises KeyError."""
        name = self._names.get(topic_id)
        if name is None:
            raise KeyError(f"topic id {topic_id}")
        return self.topics[name]


# ---- One function a record. version: of the record.


def _features(features: Iterable[BrokerFeature | ControllerFeature]) -> dict[str, tuple[int, int]]:
    return {each.name: (each.min_supported_version, each.max_supported_version) for each in features}


def _endpoints(endpoints: Iterable[BrokerEndpoint | ControllerEndpoint]) -> tuple[Endpoint, ...]:
    return tuple(
        Endpoint(
            name=each.name,
            host=each.host,
            port=each.port,
            security_protocol=label(SecurityProtocol.of(each.security_protocol)),
        )
        for each in endpoints
    )


def _register_broker(cluster: ClusterState, record: m.RegisterBrokerRecord, version: int) -> None:
    cluster.drop("BrokerRegistrationChangeRecord", record.broker_id)
    _put_broker(cluster, record, version)


def _put_broker(cluster: ClusterState, record: m.RegisterBrokerRecord, version: int) -> None:
    cluster.keep(record, version, record.broker_id)
    cluster.brokers[record.broker_id] = Node(
        node_id=record.broker_id,
        epoch=record.broker_epoch,
        incarnation_id=record.incarnation_id,
        endpoints=_endpoints(record.end_points),
        features=_features(record.features),
        rack=record.rack,
        fenced=record.fenced,
        in_controlled_shutdown=record.in_controlled_shutdown,
        log_dirs=tuple(record.log_dirs),
        cordoned_log_dirs=tuple(record.cordoned_log_dirs or ()),
        is_migrating_zk_broker=record.is_migrating_zk_broker,
    )


def _register_controller(cluster: ClusterState, record: m.RegisterControllerRecord, version: int) -> None:
    cluster.keep(record, version, record.controller_id)
    cluster.controllers[record.controller_id] = Node(
        node_id=record.controller_id,
        incarnation_id=record.incarnation_id,
        endpoints=_endpoints(record.end_points),
        features=_features(record.features),
        zk_migration_ready=record.zk_migration_ready,
    )


def _unregister_broker(cluster: ClusterState, record: m.UnregisterBrokerRecord, version: int) -> None:
    _registration(cluster, record.broker_id)
    del cluster.brokers[record.broker_id]
    cluster.drop("RegisterBrokerRecord", record.broker_id)
    cluster.drop("BrokerRegistrationChangeRecord", record.broker_id)


def _unregister_controller(cluster: ClusterState, record: m.UnregisterControllerRecord, version: int) -> None:
    cluster.controllers.pop(record.controller_id, None)
    cluster.drop("RegisterControllerRecord", record.controller_id)


def _registration(cluster: ClusterState, broker_id: int) -> tuple[m.RegisterBrokerRecord, int]:
    """Return a broker's registration and its version. Raises KeyError."""
    stored = cluster.records.get(("RegisterBrokerRecord", broker_id))
    if stored is None:
        raise KeyError(f"broker {broker_id}")
    return cast("m.RegisterBrokerRecord", stored[0]), stored[1]


def _fence(cluster: ClusterState, record: m.FenceBrokerRecord, version: int) -> None:
    broker, broker_version = _registration(cluster, record.id)
    _put_broker(cluster, msgspec.structs.replace(broker, fenced=True), broker_version)


def _unfence(cluster: ClusterState, record: m.UnfenceBrokerRecord, version: int) -> None:
    broker, broker_version = _registration(cluster, record.id)
    _put_broker(cluster, msgspec.structs.replace(broker, fenced=False), broker_version)


def _change_broker(cluster: ClusterState, record: m.BrokerRegistrationChangeRecord, version: int) -> None:
    broker, broker_version = _registration(cluster, record.broker_id)
    changes: dict[str, Any] = {}
    if record.fenced:
        changes["fenced"] = record.fenced > 0
    if record.in_controlled_shutdown:
        changes["in_controlled_shutdown"] = record.in_controlled_shutdown > 0
    if record.log_dirs:
        changes["log_dirs"], broker_version = record.log_dirs, max(broker_version, LOG_DIRS_VERSION)
    if record.cordoned_log_dirs is not None:
        changes["cordoned_log_dirs"] = record.cordoned_log_dirs
        broker_version = max(broker_version, CORDONED_LOG_DIRS_VERSION)
    _put_broker(cluster, msgspec.structs.replace(broker, **changes), broker_version)
    empty = type(record)(broker_id=record.broker_id, broker_epoch=record.broker_epoch)
    _keep_unknown_fields(cluster, record, version, empty, record.broker_id)


def _keep_unknown_fields(
    cluster: ClusterState, change: ChangeRecord, version: int, empty: ChangeRecord, *about: Hashable
) -> None:
    """Keep the unknown tagged fields of a change and of earlier ones in an otherwise empty change."""
    fields = dict(change.unknown_tagged_fields)
    if not fields:
        return
    before = cluster.records.get((type(change).__name__, *about))
    if before is not None:
        fields = dict(cast("ChangeRecord", before[0]).unknown_tagged_fields) | fields
        version = max(version, before[1])
    empty.unknown_tagged_fields = sorted(fields.items())
    cluster.keep(empty, version, *about)


def _topic(cluster: ClusterState, record: m.TopicRecord, version: int) -> None:
    cluster.keep(record, version, record.topic_id)
    cluster.topics[record.name] = Topic(name=record.name, topic_id=record.topic_id)
    cluster._names[record.topic_id] = record.name


def _remove_topic(cluster: ClusterState, record: m.RemoveTopicRecord, version: int) -> None:
    topic = cluster.topic_of(record.topic_id)
    del cluster.topics[topic.name], cluster._names[topic.topic_id]
    cluster.drop("TopicRecord", topic.topic_id)
    for index in topic.partitions:
        cluster.drop("PartitionRecord", topic.topic_id, index)
        cluster.drop("PartitionChangeRecord", topic.topic_id, index)
    resource = (ConfigResource.TOPIC.label, topic.name)
    for name in cluster.configs.pop(resource, ()):
        cluster.drop("ConfigRecord", *resource, name)


def _partition(cluster: ClusterState, record: m.PartitionRecord, version: int) -> None:
    topic = cluster.topic_of(record.topic_id)
    cluster.drop("PartitionChangeRecord", record.topic_id, record.partition_id)
    _put_partition(cluster, topic, record, version)


def _put_partition(cluster: ClusterState, topic: Topic, record: m.PartitionRecord, version: int) -> None:
    cluster.keep(record, version, record.topic_id, record.partition_id)
    topic.partitions[record.partition_id] = Partition(
        partition=record.partition_id,
        replicas=tuple(record.replicas),
        isr=tuple(record.isr),
        removing_replicas=tuple(record.removing_replicas),
        adding_replicas=tuple(record.adding_replicas),
        leader=record.leader,
        leader_epoch=record.leader_epoch,
        partition_epoch=record.partition_epoch,
        recovering=record.leader_recovery_state == 1,
        directories=tuple(record.directories),
        elr=tuple(record.eligible_leader_replicas or ()),
        last_known_elr=tuple(record.last_known_elr or ()),
    )


def _change_partition(cluster: ClusterState, record: m.PartitionChangeRecord, version: int) -> None:
    """Apply the fields that are set. Source: org.apache.kafka.metadata.PartitionRegistration.merge."""
    topic = cluster.topic_of(record.topic_id)
    stored = cluster.records.get(("PartitionRecord", record.topic_id, record.partition_id))
    if stored is None:
        raise KeyError(f"partition {record.partition_id} of {topic.name}")
    partition = cast("m.PartitionRecord", stored[0])
    changes: dict[str, Any] = {"partition_epoch": partition.partition_epoch + 1}
    for name in ("replicas", "isr", "removing_replicas", "adding_replicas", "directories"):
        if (value := getattr(record, name)) is not None:
            changes[name] = value
    for name in ("eligible_leader_replicas", "last_known_elr"):
        if (value := getattr(record, name)) is not None:
            changes[name] = value or None
    if record.leader != NO_LEADER_CHANGE:
        changes |= {"leader": record.leader, "leader_epoch": partition.leader_epoch + 1}
    if record.leader_recovery_state != NO_RECOVERY_CHANGE:
        changes["leader_recovery_state"] = record.leader_recovery_state
    _put_partition(cluster, topic, msgspec.structs.replace(partition, **changes), max(stored[1], version))
    empty = type(record)(partition_id=record.partition_id, topic_id=record.topic_id)
    _keep_unknown_fields(cluster, record, version, empty, record.topic_id, record.partition_id)


def _clear_elr(cluster: ClusterState, record: m.ClearElrRecord, version: int) -> None:
    if record.topic_name and record.topic_name not in cluster.topics:
        raise KeyError(f"topic {record.topic_name}")
    topics = [cluster.topics[record.topic_name]] if record.topic_name else cluster.topics.values()
    for topic in topics:
        for index in topic.partitions:
            partition, partition_version = cluster.records["PartitionRecord", topic.topic_id, index]
            cleared = msgspec.structs.replace(
                cast("m.PartitionRecord", partition), eligible_leader_replicas=None, last_known_elr=None
            )
            _put_partition(cluster, topic, cleared, partition_version)


def _config(cluster: ClusterState, record: m.ConfigRecord, version: int) -> None:
    resource = (label(ConfigResource.of(record.resource_type)), record.resource_name)
    configs = cluster.configs.setdefault(resource, {})
    if record.value is None:
        configs.pop(record.name, None)
        cluster.drop("ConfigRecord", *resource, record.name)
    else:
        configs[record.name] = record.value
        cluster.keep(record, version, *resource, record.name)
    if not configs:
        del cluster.configs[resource]


def _quota(cluster: ClusterState, record: m.ClientQuotaRecord, version: int) -> None:
    entity = tuple(sorted((each.entity_type, each.entity_name) for each in record.entity))
    quotas = cluster.quotas.setdefault(entity, {})
    if record.remove:
        quotas.pop(record.key, None)
        cluster.drop("ClientQuotaRecord", entity, record.key)
    else:
        quotas[record.key] = record.value
        cluster.keep(record, version, entity, record.key)
    if not quotas:
        del cluster.quotas[entity]


def _user(cluster: ClusterState, record: m.UserScramCredentialRecord, version: int) -> None:
    user = (record.name, label(ScramMechanism.of(record.mechanism)))
    cluster.keep(record, version, *user)
    cluster.users[user] = ScramCredential(
        iterations=record.iterations,
        salt=bytes(record.salt),
        stored_key=bytes(record.stored_key),
        server_key=bytes(record.server_key),
    )


def _remove_user(cluster: ClusterState, record: m.RemoveUserScramCredentialRecord, version: int) -> None:
    user = (record.name, label(ScramMechanism.of(record.mechanism)))
    cluster.users.pop(user, None)
    cluster.drop("UserScramCredentialRecord", *user)


def _acl(cluster: ClusterState, record: m.AccessControlEntryRecord, version: int) -> None:
    cluster.keep(record, version, record.id)
    cluster.acls[record.id] = Acl(
        resource_type=ResourceType.of(record.resource_type),
        resource_name=record.resource_name,
        pattern_type=PatternType.of(record.pattern_type),
        principal=record.principal,
        host=record.host,
        operation=Operation.of(record.operation),
        permission_type=Permission.of(record.permission_type),
    )


def _remove_acl(cluster: ClusterState, record: m.RemoveAccessControlEntryRecord, version: int) -> None:
    if record.id not in cluster.acls:
        raise KeyError(f"ACL {record.id}")
    del cluster.acls[record.id]
    cluster.drop("AccessControlEntryRecord", record.id)


def _token(cluster: ClusterState, record: m.DelegationTokenRecord, version: int) -> None:
    cluster.keep(record, version, record.token_id)
    cluster.tokens[record.token_id] = DelegationToken(
        token_id=record.token_id,
        owner=record.owner,
        requester=record.requester,
        renewers=tuple(record.renewers),
        issue_timestamp=record.issue_timestamp,
        max_timestamp=record.max_timestamp,
        expiration_timestamp=record.expiration_timestamp,
    )


def _remove_token(cluster: ClusterState, record: m.RemoveDelegationTokenRecord, version: int) -> None:
    cluster.tokens.pop(record.token_id, None)
    cluster.drop("DelegationTokenRecord", record.token_id)


def _feature(cluster: ClusterState, record: m.FeatureLevelRecord, version: int) -> None:
    if record.feature_level == 0 and record.name != METADATA_VERSION:
        cluster.features.pop(record.name, None)
        cluster.disabled_features.add(record.name)
    else:
        cluster.features[record.name] = record.feature_level
        cluster.disabled_features.discard(record.name)
    cluster.keep(record, version, record.name)


def _producer_ids(cluster: ClusterState, record: m.ProducerIdsRecord, version: int) -> None:
    cluster.next_producer_id = record.next_producer_id
    # a snapshot does not say which broker took the last block
    cluster.keep(msgspec.structs.replace(record, broker_id=NO_BROKER, broker_epoch=NO_BROKER), version)


def _zk_migration(cluster: ClusterState, record: m.ZkMigrationStateRecord, version: int) -> None:
    cluster.zk_migration_state = record.zk_migration_state
    cluster.keep(record, version)


def _ignore(cluster: ClusterState, record: m.NoOpRecord, version: int) -> None:
    """Change nothing."""


def _leader(cluster: ClusterState, record: m.LeaderChangeMessage, version: int) -> None:
    cluster.leader = record.leader_id
    if not cluster.voters:  # before KIP-853 only elections name the voters
        cluster.voters = {
            each.voter_id: Voter(node_id=each.voter_id, directory_id=UUID(int=0)) for each in record.voters
        }


def _kraft_version(cluster: ClusterState, record: m.KRaftVersionRecord, version: int) -> None:
    cluster.kraft_version = record.kraft_version


def _voters(cluster: ClusterState, record: m.VotersRecord, version: int) -> None:
    cluster.voters = {
        each.voter_id: Voter(
            node_id=each.voter_id,
            directory_id=each.voter_directory_id,
            endpoints=tuple(Endpoint(name=e.name, host=e.host, port=e.port) for e in each.endpoints),
        )
        for each in record.voters
    }


CHANGES: dict[str, Callable[[ClusterState, Any, int], None]] = {
    "RegisterBrokerRecord": _register_broker,
    "UnregisterBrokerRecord": _unregister_broker,
    "BrokerRegistrationChangeRecord": _change_broker,
    "FenceBrokerRecord": _fence,
    "UnfenceBrokerRecord": _unfence,
    "RegisterControllerRecord": _register_controller,
    "UnregisterControllerRecord": _unregister_controller,
    "TopicRecord": _topic,
    "RemoveTopicRecord": _remove_topic,
    "PartitionRecord": _partition,
    "PartitionChangeRecord": _change_partition,
    "ClearElrRecord": _clear_elr,
    "ConfigRecord": _config,
    "ClientQuotaRecord": _quota,
    "UserScramCredentialRecord": _user,
    "RemoveUserScramCredentialRecord": _remove_user,
    "AccessControlEntryRecord": _acl,
    "RemoveAccessControlEntryRecord": _remove_acl,
    "DelegationTokenRecord": _token,
    "RemoveDelegationTokenRecord": _remove_token,
    "FeatureLevelRecord": _feature,
    "ProducerIdsRecord": _producer_ids,
    "ZkMigrationStateRecord": _zk_migration,
    "NoOpRecord": _ignore,
    "LEADER_CHANGE": _leader,
    "KRAFT_VERSION": _kraft_version,
    "KRAFT_VOTERS": _voters,
}
RECORD_KINDS = frozenset(CHANGES) | {"BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord"}
"""Kinds of records that `ClusterState.apply` knows."""
