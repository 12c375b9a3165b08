"""Three nodes of a real Kafka, with the methods of Cluster that tests call on both."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from confluent_kafka.admin import AdminClient
from tests.interop.test_pulled_clusters import move_leader
from tests.waiting import until
from tools import kafka

from kwire.client import Client
from kwire.internal_topics.placement import partition_for

NODES = (1, 2, 3)


class RealNode(kafka.KafkaBroker):
    """A node of a real cluster. controllers: the port of each node's controller."""

    def __init__(
        self, directory: Path, node_id: int, controllers: dict[int, int], version: str, **settings: str | int
    ) -> None:
        super().__init__(directory, version=version, heap="256m")
        own = controllers[node_id]
        self.settings |= {
            "node.id": node_id,
            "broker.rack": f"r{node_id}",
            "controller.quorum.voters": ",".join(f"{each}@127.0.0.1:{port}" for each, port in controllers.items()),
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{own}",
            "offsets.topic.num.partitions": 3,
            "offsets.topic.replication.factor": 3,
            "transaction.state.log.replication.factor": 3,
            "auto.leader.rebalance.enable": "false",
            "default.replication.factor": 3,
            **settings,
        }


class RealCluster:
    """A real cluster, whose nodes are brokers and controllers in racks r1 to r3. settings: by Kafka's names."""

    def __init__(
        self, directory: Path, cleanup: contextlib.ExitStack, version: str = "3.9.1", **settings: str | int
    ) -> None:
        controllers = {node_id: kafka.free_port() for node_id in NODES}
        self.nodes = {each: RealNode(directory / str(each), each, controllers, version, **settings) for each in NODES}
        for node in self.nodes.values():
            cleanup.callback(node.stop, kill=True)  # without a quorum it would not end
        self.start()
        self.bootstrap_servers = ",".join(node.bootstrap_servers for node in self.nodes.values())

    def stop(self, node_id: int) -> None:
        """Stop a node."""
        self.nodes[node_id].stop()

    def crash(self, node_id: int) -> None:
        """Kill a node."""
        self.nodes[node_id].stop(kill=True)

    def start(self, node_id: int | None = None) -> None:
        """Start a node; by default all, none of which is ready before the others are."""
        nodes = list(self.nodes.values()) if node_id is None else [self.nodes[node_id]]
        with ThreadPoolExecutor(len(nodes)) as threads:
            list(threads.map(RealNode.__enter__, nodes))

    def advance(self, _ms: int) -> None:
        """Sessions end without help."""

    def move_leader(self, topic: str, partition: int) -> None:
        """Make another in-sync replica the leader of a partition."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
        former: list[int] = []
        with Client(self.bootstrap_servers) as client:

            def is_moved() -> bool:
                found = admin.list_topics(topic, timeout=60).topics[topic].partitions[partition]
                if former and found.leader not in (-1, *former):
                    return True
                former[:] = former or [found.leader]
                replicas = sorted(found.replicas, key=lambda each: (each == former[0], each not in found.isrs))
                move_leader(client, topic, partition, replicas)
                return False

            until(is_moved, f"the leader of {topic}-{partition} moves")

    def move_coordinator(self, name: str) -> None:
        """Make other nodes the coordinators of the group and of the transactional id with a name."""
        for topic in ("__consumer_offsets", "__transaction_state"):
            self.move_leader(topic, partition_for(name, 3))
