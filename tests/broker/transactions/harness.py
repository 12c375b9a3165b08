"""A transaction coordinator in memory: its log as bytes of records, partitions as lists of markers, injected faults."""

from __future__ import annotations

from collections.abc import Iterator

from kwire.broker.clock import ManualClock
from kwire.broker.configs.settings import Settings
from kwire.broker.transactions import (
    Marker,
    ProducerIdAndEpoch,
    ProducerIds,
    TransactionCoordinator,
)
from kwire.broker.transactions.log_records import write_key, write_value
from kwire.errors import BrokerError, LogError
from kwire.identifiers import TopicPartition
from kwire.internal_topics.coordinator_records import decode_transaction
from kwire.internal_topics.transactions_state import Transaction, TransactionsState
from kwire.internal_topics.typed_record import TypedRecord
from kwire.protocol.error_codes import ErrorCode, refusal


class MemoryLog:
    """`__transaction_state` as a list of (key, value) bytes. fail: the error of the next append."""

    def __init__(self, transaction_version: int) -> None:
        self.transaction_version = transaction_version
        self.records: list[tuple[bytes, bytes | None]] = []
        self.fail: list[BrokerError | LogError] = []

    def append(self, transaction: Transaction) -> None:
        self.write(transaction.transactional_id, write_value(transaction, self.transaction_version))

    def remove(self, transactional_id: str) -> None:
        self.write(transactional_id, None)

    def write(self, transactional_id: str, value: bytes | None) -> None:
        if self.fail:
            raise self.fail.pop()
        self.records.append((write_key(transactional_id), value))

    def replay(self, partition: int | None = None) -> Iterator[Transaction]:
        for key, value in dict(self.records).items():
            if value is not None:
                yield read_transaction(key, value)

    def coordinator_epoch(self, transactional_id: str) -> int:
        return 3


def read_transaction(key: bytes, value: bytes) -> Transaction:
    """Return the transaction metadata of a record."""
    record = TypedRecord(
        topic="__transaction_state", partition=0, offset=0, timestamp=-1, kind="", raw_key=key, raw_value=value
    )
    decode_transaction(record)
    assert record.is_usable, record.error
    state = TransactionsState()
    state.apply(record)
    [transaction] = state.transactions.values()
    return transaction


class MemoryPartitions:
    """Markers by partition. broken: errors by partition."""

    def __init__(self) -> None:
        self.markers: dict[TopicPartition, list[Marker]] = {}
        self.broken: dict[TopicPartition, BrokerError | LogError] = {}

    def write_marker(self, partition: TopicPartition, marker: Marker) -> None:
        if partition in self.broken:
            raise self.broken[partition]
        self.markers.setdefault(partition, []).append(marker)


class World:
    """The environment of a coordinator; `restart` loses everything but the log."""

    def __init__(self, transaction_version: int = 2, **settings: int) -> None:
        self.clock = ManualClock()
        self.settings = Settings(**settings)
        self.transaction_version = transaction_version
        self.log = MemoryLog(transaction_version)
        self.partitions = MemoryPartitions()
        self.next_block = 1000
        self.coordinator = self.start()

    def start(self) -> TransactionCoordinator:
        coordinator = TransactionCoordinator(
            clock=self.clock,
            timers=self.clock.timers,
            settings=self.settings,
            transaction_version=lambda: self.transaction_version,
            log=self.log,
            markers=self.partitions,
            producer_ids=ProducerIds(self.claim),
        )
        coordinator.start()
        return coordinator

    def restart(self) -> TransactionCoordinator:
        self.coordinator.stop()
        self.coordinator = self.start()
        return self.coordinator

    def claim(self, size: int) -> int:
        self.next_block += size
        return self.next_block - size

    def begin(self, transactional_id: str, *partitions: TopicPartition, version: int = 0) -> ProducerIdAndEpoch:
        """Create a producer with an open transaction on these partitions."""
        producer = self.coordinator.init_producer_id(transactional_id, 60_000)
        self.coordinator.add_partitions(transactional_id, producer, frozenset(partitions), version)
        return producer

    def put(self, transaction: Transaction) -> TransactionCoordinator:
        """Restart with this state as the last one in the log."""
        self.log.append(transaction)
        return self.restart()


def error(code: ErrorCode) -> BrokerError:
    return refusal(code, "as the test wants it")
