"""A Kafka cluster of several nodes in this process, over one store.

with Cluster(nodes=3) as cluster:
    cluster.create_topic("orders", 3)
    cluster.move_leader("orders", 0, to=2)
    cluster.stop(1)

Nodes differ in what clients see: address, id, rack, the partitions they lead, the groups and transactions they
coordinate. They share the logs, so nothing is replicated; docs/cluster.md says what that cannot show.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from kwire.broker.broker import KEPT_REQUESTS, LOCALHOST, Broker
from kwire.broker.cluster_nodes import ClusterNodes
from kwire.broker.configs.given import dotted, parse_settings, unless_given
from kwire.broker.configs.settings import Settings
from kwire.broker.faults.conditions import is_integer
from kwire.broker.network.listeners import parse_listeners
from kwire.broker.network.server import BoundListeners, bind_listeners
from kwire.broker.node import Node
from kwire.broker.replication.members import Member, Peers
from kwire.broker.reset import reset
from kwire.errors import OptionError
from kwire.identifiers import new_uuid

__all__ = ["Cluster", "ClusterNode"]

MAX_NODES, MAX_PORT = 100, 65535
Result = TypeVar("Result")
OF_ONE_NODE = {
    "advertised.listeners": "each node has its own address",
    "broker.id": "nodes are numbered from 1",
    "broker.rack": "use racks",
    "node.id": "nodes are numbered from 1",
}
"""Configs that differ from node to node, and what to do instead."""


class ClusterNode(NamedTuple):
    """A node of a cluster. address: host:port of its first listener. rack: None without one."""

    id: int
    address: str
    rack: str | None
    is_running: bool


class Cluster(Broker):
    """A Kafka cluster in this process. It has everything that a Broker has; its methods concern all nodes.

    nodes: their number; ids are 1, 2 and so on. racks: of each node in order. seed: places replicas at random, the same
    way each time; by default partition 0 of a topic has its leader on node 1, partition 1 on node 2, and so on. port:
    of node 1, the next ones for the others; 0 for free ports. configs: of all nodes. data_dir, host, keep_requests: see
    Broker. Raises OptionError for invalid settings, LogError for a directory that cannot be used.
    """

    def __init__(
        self,
        nodes: int = 3,
        racks: Sequence[str | None] | None = None,
        seed: int | None = None,
        *,
        data_dir: str | Path | None = None,
        port: int = 0,
        host: str = LOCALHOST,
        keep_requests: int = KEPT_REQUESTS,
        **configs: Any,
    ) -> None:
        if not is_integer(nodes) or not 1 <= nodes <= MAX_NODES:
            raise OptionError(f"invalid nodes {nodes!r}: must be 1 to {MAX_NODES}")
        if not is_integer(port) or not 0 <= port <= MAX_PORT - nodes + 1:
            raise OptionError(f"invalid port {port!r}: must be 0, or 1 to {MAX_PORT - nodes + 1} for {nodes} nodes")
        if seed is not None and not is_integer(seed):
            raise OptionError(f"invalid seed {seed!r}: must be an integer")
        if racks is not None and not (isinstance(racks, list | tuple) and all(map(is_rack, racks))):
            raise OptionError(f"invalid racks {racks!r}: must be a list of names")
        if racks is not None and len(racks) != nodes:
            raise OptionError(f"invalid racks: expected one for each of {nodes} nodes, got {len(racks)}")
        for name in configs:
            if dotted(name) in OF_ONE_NODE:
                raise OptionError(f"{name} cannot be a config of all nodes: {OF_ONE_NODE[dotted(name)]}")
        defaults: dict[str, object] = {"default_replication_factor": min(3, nodes)}
        if racks is not None:
            defaults["replica_selector_class"] = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
        if data_dir is None:
            defaults |= {"offsets_topic_num_partitions": nodes, "transaction_state_log_num_partitions": nodes}
        self._racks: Sequence[str | None] = racks if racks is not None else [None] * nodes
        self._seed = seed
        self._nodes: ClusterNodes | None = None
        self._node_ports: dict[int, dict[str, int]] = {}
        self._first_port = port
        settings: dict[str, Any] = {**unless_given(defaults, configs), **configs}
        super().__init__(data_dir, host=host, keep_requests=keep_requests, **settings)
        self.faults.nodes = range(1, nodes + 1)
        for listener in parse_listeners(self.settings, self.settings.listeners):
            if listener.port and nodes > 1:
                raise OptionError(f"listener {listener.name} has port {listener.port}, which nodes cannot share: use 0")

    def _parse(self, settings: Mapping[str, object], host: str, port: int) -> Settings:
        return parse_settings(settings, host, port, nodes=len(self._racks))

    def __repr__(self) -> str:
        return f"Cluster({self.bootstrap_servers})" if self.is_running else "Cluster(stopped)"

    # Use

    @property
    def nodes(self) -> list[ClusterNode]:
        """The nodes in order of their ids. Raises OptionError if the cluster is not running."""

        def describe(nodes: ClusterNodes) -> list[ClusterNode]:
            members = nodes.store.members
            return [
                ClusterNode(each.node_id, address(each), each.rack, nodes.is_running(each.node_id))
                for each in members.all.values()
            ]

        return self._on_nodes(describe)

    @property
    def bootstrap_servers(self) -> str:
        """host:port of the first listener of every node, separated by commas."""
        return ",".join(address(each) for each in self.node.members.all.values())

    def move_leader(self, topic: str, partition: int, to: int | None = None) -> int:
        """Make another in-sync replica the leader of a partition, and return its node.

        to: a node; the next in-sync replica by default. Raises OptionError for an unknown topic, partition or node, and
        one that is not an in-sync replica.
        """
        return self._on_nodes(lambda nodes: nodes.move_leader(nodes.partition(topic, partition), to))

    def move_coordinator(self, name: str, to: int | None = None) -> int:
        """Move the coordinator of a group or a transactional id to another node, and return that.

        All groups and transactional ids in the same partition of the internal topic move with it. Raises OptionError
        for an unknown name or node.
        """
        return self._on_nodes(lambda nodes: nodes.move_coordinator(name, to))

    def lose_records(self, topic: str, partition: int, count: int, to: int | None = None) -> int:
        """Lose the last records of a partition, as if its leader had failed before others had them.

        A replica without them becomes the leader (KIP-320); to: its node, by default another one if there is one. A
        batch is lost as a whole. Returns the new end of the log. Raises OptionError.
        """
        return self._on_nodes(lambda nodes: nodes.lose_records(nodes.partition(topic, partition), count, to))

    def reset(self) -> None:
        """Reset as Broker.reset does, and start all nodes."""

        def clean(nodes: ClusterNodes) -> None:
            reset(nodes.store)
            nodes.start_all()
            nodes.store.members.controller = next(iter(nodes.store.members.all))
            for node in nodes.served():
                node.throttling.clear()

        self._on_nodes(clean)

    # Start and stop

    def start(self, node: int | None = None) -> None:
        """Start a node that has stopped, by default the whole cluster; see Broker.start.

        The node keeps its address. Its replicas catch up at once, but its former leaders stay where they are.
        """
        if node is None:
            super().start()
        else:
            self._on_nodes(lambda nodes: nodes.start(node))

    def stop(self, node: int | None = None) -> None:
        """Stop a node cleanly, by default the whole cluster; see Broker.stop.

        The node's connections are closed and new ones refused. In-sync replicas lead its partitions; a partition
        without another one is offline until the node starts.
        """
        if node is None:
            super().stop()
        else:
            self._on_nodes(lambda nodes: nodes.stop(node))

    def crash(self, node: int) -> None:
        """Kill a node: its connections close, and the cluster learns of it later.

        Until the node's session ends (broker.session.timeout.ms, 9 s; advance passes them), Metadata has it as before,
        also as leader and coordinator, and clients cannot reach it. Then in-sync replicas lead. start() ends the
        session immediately.
        """
        self._on_nodes(lambda nodes: nodes.crash(node))

    def _on_nodes(self, function: Callable[[ClusterNodes], Result]) -> Result:
        nodes = self._nodes

        def run(_node: Node) -> Result:
            assert nodes is not None  # a cluster that runs has nodes
            return function(nodes)

        return self.call(run)

    def _forget(self) -> None:
        super()._forget()
        self._node_ports = {}

    # On the thread

    def _bind(self, node_id: int) -> BoundListeners:
        settings = self.settings
        known = self._node_ports.get(node_id, {})
        if self._first_port and not known:
            names = [each.name for each in parse_listeners(settings, settings.listeners)]
            step = len(names) * (node_id - 1)
            known = {name: self._first_port + step + index for index, name in enumerate(names)}
        bound = bind_listeners(settings, known)
        self._node_ports[node_id] = bound.ports
        return bound

    def _open(
        self, directory: Path, loop: asyncio.AbstractEventLoop, cleanup: contextlib.ExitStack
    ) -> tuple[Node, Callable[[], object]]:
        bound: dict[int, BoundListeners] = {}
        for node_id in range(1, len(self._racks) + 1):
            bound[node_id] = self._bind(node_id)
            cleanup.callback(bound[node_id].close)
        first, *rest = [
            Member(node_id=node_id, endpoints=bound[node_id].endpoints, rack=rack, directory_id=new_uuid())
            for node_id, rack in enumerate(self._racks, 1)
        ]
        settings = self.settings.replace(broker_rack=first.rack or "")
        node = self._make_node(settings, directory, first.endpoints, loop, Peers(rest, self._seed))
        cleanup.callback(node.close)
        self._nodes = ClusterNodes(loop, node, bound, self._bind)

        def listen() -> None:
            assert self._nodes is not None  # as above
            cleanup.callback(self._nodes.close)
            self._nodes.listen()

        return node, listen


def is_rack(value: object) -> bool:
    """Return whether a value is the name of a rack, or None for a node without one."""
    return value is None or isinstance(value, str)


def address(member: Member) -> str:
    """Return host:port of a node's first listener."""
    host, port = next(iter(member.endpoints.values()))
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
