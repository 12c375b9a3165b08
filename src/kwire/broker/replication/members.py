"""The nodes of a cluster in this process, and what clients see of them.

All nodes share the logs, so a replica is a claim in the metadata: that of a running node has every record. A broker is
a cluster of one node. Nodes that the metadata log knows and that this process does not run, such as those of a
directory that was adopted from a larger cluster, are not members.

Source: kafka.server.metadata.KRaftMetadataCache 3.9.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

import msgspec

from kwire.internal_topics.cluster_values import NO_LEADER
from kwire.internal_topics.cluster_values import Partition as PartitionState
from kwire.messages.base import ZERO_UUID

__all__ = ["NO_NODE", "NO_PEERS", "Member", "Members", "Peers", "Replicas"]

NO_NODE = -1


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A node of the cluster. endpoints: advertised (host, port) by listener name. rack: None without one.

    directory_id: of its log directory.
    """

    node_id: int
    endpoints: Mapping[str, tuple[str, int]]
    rack: str | None = None
    directory_id: UUID = ZERO_UUID

    def endpoint(self, listener: str) -> tuple[str, int]:
        """Return the (host, port) advertised on a listener."""
        return self.endpoints.get(listener) or next(iter(self.endpoints.values()), ("", -1))


class Peers(NamedTuple):
    """The other nodes of a cluster. seed: of the placement of replicas, see Placement."""

    members: Sequence[Member] = ()
    seed: int | None = None


NO_PEERS = Peers()


class Replicas(NamedTuple):
    """The replicas of a partition as clients see them. leader: NO_LEADER while it is offline."""

    leader: int
    replicas: list[int]
    isr: list[int]
    offline: list[int]


class Members:
    """The nodes of a cluster by id, in order. running: those that clients can connect to.

    controller: the active controller, NO_NODE while no node is running.
    """

    def __init__(self, members: Iterable[Member]) -> None:
        self.all = {each.node_id: each for each in members}
        self.running = dict(self.all)
        self._crashed: set[int] = set()
        """Nodes in `running` whose sessions have not ended, although they are dead."""
        self.controller = next(iter(self.all))

    @property
    def is_single(self) -> bool:
        """Whether the cluster has one node only."""
        return len(self.all) == 1

    def up(self, node_id: int) -> None:
        """Record that a node is running."""
        self.running = {key: each for key, each in self.all.items() if key == node_id or key in self.running}
        if self.controller == NO_NODE:
            self.controller = node_id

    def down(self, node_id: int) -> None:
        """Record that a node has stopped; if it was the controller, the first of the others takes over."""
        self.running.pop(node_id, None)
        self._crashed.discard(node_id)
        self._elect_controller()

    def crashed(self, node_id: int) -> None:
        """Record that a node has died, which only the other voters of the quorum know until its session ends."""
        self._crashed.add(node_id)
        self._elect_controller()

    def _elect_controller(self) -> None:
        alive = [each for each in self.running if each not in self._crashed]
        if self.controller not in alive:
            self.controller = next(iter(alive), NO_NODE)

    def leader_of(self, state: PartitionState) -> int:
        """Return the leader of a partition, NO_LEADER while it is offline."""
        return state.leader if state.leader in self.running else NO_LEADER

    def replicas_of(self, state: PartitionState) -> Replicas:
        """Return the replicas of a partition; those that are not members are left out."""
        if self.is_single:
            replicas = list(self.running)
            return Replicas(self.leader_of(state), replicas, replicas, [])
        replicas = [each for each in state.replicas if each in self.all]
        return Replicas(
            self.leader_of(state),
            replicas,
            [each for each in state.isr if each in self.all],
            [each for each in replicas if each not in self.running],
        )

    def nearest(self, state: PartitionState, rack: str, selector: str) -> int:
        """Return the replica that a consumer in a rack reads: one that is there and in sync, else the leader.

        selector: replica.selector.class. Source: org.apache.kafka.common.replica.RackAwareReplicaSelector.
        """
        if not selector.endswith(".RackAwareReplicaSelector"):
            return state.leader
        near = [each for each in state.isr if each in self.running and self.running[each].rack == rack]
        return state.leader if state.leader in near or not near else near[0]

    def directories(self, replicas: Iterable[int]) -> list[UUID]:
        """Return the ids of the log directories of replicas, in their order."""
        return [self.all[each].directory_id if each in self.all else ZERO_UUID for each in replicas]
