"""What a cluster consists of, as its metadata log says: brokers, topics, settings, quotas, users, ACLs, features.

Records between BEGIN_TRANSACTION and END_TRANSACTION count together or, after ABORT_TRANSACTION, not at all. A record
about something that is not there (a fenced broker nobody registered, a partition of no topic) makes a controller stop;
here it goes to the problems and the rest goes on.
Source: MetadataDelta and the deltas it is made of, PartitionRegistration.merge, BrokerRegistration of 3.9 and 4.x;
KIP-631, KIP-866, KIP-966 (eligible leaders), KIP-1066 (cordoned directories).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from kwire.internal_topics.enums import (
    CONFIG_RESOURCES,
    OPERATIONS,
    PATTERNS,
    PERMISSIONS,
    RESOURCES,
    SCRAM_MECHANISMS,
    SECURITY_PROTOCOLS,
    word,
)
from kwire.internal_topics.typed_record import Problems, TypedRecord

__all__ = [
    "Acl",
    "ClusterState",
    "DelegationToken",
    "Endpoint",
    "Node",
    "Partition",
    "ScramCredential",
    "Topic",
    "Voter",
]

NO_LEADER_CHANGE = -2
NO_RECOVERY_CHANGE = -1
METADATA_VERSION = "metadata.version"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A listener: its name, where it is, its security protocol (None where the record does not say)."""

    name: str
    host: str
    port: int
    security_protocol: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A registered broker or controller.

    epoch: of the registration, -1 for a controller. features: name -> (lowest, highest) version it supports.
    fenced, in_controlled_shutdown, rack, log_dirs, cordoned_log_dirs: of brokers.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A partition's replicas (by node id) and leader; leader -1 is none.

    elr: eligible leaders outside the isr (KIP-966). recovering: after an unclean election, until the leader is done.
    """

    partition: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    removing_replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    recovering: bool
    directories: tuple[UUID, ...]
    elr: tuple[int, ...]
    last_known_elr: tuple[int, ...]


@dataclass(slots=True, kw_only=True)
class Topic:
    """A topic and its partitions by number."""

    name: str
    topic_id: UUID
    partitions: dict[int, Partition] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramCredential:
    """A user's password as the cluster keeps it. salt, stored_key, server_key are secrets."""

    user: str
    mechanism: str
    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Acl:
    """Who may do, or must not do, what on which resource from where."""

    acl_id: UUID
    resource_type: str
    resource_name: str
    pattern_type: str
    principal: str
    host: str
    operation: str
    permission: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationToken:
    """A delegation token; times in ms. token_id is half of what it takes to use it."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp: int
    max_timestamp: int
    expiration_timestamp: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Voter:
    """A member of the metadata quorum. directory_id: zero where the record does not say."""

    node_id: int
    directory_id: UUID
    endpoints: tuple[Endpoint, ...] = ()


QuotaEntity = tuple[tuple[str, str | None], ...]  # (type, name) pairs; name None is the default


@dataclass(slots=True, kw_only=True)
class ClusterState:
    """The cluster at one point of its metadata log.

    end_offset, end_timestamp: state holds the records before this offset, the last of them of this time (-1 without).
    snapshot_offset: where the snapshot ended that it began with, None without.
    configs: (resource type, name; "" is the cluster's default) -> settings. quotas: entity -> quota. users: (name,
    mechanism). leader: the quorum's, -1 before the first election. open_transaction: records that no end was seen of.
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
    leader: int = -1
    next_producer_id: int = -1
    zk_migration_state: int | None = None
    end_offset: int = 0
    end_timestamp: int = -1
    snapshot_offset: int | None = None
    open_transaction: list[TypedRecord] | None = None
    problems: Problems = field(default_factory=Problems)
    _names: dict[UUID, str] = field(default_factory=dict)

    def apply(self, record: TypedRecord) -> None:
        """Take in one usable record of the log."""
        self.end_offset, self.end_timestamp = record.offset + 1, record.timestamp
        if record.kind == "BeginTransactionRecord":
            self.open_transaction = []
        elif record.kind == "AbortTransactionRecord":
            self.open_transaction = None
        elif record.kind == "EndTransactionRecord":
            together, self.open_transaction = self.open_transaction, None
            for each in together or ():
                self._change(each)
        elif self.open_transaction is not None and not record.is_control:
            self.open_transaction.append(record)
        else:
            self._change(record)

    def _change(self, record: TypedRecord) -> None:
        change = CHANGES.get(record.kind)
        if change is None or record.value is None:
            return
        try:
            change(self, record.value)
        except KeyError as missing:
            what = f"{record.kind} about {missing.args[0]}, which is not there"
            self.problems.add(replace(record, error=what, error_field="value", error_position=0))

    def topic_name(self, topic_id: UUID) -> str | None:
        """The name of a topic that is there."""
        return self._names.get(topic_id)

    def topic_of(self, topic_id: UUID) -> Topic:
        """A topic by its id. Raises KeyError."""
        name = self._names.get(topic_id)
        if name is None:
            raise KeyError(f"topic id {topic_id}")
        return self.topics[name]

    def broker_of(self, node_id: int) -> Node:
        """A broker by its id. Raises KeyError."""
        if node_id not in self.brokers:
            raise KeyError(f"broker {node_id}")
        return self.brokers[node_id]


# ---- what each record changes


def _features(record: Any) -> dict[str, tuple[int, int]]:
    return {each.name: (each.min_supported_version, each.max_supported_version) for each in record.features}


def _endpoints(record: Any) -> tuple[Endpoint, ...]:
    return tuple(
        Endpoint(
            name=each.name,
            host=each.host,
            port=each.port,
            security_protocol=word(SECURITY_PROTOCOLS, each.security_protocol),
        )
        for each in record.end_points
    )


def _register_broker(cluster: ClusterState, record: Any) -> None:
    cluster.brokers[record.broker_id] = Node(
        node_id=record.broker_id,
        epoch=record.broker_epoch,
        incarnation_id=record.incarnation_id,
        endpoints=_endpoints(record),
        features=_features(record),
        rack=record.rack,
        fenced=record.fenced,
        in_controlled_shutdown=record.in_controlled_shutdown,
        log_dirs=tuple(record.log_dirs),
        cordoned_log_dirs=tuple(record.cordoned_log_dirs or ()),
    )


def _register_controller(cluster: ClusterState, record: Any) -> None:
    cluster.controllers[record.controller_id] = Node(
        node_id=record.controller_id,
        incarnation_id=record.incarnation_id,
        endpoints=_endpoints(record),
        features=_features(record),
    )


def _unregister_broker(cluster: ClusterState, record: Any) -> None:
    cluster.broker_of(record.broker_id)
    del cluster.brokers[record.broker_id]


def _unregister_controller(cluster: ClusterState, record: Any) -> None:
    cluster.controllers.pop(record.controller_id, None)


def _fence(fenced: bool) -> Callable[[ClusterState, Any], None]:
    def change(cluster: ClusterState, record: Any) -> None:
        cluster.brokers[record.id] = replace(cluster.broker_of(record.id), fenced=fenced)

    return change


def _change_broker(cluster: ClusterState, record: Any) -> None:
    broker = cluster.broker_of(record.broker_id)
    changed: dict[str, Any] = {}
    if record.fenced:
        changed["fenced"] = record.fenced > 0
    if record.in_controlled_shutdown:
        changed["in_controlled_shutdown"] = record.in_controlled_shutdown > 0
    if record.log_dirs:
        changed["log_dirs"] = tuple(record.log_dirs)
    if record.cordoned_log_dirs is not None:
        changed["cordoned_log_dirs"] = tuple(record.cordoned_log_dirs)
    cluster.brokers[record.broker_id] = replace(broker, **changed)


def _topic(cluster: ClusterState, record: Any) -> None:
    cluster.topics[record.name] = Topic(name=record.name, topic_id=record.topic_id)
    cluster._names[record.topic_id] = record.name


def _remove_topic(cluster: ClusterState, record: Any) -> None:
    topic = cluster.topic_of(record.topic_id)
    del cluster.topics[topic.name], cluster._names[topic.topic_id]
    cluster.configs.pop(("topic", topic.name), None)


def _partition(cluster: ClusterState, record: Any) -> None:
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
    )


PARTITION_LISTS = {
    "replicas": "replicas",
    "isr": "isr",
    "removing_replicas": "removing_replicas",
    "adding_replicas": "adding_replicas",
    "directories": "directories",
    "eligible_leader_replicas": "elr",
    "last_known_elr": "last_known_elr",
}


def _change_partition(cluster: ClusterState, record: Any) -> None:
    topic = cluster.topic_of(record.topic_id)
    if record.partition_id not in topic.partitions:
        raise KeyError(f"partition {record.partition_id} of {topic.name}")
    before = topic.partitions[record.partition_id]
    changed: dict[str, Any] = {"partition_epoch": before.partition_epoch + 1}
    for theirs, ours in PARTITION_LISTS.items():
        if (value := getattr(record, theirs)) is not None:
            changed[ours] = tuple(value)
    if record.leader != NO_LEADER_CHANGE:
        changed["leader"], changed["leader_epoch"] = record.leader, before.leader_epoch + 1
    if record.leader_recovery_state != NO_RECOVERY_CHANGE:
        changed["recovering"] = record.leader_recovery_state == 1
    topic.partitions[record.partition_id] = replace(before, **changed)


def _clear_elr(cluster: ClusterState, record: Any) -> None:
    names = [record.topic_name] if record.topic_name else list(cluster.topics)
    for name in names:
        if name not in cluster.topics:
            raise KeyError(f"topic {name}")
        partitions = cluster.topics[name].partitions
        for number, partition in partitions.items():
            partitions[number] = replace(partition, elr=(), last_known_elr=())


def _config(cluster: ClusterState, record: Any) -> None:
    place = (word(CONFIG_RESOURCES, record.resource_type), record.resource_name)
    settings = cluster.configs.setdefault(place, {})
    if record.value is None:
        settings.pop(record.name, None)
    else:
        settings[record.name] = record.value
    if not settings:
        del cluster.configs[place]


def _quota(cluster: ClusterState, record: Any) -> None:
    entity = tuple(sorted((each.entity_type, each.entity_name) for each in record.entity))
    quotas = cluster.quotas.setdefault(entity, {})
    if record.remove:
        quotas.pop(record.key, None)
    else:
        quotas[record.key] = record.value
    if not quotas:
        del cluster.quotas[entity]


def _user(cluster: ClusterState, record: Any) -> None:
    mechanism = word(SCRAM_MECHANISMS, record.mechanism)
    cluster.users[record.name, mechanism] = ScramCredential(
        user=record.name,
        mechanism=mechanism,
        iterations=record.iterations,
        salt=bytes(record.salt),
        stored_key=bytes(record.stored_key),
        server_key=bytes(record.server_key),
    )


def _remove_user(cluster: ClusterState, record: Any) -> None:
    cluster.users.pop((record.name, word(SCRAM_MECHANISMS, record.mechanism)), None)


def _acl(cluster: ClusterState, record: Any) -> None:
    cluster.acls[record.id] = Acl(
        acl_id=record.id,
        resource_type=word(RESOURCES, record.resource_type),
        resource_name=record.resource_name,
        pattern_type=word(PATTERNS, record.pattern_type),
        principal=record.principal,
        host=record.host,
        operation=word(OPERATIONS, record.operation),
        permission=word(PERMISSIONS, record.permission_type),
    )


def _remove_acl(cluster: ClusterState, record: Any) -> None:
    if record.id not in cluster.acls:
        raise KeyError(f"ACL {record.id}")
    del cluster.acls[record.id]


def _token(cluster: ClusterState, record: Any) -> None:
    cluster.tokens[record.token_id] = DelegationToken(
        token_id=record.token_id,
        owner=record.owner,
        requester=record.requester,
        renewers=tuple(record.renewers),
        issue_timestamp=record.issue_timestamp,
        max_timestamp=record.max_timestamp,
        expiration_timestamp=record.expiration_timestamp,
    )


def _remove_token(cluster: ClusterState, record: Any) -> None:
    cluster.tokens.pop(record.token_id, None)


def _feature(cluster: ClusterState, record: Any) -> None:
    if record.feature_level == 0 and record.name != METADATA_VERSION:
        cluster.features.pop(record.name, None)
    else:
        cluster.features[record.name] = record.feature_level


def _producer_ids(cluster: ClusterState, record: Any) -> None:
    cluster.next_producer_id = record.next_producer_id


def _zk_migration(cluster: ClusterState, record: Any) -> None:
    cluster.zk_migration_state = record.zk_migration_state


def _leader(cluster: ClusterState, record: Any) -> None:
    cluster.leader = record.leader_id
    if not cluster.voters:  # before KIP-853 elections alone name the voters
        cluster.voters = {
            each.voter_id: Voter(node_id=each.voter_id, directory_id=UUID(int=0)) for each in record.voters
        }


def _kraft_version(cluster: ClusterState, record: Any) -> None:
    cluster.kraft_version = record.kraft_version


def _voters(cluster: ClusterState, record: Any) -> None:
    cluster.voters = {
        each.voter_id: Voter(
            node_id=each.voter_id,
            directory_id=each.voter_directory_id,
            endpoints=tuple(Endpoint(name=e.name, host=e.host, port=e.port) for e in each.endpoints),
        )
        for each in record.voters
    }


CHANGES: dict[str, Callable[[ClusterState, Any], None]] = {
    "RegisterBrokerRecord": _register_broker,
    "UnregisterBrokerRecord": _unregister_broker,
    "BrokerRegistrationChangeRecord": _change_broker,
    "FenceBrokerRecord": _fence(True),
    "UnfenceBrokerRecord": _fence(False),
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
    "LEADER_CHANGE": _leader,
    "KRAFT_VERSION": _kraft_version,
    "KRAFT_VOTERS": _voters,
}
"""Kinds that are not here change nothing: NoOpRecord, snapshot headers and footers."""
