"""The state of a cluster, folded from its metadata log: brokers, topics, configs, quotas, users, ACLs, features.

Records between BeginTransactionRecord and EndTransactionRecord apply together or, after AbortTransactionRecord, not at
all (KIP-868). A record about something that does not exist (a broker that never registered, a partition of an unknown
topic) stops a Kafka controller; here it is added to `problems`, and the following records still apply.

`kwire.internal_topics.cluster_records` turns a state back into the records of a snapshot.
Source: MetadataDelta and the deltas it consists of, PartitionRegistration.merge, BrokerRegistration of 3.9 and 4.x;
KIP-631, KIP-866, KIP-966 (eligible leader replicas), KIP-1066 (cordoned log directories).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

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
from kwire.internal_topics.typed_record import Problems, TypedRecord
from kwire.protocol import HIDDEN

if TYPE_CHECKING:
    from kwire import messages as m
    from kwire.messages.register_broker_record import BrokerEndpoint, BrokerFeature
    from kwire.messages.register_controller_record import ControllerEndpoint, ControllerFeature

__all__ = [
    "CORDONED_LOG_DIRS_VERSION",
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

NO_LEADER = -1
NO_LEADER_CHANGE = -2
NO_RECOVERY_CHANGE = -1
METADATA_VERSION = "metadata.version"
LOG_DIRS_VERSION, CORDONED_LOG_DIRS_VERSION = 3, 4  # of RegisterBrokerRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A listener's name and address. security_protocol: as a word, None where the record has none."""

    name: str
    host: str
    port: int
    security_protocol: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A registered broker or controller.

    epoch: of the registration, -1 for a controller. features: name -> (lowest, highest) supported version.
    fenced, in_controlled_shutdown, rack, log_dirs, cordoned_log_dirs, is_migrating_zk_broker: of brokers.
    zk_migration_ready: of controllers. record_version: the lowest version of the record that holds all of it.
    """

    node_id: int
    incarnation_id: UUID
    endpoints: tuple[Endpoint, ...]
    features: dict[str, tuple[int, int]]
    epoch: int = -1
    rack: str | None = None
    fenced: bool = False
    in_controlled_shutdown: bool = False
    log_dirs: tuple[UUID, ...] = ()
    cordoned_log_dirs: tuple[UUID, ...] = ()
    is_migrating_zk_broker: bool = False
    zk_migration_ready: bool = False
    record_version: int = field(default=0, compare=False)


@dataclass(slots=True, kw_only=True)
class Partition:
    """A partition's replicas (node ids) and leader, which is NO_LEADER while it is offline.

    elr: eligible leader replicas outside the ISR (KIP-966). recovering: after an unclean leader election, until the
    leader has recovered. record_version: the lowest version of PartitionRecord that holds all of it.
    """

    partition: int
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    leader: int = NO_LEADER
    leader_epoch: int = 0
    partition_epoch: int = 0
    recovering: bool = False
    directories: tuple[UUID, ...] = ()
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    record_version: int = field(default=0, compare=False)


@dataclass(slots=True, kw_only=True)
class Topic:
    """A topic and its partitions by number."""

    name: str
    topic_id: UUID
    partitions: dict[int, Partition] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramCredential:
    """A user's salted password for one SCRAM mechanism. salt, stored_key and server_key are secrets."""

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes

    def __repr__(self) -> str:
        return f"ScramCredential({HIDDEN}, iterations={self.iterations})"


class Acl(NamedTuple):
    """An access control entry: who may, or may not, do what to which resource from which host.

    A number that no enum member has stays a plain int.
    """

    resource_type: ResourceType | int
    resource_name: str
    pattern_type: PatternType | int
    principal: str
    host: str
    operation: Operation | int
    permission_type: Permission | int


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationToken:
    """A delegation token (KIP-48). owner, requester, renewers: principals as Type:Name. Timestamps in ms.

    token_id is half of what a client needs to log in with the token.
    """

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp: int
    max_timestamp: int
    expiration_timestamp: int

    def has_expired(self, now_ms: int) -> bool:
        """Return whether the token can no longer be used."""
        return self.max_timestamp < now_ms or self.expiration_timestamp < now_ms

    def is_owner_or_renewer(self, principal: str) -> bool:
        """Return whether a principal may renew and expire the token."""
        return principal == self.owner or principal in self.renewers


@dataclass(frozen=True, slots=True, kw_only=True)
class Voter:
    """A member of the metadata quorum. directory_id: zero where the record has none."""

    node_id: int
    directory_id: UUID
    endpoints: tuple[Endpoint, ...] = ()


QuotaEntity = tuple[tuple[str, str | None], ...]
"""(type, name) pairs in order of their types; a name of None is the default entity of its type."""

Observer = Callable[[Any], object]


@dataclass(slots=True, kw_only=True)
class ClusterState:
    """A cluster at one offset of its metadata log.

    end_offset, end_timestamp: the state holds the records below this offset, and the timestamp of the last one (-1
    without). snapshot_offset: the end offset of the snapshot it was loaded from, None without.
    configs: (resource type, name; "" is the cluster's default) -> configs. users: by (name, mechanism). leader: of the
    quorum, -1 before the first election. open_transaction: records of a transaction without an end, not applied.
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

    def broker_of(self, node_id: int) -> Node:
        """Return a broker by its id. Raises KeyError."""
        if node_id not in self.brokers:
            raise KeyError(f"broker {node_id}")
        return self.brokers[node_id]


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
        record_version=version,
    )


def _register_controller(cluster: ClusterState, record: m.RegisterControllerRecord, version: int) -> None:
    cluster.controllers[record.controller_id] = Node(
        node_id=record.controller_id,
        incarnation_id=record.incarnation_id,
        endpoints=_endpoints(record.end_points),
        features=_features(record.features),
        zk_migration_ready=record.zk_migration_ready,
        record_version=version,
    )


def _unregister_broker(cluster: ClusterState, record: m.UnregisterBrokerRecord, version: int) -> None:
    cluster.broker_of(record.broker_id)
    del cluster.brokers[record.broker_id]


def _unregister_controller(cluster: ClusterState, record: m.UnregisterControllerRecord, version: int) -> None:
    cluster.controllers.pop(record.controller_id, None)


def _fence(cluster: ClusterState, record: m.FenceBrokerRecord, version: int) -> None:
    cluster.brokers[record.id] = replace(cluster.broker_of(record.id), fenced=True)


def _unfence(cluster: ClusterState, record: m.UnfenceBrokerRecord, version: int) -> None:
    cluster.brokers[record.id] = replace(cluster.broker_of(record.id), fenced=False)


def _change_broker(cluster: ClusterState, record: m.BrokerRegistrationChangeRecord, version: int) -> None:
    broker = cluster.broker_of(record.broker_id)
    if record.fenced:
        broker = replace(broker, fenced=record.fenced > 0)
    if record.in_controlled_shutdown:
        broker = replace(broker, in_controlled_shutdown=record.in_controlled_shutdown > 0)
    if record.log_dirs:
        at_least = max(broker.record_version, LOG_DIRS_VERSION)
        broker = replace(broker, log_dirs=tuple(record.log_dirs), record_version=at_least)
    if record.cordoned_log_dirs is not None:
        at_least = max(broker.record_version, CORDONED_LOG_DIRS_VERSION)
        broker = replace(broker, cordoned_log_dirs=tuple(record.cordoned_log_dirs), record_version=at_least)
    cluster.brokers[record.broker_id] = broker


def _topic(cluster: ClusterState, record: m.TopicRecord, version: int) -> None:
    cluster.topics[record.name] = Topic(name=record.name, topic_id=record.topic_id)
    cluster._names[record.topic_id] = record.name


def _remove_topic(cluster: ClusterState, record: m.RemoveTopicRecord, version: int) -> None:
    topic = cluster.topic_of(record.topic_id)
    del cluster.topics[topic.name], cluster._names[topic.topic_id]
    cluster.configs.pop((ConfigResource.TOPIC.label, topic.name), None)


def _partition(cluster: ClusterState, record: m.PartitionRecord, version: int) -> None:
    cluster.topic_of(record.topic_id).partitions[record.partition_id] = Partition(
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
        record_version=version,
    )


def _change_partition(cluster: ClusterState, record: m.PartitionChangeRecord, version: int) -> None:
    """Apply the fields that are set. Source: org.apache.kafka.metadata.PartitionRegistration.merge."""
    topic = cluster.topic_of(record.topic_id)
    partition = topic.partitions.get(record.partition_id)
    if partition is None:
        raise KeyError(f"partition {record.partition_id} of {topic.name}")
    if record.replicas is not None:
        partition.replicas = tuple(record.replicas)
    if record.isr is not None:
        partition.isr = tuple(record.isr)
    if record.removing_replicas is not None:
        partition.removing_replicas = tuple(record.removing_replicas)
    if record.adding_replicas is not None:
        partition.adding_replicas = tuple(record.adding_replicas)
    if record.directories is not None:
        partition.directories = tuple(record.directories)
    if record.eligible_leader_replicas is not None:
        partition.elr = tuple(record.eligible_leader_replicas)
    if record.last_known_elr is not None:
        partition.last_known_elr = tuple(record.last_known_elr)
    if record.leader != NO_LEADER_CHANGE:
        partition.leader = record.leader
        partition.leader_epoch += 1
    if record.leader_recovery_state != NO_RECOVERY_CHANGE:
        partition.recovering = record.leader_recovery_state == 1
    partition.partition_epoch += 1
    partition.record_version = max(partition.record_version, version)


def _clear_elr(cluster: ClusterState, record: m.ClearElrRecord, version: int) -> None:
    if record.topic_name and record.topic_name not in cluster.topics:
        raise KeyError(f"topic {record.topic_name}")
    topics = [cluster.topics[record.topic_name]] if record.topic_name else cluster.topics.values()
    for topic in topics:
        for partition in topic.partitions.values():
            partition.elr = partition.last_known_elr = ()


def _config(cluster: ClusterState, record: m.ConfigRecord, version: int) -> None:
    resource = (label(ConfigResource.of(record.resource_type)), record.resource_name)
    configs = cluster.configs.setdefault(resource, {})
    if record.value is None:
        configs.pop(record.name, None)
    else:
        configs[record.name] = record.value
    if not configs:
        del cluster.configs[resource]


def _quota(cluster: ClusterState, record: m.ClientQuotaRecord, version: int) -> None:
    entity = tuple(sorted((each.entity_type, each.entity_name) for each in record.entity))
    quotas = cluster.quotas.setdefault(entity, {})
    if record.remove:
        quotas.pop(record.key, None)
    else:
        quotas[record.key] = record.value
    if not quotas:
        del cluster.quotas[entity]


def _user(cluster: ClusterState, record: m.UserScramCredentialRecord, version: int) -> None:
    cluster.users[record.name, label(ScramMechanism.of(record.mechanism))] = ScramCredential(
        iterations=record.iterations,
        salt=bytes(record.salt),
        stored_key=bytes(record.stored_key),
        server_key=bytes(record.server_key),
    )


def _remove_user(cluster: ClusterState, record: m.RemoveUserScramCredentialRecord, version: int) -> None:
    cluster.users.pop((record.name, label(ScramMechanism.of(record.mechanism))), None)


def _acl(cluster: ClusterState, record: m.AccessControlEntryRecord, version: int) -> None:
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


def _token(cluster: ClusterState, record: m.DelegationTokenRecord, version: int) -> None:
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


def _feature(cluster: ClusterState, record: m.FeatureLevelRecord, version: int) -> None:
    if record.feature_level == 0 and record.name != METADATA_VERSION:
        cluster.features.pop(record.name, None)
    else:
        cluster.features[record.name] = record.feature_level


def _producer_ids(cluster: ClusterState, record: m.ProducerIdsRecord, version: int) -> None:
    cluster.next_producer_id = record.next_producer_id


def _zk_migration(cluster: ClusterState, record: m.ZkMigrationStateRecord, version: int) -> None:
    cluster.zk_migration_state = record.zk_migration_state


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
