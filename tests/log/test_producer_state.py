"""Producer state, rule by rule: duplicates, sequences, epochs, transactions, snapshots."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from kwire.errors import BrokerError, Malformed
from kwire.log.files.producer_snapshot import ProducerState, parse_producer_snapshot, render_producer_snapshot
from kwire.log.writing.producer_state import Duplicate, ProducerStates, ProducerUpdate
from kwire.records import AppendOrigin, ControlRecord, ControlRecordType

OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH = 45, 47
INVALID_TXN_STATE, TRANSACTION_COORDINATOR_FENCED = 48, 52
LAST = (1 << 31) - 1


class Data(NamedTuple):
    """The fields of a data batch that ProducerStates uses."""

    base_offset: int
    base_sequence: int
    count: int = 1
    producer_id: int = 1
    producer_epoch: int = 0
    is_transactional: bool = False
    is_control: bool = False
    max_timestamp: int = 1000

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.count - 1

    @property
    def last_sequence(self) -> int:
        return (self.base_sequence + self.count - 1) & LAST


def marker(kind: ControlRecordType, coordinator_epoch: int = 0) -> ControlRecord:
    return ControlRecord(type=kind, type_id=kind, version=0, coordinator_epoch=coordinator_epoch, value=None)


def end(offset: int, *, producer_id: int = 1, producer_epoch: int = 0) -> Data:
    return Data(
        offset,
        -1,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
    )


class States(ProducerStates):
    """Producer states that are updated batch by batch."""

    def __init__(self) -> None:
        super().__init__("t-0", expiration_ms=500)

    def send(self, *batches: Data, origin: AppendOrigin = AppendOrigin.CLIENT) -> ProducerUpdate:
        update = self.prepare([(batch, None) for batch in batches], origin)
        if update.duplicate is None:
            self.commit(update)
        return update

    def finish(
        self,
        batch: Data,
        kind: ControlRecordType = ControlRecordType.ABORT,
        coordinator_epoch: int = 0,
        origin: AppendOrigin = AppendOrigin.COORDINATOR,
    ) -> ProducerUpdate:
        update = self.prepare([(batch, marker(kind, coordinator_epoch))], origin)
        self.commit(update)
        for completed in update.completed:
            self.complete(completed)
        return update


def refused(states: States, batch: Data, code: int) -> None:
    before = states.snapshot()
    with pytest.raises(BrokerError) as caught:
        states.send(batch)
    assert caught.value.code == code
    assert states.snapshot() == before


@pytest.mark.requirement("P-01")
def test_the_last_five_batches_are_recognized_as_duplicates() -> None:
    states = States()
    for i in range(7):
        states.send(Data(i * 10, i * 10, 10))
    for i in range(2, 7):
        found = states.send(Data(999, i * 10, 10)).duplicate
        assert found == Duplicate(i * 10, i * 10 + 9, 1000)
    refused(states, Data(999, 10, 10), OUT_OF_ORDER_SEQUENCE_NUMBER)  # the sixth from the end
    refused(states, Data(999, 60, 9), OUT_OF_ORDER_SEQUENCE_NUMBER)  # not the whole batch
    assert states.send(Data(999, 60, 10), origin=AppendOrigin.REPLICATION).duplicate is None


@pytest.mark.requirement("P-02")
def test_an_older_epoch_is_rejected_except_in_replication() -> None:
    states = States()
    states.send(Data(0, 0, producer_epoch=3))
    refused(states, Data(1, 1, producer_epoch=2), INVALID_PRODUCER_EPOCH)
    states.send(Data(1, 1, producer_epoch=2), origin=AppendOrigin.REPLICATION)
    assert states.entries[1].producer_epoch == 2


@pytest.mark.requirement("P-03")
def test_a_new_epoch_starts_at_sequence_0() -> None:
    states = States()
    states.send(Data(0, 77))  # nothing was known: any sequence will do
    refused(states, Data(1, 78, producer_epoch=1), OUT_OF_ORDER_SEQUENCE_NUMBER)
    states.send(Data(1, 0, producer_epoch=1))
    assert states.entries[1].last_sequence == 0
    assert len(states.entries[1].batches) == 1


@pytest.mark.requirement("P-03")
def test_sequences_are_contiguous_and_wrap_around() -> None:
    states = States()
    states.send(Data(0, LAST - 3, 3))
    refused(states, Data(3, 0), OUT_OF_ORDER_SEQUENCE_NUMBER)
    states.send(Data(3, LAST))
    refused(states, Data(4, 1), OUT_OF_ORDER_SEQUENCE_NUMBER)
    states.send(Data(4, 0, 2))
    assert states.send(Data(9, LAST - 3, 3)).duplicate == Duplicate(0, 2, 1000)
    states.send(Data(6, 9), origin=AppendOrigin.COORDINATOR)  # only clients are asked
    wrapping = States()
    wrapping.send(Data(0, LAST - 1, 4))
    assert wrapping.entries[1].last_sequence == 1
    assert wrapping.entries[1].batches[0].first_sequence == LAST - 1
    assert wrapping.send(Data(9, LAST - 1, 4)).duplicate == Duplicate(0, 3, 1000)


@pytest.mark.requirement("P-03")
def test_the_sequence_continues_after_a_marker() -> None:
    states = States()
    states.send(Data(0, 0, is_transactional=True))
    states.finish(end(1))
    refused(states, Data(2, 5, is_transactional=True), OUT_OF_ORDER_SEQUENCE_NUMBER)
    states.send(Data(2, 1, is_transactional=True))
    states.finish(end(3, producer_epoch=1))  # a coordinator that fences: the epoch has no batch yet
    assert states.entries[1].last_sequence == -1
    refused(states, Data(4, 2, producer_epoch=1), OUT_OF_ORDER_SEQUENCE_NUMBER)
    states.send(Data(4, 0, producer_epoch=1))


def test_batches_of_one_append_are_checked_together() -> None:
    states = States()
    states.send(Data(0, 0), Data(1, 1), Data(2, 0, producer_id=2))
    assert {each: entry.last_sequence for each, entry in states.entries.items()} == {1: 1, 2: 0}
    with pytest.raises(BrokerError):
        states.send(Data(3, 2), Data(4, 4))
    assert states.entries[1].last_sequence == 1


@pytest.mark.requirement("P-04")
def test_only_transactional_batches_are_allowed_in_a_transaction() -> None:
    states = States()
    states.send(Data(0, 0, is_transactional=True))
    refused(states, Data(1, 1), INVALID_TXN_STATE)
    states.finish(end(1))
    states.send(Data(2, 1))


@pytest.mark.requirement("P-05", "P-06", "P-08")
def test_transactions_are_opened_and_closed() -> None:
    states = States()
    states.send(Data(5, 0, is_transactional=True))
    states.send(Data(6, 1, is_transactional=True))
    states.send(Data(7, 0, producer_id=2, is_transactional=True))
    assert states.first_undecided_offset == states.first_unstable_offset == 5
    update = states.finish(end(8))
    assert [each[:] for each in update.completed] == [(1, 5, 8, True)]
    assert states.first_undecided_offset == 7
    assert states.first_unstable_offset == 5  # until the marker is below the high watermark
    states.replicated_to(8)
    assert states.first_unstable_offset == 5
    states.replicated_to(9)
    assert states.first_unstable_offset == 7
    assert states.finish(end(9)).completed == []  # no data
    assert not states.finish(end(10, producer_id=2), ControlRecordType.COMMIT).completed[0].is_aborted
    states.replicated_to(11)
    assert states.first_unstable_offset is None


@pytest.mark.requirement("F-30", "P-06")
def test_a_transaction_index_entry_has_the_last_stable_offset() -> None:
    states = States()
    states.send(Data(0, 0, is_transactional=True))
    states.send(Data(1, 0, producer_id=2, is_transactional=True))
    (first,) = states.prepare([(end(2), marker(ControlRecordType.ABORT))], AppendOrigin.COORDINATOR).completed
    assert states.last_stable_offset(first) == 1
    states.finish(end(2))
    (second,) = states.finish(end(3, producer_id=2)).completed
    assert states.last_stable_offset(second) == 4


@pytest.mark.requirement("P-05", "P-02")
def test_an_older_coordinator_is_fenced() -> None:
    states = States()
    states.send(Data(0, 0, is_transactional=True))
    states.finish(end(1), coordinator_epoch=4)
    with pytest.raises(BrokerError) as caught:
        states.finish(end(2), coordinator_epoch=3)
    assert caught.value.code == TRANSACTION_COORDINATOR_FENCED
    states.finish(end(2), coordinator_epoch=3, origin=AppendOrigin.REPLICATION)
    states.finish(end(3, producer_epoch=2), coordinator_epoch=4)
    with pytest.raises(BrokerError) as caught:
        states.finish(end(4, producer_epoch=1), coordinator_epoch=4)
    assert caught.value.code == INVALID_PRODUCER_EPOCH


def test_an_emptied_control_batch_changes_nothing() -> None:
    states = States()
    states.send(Data(0, 0, is_transactional=True))
    assert states.send(end(1)).completed == []
    assert states.first_undecided_offset == 0


@pytest.mark.requirement("P-07")
def test_idle_producers_expire_unless_their_transaction_is_open() -> None:
    states = States()
    states.send(Data(0, 0))
    states.send(Data(1, 0, producer_id=2, is_transactional=True))
    states.remove_expired(1499)
    assert set(states.entries) == {1, 2}
    states.remove_expired(1500)
    assert set(states.entries) == {2}
    loaded = States()
    loaded.load(states.snapshot(), 10**6)
    assert set(loaded.entries) == {2}


@pytest.mark.requirement("F-40", "F-41")
def test_a_snapshot_restores_everything_but_older_batches() -> None:
    states = States()
    for i in range(3):
        states.send(Data(i, i, max_timestamp=1000 + i))
    states.send(Data(3, 0, 5, producer_id=-(1 << 40) + (1 << 41), producer_epoch=7, is_transactional=True))
    states.finish(end(8, producer_id=9), coordinator_epoch=6)
    loaded = States()
    loaded.load(states.snapshot(), 1000)
    assert loaded.snapshot() == states.snapshot()
    assert loaded.first_undecided_offset == 3
    assert loaded.send(Data(9, 2)).duplicate == Duplicate(2, 2, 1002)
    with pytest.raises(BrokerError):
        loaded.send(Data(9, 1))
    assert loaded.entries[9].coordinator_epoch == 6
    assert loaded.entries[9].batches == []


@pytest.mark.requirement("F-40")
def test_the_snapshot_has_the_bytes_of_the_specification() -> None:
    state = ProducerState(9, 2, 4, 14, 4, 1005, -1, 10)
    data = bytes.fromhex(
        "0001 e11f89b0 00000001 0000000000000009 0002 00000004 000000000000000e 00000004 00000000000003ed"
        "ffffffff 000000000000000a"
    )
    assert render_producer_snapshot([state]) == data
    assert parse_producer_snapshot(data) == [state]


def test_broker_snapshots_round_trip(kafka_logs: dict[str, Path]) -> None:
    seen = 0
    for path in sorted((kafka_logs["modern"] / "data").glob("*/*.snapshot")):
        states = ProducerStates("x", expiration_ms=1 << 60)
        try:
            states.load(path.read_bytes(), 0)
        except Malformed:
            raise AssertionError(path) from None
        assert states.snapshot() == path.read_bytes()
        seen += len(states.entries)
    assert seen > 100
