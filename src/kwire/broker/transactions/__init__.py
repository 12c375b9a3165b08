"""Transactions: the coordinator, its log, and checks of transactional data.

TransactionCoordinator      state machine over a TransactionLog and a MarkerWriter; no sockets, no files
admit, produce_error        checks of Produce and TxnOffsetCommit before they append
"""

from kwire.broker.transactions.admission import ClientSupport, admit, produce_error
from kwire.broker.transactions.coordinator import (
    Marker,
    MarkerWriter,
    TransactionCoordinator,
    TransactionLog,
    TwoPhase,
)
from kwire.broker.transactions.metadata import NO_PRODUCER, ProducerIdAndEpoch
from kwire.broker.transactions.producer_ids import BLOCK_SIZE, ProducerIds
from kwire.internal_topics.transactions_state import TransactionState

__all__ = [
    "BLOCK_SIZE",
    "NO_PRODUCER",
    "ClientSupport",
    "Marker",
    "MarkerWriter",
    "ProducerIdAndEpoch",
    "ProducerIds",
    "TransactionCoordinator",
    "TransactionLog",
    "TransactionState",
    "TwoPhase",
    "admit",
    "produce_error",
]
