"""APIs that have little to do on one node: the responses are those of one Kafka 4.4.0 node to the same requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kwire import messages
from kwire.broker import Broker
from kwire.messages.error_codes import ErrorCode
from tests.broker.wire import RawClient

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
NOT_NEEDED = "Leader election not needed for topic partition."
UNREGISTERED = "The manual partition assignment includes broker {}, but no such broker is registered."


@pytest.fixture(scope="module")
def running() -> Iterator[Broker]:
    with Broker() as broker:
        broker.call(lambda node: node.controller.create_topic("t", 3))
        yield broker


@pytest.fixture(scope="module")
def client(running: Broker) -> Iterator[RawClient]:
    with RawClient(running) as client:
        yield client


def elect(client: RawClient, topics: dict[str, list[int]] | None, kind: int = 0) -> Any:
    cls = messages.ElectLeadersRequest
    asked = None if topics is None else [cls.TopicPartitions(topic=t, partitions=p) for t, p in topics.items()]
    return client.ask(cls(election_type=kind, topic_partitions=asked), 2)


def elected(response: Any) -> dict[str, list[Any]]:
    return {
        each.topic: [(p.partition_id, p.error_code, p.error_message) for p in each.partition_result]
        for each in response.replica_election_results
    }


@pytest.mark.parametrize("kind", [0, 1])
def test_every_partition_already_has_its_preferred_leader(client: RawClient, kind: int) -> None:
    response = elect(client, {"t": [0, 9], "unknown": [0], "other": []}, kind)
    assert response.error_code == 0
    assert elected(response) == {
        "t": [(0, ErrorCode.ELECTION_NOT_NEEDED, NOT_NEEDED), (9, UNKNOWN, "No such partition as t-9")],
        "unknown": [(0, UNKNOWN, "No such topic as unknown")],
        "other": [],
    }
    assert elected(elect(client, None, kind)) == {"t": []}


def test_an_unknown_election_type_is_an_error_of_every_partition(client: RawClient) -> None:
    response = elect(client, {"t": [0]}, 2)
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert elected(response) == {"t": [(0, ErrorCode.INVALID_REQUEST, "Unknown election type 2")]}
    assert elect(client, None, 2).error_code == ErrorCode.INVALID_REQUEST
    assert elect(client, {}, 2).error_code == 0


@pytest.mark.parametrize(
    ("topic", "index", "replicas", "code", "message"),
    [
        ("t", 0, [1], ErrorCode.NONE, None),
        ("t", 0, None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None),
        ("t", 0, [2], ErrorCode.INVALID_REPLICA_ASSIGNMENT, UNREGISTERED.format(2)),
        ("t", 0, [1, 2], ErrorCode.INVALID_REPLICA_ASSIGNMENT, UNREGISTERED.format(2)),
        ("t", 0, [-1], ErrorCode.INVALID_REPLICA_ASSIGNMENT, UNREGISTERED.format(-1)),
        (
            "t",
            0,
            [],
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes an empty replica list.",
        ),
        (
            "t",
            0,
            [1, 1],
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes the broker 1 more than once.",
        ),
        ("t", 9, [1], UNKNOWN, "Unable to find partition t:9."),
        ("unknown", 0, None, UNKNOWN, "Unable to find a topic named unknown."),
    ],
)
def test_partitions_cannot_be_reassigned_to_other_nodes(
    client: RawClient, topic: str, index: int, replicas: list[int] | None, code: ErrorCode, message: str | None
) -> None:
    cls = messages.AlterPartitionReassignmentsRequest
    partition = cls.ReassignablePartition(partition_index=index, replicas=replicas)
    request = cls(topics=[cls.ReassignableTopic(name=topic, partitions=[partition])])
    response = client.ask(request, 1)
    assert (response.error_code, response.error_message) == (0, None)
    result = response.responses[0].partitions[0]
    assert (result.partition_index, result.error_code, result.error_message) == (index, code, message)


def test_no_reassignment_is_in_progress(client: RawClient) -> None:
    cls = messages.ListPartitionReassignmentsRequest
    asked = [cls.ListPartitionReassignmentsTopics(name=name, partition_indexes=[0, 9]) for name in ("t", "unknown")]
    for topics in (None, asked):
        response = client.ask(cls(topics=topics), 0)
        assert (response.error_code, response.error_message, response.topics) == (0, None, [])


def quorum(client: RawClient, version: int, *partitions: tuple[str, int]) -> Any:
    cls = messages.DescribeQuorumRequest
    topics = [
        cls.TopicData(topic_name=name, partitions=[cls.PartitionData(partition_index=index)])
        for name, index in partitions
    ]
    return client.ask(cls(topics=topics), version)


def test_the_quorum_is_this_node(running: Broker, client: RawClient) -> None:
    end, epoch = running.call(lambda node: (node.metadata_log.last_offset + 1, node.metadata_log.leader_epoch))
    for version in range(3):
        response = quorum(client, version, ("__cluster_metadata", 0))
        found = response.topics[0].partitions[0]
        assert (found.error_code, found.leader_id, found.leader_epoch, found.high_watermark) == (0, 1, epoch, end)
        assert [(voter.replica_id, voter.log_end_offset) for voter in found.current_voters] == [(1, end)]
        assert found.observers == []
    assert [(node.node_id, node.listeners[0].port) for node in response.nodes] == [(1, running.port)]


@pytest.mark.parametrize("asked", [[("t", 0)], [("__cluster_metadata", 1)], [("__cluster_metadata", 0), ("t", 0)]])
def test_other_partitions_have_no_quorum(client: RawClient, asked: list[tuple[str, int]]) -> None:
    response = quorum(client, 2, *asked)
    assert (response.error_code, response.nodes) == (0, [])
    for topic in response.topics:
        assert [each.error_code for each in topic.partitions] == [UNKNOWN]
        assert topic.partitions[0].error_message == "This server does not host this topic-partition."


def test_resources_with_configs_are_listed_by_type() -> None:
    with Broker() as broker, RawClient(broker) as client:
        broker.call(lambda node: node.controller.create_topic("t", 1))
        broker.call(lambda node: node.controller.alter_client_metrics("sub", {"metrics": "x"}))

        def resources(types: list[int], version: int = 1) -> Any:
            response = client.ask(messages.ListConfigResourcesRequest(resource_types=types), version)
            return response.error_code, [(r.resource_name, r.resource_type) for r in response.config_resources]

        assert resources([]) == (0, [("sub", 16), ("1", 8), ("1", 4), ("t", 2)])
        assert resources([2, 16, 2]) == (0, [("sub", 16), ("t", 2)])
        assert resources([32]) == (0, [])
        assert resources([1]) == resources([2, 99]) == (ErrorCode.UNSUPPORTED_VERSION, [])
        assert resources([], version=0) == (0, [("sub", 16)])


def test_a_replica_can_move_only_to_its_own_directory(running: Broker, client: RawClient) -> None:
    path = running.call(lambda node: str(node.log_manager.path))
    cls = messages.AlterReplicaLogDirsRequest

    def move(*moves: tuple[str, str, list[int]]) -> dict[tuple[str, int], int]:
        dirs = [
            cls.AlterReplicaLogDir(path=target, topics=[cls.AlterReplicaLogDirTopic(name=name, partitions=indexes)])
            for target, name, indexes in moves
        ]
        results = client.ask(cls(dirs=dirs), 2).results
        return {(r.topic_name, p.partition_index): p.error_code for r in results for p in r.partitions}

    missing = ErrorCode.LOG_DIR_NOT_FOUND
    assert move((path, "t", [0, 1, 9]), (path, "unknown", [0])) == {
        ("t", 0): 0,
        ("t", 1): 0,
        ("t", 9): UNKNOWN,
        ("unknown", 0): UNKNOWN,
    }
    assert move(("/other", "t", [0]), ("relative", "unknown", [0])) == {("t", 0): missing, ("unknown", 0): missing}
    assert move((path, "t", [0]), ("/other", "t", [0, 1])) == {("t", 0): missing, ("t", 1): missing}


def test_a_cordoned_directory_is_described_as_such(running: Broker, client: RawClient) -> None:
    def is_cordoned() -> bool:
        return bool(client.ask(messages.DescribeLogDirsRequest(topics=None), 5).results[0].is_cordoned)

    assert not is_cordoned()
    running.call(lambda node: node.controller.alter_broker_configs("1", {"cordoned.log.dirs": "*"}))
    assert is_cordoned()
    running.call(lambda node: node.controller.alter_broker_configs("1", {"cordoned.log.dirs": None}))
    assert not is_cordoned()
