"""Parts of a cluster: brokers, topics, partitions, ACLs, credentials, tokens, voters.

`ClusterState` makes these values from records of the metadata log.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

import msgspec

from kwire.internal_topics.enums import Operation, PatternType, Permission, ResourceType
from kwire.protocol import HIDDEN

__all__ = [
    "NO_LEADER",
    "Acl",
    "DelegationToken",
    "Endpoint",
    "Node",
    "Partition",
    "ScramCredential",
    "Topic",
    "Voter",
]

NO_LEADER = -1


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A listener's name and address. security_protocol: as a word, None where the record has none."""

    name: str
    host: str
    port: int
    security_protocol: str | None = None


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A registered broker or controller.

    epoch: of the registration, -1 for a controller. features: name -> (lowest, highest) supported version.
    fenced, in_controlled_shutdown, rack, log_dirs, cordoned_log_dirs, is_migrating_zk_broker: of brokers.
    zk_migration_ready: of controllers.
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


class Partition(msgspec.Struct, frozen=True, kw_only=True):
    """A partition's replicas (node ids) and leader, which is NO_LEADER while it is offline.

    elr: eligible leader replicas outside the ISR (KIP-966). recovering: after an unclean leader election, until the
    leader has recovered.
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


@dataclass(slots=True, kw_only=True)
class Topic:
    """A topic and its partitions by number."""

    name: str
    topic_id: UUID
    partitions: dict[int, Partition] = field(default_factory=dict)


class ScramCredential(msgspec.Struct, frozen=True, kw_only=True):
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


class DelegationToken(msgspec.Struct, frozen=True, kw_only=True):
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
