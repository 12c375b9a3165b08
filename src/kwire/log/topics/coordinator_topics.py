"""Reading and replaying the coordinators' topics: groups and offsets, transactions, share groups."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from kwire.internal_topics.coordinator_records import decode_group, decode_share_state, decode_transaction
from kwire.internal_topics.groups_state import GroupsState, group_of
from kwire.internal_topics.names import GROUPS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from kwire.internal_topics.share_state import ShareState
from kwire.internal_topics.transactions_state import TransactionsState
from kwire.internal_topics.typed_record import TypedRecord, usable
from kwire.log.topics.history import Source, partitions_of, read_history

__all__ = [
    "read_group_records",
    "read_share_records",
    "read_transaction_records",
    "replay_groups",
    "replay_share_state",
    "replay_transactions",
]


def read_group_records(
    source: Source,
    *,
    groups: Collection[str] | None = None,
    at_offset: int | None = None,
    at_time: int | None = None,
) -> Iterator[TypedRecord]:
    """Yield every record of `__consumer_offsets`, partition by partition in order.

    groups: only records of these groups, without transaction markers. Raises LogError if the topic is missing or its
    files are unreadable.
    """
    for log in partitions_of(source, GROUPS_TOPIC):
        for record in read_history(log, decode_group, at_offset=at_offset, at_time=at_time):
            if groups is None or group_of(record) in groups:
                yield record


def replay_groups(
    source: Source,
    *,
    groups: Collection[str] | None = None,
    at_offset: int | None = None,
    at_time: int | None = None,
) -> GroupsState:
    """Return the groups (all, or those named) at an offset or time, at the end by default. Memory: the groups.

    at_offset counts in one partition: with several partitions it only makes sense for one group. Raises LogError.
    """
    state = GroupsState()
    for log in partitions_of(source, GROUPS_TOPIC):
        for record in usable(read_history(log, decode_group, at_offset=at_offset, at_time=at_time), state.problems):
            if groups is None or record.is_control or group_of(record) in groups:
                state.apply(record)
    return state


def read_transaction_records(
    source: Source, *, at_offset: int | None = None, at_time: int | None = None
) -> Iterator[TypedRecord]:
    """Yield every record of `__transaction_state`, partition by partition. Raises LogError."""
    for log in partitions_of(source, TRANSACTIONS_TOPIC):
        yield from read_history(log, decode_transaction, at_offset=at_offset, at_time=at_time)


def replay_transactions(
    source: Source, *, at_offset: int | None = None, at_time: int | None = None
) -> TransactionsState:
    """Return the transactional ids at an offset (of each partition) or time, at the end by default. Raises LogError."""
    state = TransactionsState()
    for record in usable(read_transaction_records(source, at_offset=at_offset, at_time=at_time), state.problems):
        state.apply(record)
    return state


def read_share_records(
    source: Source, *, at_offset: int | None = None, at_time: int | None = None
) -> Iterator[TypedRecord]:
    """Yield every record of `__share_group_state`, partition by partition. Raises LogError."""
    for log in partitions_of(source, SHARE_STATE_TOPIC):
        yield from read_history(log, decode_share_state, at_offset=at_offset, at_time=at_time)


def replay_share_state(source: Source, *, at_offset: int | None = None, at_time: int | None = None) -> ShareState:
    """Return the share partitions at an offset (of each partition) or time, at the end by default. Raises LogError."""
    state = ShareState()
    for record in usable(read_share_records(source, at_offset=at_offset, at_time=at_time), state.problems):
        state.apply(record)
    return state
