"""Batches that are written beside the kept ones, so that the logs agree with each other at the cut."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import msgspec

from kwire.identifiers import TopicPartition
from kwire.internal_topics.coordinator_records import decode_transaction
from kwire.internal_topics.names import TRANSACTIONS_TOPIC
from kwire.internal_topics.transactions_state import TransactionState
from kwire.internal_topics.typed_record import Problems, TypedRecord, usable
from kwire.log.topics.history import read_history
from kwire.maintenance.restore.survey import Survey, read_parts
from kwire.maintenance.restore.transactions import (
    GAP_MS,
    LARGEST_EPOCH,
    Decision,
    Known,
    Transaction,
    group_parts,
    mark_newer,
    producer_windows,
)
from kwire.protocol.record_values import write_prefixed

if TYPE_CHECKING:
    from kwire.messages import TransactionLogKey, TransactionLogValue

__all__ = ["Changes", "DividedTransaction", "NewMarker", "Writes", "plan_changes"]

PREPARED = {TransactionState.PREPARE_COMMIT: True, TransactionState.PREPARE_ABORT: False}
FIRST_TAGGED_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMarker:
    """A transaction marker to append. coordinator_epoch: -1 for that of the producer's last marker in the partition."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool


@dataclass(slots=True)
class Writes:
    """Changes of one partition.

    aborted: offsets of COMMIT markers that become ABORT markers. markers: appended. records: keys and values appended
    after them.
    """

    aborted: set[int] = field(default_factory=set)
    markers: list[NewMarker] = field(default_factory=list)
    records: list[tuple[bytes, bytes | None]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class DividedTransaction:
    """A transaction that the cut divides. transactional_id: None if unknown. is_committed: its outcome in the copy.

    partitions: those with records below the cut.
    """

    producer_id: int
    transactional_id: str | None
    is_committed: bool
    partitions: Sequence[TopicPartition]


@dataclass(slots=True)
class Changes:
    """All changes, by partition, and the transactions they are for.

    largest_producer_id: of the transactional ids in the whole source, -1 without one.
    """

    writes: dict[TopicPartition, Writes] = field(default_factory=lambda: defaultdict(Writes))
    transactions: list[DividedTransaction] = field(default_factory=list)
    largest_producer_id: int = -1


def plan_changes(surveys: Mapping[TopicPartition, Survey], now_ms: int) -> Changes:
    """Return the changes that end every divided transaction. now_ms: of new records of `__transaction_state`.

    That topic is read twice, since the PREPARE records of all producers may not fit in memory.
    Memory: the transactional ids, and the transactions between the earliest and the latest cut. Raises LogError.
    """
    cuts = {key: survey.cut_offset for key, survey in surveys.items()}
    known = read_known(surveys)
    windows = producer_windows((survey.producers for survey in surveys.values()), known)
    for survey in surveys.values():
        ours = windows.keys() & survey.producers.keys()
        for part in read_parts(survey, ours.__contains__) if ours else ():
            windows[part.producer_id].add(part, survey.cut_offset)
    states, decisions, largest = read_states(surveys, set(windows))
    newest = max((trace.last_ms for survey in surveys.values() for trace in survey.producers.values()), default=-1)
    changes = Changes(largest_producer_id=largest)
    latest: dict[int, Transaction] = {}
    fences: dict[int, int] = {}
    names = {cast("TransactionLogValue", record.value).producer_id: name for name, record in states.items()}
    for producer_id, window in windows.items():
        transactions = group_parts(window.parts(), decisions[producer_id], newest)
        mark_newer(transactions, known.get(producer_id))
        kept = [each for each in transactions if each.is_kept(cuts)]
        for transaction in kept:
            if end_transaction(transaction, cuts, changes, names.get(producer_id)):
                fences[producer_id] = max(transaction.marker_epoch, fences.get(producer_id, -1))
        if kept:
            latest[producer_id] = max(kept, key=recency)
    for name, record in sorted(states.items()):
        ended = final_value(record, latest, fences, cuts, now_ms)
        if ended is not None:
            from kwire.messages import TransactionLogKey

            key = write_prefixed(TransactionLogKey(transactional_id=name), 0)
            value = write_prefixed(ended, record.version or 0)
            changes.writes[record.topic, record.partition].records.append((key, value))
    return changes


def recency(transaction: Transaction) -> tuple[bool, int]:
    """Order the transactions of a producer: the open one is the last."""
    at = transaction.last_marker_ms
    return at is None, at or 0


def read_known(surveys: Mapping[TopicPartition, Survey]) -> dict[int, Known]:
    """Return how far `__transaction_state` knows each producer, on both sides of the cut. Raises LogError."""
    known: dict[int, Known] = {}
    for (topic, _), survey in surveys.items():
        if topic != TRANSACTIONS_TOPIC:
            continue
        ours: dict[int, Known] = {}
        newest = -1
        history = read_history(survey.log, decode_transaction, at_offset=survey.source_end)
        for record in usable(history, Problems()):
            newest = max(newest, record.timestamp)
            if record.value is None:
                continue
            value = cast("TransactionLogValue", record.value)
            until_ms, prepared = record.timestamp, frozenset[TopicPartition]()  # after the markers were written
            status = TransactionState.of(value.transaction_status)
            if status == TransactionState.ONGOING and value.transaction_start_timestamp_ms >= 0:
                until_ms = min(until_ms, value.transaction_start_timestamp_ms - 1)  # its outcome is not known
            elif status in PREPARED:
                prepared = partitions_of(value)
            ours[value.producer_id] = Known(until_ms, value.transaction_last_update_timestamp_ms, prepared)
        for producer_id, each in ours.items():  # a later record of another id shows that this one has no later record
            known[producer_id] = each._replace(until_ms=max(each.until_ms, newest - GAP_MS))
    return known


def partitions_of(value: TransactionLogValue) -> frozenset[TopicPartition]:
    """Return the partitions in a record of `__transaction_state`."""
    return frozenset(
        (each.topic, number) for each in value.transaction_partitions or () for number in each.partition_ids
    )


def read_states(
    surveys: Mapping[TopicPartition, Survey], producer_ids: set[int]
) -> tuple[dict[str, TypedRecord], dict[int, list[Decision]], int]:
    """Read `__transaction_state`: the last record of each id below the cut, and the decisions of producers.

    Returns the largest producer id as well.
    """
    largest = -1
    states: dict[str, TypedRecord] = {}
    decisions: dict[int, list[Decision]] = defaultdict(list)
    for (topic, _), survey in surveys.items():
        if topic != TRANSACTIONS_TOPIC:
            continue
        history = read_history(survey.log, decode_transaction, at_offset=survey.source_end)
        for record in usable(history, Problems()):
            if record.key is None:
                continue
            name = cast("TransactionLogKey", record.key).transactional_id
            is_kept = record.offset < survey.cut_offset
            if record.value is None:
                if is_kept:
                    states.pop(name, None)
                continue
            if is_kept:
                states[name] = record
            value = cast("TransactionLogValue", record.value)
            largest = max(largest, value.producer_id, value.next_producer_id)
            status = TransactionState.of(value.transaction_status)
            if value.producer_id in producer_ids and status in PREPARED:
                decisions[value.producer_id].append(
                    Decision(
                        value.producer_id,
                        value.producer_epoch,
                        value.transaction_last_update_timestamp_ms,
                        PREPARED[cast("TransactionState", status)],
                        partitions_of(value),
                        is_kept,
                    )
                )
    return states, decisions, largest


def end_transaction(
    transaction: Transaction, cuts: Mapping[TopicPartition, int], changes: Changes, name: str | None
) -> bool:
    """Plan the markers of a transaction with records below the cut; return whether it needs any."""
    is_committed = transaction.is_committed(cuts)
    is_divided = False
    for part in transaction.parts:
        if part.first_offset >= cuts[part.key]:
            continue
        marker = part.marker
        if marker is not None and marker.offset < cuts[part.key]:
            if marker.is_commit != is_committed:
                changes.writes[part.key].aborted.add(marker.offset)
                is_divided = True
            continue
        is_divided = True
        changes.writes[part.key].markers.append(
            NewMarker(
                producer_id=part.producer_id,
                producer_epoch=transaction.marker_epoch,
                coordinator_epoch=transaction.coordinator_epoch,
                is_commit=is_committed,
            )
        )
    if is_divided:
        changes.transactions.append(
            DividedTransaction(
                producer_id=transaction.producer_id,
                transactional_id=name,
                is_committed=is_committed,
                partitions=sorted(part.key for part in transaction.parts if part.first_offset < cuts[part.key]),
            )
        )
    return is_divided


def final_value(
    record: TypedRecord,
    latest: Mapping[int, Transaction],
    fences: Mapping[int, int],
    cuts: Mapping[TopicPartition, int],
    now_ms: int,
) -> TransactionLogValue | None:
    """Return the value that ends an id's transaction, or has the epoch of new markers; None if nothing changes."""
    value = cast("TransactionLogValue", record.value)
    status = TransactionState.of(value.transaction_status)
    transaction = latest.get(value.producer_id)
    epoch = max(value.producer_epoch, fences.get(value.producer_id, -1))
    if status not in PREPARED and status != TransactionState.ONGOING:
        if epoch == value.producer_epoch:
            return None
        return msgspec.structs.replace(value, producer_epoch=epoch)
    if status == TransactionState.ONGOING:
        is_committed = transaction is not None and is_ongoing(transaction, record) and transaction.is_committed(cuts)
        if is_committed and transaction is not None:
            epoch = max(epoch, transaction.marker_epoch)
        elif epoch == value.producer_epoch:
            epoch = min(epoch + 1, LARGEST_EPOCH)  # fence the producer, which may still add to the transaction
    else:
        is_committed = PREPARED[cast("TransactionState", status)]
        if transaction is not None and is_decided_by(transaction, record):
            is_committed = transaction.is_committed(cuts)
    ended = msgspec.structs.replace(
        value,
        producer_epoch=epoch,
        transaction_status=TransactionState.COMPLETE_COMMIT if is_committed else TransactionState.COMPLETE_ABORT,
        transaction_partitions=[],
        transaction_last_update_timestamp_ms=now_ms,
    )
    if (record.version or 0) >= FIRST_TAGGED_VERSION and value.next_producer_id >= 0:  # its epochs are used up
        ended = msgspec.structs.replace(
            ended,
            previous_producer_id=value.producer_id,
            producer_id=value.next_producer_id,
            producer_epoch=0,
            next_producer_id=-1,
        )
    return ended


def is_ongoing(transaction: Transaction, record: TypedRecord) -> bool:
    """Return whether a transaction is the one that an ONGOING record is about."""
    if transaction.decision is not None:
        return not transaction.decision.is_kept
    at = transaction.last_marker_ms
    return at is None or at >= record.timestamp


def is_decided_by(transaction: Transaction, record: TypedRecord) -> bool:
    """Return whether a transaction is the one that a PREPARE record is about."""
    decided = transaction.decision
    value = cast("TransactionLogValue", record.value)
    if decided is not None:
        return decided.timestamp == value.transaction_last_update_timestamp_ms
    at = transaction.last_marker_ms
    return at is None or at >= value.transaction_last_update_timestamp_ms
