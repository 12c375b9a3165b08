"""The nodes of a running cluster, on its thread: each has its own listeners, all share the logs of the first one.

A node that stops closes its connections; its leaders move to in-sync replicas, as in Kafka's controlled shutdown. Its
sockets are bound again without listening, so its port stays its own and clients are refused until it starts. A node
that crashes does the same, but the controller learns of it when its session ends (broker.session.timeout.ms).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kwire.broker import startup
from kwire.broker.faults.conditions import is_integer
from kwire.broker.network.server import Server
from kwire.errors import OptionError, counted, did_you_mean
from kwire.internal_topics.cluster_values import NO_LEADER
from kwire.internal_topics.names import GROUPS_TOPIC, TRANSACTIONS_TOPIC

if TYPE_CHECKING:
    from kwire.broker.clock import TimerHandle
    from kwire.broker.network.server import BoundListeners
    from kwire.broker.node import Node
    from kwire.broker.topics import Partition

__all__ = ["ClusterNodes"]


class Session(NamedTuple):
    """What is left of a crashed node in the controller. timer: until the session ends; ends: of the node's logs."""

    timer: TimerHandle
    ends: Mapping[Partition, int]


class ClusterNodes:
    """The nodes of a cluster. store: the node that opened the logs; it stays open while its listeners are closed.

    bound: the listeners of each node. bind: binds those of a node again.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        store: Node,
        bound: Mapping[int, BoundListeners],
        bind: Callable[[int], BoundListeners],
    ) -> None:
        self._loop, self.store, self._bound, self._bind = loop, store, dict(bound), bind
        self._servers: dict[int, Server] = {}
        self._sessions: dict[int, Session] = {}
        """Of nodes that crashed, until they end."""
        self._crashed: set[int] = set()
        """Nodes that have not started since they crashed."""

    # --- nodes

    def listen(self) -> None:
        """Let clients connect to every node."""
        for node_id in self.store.members.all:
            self._serve(node_id)

    def close(self) -> None:
        """Close all listeners and connections."""
        for server in self._servers.values():
            server.close()
        for bound in self._bound.values():
            bound.close()

    def stop(self, node_id: int) -> None:
        """Stop a node. Raises OptionError unless it is running."""
        self.check_running(node_id)
        self._fence(node_id, self.store.leadership.ends_of(node_id))
        self._disconnect(node_id)

    def crash(self, node_id: int) -> None:
        """Close a node's connections; its leaders move when its session ends. Raises OptionError unless it is running.

        Source: org.apache.kafka.controller.BrokerHeartbeatManager 4.4.0.
        """
        self.check_running(node_id)
        store = self.store
        store.members.crashed(node_id)
        self._crashed.add(node_id)
        self._disconnect(node_id)
        timer = store.timers.call_later(store.settings.broker_session_timeout_ms, lambda: self._end_session(node_id))
        self._sessions[node_id] = Session(timer, store.leadership.ends_of(node_id))

    def start(self, node_id: int) -> None:
        """Start a node that has stopped or crashed. Raises OptionError if it is running."""
        self._check_known(node_id)
        if node_id in self._servers:
            raise OptionError(f"node {node_id} is already running")
        has_crashed = node_id in self._crashed
        self._crashed.discard(node_id)
        if node_id in self._sessions:
            self._end_session(node_id)  # Kafka does not register a node whose former session has not ended
        store = self.store
        store.members.up(node_id)
        startup.register_again(store.controller, store.configs, store.members.all[node_id])
        store.leadership.node_started(node_id, has_crashed=has_crashed)
        self._serve(node_id)

    def start_all(self) -> None:
        """Start the nodes that have stopped."""
        for node_id in self.store.members.all:
            if node_id not in self._servers:
                self.start(node_id)

    def _fence(self, node_id: int, ends: Mapping[Partition, int]) -> None:
        self.store.members.down(node_id)
        startup.fence(self.store.controller, node_id)
        self.store.leadership.node_stopped(node_id, ends)

    def _end_session(self, node_id: int) -> None:
        session = self._sessions.pop(node_id)
        session.timer.cancel()
        self._fence(node_id, session.ends)

    def _disconnect(self, node_id: int) -> None:
        self._servers.pop(node_id).close()
        self._bound[node_id] = self._bind(node_id)

    def is_running(self, node_id: int) -> bool:
        """Return whether clients can connect to a node."""
        return node_id in self._servers

    def served(self) -> list[Node]:
        """Return the running nodes."""
        return [server.node for server in self._servers.values()]

    def _serve(self, node_id: int) -> None:
        node = self.store.joined(self.store.members.all[node_id])
        server = self._servers[node_id] = Server(node, self._loop, self._bound[node_id])
        server.listen()

    def _check_known(self, node_id: int) -> None:
        known = self.store.members.all
        if not is_integer(node_id) or node_id not in known:
            raise OptionError(f"unknown node {node_id!r}: the cluster has {listed(known)}")

    def check_running(self, node_id: int) -> None:
        """Raise OptionError unless a node exists and is running."""
        self._check_known(node_id)
        if node_id not in self._servers:
            raise OptionError(f"node {node_id} is not running; start it first")

    # --- partitions

    def partition(self, topic: str, index: int) -> Partition:
        """Return a partition. Raises OptionError for an unknown one."""
        topics = self.store.topics
        known = topics.get(topic)
        if known is None:
            raise OptionError(f"unknown topic {topic!r}{did_you_mean(str(topic), [each.name for each in topics])}")
        if index not in known.partitions:
            raise OptionError(f"unknown partition {index!r}: topic {topic!r} has {listed(known.partitions)}")
        return known.partitions[index]

    def move_leader(self, partition: Partition, to: int | None) -> int:
        """Make another in-sync replica the leader; to: the next one by default. Returns it. Raises OptionError."""
        state, running = partition.state, self._servers
        if to is not None:
            self.check_running(to)
            if to not in state.replicas:
                raise OptionError(f"node {to} has no replica of {partition.name}, which is on {listed(state.replicas)}")
            if to not in state.isr:
                raise OptionError(f"node {to} is not in sync: the ISR of {partition.name} is {listed(state.isr)}")
        else:
            start = state.replicas.index(state.leader) + 1 if state.leader in state.replicas else 0
            rest = [*state.replicas[start:], *state.replicas[:start]]
            to = next((each for each in rest if each in state.isr and each in running and each != state.leader), None)
            if to is None:
                raise OptionError(f"{partition.name} has no other in-sync replica that is running")
        self.store.leadership.move(partition, to)
        return to

    def move_coordinator(self, name: str, to: int | None) -> int:
        """Move the coordinator of a group or transactional id; returns its new node. Raises OptionError."""
        store = self.store
        groups = [group_id for group_id, _, _, _ in store.groups.listed((), ())]
        transactional_ids = [each.transactional_id for each in store.transactions]
        if name not in groups and name not in transactional_ids:
            hint = did_you_mean(str(name), [*groups, *transactional_ids])
            raise OptionError(f"unknown group or transactional id {name!r}{hint}")
        for topic, known in ((GROUPS_TOPIC, groups), (TRANSACTIONS_TOPIC, transactional_ids)):
            if name in known:
                to = self.move_leader(store.coordinators.partition_of(topic, name), to)
        assert to is not None
        return to

    def lose_records(self, partition: Partition, count: int, to: int | None) -> int:
        """Lose the last records of a partition with its leader; returns the new end of the log. Raises OptionError."""
        log, state = partition.opened, partition.state
        available = log.log_end_offset - log.log_start_offset
        if not is_integer(count) or not 1 <= count <= available:
            raise OptionError(f"{partition.name} cannot lose {count} of its {counted(available, 'record')}")
        running = [each for each in state.replicas if each in self._servers]
        if to is not None:
            self.check_running(to)
            if to not in running:
                raise OptionError(f"node {to} has no replica of {partition.name}, which is on {listed(state.replicas)}")
        elif state.leader == NO_LEADER or not running:
            raise OptionError(f"{partition.name} is offline: start one of {listed(state.replicas)} first")
        else:
            to = next((each for each in running if each != state.leader), state.leader)
        self.store.leadership.lose(partition, log.log_end_offset - count, to)
        return log.log_end_offset


def listed(numbers: Iterable[int]) -> str:
    """Format numbers for an error."""
    return ", ".join(map(str, numbers)) or "none"
