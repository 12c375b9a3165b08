"""The transaction coordinator: owners of transactional ids, partitions of transactions, commits and aborts.

A transaction ends in three appends: the decision to `__transaction_state`, a marker to every partition, the completion
to `__transaction_state`. After a crash the log is replayed and decisions are carried out. All three happen before the
response, so on one node a producer gets CONCURRENT_TRANSACTIONS only while a partition cannot be written, or when it
initializes while the transaction of its predecessor is open.

Source: kafka.coordinator.transaction.TransactionCoordinator, TransactionStateManager, TransactionMarkerChannelManager
(3.9.1; transaction version 2 as of 4.0); KIP-98, KIP-360, KIP-664, KIP-890, KIP-994.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol

from kwire.broker.clock import Clock, TimerHandle, Timers
from kwire.broker.configs.settings import Settings
from kwire.broker.transactions.ending import check_producer_id, concurrent, fenced, may_end, may_end_bumping
from kwire.broker.transactions.metadata import (
    NO_PRODUCER,
    ProducerIdAndEpoch,
    bumps_epoch,
    completed,
    initialized,
    is_exhausted,
    marked,
    prepared,
    producer_of,
    rotated,
    with_next_epoch,
    with_partitions,
)
from kwire.broker.transactions.producer_ids import ProducerIds
from kwire.errors import BrokerError, LogError
from kwire.identifiers import TopicPartition
from kwire.internal_topics.transactions_state import Transaction, TransactionState
from kwire.protocol.error_codes import ErrorCode, refusal
from kwire.records.attributes import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

__all__ = ["Marker", "MarkerWriter", "TransactionCoordinator", "TransactionLog", "TwoPhase"]

logger = logging.getLogger(__name__)

MARKER_RETRY_MS = 100
UNLIMITED_MS = 2**31 - 1
"""The timeout of transactions with two-phase commit, which the coordinator never aborts by itself."""
GONE = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,  # deleted
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,  # it has no records of the transaction
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.INVALID_PRODUCER_EPOCH,  # a marker of a later epoch has been written there
        ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    }
)
"""Errors after which a partition never accepts the marker; the transaction ends without it."""


class TwoPhase(NamedTuple):
    """What a producer wants of two-phase commit (KIP-939).

    enable: prepare transactions outside of Kafka. keep_prepared: continue one that is prepared.
    """

    enable: bool = False
    keep_prepared: bool = False


ONE_PHASE = TwoPhase()


class Marker(NamedTuple):
    """A transaction marker."""

    producer_id: int
    producer_epoch: int
    commit: bool
    coordinator_epoch: int


class TransactionLog(Protocol):
    """The topic `__transaction_state`."""

    def append(self, transaction: Transaction) -> None:
        """Write the new state of a transaction. Raises BrokerError or LogError; nothing is written then."""

    def remove(self, transactional_id: str) -> None:
        """Write the tombstone of a transactional id. Raises BrokerError or LogError; nothing is written then."""

    def replay(self, partition: int | None = None) -> Iterator[Transaction]:
        """Yield the last state of every transactional id, or of those in one partition."""

    def coordinator_epoch(self, transactional_id: str) -> int:
        """Return the leader epoch of the partition that holds a transactional id."""


class MarkerWriter(Protocol):
    """The partitions of transactions."""

    def write_marker(self, partition: TopicPartition, marker: Marker) -> None:
        """Append a marker, and notify readers of the end of the transaction. Raises BrokerError or LogError."""


class TransactionCoordinator:
    """The coordinator.

    transaction_version: returns the finalized feature, 0 to 2; see metadata.bumps_epoch and log_records.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        timers: Timers,
        settings: Settings,
        transaction_version: Callable[[], int],
        log: TransactionLog,
        markers: MarkerWriter,
        producer_ids: ProducerIds,
    ) -> None:
        self.transaction_version = transaction_version
        self._clock, self._timers, self._settings = clock, timers, settings
        self._log, self._markers, self._producer_ids = log, markers, producer_ids
        self._transactions: dict[str, Transaction] = {}
        self._retries: dict[str, TimerHandle] = {}
        self._periodic: dict[str, TimerHandle] = {}

    def start(self) -> None:
        """Replay the log, carry out decided transactions, and start the periodic checks."""
        self._load(self._log.replay())
        settings = self._settings
        self._repeat(settings.transaction_abort_timed_out_transaction_cleanup_interval_ms, self.abort_timed_out)
        self._repeat(settings.transaction_remove_expired_transaction_cleanup_interval_ms, self.remove_expired)

    def elect(self, partition: int) -> None:
        """Replay a partition of the log whose leader has changed, and carry out its decided transactions."""
        self._load(self._log.replay(partition))

    def _load(self, transactions: Iterable[Transaction]) -> None:
        loaded = list(transactions)
        self._transactions.update((each.transactional_id, each) for each in loaded)
        for transaction in loaded:
            if transaction.is_prepared:
                self._carry_out(transaction.transactional_id)

    def resign(self, chosen: Callable[[str], bool]) -> None:
        """Forget transactional ids, such as those of a partition whose leader has changed."""
        for name in [each for each in self._transactions if chosen(each)]:
            del self._transactions[name]
            retry = self._retries.pop(name, None)
            if retry is not None:
                retry.cancel()

    def stop(self) -> None:
        """Cancel all timers."""
        for handle in (*self._retries.values(), *self._periodic.values()):
            handle.cancel()
        self._retries.clear()
        self._periodic.clear()

    def init_producer_id(
        self,
        transactional_id: str | None,
        timeout_ms: int,
        expected: ProducerIdAndEpoch | None = None,
        *,
        two_phase: TwoPhase = ONE_PHASE,
    ) -> ProducerIdAndEpoch:
        """Return a producer id and epoch; earlier producers of the transactional id are fenced.

        expected: id and epoch of a producer that recovers from an error (KIP-360); it is fenced if another took over.
        timeout_ms: its transaction.timeout.ms; ignored with two-phase commit. Raises BrokerError:
        CONCURRENT_TRANSACTIONS while the open transaction of an earlier producer is aborted, and others.
        """
        if transactional_id is None:
            return ProducerIdAndEpoch(self._producer_ids.take(), 0)
        if not transactional_id:
            raise refusal(ErrorCode.INVALID_REQUEST, "transactional id is empty")
        if two_phase.enable and not self._settings.transaction_two_phase_commit_enable:
            what = "two-phase commit needs transaction.two.phase.commit.enable"
            raise refusal(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, what)
        if two_phase.keep_prepared:
            raise refusal(ErrorCode.UNSUPPORTED_VERSION, "prepared transactions cannot be kept")
        if two_phase.enable:
            timeout_ms = UNLIMITED_MS
        elif not 0 < timeout_ms <= self._settings.transaction_max_timeout_ms:
            raise refusal(
                ErrorCode.INVALID_TRANSACTION_TIMEOUT,
                f"transaction.timeout.ms {timeout_ms} is outside 1 to {self._settings.transaction_max_timeout_ms}",
            )
        now_ms = self._clock.now_ms()
        transaction = self._transactions.get(transactional_id) or Transaction(
            transactional_id=transactional_id,
            producer_id=self._producer_ids.take(),
            timeout_ms=timeout_ms,
            last_update_timestamp=now_ms,
        )
        if expected is not None and not may_continue(transaction, expected):
            raise fenced(transaction, expected)
        if transaction.is_prepared:
            raise concurrent(transaction)
        if transaction.status == TransactionState.ONGOING:
            self._abort_fenced(transaction)
            raise concurrent(transaction)
        present = transaction.producer_epoch
        if is_exhausted(present) and (expected is None or expected.producer_epoch == present):
            started = rotated(
                transaction, self._producer_ids.take(), timeout_ms, now_ms, keep_last_epoch=expected is not None
            )
        else:
            epoch, last_epoch = next_epoch(transaction, expected)
            started = initialized(transaction, epoch, last_epoch, timeout_ms, now_ms)
        self._keep(started)
        return producer_of(started)

    def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: frozenset[TopicPartition],
        client_transaction_version: int = 0,
    ) -> None:
        """Begin or continue a transaction, and add partitions to it. Raises BrokerError."""
        transaction = self._of_producer(transactional_id, producer)
        if transaction.status == TransactionState.ONGOING and partitions <= transaction.topic_partitions:
            return
        self._keep(with_partitions(transaction, partitions, self._clock.now_ms(), client_transaction_version))

    def missing_partitions(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: frozenset[TopicPartition]
    ) -> frozenset[TopicPartition]:
        """Return the partitions that were not added to the producer's transaction (KIP-890). Raises BrokerError."""
        return partitions - self._of_producer(transactional_id, producer).topic_partitions

    def end(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        commit: bool,
        client_transaction_version: int = 0,
    ) -> ProducerIdAndEpoch:
        """Commit or abort a transaction.

        Returns the producer id and epoch for the next one (transaction version 2), or -1, -1. Raises BrokerError.
        """
        transaction = self._find(transactional_id)
        if not bumps_epoch(client_transaction_version):
            if may_end(transaction, producer, commit):
                self._end(prepared(transaction, commit, self._clock.now_ms(), 0))
            return NO_PRODUCER
        if may_end_bumping(transaction, producer, commit):
            next_producer_id = self._producer_ids.take() if is_exhausted(transaction.producer_epoch) else NO_PRODUCER_ID
            now_ms = self._clock.now_ms()
            ending = prepared(transaction, commit, now_ms, client_transaction_version, next_producer_id)
            self._end(ending)
            return producer_of(completed(ending, now_ms))
        return producer_of(transaction)

    def describe(self, transactional_id: str) -> Transaction:
        """Return a transactional id.

        Raises BrokerError: INVALID_REQUEST, TRANSACTIONAL_ID_NOT_FOUND.
        """
        return self._find(transactional_id, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)

    def __iter__(self) -> Iterator[Transaction]:
        """Yield all transactional ids in order."""
        return iter([self._transactions[name] for name in sorted(self._transactions)])

    def abort_timed_out(self) -> None:
        """Abort transactions that exceed their timeout, and fence their producers."""
        now_ms = self._clock.now_ms()
        for transaction in self:
            if transaction.timeout_ms == UNLIMITED_MS:
                continue
            deadline_ms = transaction.start_timestamp + transaction.timeout_ms
            if transaction.status == TransactionState.ONGOING and deadline_ms < now_ms:
                try:
                    self._abort_fenced(transaction)
                except BrokerError as error:
                    logger.warning("%r timed out and could not be aborted: %s", transaction.transactional_id, error)

    def remove_expired(self) -> None:
        """Remove transactional ids that were not used for transactional.id.expiration.ms."""
        oldest_ms = self._clock.now_ms() - self._settings.transactional_id_expiration_ms
        for transaction in self:
            if transaction.is_idle and transaction.last_update_timestamp <= oldest_ms:
                try:
                    self._log.remove(transaction.transactional_id)
                except (BrokerError, LogError) as error:
                    logger.warning("%r expired and could not be removed: %s", transaction.transactional_id, error)
                else:
                    del self._transactions[transaction.transactional_id]

    def _find(self, transactional_id: str, unknown: ErrorCode = ErrorCode.INVALID_PRODUCER_ID_MAPPING) -> Transaction:
        if not transactional_id:
            raise refusal(ErrorCode.INVALID_REQUEST, "transactional id is empty")
        transaction = self._transactions.get(transactional_id)
        if transaction is None:
            raise refusal(unknown, f"unknown transactional id {transactional_id!r}")
        return transaction

    def _of_producer(self, transactional_id: str, producer: ProducerIdAndEpoch) -> Transaction:
        """Return the transaction if the producer may add to it."""
        transaction = self._find(transactional_id)
        check_producer_id(transaction, producer)
        if transaction.producer_epoch != producer.producer_epoch:
            raise fenced(transaction, producer)
        if transaction.is_prepared:
            raise concurrent(transaction)
        return transaction

    def _abort_fenced(self, transaction: Transaction) -> None:
        """Abort a transaction and fence its producer."""
        self._end(prepared(with_next_epoch(transaction), False, self._clock.now_ms(), self.transaction_version()))

    def _end(self, ending: Transaction) -> None:
        self._keep(ending)
        self._carry_out(ending.transactional_id)

    def _keep(self, transaction: Transaction) -> None:
        """Write a step, then apply it. Raises BrokerError with a code for clients of a coordinator."""
        try:
            self._log.append(transaction)
        except LogError as error:
            raise refusal(ErrorCode.NOT_COORDINATOR, str(error)) from error
        except BrokerError as error:
            raise refusal(for_clients(ErrorCode(error.code)), error.what) from error
        self._transactions[transaction.transactional_id] = transaction

    def _carry_out(self, transactional_id: str) -> None:
        """Write the markers of a decided transaction, then its completion; retry what failed later."""
        transaction = self._transactions[transactional_id]
        marker = Marker(
            *producer_of(transaction),
            commit=transaction.status == TransactionState.PREPARE_COMMIT,
            coordinator_epoch=self._log.coordinator_epoch(transactional_id),
        )
        for partition in sorted(transaction.topic_partitions):
            if self._is_marked(partition, marker):
                transaction = marked(transaction, partition)
        self._transactions[transactional_id] = transaction
        if not transaction.partitions:
            try:
                self._keep(completed(transaction, self._clock.now_ms()))
            except BrokerError as error:
                logger.warning("completion of %r is not written: %s", transactional_id, error)
            else:
                self._retries.pop(transactional_id, None)
                return
        self._retries[transactional_id] = self._timers.call_later(
            MARKER_RETRY_MS, lambda: self._carry_out(transactional_id)
        )

    def _is_marked(self, partition: TopicPartition, marker: Marker) -> bool:
        """Write a marker; return whether the partition is done."""
        try:
            self._markers.write_marker(partition, marker)
        except LogError as error:
            logger.warning("marker for %s-%d: %s", *partition, error)
            return False
        except BrokerError as error:
            logger.info("marker for %s-%d: %s", *partition, error)
            return error.code in GONE
        return True

    def _repeat(self, interval_ms: int, action: Callable[[], None]) -> None:
        def run() -> None:
            self._repeat(interval_ms, action)
            action()

        self._periodic[action.__name__] = self._timers.call_later(interval_ms, run)


def may_continue(transaction: Transaction, expected: ProducerIdAndEpoch) -> bool:
    """Return whether a producer that names its id may get an epoch; next_epoch checks the epoch.

    Also True if the response with a new producer id was lost, and while no epoch was assigned yet.
    """
    return (
        transaction.producer_epoch == NO_PRODUCER_EPOCH
        or expected.producer_id == transaction.producer_id
        or (expected.producer_id == transaction.previous_producer_id and is_exhausted(expected.producer_epoch))
    )


def next_epoch(transaction: Transaction, expected: ProducerIdAndEpoch | None) -> tuple[int, int]:
    """Return (producer epoch, last producer epoch) of an initializing producer.

    Raises BrokerError: PRODUCER_FENCED.
    """
    present = transaction.producer_epoch
    if expected is None:
        return present + 1, NO_PRODUCER_EPOCH
    if present in (NO_PRODUCER_EPOCH, expected.producer_epoch):
        return present + 1, present
    if expected.producer_epoch == transaction.last_producer_epoch:  # the response was lost: return the same epoch
        return present, transaction.last_producer_epoch
    raise fenced(transaction, expected)


def for_clients(code: ErrorCode) -> ErrorCode:
    """Return the code for clients of the coordinator when `__transaction_state` cannot be written.

    Source: TransactionStateManager.appendTransactionToLog.
    """
    if code in (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
    ):
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR):
        return ErrorCode.NOT_COORDINATOR
    if code in (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE):
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return code
