"""What clients see of three nodes of ours, compared with three nodes of a real Kafka 3.9.1.

The same requests go to both: topics, wrong nodes, old and new epochs, wrong coordinators, a stopped node, elections, a
killed node.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.broker.wire import RawClient
from tests.interop.real_cluster import NODES, RealCluster
from tests.waiting import until
from tools import kafka

from kwire import messages
from kwire.broker import Cluster
from kwire.records import BatchBuilder

pytestmark = [pytest.mark.jvm, pytest.mark.slow]

REPLICAS = {0: [1, 2, 3], 1: [2, 3, 1], 2: [3, 1, 2], 3: [1], 4: [2, 3]}
TOPIC = "t"


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Any], list[Any]]:
    with contextlib.ExitStack() as cleanup:
        theirs = observe(RealCluster(tmp_path_factory.mktemp("kafka"), cleanup))
    with Cluster(nodes=3, racks=["r1", "r2", "r3"], replica_selector_class="", min_insync_replicas=1) as ours:
        mine = observe(ours)
    return mine, theirs


def test_clients_see_the_same_of_both(seen: tuple[list[Any], list[Any]]) -> None:
    mine, theirs = seen
    assert len(mine) == len(theirs) > 40
    for (name, ours), (_, real) in zip(mine, theirs, strict=True):
        assert ours == real, name


def test_clients_see_the_same_of_a_node_that_was_killed(tmp_path: Path) -> None:
    with contextlib.ExitStack() as cleanup:
        theirs = observe_crash(RealCluster(tmp_path, cleanup))
    with Cluster(nodes=3, racks=["r1", "r2", "r3"], replica_selector_class="", min_insync_replicas=1) as ours:
        mine = observe_crash(ours)
    assert len(mine) == len(theirs) > 30
    for (name, ours_seen), (_, real) in zip(mine, theirs, strict=True):
        assert ours_seen == real, name


def observe_crash(cluster: Any) -> list[tuple[str, Any]]:
    """Return what the other nodes respond after a node was killed, before and after its session ended."""
    seen: list[tuple[str, Any]] = []

    def ask(node: int, request: Any, version: int) -> Any:
        with RawClient(cluster, node=node) as client:
            return client.ask(request, version)

    until(lambda: len(ask(1, messages.MetadataRequest(topics=[]), 12).brokers) == 3)
    create(ask)
    until(lambda: all(len(leaders(ask(node, by_name(), 12))) == 5 for node in NODES))
    cluster.crash(3)
    for when in ("before", "after"):
        seen += [(f"metadata {version} {when}", summary(ask(1, by_name(), version))) for version in range(13)]
        seen.append((f"cluster {when}", cluster_of(ask(2, messages.DescribeClusterRequest(), 1))))
        seen += [(f"produce to 2 on {node} {when}", produce(ask, node, 2)[::3]) for node in (1, 2)]
        seen += [(f"fetch {partition} on 2 {when}", fetch(ask, 2, partition)) for partition in (2, 4)]
        if when == "before":
            cluster.advance(9000)
            until(lambda: len(ask(1, messages.MetadataRequest(topics=[]), 12).brokers) == 2)
            until(lambda: all(leaders(ask(node, by_name(), 12))[2] == 1 for node in (1, 2)))
    return seen


def observe(cluster: Any) -> list[tuple[str, Any]]:
    """Return what a cluster responds, by name, in order."""
    seen: list[tuple[str, Any]] = []

    def ask(node: int, request: Any, version: int) -> Any:
        with RawClient(cluster, node=node) as client:
            return client.ask(request, version)

    until(lambda: len(ask(1, messages.MetadataRequest(topics=[]), 12).brokers) == 3)
    create(ask)
    until(lambda: all(len(leaders(ask(node, by_name(), 12))) == 5 for node in NODES))
    seen += [(f"metadata {version}", summary(ask(2, by_name(), version))) for version in range(13)]
    seen.append(("cluster", cluster_of(ask(3, messages.DescribeClusterRequest(), 1))))
    for node in NODES:
        for partition in REPLICAS:
            seen += [
                (f"produce to {partition} on {node}", produce(ask, node, partition)),
                (f"fetch {partition} on {node}", fetch(ask, node, partition)),
                (f"old fetch {partition} on {node}", fetch(ask, node, partition, version=10)),
                (f"offsets {partition} on {node}", list_offsets(ask, node, partition)),
                (f"epochs {partition} on {node}", end_offset(ask, node, partition)),
                (f"producers {partition} on {node}", producers(ask, node, partition)),
            ]
            for epoch in (0, 1):
                seen.append((f"fetch {partition} on {node} at {epoch}", fetch(ask, node, partition, epoch=epoch)))
    owner = coordinator(ask)
    heartbeat = messages.HeartbeatRequest(group_id="g", member_id="m", generation_id=1)
    describe = messages.DescribeGroupsRequest(groups=["g"])
    until(lambda: ask(owner, describe, 5).groups[0].error_code not in (14, 15, 16))  # it loads its groups first
    for name, node in (("coordinator", owner), ("another node", owner % 3 + 1)):
        seen.append((f"heartbeat to {name}", ask(node, heartbeat, 4).error_code))
        described = ask(node, describe, 5).groups[0]
        seen.append((f"describe group on {name}", (described.error_code, described.group_state)))
    cluster.stop(1)
    until(lambda: len(ask(2, messages.MetadataRequest(topics=[]), 12).brokers) == 2)
    until(lambda: leaders(ask(2, by_name(), 12))[3] == -1 and leaders(ask(3, by_name(), 12))[3] == -1)
    seen += [(f"metadata {each} without node 1", summary(ask(2, by_name(), each))) for each in (0, 1, 5, 7, 12)]
    for partition in REPLICAS:
        seen.append((f"produce to {partition} on 2 without 1", produce(ask, 2, partition)))
        seen.append((f"elect {partition}", elect(ask, partition)))
    return seen


def by_name() -> Any:
    return messages.MetadataRequest(topics=[messages.MetadataRequest.MetadataRequestTopic(name=TOPIC)])


def create(ask: Callable[..., Any]) -> None:
    cls = messages.CreateTopicsRequest
    assignments = [cls.CreatableReplicaAssignment(partition_index=i, broker_ids=r) for i, r in REPLICAS.items()]
    topic = cls.CreatableTopic(name=TOPIC, num_partitions=-1, replication_factor=-1)
    for index in REPLICAS:
        assignments[index].broker_ids = REPLICAS[0] if index > 2 else REPLICAS[index]
    topic.assignments = assignments
    response = ask(1, cls(topics=[topic], timeout_ms=30_000), 5)
    assert response.topics[0].error_code == 0, response
    alter = messages.AlterPartitionReassignmentsRequest
    moved = [alter.ReassignablePartition(partition_index=index, replicas=REPLICAS[index]) for index in (3, 4)]
    request = alter(topics=[alter.ReassignableTopic(name=TOPIC, partitions=moved)], timeout_ms=30_000)
    until(lambda: ask(1, request, 0).error_code == 0)

    def is_moved() -> bool:
        shown = summary(ask(1, by_name(), 12))[1]
        return [each[3] for each in shown[3:]] == [[1], [2, 3]]

    until(is_moved)


def leaders(response: Any) -> dict[int, int]:
    return {p.partition_index: p.leader_id for p in response.topics[0].partitions}


def summary(response: Any) -> Any:
    """Return what is comparable: not ports, ids of topics, and epochs that depend on how partitions were moved."""
    brokers = sorted((each.node_id, each.rack) for each in response.brokers)
    partitions = sorted(
        (
            p.partition_index,
            p.error_code,
            p.leader_id,
            list(p.replica_nodes),
            sorted(p.isr_nodes),
            list(p.offline_replicas),
        )
        for p in response.topics[0].partitions
    )
    return brokers, partitions, response.topics[0].error_code


def cluster_of(response: Any) -> Any:
    return sorted((each.broker_id, each.rack) for each in response.brokers)


def produce(ask: Callable[..., Any], node: int, partition: int) -> Any:
    builder = BatchBuilder()
    builder.append(None, b"v", timestamp=1)
    cls = messages.ProduceRequest
    data = cls.PartitionProduceData(index=partition, records=builder.build())
    topic = cls.TopicProduceData(name=TOPIC, partition_data=[data])
    response = ask(node, cls(acks=-1, timeout_ms=10_000, topic_data=[topic]), 10)
    part = response.responses[0].partition_responses[0]
    return (
        part.error_code,
        part.base_offset,
        part.log_start_offset,
        part.current_leader.leader_id,
        [(each.node_id, each.rack) for each in response.node_endpoints],
    )


def fetch(ask: Callable[..., Any], node: int, partition: int, *, version: int = 12, epoch: int = -1) -> Any:
    cls = messages.FetchRequest
    part = cls.FetchPartition(
        partition=partition, fetch_offset=0, current_leader_epoch=epoch, partition_max_bytes=1 << 20
    )
    topic = cls.FetchTopic(topic=TOPIC, partitions=[part])
    request = cls(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, session_epoch=-1, topics=[topic])
    response = ask(node, request, version)
    part = response.responses[0].partitions[0]
    return part.error_code, part.current_leader.leader_id, part.preferred_read_replica


def list_offsets(ask: Callable[..., Any], node: int, partition: int) -> Any:
    cls = messages.ListOffsetsRequest
    part = cls.ListOffsetsPartition(partition_index=partition, timestamp=-2)
    response = ask(node, cls(replica_id=-1, topics=[cls.ListOffsetsTopic(name=TOPIC, partitions=[part])]), 5)
    found = response.topics[0].partitions[0]
    return found.error_code, found.offset


def end_offset(ask: Callable[..., Any], node: int, partition: int) -> Any:
    cls = messages.OffsetForLeaderEpochRequest
    part = cls.OffsetForLeaderPartition(partition=partition, leader_epoch=0)
    request = cls(replica_id=-2, topics=[cls.OffsetForLeaderTopic(topic=TOPIC, partitions=[part])])
    return ask(node, request, 4).topics[0].partitions[0].error_code


def producers(ask: Callable[..., Any], node: int, partition: int) -> Any:
    cls = messages.DescribeProducersRequest
    response = ask(node, cls(topics=[cls.TopicRequest(name=TOPIC, partition_indexes=[partition])]), 0)
    return response.topics[0].partitions[0].error_code


def coordinator(ask: Callable[..., Any]) -> int:
    """Return the coordinator of the group; which it is depends on where Kafka places leaders."""
    found: list[int] = []

    def find() -> bool:
        response = ask(1, messages.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
        found[:] = [response.coordinators[0].node_id]
        return response.coordinators[0].error_code == 0

    until(find)
    return found[0]


def elect(ask: Callable[..., Any], partition: int) -> Any:
    cls = messages.ElectLeadersRequest
    topics = [cls.TopicPartitions(topic=TOPIC, partitions=[partition])]
    response = ask(2, cls(election_type=0, topic_partitions=topics, timeout_ms=10_000), 2)
    return [
        (p.error_code, p.error_message) for each in response.replica_election_results for p in each.partition_result
    ]


class EligibleNode(kafka.KafkaBroker):
    """A node of a cluster with eligible leader replicas; node 1 is the only controller, and is not stopped."""

    def __init__(self, directory: Path, node_id: int, controller: int) -> None:
        super().__init__(directory, version="4.4.0", heap="256m")
        self.settings |= {
            "process.roles": "broker,controller" if node_id == 1 else "broker",
            "node.id": node_id,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port}"
            + (f",CONTROLLER://127.0.0.1:{controller}" if node_id == 1 else ""),
            "auto.leader.rebalance.enable": "false",
            "broker.session.timeout.ms": 3000,
            "broker.heartbeat.interval.ms": 500,
        }


class EligibleCluster:
    """A real cluster of three nodes with the methods of Cluster that the comparison needs."""

    def __init__(self, directory: Path, cleanup: contextlib.ExitStack) -> None:
        controller = kafka.free_port()
        self.nodes = {each: EligibleNode(directory / str(each), each, controller) for each in NODES}
        for node in self.nodes.values():
            cleanup.enter_context(node)
        self.bootstrap_servers = ",".join(node.bootstrap_servers for node in self.nodes.values())

    def stop(self, node_id: int) -> None:
        """Stop a node."""
        self.nodes[node_id].stop()

    def crash(self, node_id: int) -> None:
        """Kill a node."""
        self.nodes[node_id].stop(kill=True)

    def start(self, node_id: int) -> None:
        """Start a node again."""
        self.nodes[node_id].__enter__()

    def advance(self, _ms: int) -> None:
        """Sessions end without help."""


ELIGIBLE = {"a": [2, 3], "b": [2, 3, 1], "c": [3], "d": [3, 1]}
"""Topics with the replicas of their partition."""
OUTAGES = [
    ("stop", 3), ("stop", 2), ("start", 3), ("start", 2), ("crash", 3), ("crash", 2), ("start", 3), ("start", 2),
    ("stop", 2), ("crash", 3), ("start", 2), ("start", 3),
]  # fmt: skip
Described = list[tuple[int, int, list[int], list[int], list[int], list[int]]]


def described(cluster: Any) -> Described:
    """Return error, leader, ISR, eligible leader replicas, last known ones and offline replicas of each topic."""
    cls = messages.DescribeTopicPartitionsRequest
    with RawClient(cluster, node=1) as client:
        topics = [cls.TopicRequest(name=each) for each in ELIGIBLE]
        response = client.ask(cls(topics=topics, response_partition_limit=100), 0)
    return [
        (
            each.error_code, each.leader_id, sorted(each.isr_nodes), sorted(each.eligible_leader_replicas or ()),
            list(each.last_known_elr or ()), sorted(each.offline_replicas),
        )
        for topic in sorted(response.topics, key=lambda topic: topic.name or "")
        for each in topic.partitions
    ]  # fmt: skip


def create_eligible(cluster: Any) -> None:
    """Create the topics, once all nodes are there."""
    cls = messages.CreateTopicsRequest
    config = cls.CreatableTopicConfig(name="min.insync.replicas", value="2")
    asked = [
        cls.CreatableTopic(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[cls.CreatableReplicaAssignment(partition_index=0, broker_ids=replicas)],
            configs=[config],
        )
        for name, replicas in ELIGIBLE.items()
    ]
    with RawClient(cluster, node=1) as client:
        until(lambda: len(client.ask(messages.MetadataRequest(topics=[]), 12).brokers) == 3)
        response = client.ask(cls(topics=asked, timeout_ms=10_000), 7)
        assert [each.error_code for each in response.topics] == [0] * len(asked)


def test_eligible_leader_replicas_are_the_same(tmp_path: Path) -> None:
    """Nodes stop, crash and start, until no replica is in sync; those that crashed are not eligible."""
    with Cluster(nodes=3, eligible_leader_replicas_version=1) as ours:
        create_eligible(ours)
        expected = [described(ours)]
        for action, node in OUTAGES:
            getattr(ours, action)(node)
            if action == "crash":
                ours.advance(9000)
            expected.append(described(ours))
    assert any(each[2] == [] and each[3] == [2, 3] for step in expected for each in step)
    assert any(each[2] == [] and each[3] == [2] and each[4] == [2] for step in expected for each in step)
    with contextlib.ExitStack() as cleanup:
        real = EligibleCluster(tmp_path, cleanup)
        create_eligible(real)
        seen = [settled(real, expected[0])]
        for number, (action, node) in enumerate(OUTAGES):
            getattr(real, action)(node)
            seen.append(settled(real, expected[number + 1]))
    assert list(zip(["the beginning", *OUTAGES], seen, strict=True)) == list(
        zip(["the beginning", *OUTAGES], expected, strict=True)
    )


def settled(cluster: Any, expected: Described) -> Described:
    """Return what a cluster describes once it is as expected, or does not change for a while."""
    deadline = time.monotonic() + 20
    while (now := described(cluster)) != expected and time.monotonic() < deadline:
        time.sleep(0.2)
    time.sleep(1)
    return described(cluster) if now == expected else now
