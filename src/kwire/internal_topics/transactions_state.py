"""Transactions by transactional id, from `__transaction_state`.

A record holds everything about its transactional id, so state is the last record of each; a tombstone removes it.

    Empty -> Ongoing -> PrepareCommit -> CompleteCommit
                    \\-> PrepareAbort  -> CompleteAbort, PrepareEpochFence where the producer is fenced out

Source: TransactionLog, TransactionState of 3.9.1 and 4.x; KIP-98, KIP-890 (versions 2 of transactions).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kwire.internal_topics.typed_record import Problems, TypedRecord

__all__ = ["STATES", "Transaction", "TransactionsState"]

STATES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """The last thing that is known about a transactional id.

    partition: of `__transaction_state`. state: one of STATES, or a number that is none of them. previous_producer_id,
    next_producer_id: -1 without. start_timestamp, last_update_timestamp: ms, -1 without. partitions: those with records
    in it, by topic. client_transaction_version: from 2 on the epoch rises with every transaction (KIP-890).
    record_offset, timestamp: of the record that says so.
    """

    transactional_id: str
    partition: int
    state: str
    producer_id: int
    producer_epoch: int
    previous_producer_id: int
    next_producer_id: int
    timeout_ms: int
    start_timestamp: int
    last_update_timestamp: int
    partitions: dict[str, tuple[int, ...]]
    client_transaction_version: int
    record_offset: int
    timestamp: int

    @property
    def is_open(self) -> bool:
        """Whether readers of committed data wait for its end."""
        return self.state in ("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence")


@dataclass(slots=True, kw_only=True)
class TransactionsState:
    """All transactional ids, and the records that could not be read."""

    transactions: dict[str, Transaction] = field(default_factory=dict)
    problems: Problems = field(default_factory=Problems)

    def apply(self, record: TypedRecord) -> None:
        """Take in one usable record."""
        key: Any = record.key
        if key is None:
            return
        if record.value is None:
            self.transactions.pop(key.transactional_id, None)
        else:
            self.transactions[key.transactional_id] = _transaction(record)


def state_name(status: int) -> str:
    """One of STATES, or the number as text."""
    return STATES[status] if 0 <= status < len(STATES) else str(status)


def _transaction(record: TypedRecord) -> Transaction:
    key: Any = record.key
    value: Any = record.value
    return Transaction(
        transactional_id=key.transactional_id,
        partition=record.partition,
        state=state_name(value.transaction_status),
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        timeout_ms=value.transaction_timeout_ms,
        start_timestamp=value.transaction_start_timestamp_ms,
        last_update_timestamp=value.transaction_last_update_timestamp_ms,
        partitions={each.topic: tuple(sorted(each.partition_ids)) for each in value.transaction_partitions or ()},
        client_transaction_version=value.client_transaction_version,
        record_offset=record.offset,
        timestamp=record.timestamp,
    )
