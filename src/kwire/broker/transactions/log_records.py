"""Transactions as bytes of `__transaction_state`.

    key     int16 0, TransactionLogKey: the transactional id
    value   int16 version, TransactionLogValue; null removes the transactional id

Version 0 of the value is written while the transaction version is 0. Version 1 has tagged fields and adds the previous
and next producer id and the client's transaction version. Kafka 3.9 reads both and skips those fields; 3.5 and older
read version 0 only. An EMPTY transaction has null partitions. `kwire.internal_topics` reads the records.
Source: org.apache.kafka.coordinator.transaction.TransactionLog, TransactionVersion.transactionLogValueVersion.
"""

from __future__ import annotations

from kwire.internal_topics.transactions_state import Transaction, TransactionState
from kwire.messages import TransactionLogKey, TransactionLogValue
from kwire.protocol.record_values import write_prefixed

__all__ = ["write_key", "write_value"]

FLEXIBLE = 1


def write_key(transactional_id: str) -> bytes:
    """Return a record's key."""
    return write_prefixed(TransactionLogKey(transactional_id=transactional_id), 0)


def write_value(transaction: Transaction, transaction_version: int) -> bytes:
    """Return a record's value. transaction_version: the finalized feature."""
    partitions = None
    if transaction.status != TransactionState.EMPTY:
        partitions = [
            TransactionLogValue.PartitionsSchema(topic=topic, partition_ids=list(indexes))
            for topic, indexes in transaction.partitions.items()
        ]
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.status,
        transaction_partitions=partitions,
        transaction_last_update_timestamp_ms=transaction.last_update_timestamp,
        transaction_start_timestamp_ms=transaction.start_timestamp,
    )
    version = min(transaction_version, FLEXIBLE)
    if version >= FLEXIBLE:
        value.previous_producer_id = transaction.previous_producer_id
        value.next_producer_id = transaction.next_producer_id
        value.client_transaction_version = transaction.client_transaction_version
    return write_prefixed(value, version)
