"""The transitions of a transactional id.

A transition returns the next value, which the coordinator applies once it is in the log. Epochs end one below the
largest int16, so the coordinator can always bump the epoch to fence a producer.
Source: org.apache.kafka.coordinator.transaction.TransactionMetadata; KIP-98, KIP-360, KIP-890.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from kwire.identifiers import TopicPartition
from kwire.internal_topics.transactions_state import Transaction, TransactionState
from kwire.records.attributes import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

__all__ = [
    "LAST_EPOCH",
    "NO_PRODUCER",
    "ProducerIdAndEpoch",
    "bumps_epoch",
    "completed",
    "initialized",
    "is_exhausted",
    "marked",
    "prepared",
    "producer_of",
    "rotated",
    "with_next_epoch",
    "with_partitions",
]


MAX_EPOCH = 2**15 - 1
LAST_EPOCH = MAX_EPOCH - 1
"""The last epoch that a producer is given."""
NO_TIMESTAMP = -1


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


def producer_of(transaction: Transaction) -> ProducerIdAndEpoch:
    """Return the current producer id and epoch."""
    return ProducerIdAndEpoch(transaction.producer_id, transaction.producer_epoch)


def initialized(
    transaction: Transaction, producer_epoch: int, last_producer_epoch: int, timeout_ms: int, now_ms: int
) -> Transaction:
    """Transition for a new producer epoch (InitProducerId)."""
    assert 0 <= producer_epoch <= LAST_EPOCH
    return _step(
        transaction,
        TransactionState.EMPTY,
        now_ms,
        producer_epoch=producer_epoch,
        last_producer_epoch=last_producer_epoch,
        timeout_ms=timeout_ms,
        partitions={},
        start_timestamp=NO_TIMESTAMP,
    )


def rotated(
    transaction: Transaction, producer_id: int, timeout_ms: int, now_ms: int, *, keep_last_epoch: bool
) -> Transaction:
    """Transition for a new producer id, when the epochs are used up."""
    return _step(
        transaction,
        TransactionState.EMPTY,
        now_ms,
        producer_id=producer_id,
        producer_epoch=0,
        last_producer_epoch=transaction.producer_epoch if keep_last_epoch else NO_PRODUCER_EPOCH,
        timeout_ms=timeout_ms,
        partitions={},
        start_timestamp=NO_TIMESTAMP,
    )


def with_partitions(
    transaction: Transaction, partitions: frozenset[TopicPartition], now_ms: int, client_transaction_version: int
) -> Transaction:
    """Transition to an open transaction with more partitions."""
    return _step(
        transaction,
        TransactionState.ONGOING,
        now_ms,
        partitions=_by_topic(transaction.topic_partitions | partitions),
        start_timestamp=now_ms if transaction.is_idle else transaction.start_timestamp,
        client_transaction_version=client_transaction_version,
    )


def with_next_epoch(transaction: Transaction) -> Transaction:
    """Transition to an epoch that no producer has. Never logged by itself: `prepared` follows."""
    epoch = min(transaction.producer_epoch + 1, MAX_EPOCH)
    return replace(transaction, producer_epoch=epoch, last_producer_epoch=NO_PRODUCER_EPOCH)


def prepared(
    transaction: Transaction,
    commit: bool,
    now_ms: int,
    client_transaction_version: int,
    next_producer_id: int = NO_PRODUCER_ID,
) -> Transaction:
    """Transition to a decided transaction: from here on it ends this way.

    An abort keeps the last epoch: only fencing reaches it, and the next producer gets a new id.
    """
    epoch, epochs = transaction.producer_epoch, {}
    if bumps_epoch(client_transaction_version):
        assert epoch < MAX_EPOCH or not commit
        epochs = {"producer_epoch": min(epoch + 1, MAX_EPOCH), "last_producer_epoch": epoch}
    return _step(
        transaction,
        TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT,
        now_ms,
        next_producer_id=next_producer_id,
        start_timestamp=now_ms if transaction.is_idle else transaction.start_timestamp,
        client_transaction_version=client_transaction_version,
        **epochs,
    )


def completed(transaction: Transaction, now_ms: int) -> Transaction:
    """Transition after all markers are written."""
    producer = producer_of(transaction)
    if bumps_epoch(transaction.client_transaction_version) and transaction.next_producer_id != NO_PRODUCER_ID:
        producer = ProducerIdAndEpoch(transaction.next_producer_id, 0)
    committed = transaction.status == TransactionState.PREPARE_COMMIT
    return _step(
        transaction,
        TransactionState.COMPLETE_COMMIT if committed else TransactionState.COMPLETE_ABORT,
        now_ms,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        next_producer_id=NO_PRODUCER_ID,
        partitions={},
    )


def marked(transaction: Transaction, partition: TopicPartition) -> Transaction:
    """Remove a partition whose marker is written; not logged."""
    assert transaction.is_prepared
    return replace(transaction, partitions=_by_topic(transaction.topic_partitions - {partition}))


def _step(transaction: Transaction, status: TransactionState, now_ms: int, **changes: Any) -> Transaction:
    before = transaction.status
    assert status.may_follow(before), f"{transaction.transactional_id!r} from {transaction.state} to {status.label}"
    return replace(
        transaction,
        status=status,
        last_update_timestamp=now_ms,
        previous_producer_id=transaction.producer_id,
        **changes,
    )


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, tuple[int, ...]]:
    grouped: dict[str, tuple[int, ...]] = {}
    for topic, index in sorted(partitions):
        grouped[topic] = (*grouped.get(topic, ()), index)
    return grouped
