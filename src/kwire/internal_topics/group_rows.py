"""Groups, members, committed offsets, transactions and share partitions as rows of plain values.

`kwire group`, `kwire txn` and Spark's `kafka-internal` show these rows: JSON types, times in ms, ids as Kafka writes
them, None for unknown values.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol
from uuid import UUID

from kwire.errors import BrokerError, DecodeError, LogError
from kwire.identifiers import render_uuid
from kwire.internal_topics.group_members import AssignedPartitions, Member
from kwire.internal_topics.groups_state import CommittedOffset, Group
from kwire.internal_topics.share_state import SharePartition
from kwire.internal_topics.transactions_state import Transaction

__all__ = ["LogEnds", "group_row", "member_rows", "offset_rows", "share_row", "transaction_row"]

Row = dict[str, Any]
Names = Mapping[UUID, str]


class Log(Protocol):
    """A partition's log, as far as lag needs it."""

    @property
    def log_end_offset(self) -> int:
        """The offset that the next record will get."""


class LogEnds:
    """Log end offsets of the partitions beside the internal topics: lag is counted against them.

    logs: by topic and partition; anything but a mapping, such as one partition's log or None, knows no log end.
    """

    def __init__(self, logs: object = None) -> None:
        self._logs: Mapping[tuple[str, int], Log] = logs if isinstance(logs, Mapping) else {}
        self._known: dict[tuple[str, int], int | None] = {}

    def of(self, topic: str, partition: int) -> int | None:
        """Return a log end offset; None if the log is missing or unreadable."""
        partition_key = (topic, partition)
        if partition_key not in self._known:
            self._known[partition_key] = None
            if partition_key in self._logs:
                with contextlib.suppress(LogError, DecodeError, BrokerError):
                    self._known[partition_key] = self._logs[partition_key].log_end_offset
        return self._known[partition_key]


def group_row(group: Group, ends: LogEnds) -> Row:
    """Return the row of a group. lag: of all its partitions, None if the log of one is missing."""
    lags = [_lag(ends.of(*partition_key), committed.offset) for partition_key, committed in group.offsets.items()]
    known = [lag for lag in lags if lag is not None]
    return {
        "group": group.group_id,
        "kind": group.kind,
        "state": group.state,
        "epoch": _known(group.epoch),
        "assignment_epoch": _known(group.assignment_epoch),
        "protocol_type": group.protocol_type or None,
        "protocol": group.protocol,
        "leader": group.leader,
        "members": len(group.members),
        "partitions": len(group.offsets),
        "pending_offsets": len(group.pending_offsets),
        "lag": sum(known) if lags and len(known) == len(lags) else None,
        "state_timestamp": _known(group.state_timestamp),
        "coordinator_partition": _known(group.partition),
        "last_offset": _known(group.last_offset),
        "last_timestamp": _known(group.last_timestamp),
    }


def offset_rows(group: Group, ends: LogEnds, names: Names) -> Iterator[Row]:
    """Yield committed offsets, those in open transactions, and assigned partitions without an offset."""
    owners = {
        (name, number): member
        for member in group.members.values()
        for each in member.assigned
        if (name := _topic(each, names)) is not None
        for number in each.partitions
    }
    for topic, number in sorted(group.offsets.keys() | owners.keys()):
        committed = group.offsets.get((topic, number))
        yield _offset_row(group, topic, number, committed, owners.get((topic, number)), ends)
    for _, pending in sorted(group.pending_offsets.items()):
        owner = owners.get((pending.topic, pending.partition))
        row = _offset_row(group, pending.topic, pending.partition, pending, owner, ends)
        yield row | {"in_transaction": True}


def _offset_row(
    group: Group, topic: str, partition: int, committed: CommittedOffset | None, owner: Member | None, ends: LogEnds
) -> Row:
    end = ends.of(topic, partition)
    return {
        "group": group.group_id,
        "kind": group.kind,
        "topic": topic,
        "partition": partition,
        "offset": committed.offset if committed else None,
        "log_end_offset": end,
        "lag": _lag(end, committed.offset) if committed else None,
        "leader_epoch": _known(committed.leader_epoch) if committed else None,
        "metadata": committed.metadata if committed else None,
        "commit_timestamp": _known(committed.commit_timestamp) if committed else None,
        "expire_timestamp": _known(committed.expire_timestamp) if committed else None,
        "producer_id": _known(committed.producer_id) if committed else None,
        "in_transaction": False,
        "record_offset": _known(committed.record_offset) if committed else None,
        "member_id": owner.member_id if owner else None,
        "instance_id": owner.instance_id if owner else None,
        "client_id": owner.client_id if owner else None,
        "client_host": owner.client_host if owner else None,
    }


def member_rows(group: Group, names: Names) -> Iterator[Row]:
    """Yield the members of a group by member id."""
    for _, member in sorted(group.members.items()):
        yield {
            "group": group.group_id,
            "kind": group.kind,
            "member_id": member.member_id,
            "instance_id": member.instance_id,
            "client_id": member.client_id,
            "client_host": member.client_host,
            "rack_id": member.rack_id,
            "state": None if group.kind == "classic" else member.state_name,
            "epoch": _known(member.epoch),
            "previous_epoch": _known(member.previous_epoch),
            "subscribed_topics": list(member.subscribed_topics),
            "subscribed_regex": member.subscribed_regex,
            "assignor": member.assignor,
            "assigned": _partitions(member.assigned, names),
            "revoking": _partitions(member.revoking, names),
            "target": None if member.target is None else _partitions(member.target, names),
            "active_tasks": _tasks(member.active_tasks),
            "standby_tasks": _tasks(member.standby_tasks),
            "warmup_tasks": _tasks(member.warmup_tasks),
            "process_id": member.process_id,
            "session_timeout_ms": _known(member.session_timeout_ms),
            "rebalance_timeout_ms": _known(member.rebalance_timeout_ms),
        }


def share_row(share: SharePartition, ends: LogEnds, names: Names) -> Row:
    """A share group's partition. lag: records that still need a delivery, as kafka-share-groups counts them."""
    topic = names.get(share.topic_id)
    end = None if topic is None else ends.of(topic, share.partition)
    lag = None
    if end is not None and share.start_offset >= 0:
        lag = max(end - share.start_offset - max(share.delivery_complete_count, 0), 0)
    return {
        "group": share.group_id,
        "kind": "share",
        "topic": topic,
        "topic_id": render_uuid(share.topic_id),
        "partition": share.partition,
        "start_offset": _known(share.start_offset),
        "log_end_offset": end,
        "lag": lag,
        "delivery_complete_count": _known(share.delivery_complete_count),
        "leader_epoch": _known(share.leader_epoch),
        "state_epoch": share.state_epoch,
        "snapshot_epoch": share.snapshot_epoch,
        "ranges": [
            {
                "first_offset": each.first_offset,
                "last_offset": each.last_offset,
                "state": each.state_name,
                "delivery_count": each.delivery_count,
            }
            for each in share.ranges
        ],
        "create_timestamp": _known(share.create_timestamp),
        "write_timestamp": _known(share.write_timestamp),
        "state_partition": share.state_partition,
        "record_offset": share.record_offset,
        "timestamp": share.timestamp,
    }


def transaction_row(transaction: Transaction) -> Row:
    """Return the row of a transactional id."""
    return {
        "transactional_id": transaction.transactional_id,
        "state": transaction.state,
        "is_open": transaction.is_open,
        "producer_id": transaction.producer_id,
        "producer_epoch": transaction.producer_epoch,
        "previous_producer_id": _known(transaction.previous_producer_id),
        "next_producer_id": _known(transaction.next_producer_id),
        "timeout_ms": transaction.timeout_ms,
        "start_timestamp": _known(transaction.start_timestamp),
        "last_update_timestamp": _known(transaction.last_update_timestamp),
        "partitions": [
            {"topic": topic, "partitions": list(numbers)} for topic, numbers in sorted(transaction.partitions.items())
        ],
        "client_transaction_version": transaction.client_transaction_version,
        "coordinator_partition": _known(transaction.partition),
        "record_offset": _known(transaction.record_offset),
        "timestamp": _known(transaction.timestamp),
    }


def _known(number: int) -> int | None:
    """Kafka's -1 for "none" as None."""
    return None if number == -1 else number


def _lag(end: int | None, offset: int) -> int | None:
    return None if end is None else end - offset  # below 0 where the log has lost records: Kafka's tools show it too


def _topic(assigned: AssignedPartitions, names: Names) -> str | None:
    if assigned.topic is not None or assigned.topic_id is None:
        return assigned.topic
    return names.get(assigned.topic_id)


def _partitions(assigned: Iterable[AssignedPartitions], names: Names) -> list[Row]:
    return [
        {
            "topic": _topic(each, names),
            "topic_id": None if each.topic_id is None else render_uuid(each.topic_id),
            "partitions": list(each.partitions),
        }
        for each in assigned
    ]


def _tasks(tasks: Mapping[str, tuple[int, ...]]) -> list[Row]:
    return [{"subtopology": name, "partitions": list(numbers)} for name, numbers in sorted(tasks.items())]
