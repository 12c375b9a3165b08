"""The transaction coordinator on a manual clock: ids, fencing, completion, crashes, timeouts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kwire.broker.transactions import (
    NO_PRODUCER,
    Marker,
    ProducerIdAndEpoch,
    TransactionState,
)
from kwire.broker.transactions.metadata import LAST_EPOCH, MAX_EPOCH, producer_of
from kwire.errors import BrokerError, LogError
from kwire.internal_topics.transactions_state import Transaction
from kwire.protocol.error_codes import ErrorCode
from tests.broker.transactions.harness import World, error, read_transaction

A0, A1, OFFSETS = ("a", 0), ("a", 1), ("__consumer_offsets", 7)
TIMEOUT_MS = 60_000


def refused(call: Callable[[], object]) -> ErrorCode:
    """Return the error code of a rejected call."""
    with pytest.raises(BrokerError) as caught:
        call()
    return ErrorCode(caught.value.code)


def test_idempotent_producers_get_increasing_unique_ids() -> None:
    world = World()
    init = world.coordinator.init_producer_id
    assert [init(None, -1) for _ in range(3)] == [(1000, 0), (1001, 0), (1002, 0)]
    assert world.log.records == []


def test_producer_ids_are_never_reused_after_a_restart() -> None:
    world = World()
    first = {world.coordinator.init_producer_id(None, -1).producer_id for _ in range(1500)}
    coordinator = world.restart()
    assert len(first) == 1500
    assert not first & {coordinator.init_producer_id(None, -1).producer_id for _ in range(1500)}


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_timeouts_above_the_limit_are_rejected(timeout_ms: int) -> None:
    init = World().coordinator.init_producer_id
    assert refused(lambda: init("t", timeout_ms)) == ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert init("t", 900_000).producer_epoch == 0


def test_an_empty_transactional_id_is_always_rejected() -> None:
    c = World().coordinator
    for call in (
        lambda: c.init_producer_id("", TIMEOUT_MS),
        lambda: c.add_partitions("", NO_PRODUCER, frozenset({A0})),
        lambda: c.missing_partitions("", NO_PRODUCER, frozenset({A0})),
        lambda: c.end("", NO_PRODUCER, True),
        lambda: c.describe(""),
    ):
        assert refused(call) == ErrorCode.INVALID_REQUEST


@pytest.mark.requirement("P-02")
def test_a_second_producer_fences_the_first() -> None:
    world = World()
    old = world.coordinator.init_producer_id("t", TIMEOUT_MS)
    new = world.coordinator.init_producer_id("t", TIMEOUT_MS)
    assert new == (old.producer_id, old.producer_epoch + 1)
    c = world.coordinator
    assert refused(lambda: c.add_partitions("t", old, frozenset({A0}))) == ErrorCode.PRODUCER_FENCED
    assert refused(lambda: c.missing_partitions("t", old, frozenset({A0}))) == ErrorCode.PRODUCER_FENCED
    assert refused(lambda: c.end("t", old, True)) == ErrorCode.PRODUCER_FENCED
    assert refused(lambda: c.init_producer_id("t", TIMEOUT_MS, old)) == ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("transaction_version", [0, 1, 2])
def test_a_new_producer_aborts_the_open_transaction_first(transaction_version: int) -> None:
    world = World(transaction_version)
    old = world.begin("t", A0, A1)
    assert refused(lambda: world.coordinator.init_producer_id("t", TIMEOUT_MS)) == ErrorCode.CONCURRENT_TRANSACTIONS
    fencing = old.producer_epoch + (2 if transaction_version == 2 else 1)  # version 2 bumps at every end, too
    marker = Marker(old.producer_id, fencing, commit=False, coordinator_epoch=3)
    assert world.partitions.markers == {A0: [marker], A1: [marker]}
    assert world.coordinator.init_producer_id("t", TIMEOUT_MS) == (old.producer_id, fencing + 1)


def test_a_recovering_producer_gets_the_next_epoch() -> None:
    world = World()
    c = world.coordinator
    first = c.init_producer_id("t", TIMEOUT_MS)
    second = c.init_producer_id("t", TIMEOUT_MS, first)
    assert second == (first.producer_id, 1)
    assert c.init_producer_id("t", TIMEOUT_MS, first) == second  # a retry after a lost response gets the same result
    third = c.init_producer_id("t", TIMEOUT_MS, second)
    assert third.producer_epoch == 2
    assert refused(lambda: c.init_producer_id("t", TIMEOUT_MS, first)) == ErrorCode.PRODUCER_FENCED
    stranger = ProducerIdAndEpoch(first.producer_id + 500, 2)
    assert refused(lambda: c.init_producer_id("t", TIMEOUT_MS, stranger)) == ErrorCode.PRODUCER_FENCED


def test_a_producer_with_an_expired_id_gets_a_new_one() -> None:
    c = World().coordinator
    assert c.init_producer_id("t", TIMEOUT_MS, ProducerIdAndEpoch(7, 5)) == (1000, 0)


def empty(producer_epoch: int, **values: int) -> Transaction:
    return Transaction(
        transactional_id="t",
        producer_id=7,
        producer_epoch=producer_epoch,
        timeout_ms=1,
        last_update_timestamp=1,
        **values,
    )


@pytest.mark.parametrize("epoch", [LAST_EPOCH, MAX_EPOCH])
def test_exhausted_epochs_result_in_a_new_producer_id(epoch: int) -> None:
    world = World()
    assert world.put(empty(epoch)).init_producer_id("t", TIMEOUT_MS) == (1000, 0)


def test_the_response_to_an_exhausted_epoch_is_repeatable() -> None:
    world = World()
    c = world.put(empty(LAST_EPOCH))
    last = ProducerIdAndEpoch(7, LAST_EPOCH)
    new = c.init_producer_id("t", TIMEOUT_MS, last)
    assert new == (1000, 0)
    assert c.init_producer_id("t", TIMEOUT_MS, last) == new
    assert c.init_producer_id("t", TIMEOUT_MS, new) == (1000, 1)
    assert refused(lambda: c.init_producer_id("t", TIMEOUT_MS, last)) == ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("transaction_version", [0, 1, 2])
@pytest.mark.parametrize("epoch", [LAST_EPOCH - 1, LAST_EPOCH])
def test_fencing_at_the_last_epoch_results_in_a_new_producer_id(transaction_version: int, epoch: int) -> None:
    world = World(transaction_version)
    c = world.put(empty(epoch))
    c.add_partitions("t", ProducerIdAndEpoch(7, epoch), frozenset({A0}))
    assert refused(lambda: c.init_producer_id("t", TIMEOUT_MS)) == ErrorCode.CONCURRENT_TRANSACTIONS
    [marker] = world.partitions.markers[A0]
    assert epoch < marker.producer_epoch <= MAX_EPOCH
    assert c.init_producer_id("t", TIMEOUT_MS) == (1000, 0)


@pytest.mark.parametrize("commit", [True, False])
def test_ending_a_transaction_writes_one_marker_per_partition(commit: bool) -> None:
    world = World()
    producer = world.begin("t", A0, A1)
    world.coordinator.add_partitions("t", producer, frozenset({OFFSETS, A0}))
    assert world.coordinator.end("t", producer, commit) == NO_PRODUCER
    marker = Marker(*producer, commit, 3)
    assert world.partitions.markers == {A0: [marker], A1: [marker], OFFSETS: [marker]}
    assert world.coordinator.end("t", producer, commit) == NO_PRODUCER  # repeated: done before
    assert refused(lambda: world.coordinator.end("t", producer, not commit)) == ErrorCode.INVALID_TXN_STATE
    assert all(len(markers) == 1 for markers in world.partitions.markers.values())


def test_a_transaction_contains_only_added_partitions() -> None:
    world = World()
    producer = world.begin("t", A0)
    missing = world.coordinator.missing_partitions
    assert missing("t", producer, frozenset({A0, A1})) == {A1}
    other = ProducerIdAndEpoch(producer.producer_id + 1, 0)
    assert refused(lambda: missing("t", other, frozenset({A0}))) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert refused(lambda: missing("u", producer, frozenset({A0}))) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    world.coordinator.end("t", producer, True)
    assert missing("t", producer, frozenset({A0})) == {A0}


def test_adding_a_partition_twice_writes_nothing() -> None:
    world = World()
    producer = world.begin("t", A0, A1)
    before = len(world.log.records)
    world.coordinator.add_partitions("t", producer, frozenset({A1}))
    assert len(world.log.records) == before


def test_a_transaction_cannot_end_before_it_begins() -> None:
    world = World()
    producer = world.coordinator.init_producer_id("t", TIMEOUT_MS)
    for commit in (True, False):
        assert (
            refused(lambda commit=commit: world.coordinator.end("t", producer, commit)) == ErrorCode.INVALID_TXN_STATE
        )


@pytest.mark.parametrize("commit", [True, False])
def test_transaction_version_2_bumps_the_epoch_at_every_end(commit: bool) -> None:
    world = World()
    first = world.begin("t", A0, version=2)
    second = world.coordinator.end("t", first, commit, 2)
    assert second == (first.producer_id, first.producer_epoch + 1)
    assert world.partitions.markers == {A0: [Marker(*second, commit, 3)]}  # the marker fences what is still on its way
    assert world.coordinator.end("t", first, commit, 2) == second  # repeated
    c = world.coordinator
    assert refused(lambda: c.end("t", first, not commit, 2)) == ErrorCode.INVALID_TXN_STATE
    assert refused(lambda: c.end("t", second, True, 2)) == ErrorCode.INVALID_TXN_STATE
    assert refused(lambda: c.add_partitions("t", first, frozenset({A0}), 2)) == ErrorCode.PRODUCER_FENCED
    third = c.end("t", second, False, 2)  # an abort of nothing
    assert third == (first.producer_id, second.producer_epoch + 1)
    assert len(world.partitions.markers[A0]) == 1
    c.add_partitions("t", third, frozenset({A1}), 2)


def test_transaction_version_2_can_abort_an_empty_transaction() -> None:
    world = World()
    producer = world.coordinator.init_producer_id("t", TIMEOUT_MS)
    assert refused(lambda: world.coordinator.end("t", producer, True, 2)) == ErrorCode.INVALID_TXN_STATE
    assert world.coordinator.end("t", producer, False, 2) == (producer.producer_id, 1)
    assert world.coordinator.describe("t").status == TransactionState.COMPLETE_ABORT


def test_transaction_version_2_switches_producer_ids_when_epochs_are_exhausted() -> None:
    world = World()
    c = world.put(empty(LAST_EPOCH))
    last = ProducerIdAndEpoch(7, LAST_EPOCH)
    c.add_partitions("t", last, frozenset({A0}), 2)
    assert c.end("t", last, True, 2) == (1000, 0)
    assert world.partitions.markers == {A0: [Marker(7, MAX_EPOCH, True, 3)]}
    assert c.end("t", last, True, 2) == (1000, 0)  # repeated
    assert refused(lambda: c.end("t", last, False, 2)) == ErrorCode.INVALID_TXN_STATE
    c.add_partitions("t", ProducerIdAndEpoch(1000, 0), frozenset({A0}), 2)
    assert refused(lambda: c.end("t", last, True, 2)) == ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_an_older_client_can_replace_a_newer_one() -> None:
    world = World()
    first = world.begin("t", A0, version=2)
    second = world.coordinator.end("t", first, True, 2)
    world.coordinator.add_partitions("t", second, frozenset({A0}))
    assert world.coordinator.end("t", second, True) == NO_PRODUCER
    assert world.coordinator.end("t", second, True) == NO_PRODUCER
    assert [marker.producer_epoch for marker in world.partitions.markers[A0]] == [1, 1]


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_completes_once_all_markers_are_written(version: int, commit: bool) -> None:
    world = World()
    producer = world.begin("t", A0, A1, version=version)
    world.partitions.broken[A1] = LogError("disk full")
    world.coordinator.end("t", producer, commit, version)
    c = world.coordinator
    assert c.describe("t").topic_partitions == {A1}
    assert c.describe("t").is_prepared
    again = refused(lambda: c.end("t", producer, commit, version))
    assert again == ErrorCode.CONCURRENT_TRANSACTIONS
    assert refused(lambda: c.end("t", producer, not commit, version)) == ErrorCode.INVALID_TXN_STATE
    assert refused(lambda: c.init_producer_id("t", TIMEOUT_MS)) == ErrorCode.CONCURRENT_TRANSACTIONS
    now = producer_of(c.describe("t"))
    assert refused(lambda: c.add_partitions("t", now, frozenset({A0}))) == ErrorCode.CONCURRENT_TRANSACTIONS
    assert refused(lambda: c.missing_partitions("t", now, frozenset({A0}))) == ErrorCode.CONCURRENT_TRANSACTIONS
    world.clock.advance(1000)
    del world.partitions.broken[A1]
    world.clock.advance(1000)
    assert c.describe("t").is_idle
    assert [len(world.partitions.markers[partition]) for partition in (A0, A1)] == [1, 1]
    assert c.init_producer_id("t", TIMEOUT_MS).producer_id == producer.producer_id


def test_deleted_partitions_get_no_marker() -> None:
    world = World()
    producer = world.begin("t", A0, A1)
    world.partitions.broken[A0] = error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    world.coordinator.end("t", producer, True)
    assert world.coordinator.describe("t").status == TransactionState.COMPLETE_COMMIT
    assert list(world.partitions.markers) == [A1]


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (LogError("disk full"), ErrorCode.NOT_COORDINATOR),
        (error(ErrorCode.NOT_ENOUGH_REPLICAS), ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (error(ErrorCode.MESSAGE_TOO_LARGE), ErrorCode.UNKNOWN_SERVER_ERROR),
        (error(ErrorCode.INVALID_RECORD), ErrorCode.INVALID_RECORD),
    ],
)
def test_a_transition_that_cannot_be_written_is_not_applied(fault: BrokerError | LogError, code: ErrorCode) -> None:
    world = World()
    c = world.coordinator
    producer = world.begin("t", A0)
    steps = [
        lambda: c.init_producer_id("u", TIMEOUT_MS),
        lambda: c.add_partitions("t", producer, frozenset({A1})),
        lambda: c.end("t", producer, True),
        lambda: c.init_producer_id("t", TIMEOUT_MS),
    ]
    before = list(c)
    for step in steps:
        world.log.fail.append(fault)
        assert refused(step) == code
        assert list(c) == before
    assert world.partitions.markers == {}
    c.end("t", producer, True)


def test_a_completion_is_retried_until_it_is_written() -> None:
    world = World()
    producer = world.begin("t", A0)

    class SecondFails(type(world.log)):  # type: ignore[misc]
        def append(self, transaction: Transaction) -> None:
            if transaction.status == TransactionState.COMPLETE_COMMIT and self.fail:
                raise self.fail.pop()
            records, self.fail = self.fail, []
            super().append(transaction)
            self.fail = records

    world.log.__class__ = SecondFails
    world.log.fail.append(LogError("disk full"))
    world.coordinator.end("t", producer, True)
    assert world.coordinator.describe("t").status == TransactionState.PREPARE_COMMIT
    world.clock.advance(1000)
    assert world.coordinator.describe("t").status == TransactionState.COMPLETE_COMMIT
    assert len(world.partitions.markers[A0]) == 1


@pytest.mark.parametrize("transaction_version", [0, 1, 2])
@pytest.mark.parametrize("commit", [True, False])
def test_a_decision_made_before_a_crash_is_completed_after_it(transaction_version: int, commit: bool) -> None:
    world = World(transaction_version)
    producer = world.begin("t", A0, OFFSETS, version=transaction_version)
    world.partitions.broken = {A0: LogError("the machine stops"), OFFSETS: LogError("the machine stops")}
    after = world.coordinator.end("t", producer, commit, transaction_version)
    decided = world.coordinator.describe("t")
    world.partitions.broken = {}
    c = world.restart()
    marker = Marker(*producer_of(decided), commit, 3)
    assert world.partitions.markers == {A0: [marker], OFFSETS: [marker]}
    state = c.describe("t").status
    assert state == (TransactionState.COMPLETE_COMMIT if commit else TransactionState.COMPLETE_ABORT)
    assert c.end("t", producer, commit, transaction_version) == after  # the response is still repeatable


def test_a_crash_at_every_append_loses_no_decision_and_no_epoch() -> None:
    """For any end of the log, the next producer has a later epoch than any marker or response."""
    world = World()
    seen = []
    for round_ in range(4):
        producer = world.begin("t", A0, A1, version=2)
        seen.append(producer)
        seen.append(world.coordinator.end("t", producer, round_ % 2 == 0, 2))
    records = world.log.records
    for cut in range(1, len(records) + 1):
        other = World()
        other.log.records = list(records[:cut])
        other.next_block = 50_000
        c = other.restart()
        kept = read_transaction(records[cut - 1][0], records[cut - 1][1] or b"")
        try:
            new = c.init_producer_id("t", TIMEOUT_MS)
        except BrokerError:
            new = c.init_producer_id("t", TIMEOUT_MS)
        assert new.producer_id == kept.producer_id
        assert new.producer_epoch > kept.producer_epoch
        assert not c.describe("t").topic_partitions


def test_a_timed_out_transaction_is_aborted_and_its_producer_fenced() -> None:
    world = World()
    slow, fast = world.begin("slow", A0), world.coordinator.init_producer_id("fast", 5000)
    world.coordinator.add_partitions("fast", fast, frozenset({A1}))
    world.clock.advance(20_000)
    assert A0 not in world.partitions.markers
    assert [marker.commit for marker in world.partitions.markers[A1]] == [False]
    assert refused(lambda: world.coordinator.end("fast", fast, True)) == ErrorCode.PRODUCER_FENCED
    world.clock.advance(60_000)
    assert refused(lambda: world.coordinator.end("slow", slow, True)) == ErrorCode.PRODUCER_FENCED
    assert world.coordinator.init_producer_id("slow", TIMEOUT_MS).producer_epoch > slow.producer_epoch


def test_the_producers_transaction_timeout_applies() -> None:
    world = World(transaction_abort_timed_out_transaction_cleanup_interval_ms=1)
    producer = world.begin("t", A0)
    world.clock.advance(TIMEOUT_MS)
    assert world.coordinator.describe("t").status == TransactionState.ONGOING
    world.clock.advance(2)
    assert refused(lambda: world.coordinator.end("t", producer, True)) == ErrorCode.PRODUCER_FENCED


def test_a_timeout_survives_a_restart() -> None:
    world = World()
    world.begin("t", A0)
    world.clock.advance(30_000)
    c = world.restart()
    world.clock.advance(29_000)
    assert c.describe("t").status == TransactionState.ONGOING
    world.clock.advance(12_000)
    assert c.describe("t").status == TransactionState.COMPLETE_ABORT


def test_unused_transactional_ids_expire() -> None:
    world = World(transactional_id_expiration_ms=3_600_000)
    world.coordinator.init_producer_id("idle", TIMEOUT_MS)
    done = world.begin("done", A0)
    world.coordinator.end("done", done, True)
    world.clock.advance(2 * 3_600_000)
    world.coordinator.init_producer_id("used", TIMEOUT_MS)
    assert [transaction.transactional_id for transaction in world.coordinator] == ["used"]
    assert refused(lambda: world.coordinator.describe("idle")) == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert [transaction.transactional_id for transaction in world.restart()] == ["used"]


@pytest.mark.parametrize(("passed_ms", "is_left"), [(3_599_999, True), (3_600_000, False)])
def test_a_transactional_id_expires_when_its_time_has_passed(passed_ms: int, is_left: bool) -> None:
    world = World(
        transactional_id_expiration_ms=3_600_000, transaction_remove_expired_transaction_cleanup_interval_ms=10_000_000
    )
    world.coordinator.init_producer_id("idle", TIMEOUT_MS)
    world.clock.advance(passed_ms)
    world.coordinator.remove_expired()
    assert [transaction.transactional_id for transaction in world.coordinator] == ["idle"] * is_left


def test_a_stopped_coordinator_does_nothing() -> None:
    world = World()
    producer = world.begin("t", A0)
    world.partitions.broken[A0] = LogError("disk full")
    world.coordinator.end("t", producer, True)
    world.coordinator.stop()
    assert world.clock.timers.pending == 0
