"""The metadata of a transactional id, and its transitions.

A value: a transition returns the next one, which the coordinator applies once it is in the log. Epochs end one below
the largest int16, so the coordinator can always bump the epoch to fence a producer.
Source: org.apache.kafka.coordinator.transaction.TransactionMetadata; KIP-98, KIP-360, KIP-890.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from kwire.identifiers import TopicPartition
from kwire.internal_topics.transactions_state import Transaction, TransactionState
from kwire.records.attributes import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

__all__ = [
    "LAST_EPOCH",
    "NO_PRODUCER",
    "ProducerIdAndEpoch",
    "TransactionMetadata",
    "bumps_epoch",
    "is_exhausted",
]


MAX_EPOCH = 2**15 - 1
LAST_EPOCH = MAX_EPOCH - 1
"""The last epoch that a producer is given."""
NO_TIME = -1


class ProducerIdAndEpoch(NamedTuple):
    """A producer id and its epoch."""

    producer_id: int
    producer_epoch: int


NO_PRODUCER = ProducerIdAndEpoch(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


def is_exhausted(producer_epoch: int) -> bool:
    """Return whether the next producer needs a new producer id, because the epochs are used up."""
    return producer_epoch >= LAST_EPOCH


def bumps_epoch(transaction_version: int) -> bool:
    """Return whether the epoch rises at the end of every transaction: transaction version 2 (KIP-890)."""
    return transaction_version >= 2


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionMetadata:
    """A transactional id and its latest transaction.

    last_producer_epoch: of a producer that missed a response; -1 if another producer took over. previous_producer_id:
    before the latest transition. next_producer_id: used after all markers are written. timeout_ms: the producer's
    transaction.timeout.ms. partitions: while prepared, those without a marker. start_time_ms: of the transaction, -1 in
    EMPTY. client_transaction_version: of the client at the latest transition.
    """

    transactional_id: str
    producer_id: int
    timeout_ms: int
    last_update_ms: int
    producer_epoch: int = NO_PRODUCER_EPOCH
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_time_ms: int = NO_TIME
    client_transaction_version: int = 0

    @classmethod
    def of(cls, transaction: Transaction, status: TransactionState) -> TransactionMetadata:
        """Return the metadata that a replayed record describes. status: the transaction's, which has to be known."""
        partitions = {} if status == TransactionState.EMPTY else transaction.partitions
        return cls(
            transactional_id=transaction.transactional_id,
            producer_id=transaction.producer_id,
            producer_epoch=transaction.producer_epoch,
            previous_producer_id=transaction.previous_producer_id,
            next_producer_id=transaction.next_producer_id,
            timeout_ms=transaction.timeout_ms,
            state=status,
            partitions=frozenset((topic, index) for topic, indexes in partitions.items() for index in indexes),
            start_time_ms=transaction.start_timestamp,
            last_update_ms=transaction.last_update_timestamp,
            client_transaction_version=transaction.client_transaction_version,
        )

    @property
    def producer(self) -> ProducerIdAndEpoch:
        """The current producer id and epoch."""
        return ProducerIdAndEpoch(self.producer_id, self.producer_epoch)

    @property
    def is_exhausted(self) -> bool:
        """Whether the next producer needs another producer id."""
        return is_exhausted(self.producer_epoch)

    def is_timed_out(self, now_ms: int) -> bool:
        """Whether an ongoing transaction has exceeded its timeout."""
        return self.state == TransactionState.ONGOING and self.start_time_ms + self.timeout_ms < now_ms

    def initialized(
        self, producer_epoch: int, last_producer_epoch: int, timeout_ms: int, now_ms: int
    ) -> TransactionMetadata:
        """Transition for a new producer epoch (InitProducerId)."""
        assert 0 <= producer_epoch <= LAST_EPOCH
        return self._step(
            TransactionState.EMPTY,
            now_ms,
            producer_epoch=producer_epoch,
            last_producer_epoch=last_producer_epoch,
            timeout_ms=timeout_ms,
            partitions=frozenset(),
            start_time_ms=NO_TIME,
        )

    def rotated(self, producer_id: int, timeout_ms: int, now_ms: int, *, keep_last_epoch: bool) -> TransactionMetadata:
        """Transition for a new producer id, when the epochs are used up."""
        return self._step(
            TransactionState.EMPTY,
            now_ms,
            producer_id=producer_id,
            producer_epoch=0,
            last_producer_epoch=self.producer_epoch if keep_last_epoch else NO_PRODUCER_EPOCH,
            timeout_ms=timeout_ms,
            partitions=frozenset(),
            start_time_ms=NO_TIME,
        )

    def with_partitions(
        self, partitions: frozenset[TopicPartition], now_ms: int, client_transaction_version: int
    ) -> TransactionMetadata:
        """Transition to an open transaction with more partitions."""
        return self._step(
            TransactionState.ONGOING,
            now_ms,
            partitions=self.partitions | partitions,
            start_time_ms=now_ms if self.state.is_idle else self.start_time_ms,
            client_transaction_version=client_transaction_version,
        )

    def fenced(self) -> TransactionMetadata:
        """Transition to an epoch that no producer has. Never logged by itself: `prepared` follows."""
        return replace(
            self, producer_epoch=min(self.producer_epoch + 1, MAX_EPOCH), last_producer_epoch=NO_PRODUCER_EPOCH
        )

    def prepared(
        self, commit: bool, now_ms: int, client_transaction_version: int, next_producer_id: int = NO_PRODUCER_ID
    ) -> TransactionMetadata:
        """Transition to a decided transaction: from here on it ends this way.

        The last epoch stays when aborting: only fencing reaches it, and the next producer gets a new id.
        """
        epochs: dict[str, int] = {}
        if bumps_epoch(client_transaction_version):
            assert self.producer_epoch < MAX_EPOCH or not commit
            epochs = {
                "producer_epoch": min(self.producer_epoch + 1, MAX_EPOCH),
                "last_producer_epoch": self.producer_epoch,
            }
        return self._step(
            TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT,
            now_ms,
            next_producer_id=next_producer_id,
            start_time_ms=now_ms if self.state.is_idle else self.start_time_ms,
            client_transaction_version=client_transaction_version,
            **epochs,
        )

    def completed(self, now_ms: int) -> TransactionMetadata:
        """Transition after all markers are written."""
        producer = self.producer
        if bumps_epoch(self.client_transaction_version) and self.next_producer_id != NO_PRODUCER_ID:
            producer = ProducerIdAndEpoch(self.next_producer_id, 0)
        committed = self.state == TransactionState.PREPARE_COMMIT
        return self._step(
            TransactionState.COMPLETE_COMMIT if committed else TransactionState.COMPLETE_ABORT,
            now_ms,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            next_producer_id=NO_PRODUCER_ID,
            partitions=frozenset(),
        )

    def marked(self, partition: TopicPartition) -> TransactionMetadata:
        """Remove a partition whose marker is written; not logged."""
        assert self.state.is_prepared
        return replace(self, partitions=self.partitions - {partition})

    def _step(self, state: TransactionState, now_ms: int, **changes: Any) -> TransactionMetadata:
        assert state.may_follow(self.state), f"{self.transactional_id!r} from {self.state.label} to {state.label}"
        return replace(self, state=state, last_update_ms=now_ms, previous_producer_id=self.producer_id, **changes)
