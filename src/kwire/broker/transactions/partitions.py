"""The partitions that the transaction coordinator writes: its log, and markers in the partitions of transactions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from kwire.broker.coordinator_log import read_topic, warn_of_problems
from kwire.broker.transactions.log_records import write_key, write_value
from kwire.identifiers import TopicPartition
from kwire.internal_topics.cluster_values import NO_LEADER
from kwire.internal_topics.coordinator_records import decode_transaction
from kwire.internal_topics.names import GROUPS_TOPIC, TRANSACTIONS_TOPIC
from kwire.internal_topics.placement import partition_for
from kwire.internal_topics.transactions_state import Transaction, TransactionsState, TransactionState
from kwire.internal_topics.typed_record import usable
from kwire.protocol.error_codes import ErrorCode, refusal
from kwire.records import BatchBuilder

if TYPE_CHECKING:
    from kwire.broker.clock import Clock
    from kwire.broker.features import Features
    from kwire.broker.groups.coordinator import GroupCoordinator
    from kwire.broker.topics import Partition, Topic, TopicRegistry
    from kwire.broker.transactions.coordinator import Marker

__all__ = ["PartitionMarkers", "TransactionStateLog"]

logger = logging.getLogger(__name__)


class TransactionStateLog:
    """The topic `__transaction_state`, created with the first transactional id.

    create_missing: returns a topic, created if needed.
    """

    def __init__(
        self, topics: TopicRegistry, features: Features, clock: Clock, create_missing: Callable[[str], Topic]
    ) -> None:
        self._topics, self._features, self._clock = topics, features, clock
        self._create_missing = create_missing

    def append(self, transaction: Transaction) -> None:
        """See TransactionLog."""
        self._write(transaction.transactional_id, write_value(transaction, self._features.transaction_version))

    def remove(self, transactional_id: str) -> None:
        """See TransactionLog."""
        self._write(transactional_id, None)

    def coordinator_epoch(self, transactional_id: str) -> int:
        """See TransactionLog."""
        return self._partition(transactional_id).leader_epoch

    def replay(self, partition: int | None = None) -> Iterator[Transaction]:
        """See TransactionLog. Records that cannot be read are skipped, with a warning."""
        state = TransactionsState()
        stored = read_topic(self._topics.get(TRANSACTIONS_TOPIC), decode_transaction, partition)
        for record in usable(stored, state.problems):
            state.apply(record)
        warn_of_problems(state.problems)
        for transaction in state.transactions.values():
            if isinstance(transaction.status, TransactionState):
                yield transaction
            else:
                logger.warning("%r is in the unknown state %s", transaction.transactional_id, transaction.state)

    def _partition(self, transactional_id: str) -> Partition:
        topic = self._create_missing(TRANSACTIONS_TOPIC)
        return topic.partitions[partition_for(transactional_id, len(topic.partitions))]

    def _write(self, transactional_id: str, value: bytes | None) -> None:
        now_ms = self._clock.now_ms()
        builder = BatchBuilder()
        builder.append(write_key(transactional_id), value, timestamp=now_ms)
        self._partition(transactional_id).append(builder.build(), now_ms=now_ms)


class PartitionMarkers:
    """Transaction markers in the partitions of topics. groups: whose offsets are part of transactions."""

    def __init__(self, topics: TopicRegistry, groups: GroupCoordinator, clock: Clock) -> None:
        self._topics, self._groups, self._clock = topics, groups, clock

    def write_marker(self, partition: TopicPartition, marker: Marker) -> None:
        """See MarkerWriter."""
        target = self._topics.partition(*partition)
        if target is None:
            name = f"{partition[0]}-{partition[1]}"
            raise refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"partition {name} does not exist")
        if target.opened.config.magic < 2:
            raise refusal(
                ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
                f"record format of {target.name} does not support transactions",
            )
        if target.state.leader == NO_LEADER:
            raise refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{target.name} has no leader")
        target.opened.append_marker(*marker, now_ms=self._clock.now_ms(), leader_epoch=target.leader_epoch)
        target.notify()
        if target.topic.name == GROUPS_TOPIC:
            self._groups.complete_transaction(marker.producer_id, marker.commit, (target.index,))
