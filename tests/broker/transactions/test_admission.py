"""Admission of transactional data, and its error codes for older and newer clients."""

from __future__ import annotations

import pytest

from kwire.broker.transactions import ClientSupport, ProducerIdAndEpoch, TransactionState, admit, produce_error
from kwire.errors import LogError
from kwire.protocol.error_codes import ErrorCode
from tests.broker.transactions.harness import World

A0, A1 = ("a", 0), ("a", 1)
BOTH = frozenset({A0, A1})
VERIFY, ABORTABLE, ADD = ClientSupport.VERIFY, ClientSupport.VERIFY_ABORTABLE, ClientSupport.ADD


def test_the_error_code_depends_on_the_request_version() -> None:
    assert [ClientSupport.of_produce(v) for v in (3, 10, 11, 12, 13)] == [VERIFY, VERIFY, ABORTABLE, ADD, ADD]
    assert [ClientSupport.of_offset_commit(v) for v in (0, 3, 4, 5)] == [VERIFY, VERIFY, ABORTABLE, ADD]


@pytest.mark.parametrize(
    ("support", "code"), [(VERIFY, ErrorCode.INVALID_TXN_STATE), (ABORTABLE, ErrorCode.TRANSACTION_ABORTABLE)]
)
def test_data_for_a_partition_outside_the_transaction_is_rejected(support: ClientSupport, code: ErrorCode) -> None:
    world = World()
    producer = world.begin("t", A0)
    assert admit(world.coordinator, "t", producer, BOTH, support) == {A1: code}
    world.coordinator.end("t", producer, True)
    assert admit(world.coordinator, "t", producer, BOTH, support) == {A0: code, A1: code}


def test_newer_clients_add_partitions_by_producing() -> None:
    world = World()
    producer = world.coordinator.init_producer_id("t", 1000)
    assert admit(world.coordinator, "t", producer, BOTH, ADD) == {}
    transaction = world.coordinator.describe("t")
    assert (transaction.status, transaction.topic_partitions) == (TransactionState.ONGOING, BOTH)
    following = world.coordinator.end("t", producer, True, 2)
    late = admit(world.coordinator, "t", producer, frozenset({A0}), ADD)
    assert late == {A0: ErrorCode.INVALID_PRODUCER_EPOCH}  # a request that was on its way when the transaction ended
    assert world.coordinator.describe("t").status == TransactionState.COMPLETE_COMMIT
    assert admit(world.coordinator, "t", following, frozenset({A0}), ADD) == {}


@pytest.mark.parametrize("support", list(ClientSupport))
def test_unknown_and_fenced_producers_are_rejected(support: ClientSupport) -> None:
    world = World()
    old = world.coordinator.init_producer_id("t", 1000)
    world.coordinator.init_producer_id("t", 1000)
    one = frozenset({A0})
    assert admit(world.coordinator, "t", old, one, support) == {A0: ErrorCode.INVALID_PRODUCER_EPOCH}
    stranger = ProducerIdAndEpoch(old.producer_id + 1, 0)
    assert admit(world.coordinator, "t", stranger, one, support) == {A0: ErrorCode.INVALID_PRODUCER_ID_MAPPING}
    assert admit(world.coordinator, "u", old, one, support) == {A0: ErrorCode.INVALID_PRODUCER_ID_MAPPING}
    assert admit(world.coordinator, "", old, one, support) == {A0: ErrorCode.INVALID_REQUEST}


@pytest.mark.parametrize("support", list(ClientSupport))
def test_clients_retry_while_markers_are_pending(support: ClientSupport) -> None:
    world = World()
    producer = world.begin("t", A0)
    world.partitions.broken[A0] = LogError("disk full")
    world.coordinator.end("t", producer, True)
    refused = admit(world.coordinator, "t", producer, frozenset({A0}), support)
    assert refused == {A0: ErrorCode.CONCURRENT_TRANSACTIONS}
    reported = produce_error(refused[A0], support)
    assert reported == (ErrorCode.CONCURRENT_TRANSACTIONS if support == ADD else ErrorCode.NOT_ENOUGH_REPLICAS)
    assert reported.retriable


@pytest.mark.parametrize("code", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE])
def test_a_busy_coordinator_is_reported_as_not_enough_replicas(code: ErrorCode) -> None:
    assert {produce_error(code, support) for support in ClientSupport} == {ErrorCode.NOT_ENOUGH_REPLICAS}
    assert produce_error(ErrorCode.INVALID_TXN_STATE, VERIFY) == ErrorCode.INVALID_TXN_STATE
