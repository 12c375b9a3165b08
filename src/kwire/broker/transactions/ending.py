"""Whether a producer may end its transaction: what EndTxn asks for against the state the transaction is in.

With transaction versions 0 and 1 the epoch stays, so a request is a repetition if it asks for what has been done:

    state               commit                     abort
    EMPTY               INVALID_TXN_STATE          INVALID_TXN_STATE
    ONGOING             ends                       ends
    PREPARE_COMMIT      CONCURRENT_TRANSACTIONS    INVALID_TXN_STATE
    PREPARE_ABORT       INVALID_TXN_STATE          CONCURRENT_TRANSACTIONS
    COMPLETE_COMMIT     done before                INVALID_TXN_STATE
    COMPLETE_ABORT      INVALID_TXN_STATE          done before

With version 2 the epoch has risen by one when the transaction ends, so a repetition comes with the epoch before (or, if
they were used up, with the producer id before), and a request with the present epoch is about the next transaction,
which may be aborted before anything was written:

    state               commit, repeated           commit               abort, repeated            abort
    EMPTY               PRODUCER_FENCED            INVALID_TXN_STATE    PRODUCER_FENCED            ends, nothing in it
    ONGOING             PRODUCER_FENCED            ends                 PRODUCER_FENCED            ends
    PREPARE_COMMIT      CONCURRENT_TRANSACTIONS    PRODUCER_FENCED      INVALID_TXN_STATE          PRODUCER_FENCED
    PREPARE_ABORT       INVALID_TXN_STATE          PRODUCER_FENCED      CONCURRENT_TRANSACTIONS    PRODUCER_FENCED
    COMPLETE_COMMIT     done before                INVALID_TXN_STATE    INVALID_TXN_STATE          ends, nothing in it
    COMPLETE_ABORT      INVALID_TXN_STATE          INVALID_TXN_STATE    done before                ends, nothing in it

Source: kafka.coordinator.transaction.TransactionCoordinator.endTransaction and endTransactionWithTV1, 4.0; KIP-890.
"""

from __future__ import annotations

from kwire.broker.transactions.metadata import LAST_EPOCH, ProducerIdAndEpoch, TransactionMetadata
from kwire.internal_topics.transactions_state import TransactionState
from kwire.protocol.error_codes import ErrorCode, refusal

__all__ = ["may_end", "may_end_bumping"]

COMMITTED = {TransactionState.PREPARE_COMMIT: True, TransactionState.PREPARE_ABORT: False}
COMPLETED = {TransactionState.COMPLETE_COMMIT: True, TransactionState.COMPLETE_ABORT: False}


def may_end(transaction: TransactionMetadata, producer: ProducerIdAndEpoch, commit: bool) -> bool:
    """Return whether to end the transaction; False if it ended this way before. Transaction versions 0 and 1.

    Raises BrokerError.
    """
    check_producer_id(transaction, producer)
    if producer.producer_epoch != transaction.producer_epoch:
        raise fenced(transaction, producer)
    state = transaction.state
    if state == TransactionState.ONGOING:
        return True
    if COMPLETED.get(state) == commit:
        return False
    if COMMITTED.get(state) == commit:
        raise concurrent(transaction)
    raise out_of_turn(transaction, commit)


def may_end_bumping(transaction: TransactionMetadata, producer: ProducerIdAndEpoch, commit: bool) -> bool:
    """Return whether to end the transaction; False if it ended this way before. Transaction version 2.

    Raises BrokerError.
    """
    state, epoch = transaction.state, producer.producer_epoch
    took_next_id = (
        transaction.previous_producer_id == producer.producer_id
        and epoch == LAST_EPOCH
        and transaction.producer_epoch == 0
    )
    is_repeated = took_next_id or transaction.producer_epoch == epoch + 1
    is_current = transaction.producer_epoch == epoch
    if not took_next_id:
        check_producer_id(transaction, producer)
    if state in COMPLETED:
        if not is_repeated and not is_current:
            raise fenced(transaction, producer)
        if is_repeated and COMPLETED[state] == commit:
            return False
        if is_repeated or commit:
            raise out_of_turn(transaction, commit)
        return True
    if state in COMMITTED:
        if transaction.producer_epoch != epoch + 1:
            raise fenced(transaction, producer)
        raise concurrent(transaction) if COMMITTED[state] == commit else out_of_turn(transaction, commit)
    if not is_current:
        raise fenced(transaction, producer)
    if state == TransactionState.EMPTY and commit:
        raise out_of_turn(transaction, commit)
    return True


def check_producer_id(transaction: TransactionMetadata, producer: ProducerIdAndEpoch) -> None:
    """Check the producer id of a transactional id. Raises BrokerError: INVALID_PRODUCER_ID_MAPPING."""
    if transaction.producer_id != producer.producer_id:
        raise refusal(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            f"transactional id {transaction.transactional_id!r} belongs to producer {transaction.producer_id}, "
            f"not {producer.producer_id}",
        )


def fenced(transaction: TransactionMetadata, producer: ProducerIdAndEpoch) -> Exception:
    """Return the error for a producer with an outdated epoch."""
    return refusal(
        ErrorCode.PRODUCER_FENCED,
        f"transactional id {transaction.transactional_id!r} is at producer epoch {transaction.producer_epoch}, "
        f"not {producer.producer_epoch}",
    )


def concurrent(transaction: TransactionMetadata) -> Exception:
    """Return the error for a transaction that is still ending."""
    return refusal(
        ErrorCode.CONCURRENT_TRANSACTIONS,
        f"transactional id {transaction.transactional_id!r} has markers that are not written yet; retry",
    )


def out_of_turn(transaction: TransactionMetadata, commit: bool) -> Exception:
    """Return the error for a commit or abort that the state does not allow."""
    return refusal(
        ErrorCode.INVALID_TXN_STATE,
        f"cannot {'commit' if commit else 'abort'} transactional id {transaction.transactional_id!r} in state "
        f"{transaction.state.label}",
    )
