"""The state of a cluster as tables: partitions, segments, groups, members, transactions, configs, ACLs.

Of a running cluster the state is that of its admin APIs, of a log directory that of its internal topics: what
`kwire group`, `kwire txn` and `kwire cluster` show. What a source does not tell is null, or a table that it lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kwire.client.admin.cluster import describe_cluster, described_rows
from kwire.client.admin.groups import describe_groups
from kwire.client.admin.transactions import describe_transactions
from kwire.client.cluster_logs import ClusterLogs
from kwire.errors import LogError
from kwire.internal_topics.cluster_rows import ClusterPart, cluster_rows
from kwire.internal_topics.group_rows import LogEnds, group_row, member_rows, offset_rows, transaction_row
from kwire.internal_topics.names import GROUPS_TOPIC, METADATA_TOPIC, TRANSACTIONS_TOPIC
from kwire.log.reading.partition_log import PartitionLog
from kwire.log.topics import replay_cluster, replay_groups, replay_transactions, topic_names

if TYPE_CHECKING:
    from uuid import UUID

    from kwire.client.admin.requests import AdminRequests
    from kwire.internal_topics.groups_state import GroupsState
    from kwire.internal_topics.transactions_state import TransactionsState
    from kwire.log.reading.readable_log import LogSource

__all__ = ["TABLES", "cluster_table", "tables_of"]

Row = dict[str, Any]

TEXT, INT, LONG, FLAG, TIME = pa.string(), pa.int32(), pa.int64(), pa.bool_(), pa.timestamp("ms", "UTC")
NODES = pa.list_(INT)
ASSIGNED = pa.list_(pa.struct([("topic", TEXT), ("topic_id", TEXT), ("partitions", NODES)]))


def cluster_table(name: str, logs: LogSource[Any]) -> pa.Table:
    """Return a table of tables_of(logs), as it is now.

    Raises LogError for internal topics that are missing or cannot be read; BrokerError, also for what the account may
    not see; ConnectionFailed.
    """
    schema, rows = TABLES[name]
    return pa.Table.from_pylist(list(rows(logs.reopened())), schema)


def tables_of(logs: LogSource[Any]) -> list[str]:
    """Return the names of the tables that a source has.

    Clusters do not tell of segments; a directory has what its internal topics tell.
    """
    if isinstance(logs, ClusterLogs):
        return [name for name in TABLES if name != "kafka_segments"]
    topics = set(logs.topics)
    return [name for name in TABLES if name not in TOLD_BY or TOLD_BY[name] in topics]


def _partitions(logs: LogSource[Any]) -> Iterator[Row]:
    placed: Mapping[tuple[str, int], Row] = {}
    if isinstance(logs, ClusterLogs):
        placed = _by_partition(_described(logs, ClusterPart.PARTITIONS))
    elif (METADATA_TOPIC, 0) in logs:
        placed = _by_partition(cluster_rows(replay_cluster(logs), ClusterPart.PARTITIONS))
    for (topic, partition), log in logs.items():
        yield placed.get((topic, partition), {}) | {
            "topic": topic,
            "partition": partition,
            "log_start_offset": log.log_start_offset,
            "log_end_offset": log.log_end_offset,
            "high_watermark": log.high_watermark,
            "last_stable_offset": log.last_stable_offset,
            "size_bytes": log.size_bytes,
            "segments": log.segment_count,
            "last_timestamp": log.last_timestamp,
        }


def _by_partition(rows: Iterable[Row]) -> dict[tuple[str, int], Row]:
    return {(row["topic"], row["partition"]): row for row in rows}


def _segments(logs: LogSource[Any]) -> Iterator[Row]:
    for (topic, partition), log in logs.items():
        if not isinstance(log, PartitionLog):
            continue
        for segment in log.segments:
            with segment.open() as file:
                largest = segment.largest_timestamp(file)
                size = file.size()
            yield {
                "topic": topic,
                "partition": partition,
                "base_offset": segment.base_offset,
                "next_offset": log.log_end_offset if segment.is_active else segment.next_base,
                "size_bytes": size,
                "last_timestamp": None if largest < 0 else largest,
                "is_active": segment.is_active,
                "url": segment.url,
            }


def _groups(logs: LogSource[Any]) -> Iterator[Row]:
    ends = LogEnds(logs)
    for _, group in sorted(_groups_state(logs).groups.items()):
        yield group_row(group, ends)


def _offsets(logs: LogSource[Any]) -> Iterator[Row]:
    state, ends = _groups_state(logs), LogEnds(logs)
    names = _names(logs, state)
    for _, group in sorted(state.groups.items()):
        yield from offset_rows(group, ends, names)


def _members(logs: LogSource[Any]) -> Iterator[Row]:
    """Yield members with their lag: the sum of the partitions that they have; null if one has no committed offset."""
    state, ends = _groups_state(logs), LogEnds(logs)
    names = _names(logs, state)
    for _, group in sorted(state.groups.items()):
        lags: dict[str, list[int | None]] = {}
        for row in offset_rows(group, ends, names):
            if row["member_id"] is not None and not row["in_transaction"]:
                lags.setdefault(row["member_id"], []).append(row["lag"])
        for row in member_rows(group, names):
            known = [lag for lag in lags.get(row["member_id"], []) if lag is not None]
            yield row | {"lag": sum(known) if len(known) == len(lags.get(row["member_id"], [])) else None}


def _groups_state(logs: LogSource[Any]) -> GroupsState:
    if isinstance(logs, ClusterLogs):
        state, requests = describe_groups(logs.client)
        _check_seen(requests)
        return state
    return replay_groups(logs)


def _names(logs: LogSource[Any], state: GroupsState) -> dict[UUID, str]:
    names: dict[UUID, str] = {}
    for group in state.groups.values():
        names |= group.topic_names
    return names | topic_names(logs)


def _transactions(logs: LogSource[Any]) -> Iterator[Row]:
    state: TransactionsState
    if isinstance(logs, ClusterLogs):
        state, requests = describe_transactions(logs.client)
        _check_seen(requests)
    else:
        state = replay_transactions(logs)
    for _, transaction in sorted(state.transactions.items()):
        yield transaction_row(transaction)


def _part(part: ClusterPart) -> Callable[[LogSource[Any]], Iterator[Row]]:
    """Return the function that yields the rows of a part of the cluster. Secrets are hidden."""

    def rows(logs: LogSource[Any]) -> Iterator[Row]:
        if isinstance(logs, ClusterLogs):
            return _described(logs, part)
        return cluster_rows(replay_cluster(logs), part)

    return rows


def _described(logs: ClusterLogs, part: ClusterPart) -> Iterator[Row]:
    described = describe_cluster(logs.client, [part])
    _check_seen(described.requests)
    return described_rows(described, part)


def _check_seen(requests: AdminRequests) -> None:
    """Raise LogError if the account may not see a part: an empty table would say that there is nothing."""
    for what, reason in requests.unseen.items():
        raise LogError(f"{what}: not visible to this account: {reason}")


TOLD_BY = {
    "kafka_groups": GROUPS_TOPIC,
    "kafka_offsets": GROUPS_TOPIC,
    "kafka_members": GROUPS_TOPIC,
    "kafka_transactions": TRANSACTIONS_TOPIC,
    "kafka_configs": METADATA_TOPIC,
    "kafka_acls": METADATA_TOPIC,
}
"""The internal topic that a table of a log directory is from."""

TABLES: Mapping[str, tuple[pa.Schema, Callable[[Any], Iterator[Row]]]] = {
    "kafka_partitions": (
        pa.schema(
            [
                ("topic", TEXT),
                ("partition", INT),
                ("leader", INT),
                ("leader_epoch", INT),
                ("replicas", NODES),
                ("isr", NODES),
                ("log_start_offset", LONG),
                ("log_end_offset", LONG),
                ("high_watermark", LONG),
                ("last_stable_offset", LONG),
                ("size_bytes", LONG),
                ("segments", LONG),
                ("last_timestamp", TIME),
            ]
        ),
        _partitions,
    ),
    "kafka_segments": (
        pa.schema(
            [
                ("topic", TEXT),
                ("partition", INT),
                ("base_offset", LONG),
                ("next_offset", LONG),
                ("size_bytes", LONG),
                ("last_timestamp", TIME),
                ("is_active", FLAG),
                ("url", TEXT),
            ]
        ),
        _segments,
    ),
    "kafka_groups": (
        pa.schema(
            [
                ("group", TEXT),
                ("kind", TEXT),
                ("state", TEXT),
                ("members", LONG),
                ("partitions", LONG),
                ("lag", LONG),
                ("epoch", INT),
                ("protocol_type", TEXT),
                ("protocol", TEXT),
                ("last_timestamp", TIME),
            ]
        ),
        _groups,
    ),
    "kafka_offsets": (
        pa.schema(
            [
                ("group", TEXT),
                ("kind", TEXT),
                ("topic", TEXT),
                ("partition", INT),
                ("offset", LONG),
                ("log_end_offset", LONG),
                ("lag", LONG),
                ("leader_epoch", INT),
                ("metadata", TEXT),
                ("commit_timestamp", TIME),
                ("in_transaction", FLAG),
                ("member_id", TEXT),
                ("client_id", TEXT),
                ("client_host", TEXT),
            ]
        ),
        _offsets,
    ),
    "kafka_members": (
        pa.schema(
            [
                ("group", TEXT),
                ("kind", TEXT),
                ("member_id", TEXT),
                ("instance_id", TEXT),
                ("client_id", TEXT),
                ("client_host", TEXT),
                ("rack_id", TEXT),
                ("state", TEXT),
                ("epoch", INT),
                ("lag", LONG),
                ("subscribed_topics", pa.list_(TEXT)),
                ("subscribed_regex", TEXT),
                ("assignor", TEXT),
                ("assigned", ASSIGNED),
            ]
        ),
        _members,
    ),
    "kafka_transactions": (
        pa.schema(
            [
                ("transactional_id", TEXT),
                ("state", TEXT),
                ("is_open", FLAG),
                ("producer_id", LONG),
                ("producer_epoch", INT),
                ("timeout_ms", INT),
                ("start_timestamp", TIME),
                ("last_update_timestamp", TIME),
                ("partitions", pa.list_(pa.struct([("topic", TEXT), ("partitions", NODES)]))),
            ]
        ),
        _transactions,
    ),
    "kafka_configs": (
        pa.schema(
            [
                ("resource_type", TEXT),
                ("resource_name", TEXT),
                ("name", TEXT),
                ("value", TEXT),
                ("is_secret", FLAG),
            ]
        ),
        _part(ClusterPart.CONFIGS),
    ),
    "kafka_acls": (
        pa.schema(
            [
                ("principal", TEXT),
                ("permission", TEXT),
                ("operation", TEXT),
                ("resource_type", TEXT),
                ("pattern_type", TEXT),
                ("resource_name", TEXT),
                ("host", TEXT),
            ]
        ),
        _part(ClusterPart.ACLS),
    ),
}
"""The columns of each table, and the function that yields its rows."""
