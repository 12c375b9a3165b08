"""Checks of transactional data before Produce and TxnOffsetCommit append it.

A delayed request must not reopen a transaction that has ended (KIP-890). If the producer has no open transaction in a
partition yet, its data is accepted only if the coordinator has added the partition to the producer's transaction.
Newer clients do not add partitions themselves, so this check adds them.

    Produce    TxnOffsetCommit
    to 10      to 3               verified; a missing partition is INVALID_TXN_STATE
    11         4                  verified; a missing partition is TRANSACTION_ABORTABLE
    from 12    from 5             added to the transaction (transaction version 2)

Source: kafka.server.AddPartitionsToTxnManager, ReplicaManager.handleProduceAppend (4.0).
"""

from __future__ import annotations

from enum import Enum

from kwire.broker.transactions.coordinator import TransactionCoordinator
from kwire.broker.transactions.metadata import ProducerIdAndEpoch
from kwire.errors import BrokerError
from kwire.identifiers import TopicPartition
from kwire.protocol.error_codes import ErrorCode

__all__ = ["ClientSupport", "admit", "produce_error"]

BUSY = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


class ClientSupport(Enum):
    """How much of the transaction protocol a client supports, by the version of its request."""

    VERIFY = "verify"
    VERIFY_ABORTABLE = "verify, TRANSACTION_ABORTABLE known"
    ADD = "add"

    @classmethod
    def of_produce(cls, version: int) -> ClientSupport:
        """Return what a client of this Produce version supports."""
        return cls.ADD if version >= 12 else cls.VERIFY_ABORTABLE if version == 11 else cls.VERIFY

    @classmethod
    def of_offset_commit(cls, version: int) -> ClientSupport:
        """Return what a client of this TxnOffsetCommit version supports."""
        return cls.ADD if version >= 5 else cls.VERIFY_ABORTABLE if version == 4 else cls.VERIFY


def admit(
    coordinator: TransactionCoordinator,
    transactional_id: str,
    producer: ProducerIdAndEpoch,
    partitions: frozenset[TopicPartition],
    support: ClientSupport,
) -> dict[TopicPartition, ErrorCode]:
    """Return the partitions that must not be appended to, with an error code each.

    partitions: those in which the producer has no open transaction with this epoch.
    """
    try:
        if support == ClientSupport.ADD:
            coordinator.add_partitions(transactional_id, producer, partitions, client_transaction_version=2)
            return {}
        missing = coordinator.missing_partitions(transactional_id, producer, partitions)
    except BrokerError as error:
        code = ErrorCode(error.code)
        if code == ErrorCode.PRODUCER_FENCED:  # the code that producers expect here
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        return dict.fromkeys(partitions, code)
    abortable = support == ClientSupport.VERIFY_ABORTABLE
    return dict.fromkeys(missing, ErrorCode.TRANSACTION_ABORTABLE if abortable else ErrorCode.INVALID_TXN_STATE)


def produce_error(code: ErrorCode, support: ClientSupport) -> ErrorCode:
    """Return the code for a Produce response: NOT_ENOUGH_REPLICAS for codes that older clients do not retry."""
    if code in BUSY or (code == ErrorCode.CONCURRENT_TRANSACTIONS and support != ClientSupport.ADD):
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return code
