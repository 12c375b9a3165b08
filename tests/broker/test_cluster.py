"""A cluster of three nodes, as clients see it in raw requests."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from kwire import messages
from kwire.broker import Broker, Cluster
from kwire.errors import OptionError
from kwire.messages.error_codes import ErrorCode
from kwire.records import BatchBuilder, read_batches
from tests.broker.wire import RawClient

NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
RACKS = ("a", "b", "c")


@pytest.fixture(scope="module")
def running() -> Iterator[Cluster]:
    with Cluster(nodes=3, racks=RACKS) as cluster:
        yield cluster


@pytest.fixture
def cluster(running: Cluster) -> Iterator[Cluster]:
    running.create_topic("t", 3)
    yield running
    running.reset()


def ask(cluster: Cluster, node: int, request: Any, version: int) -> Any:
    """Send a request to a node and return the response."""
    with RawClient(cluster, node=node) as client:
        return client.ask(request, version)


def metadata(cluster: Cluster, node: int = 1, version: int = 12, topic: str = "t") -> Any:
    request = messages.MetadataRequest(topics=[messages.MetadataRequest.MetadataRequestTopic(name=topic)])
    return ask(cluster, node, request, version)


def partitions(cluster: Cluster, node: int = 1, version: int = 12, topic: str = "t") -> list[tuple[Any, ...]]:
    """Return (error, leader, leader epoch, replicas, ISR, offline replicas) of each partition."""
    (described,) = metadata(cluster, node, version, topic).topics
    return [
        (ErrorCode(p.error_code), p.leader_id, p.leader_epoch, p.replica_nodes, p.isr_nodes, p.offline_replicas)
        for p in sorted(described.partitions, key=lambda p: p.partition_index)
    ]


def test_a_client_that_expects_another_node_begins_again(cluster: Cluster) -> None:
    cluster_id = metadata(cluster).cluster_id
    for expected in (1, 2, 3):
        request = messages.ApiVersionsRequest(
            client_software_name="a", client_software_version="1", cluster_id=cluster_id, node_id=expected
        )
        codes = [ask(cluster, node, request, 5).error_code for node in (1, 2, 3)]
        again = ErrorCode.REBOOTSTRAP_REQUIRED
        assert codes == [0 if node == expected else again for node in (1, 2, 3)]


def batch(*values: bytes) -> bytes:
    builder = BatchBuilder()
    for value in values:
        builder.append(None, value, timestamp=1)
    return builder.build()


def produce(cluster: Cluster, node: int, partition: int = 0, *, version: int = 10, acks: int = -1) -> Any:
    """Produce one record and return the response."""
    cls = messages.ProduceRequest
    data = cls.PartitionProduceData(index=partition, records=batch(b"v"))
    topic = cls.TopicProduceData(name="t", partition_data=[data])
    return ask(cluster, node, cls(acks=acks, timeout_ms=1000, topic_data=[topic]), version)


def produced(response: Any) -> Any:
    return response.responses[0].partition_responses[0]


def fetch(
    cluster: Cluster,
    node: int,
    partition: int = 0,
    *,
    version: int = 12,
    offset: int = 0,
    epoch: int = -1,
    rack: str = "",
) -> Any:
    """Fetch one partition without waiting and return the response."""
    cls = messages.FetchRequest
    part = cls.FetchPartition(
        partition=partition, fetch_offset=offset, current_leader_epoch=epoch, partition_max_bytes=1 << 20
    )
    topic = cls.FetchTopic(topic="t", partitions=[part])
    if version >= 13:
        topic.topic_id = metadata(cluster).topics[0].topic_id
    request = cls(max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, session_epoch=-1, topics=[topic], rack_id=rack)
    return ask(cluster, node, request, version)


def fetched(response: Any) -> Any:
    return response.responses[0].partitions[0]


def values(cluster: Cluster, topic: str = "t") -> list[bytes | None]:
    return [record.value for record in cluster.records(topic)]


# ---- what the cluster looks like


@pytest.mark.parametrize("version", range(14))
def test_metadata_names_all_nodes_with_their_racks_and_the_leaders(cluster: Cluster, version: int) -> None:
    response = metadata(cluster, node=2, version=version)
    known = {each.node_id: f"{each.host}:{each.port}" for each in response.brokers}
    assert known == {node.id: node.address for node in cluster.nodes}
    if version >= 1:
        assert [each.rack for each in response.brokers] == list(RACKS)
        assert response.controller_id == 1
    (topic,) = response.topics
    assert [(p.leader_id, p.replica_nodes, p.isr_nodes) for p in topic.partitions] == [
        (1, [1, 2, 3], [1, 2, 3]),
        (2, [2, 3, 1], [2, 3, 1]),
        (3, [3, 1, 2], [3, 1, 2]),
    ]


def test_every_node_describes_the_same_cluster(cluster: Cluster) -> None:
    cluster.stop(3)
    for node in (1, 2):
        shown = ask(cluster, node, messages.DescribeClusterRequest(include_fenced_brokers=True), 2)
        assert [(each.broker_id, each.rack, each.is_fenced) for each in shown.brokers] == [
            (1, "a", False),
            (2, "b", False),
            (3, "c", True),
        ]
        running = ask(cluster, node, messages.DescribeClusterRequest(), 1)
        assert [each.broker_id for each in running.brokers] == [1, 2]


def test_the_quorum_has_all_nodes_as_voters_and_the_controller_as_leader(cluster: Cluster) -> None:
    cls = messages.DescribeQuorumRequest
    topic = cls.TopicData(topic_name="__cluster_metadata", partitions=[cls.PartitionData(partition_index=0)])
    cluster.stop(1)
    quorum = ask(cluster, 2, cls(topics=[topic]), 2).topics[0].partitions[0]
    assert quorum.leader_id == 2
    assert [each.replica_id for each in quorum.current_voters] == [1, 2, 3]


# ---- wrong nodes, KIP-951


def test_produce_to_a_follower_names_the_leader(cluster: Cluster) -> None:
    response = produce(cluster, 2)
    assert produced(response).error_code == NOT_LEADER
    leader = produced(response).current_leader
    assert (leader.leader_id, leader.leader_epoch) == (1, 0)
    (endpoint,) = response.node_endpoints
    assert (endpoint.node_id, f"{endpoint.host}:{endpoint.port}", endpoint.rack) == (1, cluster.nodes[0].address, "a")
    assert fetched(fetch(cluster, 2, version=10)).error_code == NOT_LEADER
    old = produce(cluster, 2, version=9)
    assert produced(old).error_code == NOT_LEADER
    assert values(cluster) == []
    assert produced(produce(cluster, 1)).error_code == 0


def test_fetch_from_a_follower_of_an_old_client_names_the_leader(cluster: Cluster) -> None:
    assert fetched(fetch(cluster, 2, version=10)).error_code == NOT_LEADER
    assert fetched(fetch(cluster, 2, version=12)).error_code == 0  # KIP-392


def test_a_node_without_a_replica_is_neither_leader_nor_follower(cluster: Cluster) -> None:
    cluster.create_topic("one", 1, replication_factor=1)
    cluster.reset()
    cluster.create_topic("t", 1, replication_factor=1)
    response = fetch(cluster, 2, version=16)
    assert fetched(response).error_code == NOT_LEADER
    assert fetched(response).current_leader.leader_id == 1
    assert [each.node_id for each in response.node_endpoints] == [1]
    cls = messages.ListOffsetsRequest
    part = cls.ListOffsetsPartition(partition_index=0, timestamp=-1)
    offsets = cls(topics=[cls.ListOffsetsTopic(name="t", partitions=[part])])
    assert ask(cluster, 2, offsets, 5).topics[0].partitions[0].error_code == NOT_LEADER
    assert ask(cluster, 1, offsets, 5).topics[0].partitions[0].error_code == 0


def test_epochs_of_clients_are_checked_on_the_leader(cluster: Cluster) -> None:
    cluster.move_leader("t", 0, to=2)
    assert fetched(fetch(cluster, 2, epoch=0)).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert fetched(fetch(cluster, 2, epoch=1)).error_code == 0
    assert fetched(fetch(cluster, 2, epoch=2)).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    response = fetch(cluster, 2, version=16, epoch=0)
    assert fetched(response).current_leader.leader_epoch == 1
    assert [each.node_id for each in response.node_endpoints] == [2]


# ---- moves, stops and starts


def test_a_moved_leader_has_a_new_epoch_which_its_batches_carry(cluster: Cluster) -> None:
    produce(cluster, 1)
    assert cluster.move_leader("t", 0) == 2
    assert partitions(cluster)[0] == (0, 2, 1, [1, 2, 3], [1, 2, 3], [])
    assert produced(produce(cluster, 1)).error_code == NOT_LEADER
    assert produced(produce(cluster, 2)).base_offset == 1
    batches = list(read_batches(fetched(fetch(cluster, 2)).records))
    assert [each.leader_epoch for each in batches] == [0, 1]
    cls = messages.OffsetForLeaderEpochRequest
    part = cls.OffsetForLeaderPartition(partition=0, leader_epoch=0)
    request = cls(replica_id=-2, topics=[cls.OffsetForLeaderTopic(topic="t", partitions=[part])])
    end = ask(cluster, 2, request, 4).topics[0].partitions[0]
    assert (end.error_code, end.leader_epoch, end.end_offset) == (0, 0, 1)


def test_a_stopped_node_leaves_leadership_and_isr_and_comes_back_as_a_follower(cluster: Cluster) -> None:
    epoch = cluster.call(lambda node: node.cluster.brokers[1].epoch)
    with RawClient(cluster, node=1) as client:
        cluster.stop(1)
        assert client.is_closed()
    with pytest.raises(ConnectionRefusedError):
        RawClient(cluster, node=1)
    assert partitions(cluster, 2) == [
        (0, 2, 1, [1, 2, 3], [2, 3], [1]),
        (0, 2, 0, [2, 3, 1], [2, 3], [1]),
        (0, 3, 0, [3, 1, 2], [3, 2], [1]),
    ]
    assert metadata(cluster, 2).controller_id == 2
    cluster.start(1)
    assert [each[1:] for each in partitions(cluster)] == [
        (2, 1, [1, 2, 3], [2, 3, 1], []),
        (2, 0, [2, 3, 1], [2, 3, 1], []),
        (3, 0, [3, 1, 2], [3, 2, 1], []),
    ]
    assert cluster.call(lambda node: node.cluster.brokers[1].epoch) > epoch


def test_a_crashed_node_is_in_the_metadata_until_its_session_ends(cluster: Cluster) -> None:
    before = partitions(cluster, 2)
    with RawClient(cluster, node=1) as client:
        cluster.crash(1)
        assert client.is_closed()
    with pytest.raises(ConnectionRefusedError):
        RawClient(cluster, node=1)
    assert [each.is_running for each in cluster.nodes] == [False, True, True]
    cluster.advance(2000)
    assert partitions(cluster, 2) == before
    assert [each.node_id for each in metadata(cluster, 2).brokers] == [1, 2, 3]
    assert metadata(cluster, 2).controller_id == 2
    assert produced(produce(cluster, 2)).error_code == NOT_LEADER
    cluster.advance(7000)
    assert partitions(cluster, 2) == [
        (0, 2, 1, [1, 2, 3], [2, 3], [1]),
        (0, 2, 0, [2, 3, 1], [2, 3], [1]),
        (0, 3, 0, [3, 1, 2], [3, 2], [1]),
    ]
    assert [each.node_id for each in metadata(cluster, 2).brokers] == [2, 3]
    assert produced(produce(cluster, 2)).error_code == 0
    cluster.start(1)
    assert [each[1] for each in partitions(cluster)] == [2, 2, 3]


def test_a_crashed_node_that_starts_has_lost_its_leaders_although_its_session_went_on(cluster: Cluster) -> None:
    epoch = cluster.call(lambda node: node.cluster.brokers[1].epoch)
    cluster.crash(1)
    cluster.start(1)
    assert [each[1:3] for each in partitions(cluster)] == [(2, 1), (2, 0), (3, 0)]
    assert [each[4] for each in partitions(cluster)] == [[2, 3, 1], [2, 3, 1], [3, 2, 1]]
    cluster.advance(60_000)  # the former session's end is not the new one's
    assert [each.is_running for each in cluster.nodes] == [True, True, True]
    assert cluster.call(lambda node: node.cluster.brokers[1].epoch) > epoch


def test_the_coordinator_stays_on_a_crashed_node_until_its_session_ends(cluster: Cluster) -> None:
    home = coordinator(cluster, "g")
    other = next(each.id for each in cluster.nodes if each.id != home)
    cluster.crash(home)
    assert coordinator(cluster, "g", other) == home
    cluster.advance(9000)
    assert coordinator(cluster, "g", other) != home


def test_an_unclean_leader_lacks_what_was_written_after_it_crashed(cluster: Cluster) -> None:
    cluster.reset()
    cluster.create_topic("t", 1, replication_factor=2, unclean_leader_election_enable=True)
    produce(cluster, 1)
    cluster.crash(2)
    produce(cluster, 1)
    cluster.advance(9000)
    produce(cluster, 1)
    cluster.stop(1)
    cluster.start(2)
    assert partitions(cluster, 3)[0][1:] == (2, 2, [1, 2], [2], [1])
    assert len(values(cluster)) == 1


def test_a_crashed_node_cannot_crash_stop_nor_lead(cluster: Cluster) -> None:
    cluster.crash(3)
    for call in (cluster.crash, cluster.stop, lambda node: cluster.move_leader("t", 0, to=node)):
        with pytest.raises(OptionError, match="node 3 is not running; start it first"):
            call(3)
    assert cluster.move_leader("t", 0) == 2
    assert cluster.move_leader("t", 0) == 1
    with pytest.raises(OptionError, match="unknown node 4: the cluster has 1, 2, 3"):
        cluster.crash(4)


def test_a_crashed_node_does_not_become_the_controller(cluster: Cluster) -> None:
    cluster.crash(2)
    cluster.crash(1)  # the controller
    assert metadata(cluster, 3).controller_id == 3
    cluster.advance(9000)
    assert metadata(cluster, 3).controller_id == 3
    cluster.start(1)
    assert metadata(cluster, 1).controller_id == 3


def test_the_session_of_a_crashed_node_is_a_config_and_reset_ends_it() -> None:
    with Cluster(nodes=2, broker_session_timeout_ms=100_000) as cluster:
        cluster.create_topic("t")
        cluster.crash(2)
        cluster.advance(50_000)
        assert partitions(cluster)[0][4] == [1, 2]
        cluster.advance(50_000)
        assert partitions(cluster)[0][4] == [1]
        cluster.start(2)
        cluster.crash(1)
        cluster.reset()
        cluster.advance(200_000)
        assert [each.is_running for each in cluster.nodes] == [True, True]


def test_a_reset_cluster_places_replicas_as_a_new_one_with_the_seed() -> None:
    def placed() -> list[list[int]]:
        cluster.create_topic("t", 12)
        return cluster.call(lambda node: [each.state.replicas for each in node.topics.get("t").partitions.values()])

    with Cluster(nodes=5, seed=7) as cluster:
        first = placed()
        cluster.reset()
        assert placed() == first


def test_a_partition_without_a_running_replica_is_offline(cluster: Cluster) -> None:
    cluster.reset()
    cluster.create_topic("t", 1, replication_factor=1)
    produce(cluster, 1)
    cluster.stop(1)
    assert partitions(cluster, 2) == [(ErrorCode.LEADER_NOT_AVAILABLE, -1, 1, [1], [1], [1])]
    assert partitions(cluster, 2, version=0)[0][3:5] == ([], [])
    assert produced(produce(cluster, 2)).error_code == NOT_LEADER
    cluster.start(1)
    assert partitions(cluster, 2) == [(0, 1, 2, [1], [1], [])]
    assert produced(produce(cluster, 1)).base_offset == 1


def test_acks_all_needs_min_insync_replicas(cluster: Cluster) -> None:
    cluster.reset()
    cluster.create_topic("t", 1, min_insync_replicas=2)
    cluster.stop(2)
    assert produced(produce(cluster, 1)).error_code == 0
    cluster.stop(3)
    assert produced(produce(cluster, 1)).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert produced(produce(cluster, 1, acks=1)).error_code == 0
    cluster.start(2)
    assert produced(produce(cluster, 1)).error_code == 0


def test_a_fetch_that_waits_learns_of_a_moved_leader(cluster: Cluster) -> None:
    cls = messages.FetchRequest
    part = cls.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20, current_leader_epoch=0)
    topic = cls.FetchTopic(topic="t", partitions=[part])
    request = cls(max_wait_ms=60_000, min_bytes=1, max_bytes=1 << 20, session_epoch=-1, topics=[topic])
    with RawClient(cluster, node=1) as client:
        client.send(request, 12)
        ask(cluster, 1, messages.MetadataRequest(topics=[]), 12)  # the fetch waits by now
        cluster.move_leader("t", 0, to=2)
        assert fetched(client.receive()).error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_a_rolling_restart_keeps_every_partition_online(cluster: Cluster) -> None:
    produce(cluster, 1)
    for node in (1, 2, 3):
        cluster.stop(node)
        other = node % 3 + 1
        assert all(each[0] == 0 and each[1] != node for each in partitions(cluster, other))
        cluster.start(node)
    assert values(cluster) == [b"v"]
    assert all(sorted(each[4]) == [1, 2, 3] for each in partitions(cluster))


# ---- coordinators


def coordinator(cluster: Cluster, key: str, kind: int = 0, node: int = 1) -> int:
    response = ask(cluster, node, messages.FindCoordinatorRequest(key_type=kind, coordinator_keys=[key]), 4)
    (found,) = response.coordinators
    assert found.error_code == 0
    return int(found.node_id)


def test_groups_are_spread_over_nodes_by_their_hash(cluster: Cluster) -> None:
    names = [f"group-{index}" for index in range(20)]
    found = {name: coordinator(cluster, name, node=index % 3 + 1) for index, name in enumerate(names)}
    assert set(found.values()) == {1, 2, 3}
    assert partitions(cluster, topic="__consumer_offsets") == [
        (0, 1, 0, [1, 2, 3], [1, 2, 3], []),
        (0, 2, 0, [2, 3, 1], [2, 3, 1], []),
        (0, 3, 0, [3, 1, 2], [3, 1, 2], []),
    ]


def test_other_nodes_are_not_the_coordinator_of_a_group(cluster: Cluster) -> None:
    owner = coordinator(cluster, "g")
    other = owner % 3 + 1
    heartbeat = messages.HeartbeatRequest(group_id="g", member_id="m", generation_id=1)
    assert ask(cluster, other, heartbeat, 4).error_code == ErrorCode.NOT_COORDINATOR
    assert ask(cluster, owner, heartbeat, 4).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    described = ask(cluster, other, messages.DescribeGroupsRequest(groups=["g"]), 5).groups[0]
    assert described.error_code == ErrorCode.NOT_COORDINATOR
    join = messages.JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[messages.JoinGroupRequest.JoinGroupRequestProtocol(name="range")],
    )
    assert ask(cluster, other, join, 5).error_code == ErrorCode.NOT_COORDINATOR
    assert ask(cluster, owner, join, 5).error_code == ErrorCode.MEMBER_ID_REQUIRED


def commit(cluster: Cluster, node: int, offset: int) -> int:
    cls = messages.OffsetCommitRequest
    part = cls.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    request = cls(group_id="g", topics=[cls.OffsetCommitRequestTopic(name="t", partitions=[part])])
    return int(ask(cluster, node, request, 5).topics[0].partitions[0].error_code)


def committed(cluster: Cluster, node: int) -> tuple[int, int]:
    cls = messages.OffsetFetchRequest
    topic = cls.OffsetFetchRequestTopic(name="t", partition_indexes=[0])
    response = ask(cluster, node, cls(group_id="g", topics=[topic]), 5)
    return response.error_code, response.topics[0].partitions[0].committed_offset


def test_a_moved_coordinator_reads_its_groups_from_the_log(cluster: Cluster) -> None:
    first = coordinator(cluster, "g")
    assert commit(cluster, first, 7) == 0
    moved = cluster.move_coordinator("g")
    assert moved != first
    assert coordinator(cluster, "g", node=moved) == moved
    assert commit(cluster, first, 8) == ErrorCode.NOT_COORDINATOR
    assert committed(cluster, moved) == (0, 7)
    cluster.stop(moved)
    after = coordinator(cluster, "g", node=first)
    assert committed(cluster, after) == (0, 7)


def test_members_that_wait_are_sent_to_the_new_coordinator(cluster: Cluster) -> None:
    owner = coordinator(cluster, "g")
    commit(cluster, owner, 1)
    cls = messages.JoinGroupRequest
    protocols = [cls.JoinGroupRequestProtocol(name="range")]
    join = cls(group_id="g", session_timeout_ms=10_000, rebalance_timeout_ms=60_000, protocol_type="consumer")
    join.protocols = protocols
    with RawClient(cluster, node=owner) as first, RawClient(cluster, node=owner) as second:
        join.member_id = first.ask(join, 5).member_id
        assert first.ask(join, 5).error_code == 0
        join.member_id = ""
        join.member_id = second.ask(join, 5).member_id
        second.send(join, 5)  # waits for the first member to join again
        ask(cluster, owner, messages.MetadataRequest(topics=[]), 12)
        cluster.move_coordinator("g")
        assert second.receive().error_code == ErrorCode.NOT_COORDINATOR


def init_producer(cluster: Cluster, node: int) -> Any:
    request = messages.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=10_000)
    return ask(cluster, node, request, 4)


def test_a_transactional_id_moves_with_its_partition(cluster: Cluster) -> None:
    owner = coordinator(cluster, "x", kind=1)
    other = owner % 3 + 1
    assert init_producer(cluster, other).error_code == ErrorCode.NOT_COORDINATOR
    first = init_producer(cluster, owner)
    assert first.error_code == 0
    assert cluster.move_coordinator("x", to=other) == other
    second = init_producer(cluster, other)
    assert (second.error_code, second.producer_id, second.producer_epoch) == (0, first.producer_id, 1)
    assert init_producer(cluster, owner).error_code == ErrorCode.NOT_COORDINATOR


# ---- lost records


def test_lost_records_are_gone_and_the_epochs_show_where(cluster: Cluster) -> None:
    for _ in range(5):
        produce(cluster, 1)
    assert cluster.lose_records("t", 0, 2) == 3
    assert partitions(cluster)[0] == (0, 2, 1, [1, 2, 3], [2, 1, 3], [])
    assert produced(produce(cluster, 2)).base_offset == 3
    cls = messages.OffsetForLeaderEpochRequest
    part = cls.OffsetForLeaderPartition(partition=0, leader_epoch=0, current_leader_epoch=1)
    request = cls(replica_id=-2, topics=[cls.OffsetForLeaderTopic(topic="t", partitions=[part])])
    end = ask(cluster, 2, request, 4).topics[0].partitions[0]
    assert (end.leader_epoch, end.end_offset) == (0, 3)
    assert fetched(fetch(cluster, 2, offset=5)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize("count", [0, -1, 3])
def test_a_partition_cannot_lose_records_that_it_does_not_have(cluster: Cluster, count: int) -> None:
    produce(cluster, 1)
    produce(cluster, 1)
    with pytest.raises(OptionError, match=r"t-0 cannot lose .* of its 2 records"):
        cluster.lose_records("t", 0, count)
    assert cluster.lose_records("t", 0, 2) == 0
    assert values(cluster) == []


def test_an_unclean_leader_lacks_what_was_written_while_it_was_stopped(cluster: Cluster) -> None:
    cluster.reset()
    cluster.create_topic("t", 1, replication_factor=2, unclean_leader_election_enable=True)
    produce(cluster, 1)
    cluster.stop(2)
    produce(cluster, 1)
    cluster.stop(1)
    assert partitions(cluster, 3)[0][:2] == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    cluster.start(2)
    assert partitions(cluster, 3)[0][1:] == (2, 2, [1, 2], [2], [1])
    assert len(values(cluster)) == 1
    cluster.start(1)
    assert partitions(cluster, 3)[0][1:] == (2, 2, [1, 2], [2, 1], [])


# ---- elections and reassignments


def elect(cluster: Cluster, kind: int, indexes: list[int] | None) -> dict[int, int]:
    cls = messages.ElectLeadersRequest
    asked = None if indexes is None else [cls.TopicPartitions(topic="t", partitions=indexes)]
    response = ask(cluster, 3, cls(election_type=kind, topic_partitions=asked), 2)
    return {p.partition_id: p.error_code for p in response.replica_election_results[0].partition_result}


def test_a_preferred_election_brings_leaders_back(cluster: Cluster) -> None:
    cluster.stop(1)
    assert elect(cluster, 0, [0]) == {0: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}
    cluster.start(1)
    assert [each[1] for each in partitions(cluster)] == [2, 2, 3]
    assert elect(cluster, 0, None) == {0: 0}
    assert elect(cluster, 0, [0, 1]) == {0: ErrorCode.ELECTION_NOT_NEEDED, 1: ErrorCode.ELECTION_NOT_NEEDED}
    assert [each[1] for each in partitions(cluster)] == [1, 2, 3]


def test_an_unclean_election_makes_a_late_replica_the_leader(cluster: Cluster) -> None:
    cluster.reset()
    cluster.create_topic("t", 1, replication_factor=2)
    produce(cluster, 1)
    cluster.stop(2)
    produce(cluster, 1)
    cluster.stop(1)
    cluster.start(2)
    assert partitions(cluster, 3)[0][1] == -1
    assert elect(cluster, 0, [0]) == {0: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}
    assert elect(cluster, 1, [0]) == {0: 0}
    assert partitions(cluster, 3)[0][1:5] == (2, 2, [1, 2], [2])
    assert len(values(cluster)) == 1


def reassign(cluster: Cluster, replicas: list[int] | None, *, may_change_factor: bool = True) -> int:
    cls = messages.AlterPartitionReassignmentsRequest
    part = cls.ReassignablePartition(partition_index=0, replicas=replicas)
    request = cls(
        topics=[cls.ReassignableTopic(name="t", partitions=[part])], allow_replication_factor_change=may_change_factor
    )
    return int(ask(cluster, 2, request, 1).responses[0].partitions[0].error_code)


def reassignments(cluster: Cluster) -> list[tuple[list[int], list[int], list[int]]]:
    response = ask(cluster, 2, messages.ListPartitionReassignmentsRequest(topics=None), 0)
    return [(p.replicas, p.adding_replicas, p.removing_replicas) for topic in response.topics for p in topic.partitions]


def test_a_partition_moves_to_other_nodes(cluster: Cluster) -> None:
    cluster.reset()
    cluster.create_topic("t", 1, replication_factor=2)
    produce(cluster, 1)
    assert reassign(cluster, [3, 2]) == 0
    assert reassignments(cluster) == []
    assert partitions(cluster)[0] == (0, 3, 1, [3, 2], [2, 3], [])
    assert values(cluster) == [b"v"]
    assert reassign(cluster, [3, 4]) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert reassign(cluster, [3], may_change_factor=False) == ErrorCode.INVALID_REPLICATION_FACTOR
    assert reassign(cluster, None) == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


def test_a_reassignment_waits_for_a_stopped_node_and_can_be_cancelled(cluster: Cluster) -> None:
    cluster.reset()
    cluster.create_topic("t", 1, replication_factor=1)
    cluster.stop(3)
    assert reassign(cluster, [3]) == 0
    assert reassignments(cluster) == [([3, 1], [3], [1])]
    assert reassign(cluster, None) == 0
    assert reassignments(cluster) == []
    assert partitions(cluster)[0][3:] == ([1], [1], [])
    assert reassign(cluster, [3]) == 0
    cluster.start(3)
    assert reassignments(cluster) == []
    assert partitions(cluster)[0][1:] == (3, 1, [3], [3], [])


# ---- racks


def test_consumers_read_from_the_replica_in_their_rack(cluster: Cluster) -> None:
    produce(cluster, 1)
    assert fetched(fetch(cluster, 1, rack="b")).preferred_read_replica == 2
    assert not fetched(fetch(cluster, 1, rack="b")).records
    assert fetched(fetch(cluster, 1, rack="a")).preferred_read_replica == -1
    assert fetched(fetch(cluster, 1, rack="elsewhere")).records
    assert fetched(fetch(cluster, 2, rack="b")).records
    cluster.stop(2)
    assert fetched(fetch(cluster, 1, rack="b")).preferred_read_replica == -1


# ---- faults and requests


def test_a_fault_can_be_for_one_node(cluster: Cluster) -> None:
    fault = cluster.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", topic="t", partition=1, node=2, on_call=2)
    codes = [produced(produce(cluster, node, partition)).error_code for node, partition in ((1, 0), (2, 1), (2, 1))]
    assert codes == [0, 0, NOT_LEADER]
    assert fault.hits == 1
    assert [each.node_id for each in cluster.requests.of("Produce")] == [1, 2, 2]
    assert cluster.wait_for("Produce", node=2).node_id == 2
    with cluster.faults.refuse(node=[2, 3], times=None):
        assert produced(produce(cluster, 1)).error_code == 0
        with pytest.raises((ConnectionError, AssertionError)):
            produce(cluster, 3)
    for when in ({"node": 4}, {"node": [1, 4]}):
        with pytest.raises(OptionError, match="node 4 can never match: the nodes are 1, 2, 3"):
            cluster.faults.observe("Fetch", **when)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="invalid node 'two'"):
        cluster.faults.refuse(node="two")  # type: ignore[typeddict-item]


# ---- wrong use


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda c: c.stop(4), "unknown node 4: the cluster has 1, 2, 3"),
        (lambda c: c.start(1), "node 1 is already running"),
        (lambda c: c.move_leader("tt", 0), "unknown topic 'tt' .did you mean 't'"),
        (lambda c: c.move_leader("t", 3), "unknown partition 3: topic 't' has 0, 1, 2"),
        (lambda c: c.move_leader("t", 0, to=9), "unknown node 9"),
        (lambda c: c.move_coordinator("nobody"), "unknown group or transactional id 'nobody'"),
        (lambda c: c.lose_records("t", 0, 1), "t-0 cannot lose 1 of its 0 records"),
        (lambda c: c.lose_records("t", 0, "1"), "t-0 cannot lose 1 of its 0 records"),
        (lambda c: c.stop(True), "unknown node True"),
        (lambda c: c.records(None), "unknown topic None"),
        (lambda c: c.move_coordinator(None), "unknown group or transactional id None"),
        (lambda c: c.create_topic(5), "invalid topic 5: must be a name"),
        (lambda c: c.create_topic("u", "3"), "invalid partitions '3': must be an integer"),
        (lambda c: c.create_topic("u", replication_factor=1.5), "invalid replication_factor 1.5: must be an integer"),
    ],
)
def test_what_does_not_exist_is_an_error_with_the_names_that_do(cluster: Cluster, call: Any, error: str) -> None:
    with pytest.raises(OptionError, match=error):
        call(cluster)


def test_a_stopped_node_cannot_stop_again_nor_lead(cluster: Cluster) -> None:
    cluster.stop(2)
    with pytest.raises(OptionError, match="node 2 is not running"):
        cluster.stop(2)
    with pytest.raises(OptionError, match="node 2 is not running"):
        cluster.move_leader("t", 0, to=2)


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"nodes": 0}, "invalid nodes 0: must be 1 to 100"),
        ({"nodes": "3"}, "invalid nodes '3'"),
        ({"racks": "abc"}, "must be a list of names"),
        ({"racks": 5}, "invalid racks 5: must be a list of names"),
        ({"racks": [1, 2, 3]}, "must be a list of names"),
        ({"seed": "x"}, "invalid seed 'x'"),
        ({"port": 65534}, "invalid port 65534: must be 0, or 1 to 65533 for 3 nodes"),
        ({"racks": ["a"]}, "expected one for each of 3 nodes, got 1"),
        ({"broker_rack": "a"}, "use racks"),
        ({"node_id": 4}, "numbered from 1"),
        ({"listeners": "PLAINTEXT://127.0.0.1:9092"}, "which nodes cannot share"),
    ],
)
def test_invalid_settings_of_a_cluster_are_refused(settings: dict[str, Any], error: str) -> None:
    with pytest.raises(OptionError, match=error):
        Cluster(**settings)


def test_a_cluster_continues_on_its_directory(tmp_path: Any) -> None:
    with Cluster(nodes=3, data_dir=tmp_path / "data", offsets_topic_num_partitions=3) as cluster:
        cluster.create_topic("t", 3)
        produce(cluster, 1)
        cluster.move_leader("t", 0, to=2)
        cluster.stop(3)
    with Cluster(nodes=3, data_dir=tmp_path / "data") as cluster:
        assert [each[1:] for each in partitions(cluster)] == [
            (1, 3, [1, 2, 3], [1, 2, 3], []),
            (2, 2, [2, 3, 1], [2, 3, 1], []),
            (3, 3, [3, 1, 2], [3, 1, 2], []),
        ]
        assert values(cluster) == [b"v"]
    with Broker(tmp_path / "data") as broker:
        assert [record.value for record in broker.records("t")] == [b"v"]


def test_the_whole_cluster_stops_and_starts_with_its_addresses() -> None:
    with Cluster(nodes=2) as cluster:
        before = cluster.nodes
        cluster.stop()
        with contextlib.closing(socket.socket()) as probe:
            host, port = before[1].address.split(":")
            assert probe.connect_ex((host, int(port)))
        cluster.start()
        assert cluster.nodes == before
