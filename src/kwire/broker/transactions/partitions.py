"""The transaction coordinator on a node: its log and its markers."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kwire.broker.coordinator_log import read_topic, warn_of_problems
from kwire.broker.features import HIGHEST_TRANSACTION_VERSION, transaction_version
from kwire.broker.topic_creation import create_missing
from kwire.broker.topics import Partition
from kwire.broker.transactions.coordinator import Marker, TransactionCoordinator
from kwire.broker.transactions.log_records import write_key, write_value
from kwire.broker.transactions.producer_ids import ProducerIds
from kwire.errors import OptionError
from kwire.identifiers import TopicPartition
from kwire.internal_topics.coordinator_records import decode_transaction
from kwire.internal_topics.names import GROUPS_TOPIC, TRANSACTIONS_TOPIC
from kwire.internal_topics.placement import partition_for
from kwire.internal_topics.transactions_state import Transaction, TransactionsState, TransactionState
from kwire.internal_topics.typed_record import usable
from kwire.messages import ProducerIdsRecord
from kwire.protocol.error_codes import ErrorCode, refusal
from kwire.records import BatchBuilder

if TYPE_CHECKING:
    from kwire.broker.node import Node

__all__ = ["TransactionStateLog", "open_coordinator", "write_marker"]

logger = logging.getLogger(__name__)


def open_coordinator(node: Node) -> TransactionCoordinator:
    """Start the node's coordinator; the group coordinator must be running.

    Raises OptionError for an unsupported transaction version.
    """
    version = node.settings.transaction_version
    if not 0 <= version <= HIGHEST_TRANSACTION_VERSION:
        raise OptionError(f"transaction_version {version} is not supported; use 0 to {HIGHEST_TRANSACTION_VERSION}")

    def claim_producer_ids(size: int) -> int:
        first = max(node.cluster.next_producer_id, 0)
        broker = node.cluster.brokers.get(node.node_id)
        record = ProducerIdsRecord(
            broker_id=node.node_id,
            broker_epoch=-1 if broker is None else broker.epoch,
            next_producer_id=first + size,
        )
        node.controller.commit([(record, 0)])
        return first

    coordinator = TransactionCoordinator(
        clock=node.clock,
        timers=node.timers,
        settings=node.settings,
        transaction_version=lambda: transaction_version(node),
        log=TransactionStateLog(node),
        markers=PartitionMarkers(node),
        producer_ids=ProducerIds(claim_producer_ids),
    )
    coordinator.start()
    return coordinator


class TransactionStateLog:
    """The topic `__transaction_state`, created with the first transactional id."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def append(self, transaction: Transaction) -> None:
        """See TransactionLog."""
        self._write(transaction.transactional_id, write_value(transaction, transaction_version(self._node)))

    def remove(self, transactional_id: str) -> None:
        """See TransactionLog."""
        self._write(transactional_id, None)

    def coordinator_epoch(self, transactional_id: str) -> int:
        """See TransactionLog."""
        return self._partition(transactional_id).leader_epoch

    def replay(self) -> Iterator[Transaction]:
        """See TransactionLog. Records that cannot be read are skipped, with a warning."""
        state = TransactionsState()
        for record in usable(read_topic(self._node.topics.get(TRANSACTIONS_TOPIC), decode_transaction), state.problems):
            state.apply(record)
        warn_of_problems(state.problems)
        for transaction in state.transactions.values():
            if isinstance(transaction.status, TransactionState):
                yield transaction
            else:
                logger.warning("%r is in the unknown state %s", transaction.transactional_id, transaction.state)

    def _partition(self, transactional_id: str) -> Partition:
        topic = create_missing(self._node, TRANSACTIONS_TOPIC)
        return topic.partitions[partition_for(transactional_id, len(topic.partitions))]

    def _write(self, transactional_id: str, value: bytes | None) -> None:
        now_ms = self._node.clock.now_ms()
        builder = BatchBuilder()
        builder.append(write_key(transactional_id), value, timestamp=now_ms)
        self._partition(transactional_id).append(builder.build(), now_ms=now_ms)


class PartitionMarkers:
    """Markers in the partitions of a node."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def write_marker(self, partition: TopicPartition, marker: Marker) -> None:
        """See MarkerWriter."""
        write_marker(self._node, partition, marker)


def write_marker(node: Node, partition: TopicPartition, marker: Marker) -> None:
    """End a transaction in one partition. Raises BrokerError or LogError; nothing is written then."""
    found = node.topics.partition(*partition)
    if found is None:
        raise refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"partition {partition[0]}-{partition[1]} does not exist")
    if found.opened.config.magic < 2:
        raise refusal(
            ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, f"record format of {found.name} does not support transactions"
        )
    found.opened.append_marker(*marker, now_ms=node.clock.now_ms(), leader_epoch=found.leader_epoch)
    found.notify()
    if found.topic.name == GROUPS_TOPIC:
        node.groups.complete_transaction(marker.producer_id, marker.commit, (found.index,))
