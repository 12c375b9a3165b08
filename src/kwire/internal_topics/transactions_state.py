"""Transactions by transactional id, folded from `__transaction_state`.

A record holds all that is known about its transactional id, so the state is the last record of each; a tombstone
removes it.

    id  state                follows
     0  EMPTY                itself, COMPLETE_COMMIT, COMPLETE_ABORT
     1  ONGOING              itself, EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT
     2  PREPARE_COMMIT       ONGOING
     3  PREPARE_ABORT        ONGOING; with transaction version 2 also EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT
     4  COMPLETE_COMMIT      PREPARE_COMMIT
     5  COMPLETE_ABORT       PREPARE_ABORT
     6  DEAD                 while Kafka removes the transactional id; never logged
     7  PREPARE_EPOCH_FENCE  while Kafka fences a producer; never logged

Source: org.apache.kafka.coordinator.transaction.TransactionLog, TransactionState of 3.9.1 and 4.x; KIP-98, KIP-890.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from kwire.identifiers import TopicPartition
from kwire.internal_topics.enums import StateNumber, label
from kwire.internal_topics.typed_record import Problems, TypedRecord

if TYPE_CHECKING:
    from kwire.messages import TransactionLogKey, TransactionLogValue

__all__ = ["Transaction", "TransactionState", "TransactionsState"]


class TransactionState(StateNumber):
    """The state of a transaction; the number is the status in a TransactionLogValue."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    def may_follow(self, before: TransactionState | int) -> bool:
        """Return whether a transaction may go from a state to this one."""
        return before in PREVIOUS.get(self, ())


IDLE = frozenset({TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})
PREPARED = frozenset({TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT})
OPEN = frozenset(TransactionState) - IDLE - {TransactionState.DEAD}
PREVIOUS: dict[TransactionState, frozenset[int]] = {
    TransactionState.EMPTY: IDLE,
    TransactionState.ONGOING: IDLE | {TransactionState.ONGOING},
    TransactionState.PREPARE_COMMIT: frozenset({TransactionState.ONGOING}),
    TransactionState.PREPARE_ABORT: IDLE | {TransactionState.ONGOING},
    TransactionState.COMPLETE_COMMIT: frozenset({TransactionState.PREPARE_COMMIT}),
    TransactionState.COMPLETE_ABORT: frozenset({TransactionState.PREPARE_ABORT}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """The last known state of a transactional id.

    partition: of `__transaction_state`. status: a plain int where a newer Kafka wrote an unknown one.
    previous_producer_id: before the latest transition. next_producer_id: used after all markers are written.
    timeout_ms: the producer's transaction.timeout.ms. start_timestamp, last_update_timestamp: ms.
    partitions: those with records in the transaction, by topic; once it is prepared, those without a marker.
    client_transaction_version: from 2 on the producer epoch rises with every transaction (KIP-890). record_offset,
    timestamp: of the record. last_producer_epoch: of a producer that missed a response, known to its coordinator only.
    """

    transactional_id: str
    partition: int = -1
    status: TransactionState | int = TransactionState.EMPTY
    producer_id: int
    producer_epoch: int = -1
    previous_producer_id: int = -1
    next_producer_id: int = -1
    timeout_ms: int
    start_timestamp: int = -1
    last_update_timestamp: int = -1
    partitions: dict[str, tuple[int, ...]] = field(default_factory=dict)
    client_transaction_version: int = 0
    record_offset: int = -1
    timestamp: int = -1
    last_producer_epoch: int = -1

    @property
    def state(self) -> str:
        """The status as Kafka's tools print it."""
        return label(self.status)

    @property
    def is_open(self) -> bool:
        """Whether read_committed consumers wait for the end of the transaction."""
        return self.status in OPEN

    @property
    def is_prepared(self) -> bool:
        """Whether the outcome is decided and logged, and markers are still to be written."""
        return self.status in PREPARED

    @property
    def is_idle(self) -> bool:
        """Whether a transaction may begin and the transactional id may expire."""
        return self.status in IDLE

    @property
    def topic_partitions(self) -> frozenset[TopicPartition]:
        """The partitions as pairs of topic and number."""
        return frozenset((topic, index) for topic, indexes in self.partitions.items() for index in indexes)


@dataclass(slots=True, kw_only=True)
class TransactionsState:
    """All transactional ids, and the records that could not be applied."""

    transactions: dict[str, Transaction] = field(default_factory=dict)
    problems: Problems = field(default_factory=Problems)

    def apply(self, record: TypedRecord) -> None:
        """Apply one usable record. Control records change nothing."""
        if record.key is None:
            return
        key = cast("TransactionLogKey", record.key)
        if record.value is None:
            self.transactions.pop(key.transactional_id, None)
        else:
            self.transactions[key.transactional_id] = _transaction(key.transactional_id, record)


def _transaction(transactional_id: str, record: TypedRecord) -> Transaction:
    value = cast("TransactionLogValue", record.value)
    return Transaction(
        transactional_id=transactional_id,
        partition=record.partition,
        status=TransactionState.of(value.transaction_status),
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        timeout_ms=value.transaction_timeout_ms,
        start_timestamp=value.transaction_start_timestamp_ms,
        last_update_timestamp=value.transaction_last_update_timestamp_ms,
        partitions={each.topic: tuple(sorted(each.partition_ids)) for each in value.transaction_partitions or ()},
        client_transaction_version=value.client_transaction_version,
        record_offset=record.offset,
        timestamp=record.timestamp,
    )
