"""States of a transaction, and which may follow which.

    id  state                comes from
     0  EMPTY                itself, COMPLETE_COMMIT, COMPLETE_ABORT
     1  ONGOING              itself, EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT
     2  PREPARE_COMMIT       ONGOING
     3  PREPARE_ABORT        ONGOING; with transaction version 2 also EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT
     4  COMPLETE_COMMIT      PREPARE_COMMIT
     5  COMPLETE_ABORT       PREPARE_ABORT

Kafka has two more, DEAD (6) and PREPARE_EPOCH_FENCE (7), for the time between deciding and having written. Appends
here are done when they return, so nobody can see them; their numbers are known because filters may name them.
Source: org.apache.kafka.coordinator.transaction.TransactionState, KIP-98, KIP-890.
"""

from __future__ import annotations

from enum import IntEnum

__all__ = ["TransactionState"]


class TransactionState(IntEnum):
    """The number is the status in a TransactionLogValue, `label` the name in responses and filters."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def label(self) -> str:
        return "".join(word.capitalize() for word in self.name.split("_"))

    @property
    def is_prepared(self) -> bool:
        """Decided and written; markers are on their way."""
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

    @property
    def is_idle(self) -> bool:
        """No transaction: one may begin, and the transactional id may expire."""
        return self in IDLE

    def may_follow(self, before: TransactionState) -> bool:
        return before in PREVIOUS[self]


IDLE = frozenset({TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})
PREVIOUS: dict[TransactionState, frozenset[TransactionState]] = {
    TransactionState.EMPTY: IDLE,
    TransactionState.ONGOING: IDLE | {TransactionState.ONGOING},
    TransactionState.PREPARE_COMMIT: frozenset({TransactionState.ONGOING}),
    TransactionState.PREPARE_ABORT: IDLE | {TransactionState.ONGOING},
    TransactionState.COMPLETE_COMMIT: frozenset({TransactionState.PREPARE_COMMIT}),
    TransactionState.COMPLETE_ABORT: frozenset({TransactionState.PREPARE_ABORT}),
    TransactionState.DEAD: frozenset(),
    TransactionState.PREPARE_EPOCH_FENCE: frozenset(),
}
