"""Handlers of the transaction APIs: the response of every version."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kwire.broker.apis import handler
from kwire.broker.context import Peer, RequestContext
from kwire.broker.dispatch import Call
from kwire.broker.injection import respond
from kwire.broker.node import Node
from kwire.broker.transactions import ProducerIdAndEpoch, TransactionState, TwoPhase
from kwire.errors import BrokerError
from kwire.messages import (
    AddPartitionsToTxnRequest,
    DescribeTransactionsRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ListTransactionsRequest,
    registry,
)
from kwire.protocol.error_codes import ErrorCode
from kwire.storage.unsynced_files import UnsyncedFileSystem
from tests.broker.transactions.harness import World

A0, A1 = ("a", 0), ("a", 1)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def node(world: World, tmp_path: Path) -> Iterator[Node]:
    """A node with the topic a of two partitions, and a coordinator in memory."""
    endpoints = {"PLAINTEXT": ("localhost", 9092)}
    timers = world.clock.timers
    node = Node(world.settings, tmp_path / "data", endpoints, world.clock, timers, files=UnsyncedFileSystem())
    node.controller.create_topic("a", 2)
    own, node.coordinators.transactions = node.transactions, world.coordinator
    yield node
    node.coordinators.transactions = own
    node.close()


def ask(node: Node, request: Any, version: int) -> Any:
    """Encode and handle a request in this version, and decode the response."""
    request = type(request).decode(request.encode(version=version), version=version)
    context = RequestContext(
        peer=Peer(connection_id="1", host="127.0.0.1", port=1, listener="PLAINTEXT"),
        api_key=request.API_KEY,
        api_version=version,
        correlation_id=1,
        client_id="test",
        request_bytes=100,
    )
    response = respond(node, Call(handler(request.API_KEY), context, request, True, version))
    assert type(response) is registry.response(request.API_KEY)
    return type(response).decode(response.encode(version=version), version=version)


def init(node: Node, version: int, **values: Any) -> Any:
    request = InitProducerIdRequest(transaction_timeout_ms=60_000, **values)
    return ask(node, request, version)


def end(node: Node, version: int, producer: ProducerIdAndEpoch, committed: bool = True) -> Any:
    request = EndTxnRequest(
        transactional_id="t",
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        committed=committed,
    )
    return ask(node, request, version)


def add(node: Node, version: int, producer: ProducerIdAndEpoch, *indexes: int, verify_only: bool = False) -> Any:
    topics = [AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="a", partitions=list(indexes))]
    if version < 4:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="t",
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.producer_epoch,
            v3_and_below_topics=topics,
        )
    else:
        request = AddPartitionsToTxnRequest(
            transactions=[
                AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
                    transactional_id="t", **producer._asdict(), verify_only=verify_only, topics=topics
                )
            ]
        )
    response = ask(node, request, version)
    if version < 4:
        results = response.results_by_topic_v3_and_below
    else:
        [result] = response.results_by_transaction
        assert result.transactional_id == "t"
        results = result.topic_results
    return {
        (topic.name, each.partition_index): ErrorCode(each.partition_error_code)
        for topic in results
        for each in topic.results_by_partition
    }


@pytest.mark.parametrize("version", range(7))
def test_every_version_of_init_producer_id_returns_an_id(node: Node, version: int) -> None:
    answered = init(node, version, transactional_id="t")
    assert (answered.error_code, answered.producer_id, answered.producer_epoch) == (0, 1000, 0)
    answered = init(node, version, transactional_id=None)
    assert (answered.error_code, answered.producer_id, answered.producer_epoch) == (0, 1001, 0)


@pytest.mark.parametrize("version", range(3, 6))
def test_a_fenced_producer_that_recovers_gets_an_error_of_its_version(node: Node, version: int) -> None:
    init(node, version, transactional_id="t")
    init(node, version, transactional_id="t")
    answered = init(node, version, transactional_id="t", producer_id=1000, producer_epoch=0)
    assert answered.error_code == (ErrorCode.INVALID_PRODUCER_EPOCH if version < 4 else ErrorCode.PRODUCER_FENCED)
    assert (answered.producer_id, answered.producer_epoch) == (-1, -1)


def test_two_phase_commit_needs_a_setting(node: Node, world: World) -> None:
    answered = init(node, 6, transactional_id="t", enable2_pc=True)
    assert answered.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert init(node, 6, transactional_id=None, enable2_pc=True).error_code == 0  # as in Kafka
    assert init(node, 6, transactional_id="", enable2_pc=True).error_code == ErrorCode.INVALID_REQUEST
    assert init(node, 6, transactional_id="t", keep_prepared_txn=True).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert list(world.coordinator) == []


def test_transactions_with_two_phase_commit_have_no_timeout() -> None:
    world = World(transaction_two_phase_commit_enable=True)
    limit = world.settings.transaction_max_timeout_ms
    with pytest.raises(BrokerError) as refused:
        world.coordinator.init_producer_id("t", limit + 1)
    assert refused.value.code == ErrorCode.INVALID_TRANSACTION_TIMEOUT
    producer = world.coordinator.init_producer_id("t", limit + 1, two_phase=TwoPhase(enable=True))
    world.coordinator.add_partitions("t", producer, frozenset({A0}))
    world.coordinator.stop()  # no periodic checks
    world.clock.advance(2**32)
    world.coordinator.abort_timed_out()
    assert [each.status for each in world.coordinator] == [TransactionState.ONGOING]


@pytest.mark.parametrize("given", [{"producer_id": 5}, {"producer_epoch": 5}])
def test_a_producer_id_without_an_epoch_is_rejected(node: Node, given: dict[str, int]) -> None:
    assert init(node, 4, transactional_id="t", **given).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", range(6))
def test_partitions_are_added_and_transactions_ended_in_every_version(node: Node, world: World, version: int) -> None:
    producer = world.coordinator.init_producer_id("t", 1000)
    assert add(node, version, producer, 0, 1) == {A0: ErrorCode.NONE, A1: ErrorCode.NONE}
    answered = end(node, version, producer)
    after = (producer.producer_id, 1) if version == 5 else (-1, -1)
    assert (answered.error_code, answered.producer_id, answered.producer_epoch) == (0, *after)
    assert {*world.partitions.markers} == {A0, A1}


@pytest.mark.parametrize("version", range(6))
def test_one_unknown_partition_rejects_the_others(node: Node, world: World, version: int) -> None:
    producer = world.coordinator.init_producer_id("t", 1000)
    assert add(node, version, producer, 1, 2) == {
        A1: ErrorCode.OPERATION_NOT_ATTEMPTED,
        ("a", 2): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert world.coordinator.describe("t").topic_partitions == set()


@pytest.mark.parametrize("version", range(6))
def test_a_fenced_producer_gets_an_error_of_its_version(node: Node, world: World, version: int) -> None:
    producer = world.coordinator.init_producer_id("t", 1000)
    world.coordinator.init_producer_id("t", 1000)
    code = ErrorCode.INVALID_PRODUCER_EPOCH if version < 2 else ErrorCode.PRODUCER_FENCED
    assert add(node, version, producer, 0) == {A0: code}
    assert end(node, version, producer).error_code == code


@pytest.mark.parametrize("version", [4, 5])
def test_verify_only_adds_no_partitions(node: Node, world: World, version: int) -> None:
    producer = world.begin("t", A0)
    asked = add(node, version, producer, 0, 1, verify_only=True)
    assert asked == {A0: ErrorCode.NONE, A1: ErrorCode.TRANSACTION_ABORTABLE}
    assert world.coordinator.describe("t").topic_partitions == {A0}


def test_transactions_are_described(node: Node, world: World) -> None:
    world.clock.advance(5)
    producer = world.begin("t", A1, ("b", 3), A0)
    request = DescribeTransactionsRequest(transactional_ids=["t", "", "nobody"])
    found, empty, unknown = ask(node, request, 0).transaction_states
    assert (found.transaction_state, found.producer_id, found.producer_epoch) == ("Ongoing", *producer)
    assert (found.transaction_timeout_ms, found.transaction_start_time_ms) == (60_000, world.clock.now_ms())
    assert [(topic.topic, topic.partitions) for topic in found.topics] == [("a", [0, 1]), ("b", [3])]
    assert (empty.transactional_id, empty.error_code) == ("", ErrorCode.INVALID_REQUEST)
    assert (unknown.transactional_id, unknown.error_code) == ("nobody", ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)


def listed(node: Node, version: int = 2, **filters: Any) -> list[str]:
    response = ask(node, ListTransactionsRequest(**filters), version)
    assert response.error_code == 0
    return [state.transactional_id for state in response.transaction_states]


def test_transactions_are_listed_by_state_producer_duration_and_pattern(node: Node, world: World) -> None:
    first = world.begin("orders-1", A0)
    world.clock.advance(1000)
    second = world.begin("orders-2", A1)
    world.coordinator.init_producer_id("payments", 1000)
    world.coordinator.end("orders-2", second, True)
    assert listed(node) == listed(node, 0) == ["orders-1", "orders-2", "payments"]
    assert listed(node, state_filters=["Ongoing", "CompleteCommit"]) == ["orders-1", "orders-2"]
    assert listed(node, producer_id_filters=[first.producer_id]) == ["orders-1"]
    assert listed(node, duration_filter=999, state_filters=["Ongoing"]) == ["orders-1"]
    assert listed(node, duration_filter=1000, state_filters=["Ongoing"]) == []
    assert listed(node, transactional_id_pattern="orders-.") == ["orders-1", "orders-2"]
    assert listed(node, transactional_id_pattern="orders") == []
    assert listed(node, transactional_id_pattern="(o|p)[^-]+(-[12])?") == ["orders-1", "orders-2", "payments"]
    assert listed(node, transactional_id_pattern="") == ["orders-1", "orders-2", "payments"]


def test_patterns_match_whole_ids_in_bounded_time(node: Node, world: World) -> None:
    odd = "zahlung:ü/1 " + "a" * 40
    world.begin(odd, A0)
    assert listed(node, transactional_id_pattern=".*:ü/\\d a+") == [odd]
    assert listed(node, transactional_id_pattern="[^a]+a*") == []
    assert listed(node, transactional_id_pattern="(.*a)*b") == []


def test_invalid_filters_are_reported_or_rejected(node: Node, world: World) -> None:
    world.begin("t", A0)
    response = ask(node, ListTransactionsRequest(state_filters=["Ongoing", "Gone"]), 0)
    assert response.unknown_state_filters == ["Gone"]
    assert len(response.transaction_states) == 1
    assert listed(node, state_filters=["Gone"]) == []
    response = ask(node, ListTransactionsRequest(transactional_id_pattern="(("), 2)
    assert response.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
