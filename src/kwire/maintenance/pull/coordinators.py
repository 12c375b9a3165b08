"""Logs of coordinators' topics made from admin APIs, for accounts that may not read the topics.

    topic                  requests                                                permission
    __consumer_offsets     ListGroups, DescribeGroups, ..., OffsetFetch            DESCRIBE on groups and topics
    __transaction_state    ListTransactions, DescribeTransactions                  DESCRIBE on transactional ids

The records are those that a coordinator writes, in the partition where it would write them, so that whatever reads the
topic reads the copy: `kwire group`, `kwire serve`, Kafka itself. Committed offsets, without members and generations:
members join again, and continue at these offsets. Clients do not see times of commits: the copy's time counts.
A later refresh appends what has changed, and tombstones of what is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from kwire.client.admin.groups import describe_groups
from kwire.client.admin.requests import AdminRequests
from kwire.client.admin.transactions import describe_transactions, has_transactional_id
from kwire.client.client import Client
from kwire.client.group_offsets import fetch_offsets
from kwire.errors import BrokerError, ConnectionFailed
from kwire.identifiers import TopicPartition
from kwire.internal_topics.groups_state import GroupsState
from kwire.internal_topics.names import GROUPS_TOPIC, TRANSACTIONS_TOPIC
from kwire.internal_topics.placement import partition_for
from kwire.internal_topics.transactions_state import IDLE, PREPARED, TransactionsState, TransactionState
from kwire.log import LogDirectory
from kwire.log.reading.paths import StorageOptions
from kwire.messages import OffsetCommitKey, OffsetCommitValue, TransactionLogKey, TransactionLogValue
from kwire.protocol.record_values import write_prefixed
from kwire.records import Record, TimestampType
from kwire.records.format.builder import write_batches

__all__ = ["CONFIGS", "DESCRIBED", "PARTITIONS", "Described", "changes", "describe", "read_values"]

PARTITIONS = 50
"""Kafka's default of offsets.topic.num.partitions and transaction.state.log.num.partitions."""
DESCRIBED = frozenset({GROUPS_TOPIC, TRANSACTIONS_TOPIC})
"""The topics that can be made."""
CONFIGS = {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "104857600"}
"""Configs of coordinators' topics."""
OFFSET_VERSION, TRANSACTION_VERSION = 3, 0
WRITTEN = IDLE | PREPARED | {TransactionState.ONGOING}
"""States that have records; the others are of a coordinator's memory."""

Value = OffsetCommitValue | TransactionLogValue


class Described(NamedTuple):
    """The values of each partition by key, and the requests that they are from.

    kept: keys of an earlier description that stay as they are, because no coordinator says that they are gone.
    """

    values: list[dict[bytes, Value]]
    requests: AdminRequests
    kept: Collection[bytes]


def describe(client: Client, topic: str, partitions: int, earlier: Sequence[Collection[bytes]] = ()) -> Described:
    """Ask the admin APIs for a topic's contents. earlier: keys of an earlier description, by partition.

    Raises BrokerError, ConnectionFailed, UnsupportedVersion.
    """
    values: list[dict[bytes, Value]] = [{} for _ in range(partitions)]
    if topic == GROUPS_TOPIC:
        groups, requests = describe_groups(client)
        for name, key, offset in committed(groups):
            values[partition_for(name, partitions)][key] = offset
        return Described(values, requests, without_word(values, earlier, lambda keys: gone_offsets(client, keys)))
    transactions, requests = describe_transactions(client)
    for name, key, transaction in transactional_ids(transactions):
        values[partition_for(name, partitions)][key] = transaction
    return Described(values, requests, without_word(values, earlier, lambda keys: gone_ids(client, keys)))


def without_word(
    values: Sequence[Mapping[bytes, Value]],
    earlier: Sequence[Collection[bytes]],
    gone: Callable[[list[bytes]], Iterator[bytes]],
) -> set[bytes]:
    """Return the keys missing in values that a coordinator did not say to be gone.

    While a broker is dead, the list of groups lacks those whose coordinator it was.
    """
    missing = {key for keys, now in zip(earlier, values, strict=False) for key in keys if key not in now}
    try:
        for key in gone(sorted(missing)):
            missing.discard(key)
    except (BrokerError, ConnectionFailed):
        pass  # asked again by the next description
    return missing


def gone_offsets(client: Client, keys: list[bytes]) -> Iterator[bytes]:
    """Yield the keys of offsets that their group's coordinator does not have. Raises BrokerError, ConnectionFailed."""
    groups: dict[str, dict[TopicPartition, bytes]] = {}
    for key in keys:
        decoded = OffsetCommitKey.decode(key[2:], version=0)
        groups.setdefault(decoded.group, {})[decoded.topic, decoded.partition] = key
    for group, of_group in groups.items():
        offsets = fetch_offsets(client, group)
        yield from (key for place, key in of_group.items() if place not in offsets)


def gone_ids(client: Client, keys: list[bytes]) -> Iterator[bytes]:
    """Yield the keys of transactional ids that their coordinator does not have. Raises as gone_offsets()."""
    for key in keys:
        name = TransactionLogKey.decode(key[2:], version=0).transactional_id
        if not has_transactional_id(client, name):
            yield key


def read_values(
    url: str, keys: Collection[TopicPartition], options: StorageOptions
) -> dict[TopicPartition, dict[bytes, bytes]]:
    """Return the last value of each key that existing partitions of a copy have. Raises LogError."""
    values: dict[TopicPartition, dict[bytes, bytes]] = {}
    if not keys:
        return values
    directory = LogDirectory(url, **options)
    for key in keys:
        latest = values[key] = {}
        for each in directory[key].read():
            if each.key is not None:
                update(latest, each.key, each.value)
    return values


def changes(
    written: dict[bytes, bytes],
    values: Mapping[bytes, Value],
    kept: Collection[bytes],
    *,
    base_offset: int,
    now_ms: int,
) -> bytes:
    """Return batches that bring a partition to these values, b"" if it has them.

    written: the values that it has; they are updated. kept: keys whose values stay.
    """
    new: dict[bytes, bytes | None] = {key: None for key in written if key not in values and key not in kept}
    for key, value in values.items():
        if key not in written or without_time(value, written[key]) != encode(value):
            new[key] = encode(stamped(value, now_ms))
    for key, data in new.items():
        update(written, key, data)
    records = [
        Record(offset=0, timestamp=now_ms, timestamp_type=TimestampType.CREATE_TIME, key=key, value=data, headers=[])
        for key, data in new.items()
    ]
    return b"".join(write_batches(records, base_offset=base_offset, partition_leader_epoch=0))


def update(values: dict[bytes, bytes], key: bytes, value: bytes | None) -> None:
    """Apply a record."""
    if value is None:
        values.pop(key, None)
    else:
        values[key] = value


def committed(state: GroupsState) -> Iterator[tuple[str, bytes, OffsetCommitValue]]:
    """Yield (group, key, value) of each committed offset."""
    for group in state.groups.values():
        for (topic, partition), each in group.offsets.items():
            key = OffsetCommitKey(group=group.group_id, topic=topic, partition=partition)
            value = OffsetCommitValue(offset=each.offset, leader_epoch=each.leader_epoch, metadata=each.metadata)
            yield group.group_id, write_prefixed(key, 0), value


def transactional_ids(state: TransactionsState) -> Iterator[tuple[str, bytes, TransactionLogValue]]:
    """Yield (transactional id, key, value) of each id in a state that coordinators write."""
    for name, each in state.transactions.items():
        if each.status not in WRITTEN:
            continue
        partitions = [
            TransactionLogValue.PartitionsSchema(topic=topic, partition_ids=list(numbers))
            for topic, numbers in sorted(each.partitions.items())
        ]
        value = TransactionLogValue(
            producer_id=each.producer_id,
            producer_epoch=each.producer_epoch,
            transaction_timeout_ms=each.timeout_ms,
            transaction_status=int(each.status),
            transaction_partitions=None if each.status == TransactionState.EMPTY else partitions,
            transaction_start_timestamp_ms=each.start_timestamp,
        )
        yield name, write_prefixed(TransactionLogKey(transactional_id=name), 0), value


def version_of(value: Value) -> int:
    """Return the version in which values of this kind are written: the one that every Kafka reads."""
    return OFFSET_VERSION if isinstance(value, OffsetCommitValue) else TRANSACTION_VERSION


def encode(value: Value) -> bytes:
    """Encode a value with its version in front."""
    return write_prefixed(value, version_of(value))


def stamped(value: Value, time_ms: int) -> Value:
    """Set the time of a value."""
    if isinstance(value, OffsetCommitValue):
        value.commit_timestamp = time_ms
    else:
        value.transaction_last_update_timestamp_ms = time_ms
    return value


def without_time(like: Value, stored: bytes) -> bytes:
    """Return a stored value with the time of another one."""
    value = type(like).decode(stored[2:], version=version_of(like))
    if isinstance(like, OffsetCommitValue):
        return encode(stamped(value, like.commit_timestamp))
    return encode(stamped(value, like.transaction_last_update_timestamp_ms))
