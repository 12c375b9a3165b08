"""Transactions as records of `__transaction_state`: key and value bytes, and back.

    key     int16 0, TransactionLogKey: the transactional id
    value   int16 version, TransactionLogValue; null removes the transactional id

Version 0 of the value is written while the transaction version is 0; version 1 has tagged fields and adds previous and
next producer id and the client's transaction version. Kafka 3.9 reads both and skips those fields; 3.5 and older read
version 0 only. An EMPTY transaction has null partitions.
Source: org.apache.kafka.coordinator.transaction.TransactionLog, TransactionVersion.transactionLogValueVersion.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from kwire.broker.transactions.metadata import TransactionMetadata
from kwire.broker.transactions.states import TransactionState
from kwire.errors import Malformed
from kwire.messages import TransactionLogKey, TransactionLogValue
from kwire.protocol.record_values import read_prefixed, write_prefixed
from kwire.records.attributes import NO_PRODUCER_EPOCH

__all__ = ["read_key", "read_value", "write_key", "write_value"]

FLEXIBLE = 1

Buffer = bytes | memoryview


def write_key(transactional_id: str) -> bytes:
    return write_prefixed(TransactionLogKey(transactional_id=transactional_id), 0)


def read_key(key: Buffer) -> str | None:
    """The transactional id; None for a key of another type, which a newer release may have left.

    Raises DecodeError for bytes that are no key.
    """
    if len(key) >= 2 and int.from_bytes(key[:2], "big", signed=True) != TransactionLogKey.API_KEY:
        return None
    read: Any = read_prefixed(TransactionLogKey, key)[0]
    transactional_id: str = read.transactional_id
    return transactional_id


def write_value(transaction: TransactionMetadata, transaction_version: int) -> bytes:
    partitions = None
    if transaction.state != TransactionState.EMPTY:
        by_topic: dict[str, list[int]] = defaultdict(list)
        for topic, partition in sorted(transaction.partitions):
            by_topic[topic].append(partition)
        partitions = [
            TransactionLogValue.PartitionsSchema(topic=topic, partition_ids=ids) for topic, ids in by_topic.items()
        ]
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=partitions,
        transaction_last_update_timestamp_ms=transaction.last_update_ms,
        transaction_start_timestamp_ms=transaction.start_time_ms,
    )
    version = min(transaction_version, FLEXIBLE)
    if version >= FLEXIBLE:
        value.previous_producer_id = transaction.previous_producer_id
        value.next_producer_id = transaction.next_producer_id
        value.client_transaction_version = transaction.client_transaction_version
    return write_prefixed(value, version)


def read_value(transactional_id: str, value: Buffer) -> TransactionMetadata:
    """Raises DecodeError for bytes that are no value, UnsupportedVersion for a version of a newer release."""
    read: Any = read_prefixed(TransactionLogValue, value)[0]
    try:
        state = TransactionState(read.transaction_status)
    except ValueError:
        raise Malformed(f"transaction status {read.transaction_status}", 2) from None
    partitions = read.transaction_partitions if state != TransactionState.EMPTY else None
    return TransactionMetadata(
        transactional_id=transactional_id,
        producer_id=read.producer_id,
        producer_epoch=read.producer_epoch,
        last_producer_epoch=NO_PRODUCER_EPOCH,
        previous_producer_id=read.previous_producer_id,
        next_producer_id=read.next_producer_id,
        timeout_ms=read.transaction_timeout_ms,
        state=state,
        partitions=frozenset((topic.topic, index) for topic in partitions or () for index in topic.partition_ids),
        start_time_ms=read.transaction_start_timestamp_ms,
        last_update_ms=read.transaction_last_update_timestamp_ms,
        client_transaction_version=read.client_transaction_version,
    )
