"""Rules for EndTxn: whether a producer may commit or abort its transaction in its current state.

Transaction versions 0 and 1 do not bump the epoch: a request is a retry if the transaction already has its outcome.

    state               commit                     abort
    EMPTY               INVALID_TXN_STATE          INVALID_TXN_STATE
    ONGOING             ends                       ends
    PREPARE_COMMIT      CONCURRENT_TRANSACTIONS    INVALID_TXN_STATE
    PREPARE_ABORT       INVALID_TXN_STATE          CONCURRENT_TRANSACTIONS
    COMPLETE_COMMIT     already done               INVALID_TXN_STATE
    COMPLETE_ABORT      INVALID_TXN_STATE          already done

Version 2 bumps the epoch when a transaction ends. A retry has the previous epoch (or the previous producer id, if the
epochs were exhausted). A request with the current epoch concerns the next transaction, which may be aborted while it is
empty:

    state               commit, retry              commit               abort, retry               abort
    EMPTY               PRODUCER_FENCED            INVALID_TXN_STATE    PRODUCER_FENCED            ends, empty
    ONGOING             PRODUCER_FENCED            ends                 PRODUCER_FENCED            ends
    PREPARE_COMMIT      CONCURRENT_TRANSACTIONS    PRODUCER_FENCED      INVALID_TXN_STATE          PRODUCER_FENCED
    PREPARE_ABORT       INVALID_TXN_STATE          PRODUCER_FENCED      CONCURRENT_TRANSACTIONS    PRODUCER_FENCED
    COMPLETE_COMMIT     already done               INVALID_TXN_STATE    INVALID_TXN_STATE          ends, empty
    COMPLETE_ABORT      INVALID_TXN_STATE          INVALID_TXN_STATE    already done               ends, empty

Source: kafka.coordinator.transaction.TransactionCoordinator.endTransaction and endTransactionWithTV1, 4.0; KIP-890.
"""

from __future__ import annotations

from kwire.broker.transactions.metadata import LAST_EPOCH, ProducerIdAndEpoch
from kwire.internal_topics.transactions_state import Transaction, TransactionState
from kwire.protocol.error_codes import ErrorCode, refusal

__all__ = ["may_end", "may_end_bumping"]

PREPARED: dict[int, bool] = {TransactionState.PREPARE_COMMIT: True, TransactionState.PREPARE_ABORT: False}
COMPLETED: dict[int, bool] = {TransactionState.COMPLETE_COMMIT: True, TransactionState.COMPLETE_ABORT: False}


def may_end(transaction: Transaction, producer: ProducerIdAndEpoch, commit: bool) -> bool:
    """Return whether to end the transaction; False for a retry of a completed one. Transaction versions 0 and 1.

    Raises BrokerError.
    """
    check_producer_id(transaction, producer)
    if producer.producer_epoch != transaction.producer_epoch:
        raise fenced(transaction, producer)
    state = transaction.status
    if state == TransactionState.ONGOING:
        return True
    if COMPLETED.get(state) == commit:
        return False
    if PREPARED.get(state) == commit:
        raise concurrent(transaction)
    raise invalid_state(transaction, commit)


def may_end_bumping(transaction: Transaction, producer: ProducerIdAndEpoch, commit: bool) -> bool:
    """Return whether to end the transaction; False for a retry of a completed one. Transaction version 2.

    Raises BrokerError.
    """
    state, epoch = transaction.status, producer.producer_epoch
    has_previous_id = (
        transaction.previous_producer_id == producer.producer_id
        and epoch == LAST_EPOCH
        and transaction.producer_epoch == 0
    )
    is_retry = has_previous_id or transaction.producer_epoch == epoch + 1
    is_current = transaction.producer_epoch == epoch
    if not has_previous_id:
        check_producer_id(transaction, producer)
    if state in COMPLETED:
        if not is_retry and not is_current:
            raise fenced(transaction, producer)
        if is_retry and COMPLETED[state] == commit:
            return False
        if is_retry or commit:
            raise invalid_state(transaction, commit)
        return True
    if state in PREPARED:
        if transaction.producer_epoch != epoch + 1:
            raise fenced(transaction, producer)
        raise concurrent(transaction) if PREPARED[state] == commit else invalid_state(transaction, commit)
    if not is_current:
        raise fenced(transaction, producer)
    if state == TransactionState.EMPTY and commit:
        raise invalid_state(transaction, commit)
    return True


def check_producer_id(transaction: Transaction, producer: ProducerIdAndEpoch) -> None:
    """Check the producer id of a transactional id. Raises BrokerError: INVALID_PRODUCER_ID_MAPPING."""
    if transaction.producer_id != producer.producer_id:
        raise refusal(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            f"transactional id {transaction.transactional_id!r} belongs to producer {transaction.producer_id}, "
            f"not {producer.producer_id}",
        )


def fenced(transaction: Transaction, producer: ProducerIdAndEpoch) -> Exception:
    """Return the error for a producer with an outdated epoch."""
    return refusal(
        ErrorCode.PRODUCER_FENCED,
        f"transactional id {transaction.transactional_id!r} is at producer epoch {transaction.producer_epoch}, "
        f"not {producer.producer_epoch}",
    )


def concurrent(transaction: Transaction) -> Exception:
    """Return the error for a transaction that is still ending."""
    return refusal(
        ErrorCode.CONCURRENT_TRANSACTIONS,
        f"transactional id {transaction.transactional_id!r} has unwritten markers; retry",
    )


def invalid_state(transaction: Transaction, commit: bool) -> Exception:
    """Return the error for a commit or abort that the state does not allow."""
    return refusal(
        ErrorCode.INVALID_TXN_STATE,
        f"cannot {'commit' if commit else 'abort'} transactional id {transaction.transactional_id!r} in state "
        f"{transaction.state}",
    )
