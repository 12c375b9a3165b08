"""The tasks of `kafka-internal`: the rows of one partition of an internal topic as Arrow batches."""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kwire.errors import LogError
from kwire.identifiers import TopicPartition
from kwire.internal_topics.cluster_rows import ClusterPart, cluster_rows
from kwire.internal_topics.group_rows import LogEnds, group_row, member_rows, offset_rows, share_row, transaction_row
from kwire.internal_topics.names import GROUPS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from kwire.internal_topics.record_rows import record_row
from kwire.internal_topics.typed_record import Problems
from kwire.log import PartitionLog
from kwire.log.reading.paths import open_logs
from kwire.log.topics import (
    RECORD_READERS,
    replay_cluster,
    replay_groups,
    replay_share_state,
    replay_transactions,
    topic_names,
)
from kwire.spark.arrow_types import arrow_type
from kwire.spark.offsets import report_data_loss

if TYPE_CHECKING:
    from kwire.spark.internal.options import InternalOptions

__all__ = ["read_task"]

BATCH_ROWS = 2048
MAX_TIMESTAMP_MS = 253_402_300_799_999  # the end of the year 9999, the last that Spark and Python both support

Row = dict[str, Any]

logger = logging.getLogger("kwire.spark")
Logs = Mapping[TopicPartition, PartitionLog]


def read_task(key: TopicPartition, options: InternalOptions, types: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
    """Read the state or the records of one partition, with the given columns. Raises LogError."""
    logs = open_logs(options.paths, options.storage)
    if key not in logs:
        raise LogError(f"{key[0]}-{key[1]} was deleted from {', '.join(options.paths)} after planning")
    rows = _history(logs[key], options) if options.mode == "history" else _current(logs, logs[key], options)
    schema = pa.schema([(name, arrow_type(kind)) for name, kind in types.items()])
    times = [name for name, kind in types.items() if kind == "timestamp"]
    rows = (_spark_row(row, types) for row in _report_times(rows, times, key))
    while some := list(itertools.islice(rows, BATCH_ROWS)):
        yield pa.RecordBatch.from_pylist(some, schema)


def _spark_row(row: Row, types: Mapping[str, str]) -> Row:
    """Select columns; convert times to microseconds, with null for Kafka's -1 and times out of range."""
    selected = {name: row.get(name) for name in types}
    for name, value in selected.items():
        if types[name] == "timestamp" and value is not None:
            selected[name] = value * 1000 if is_in_range(value) else None
    return selected


def is_in_range(time_ms: int) -> bool:
    """Return whether Spark and Python both have this time."""
    return 0 <= time_ms <= MAX_TIMESTAMP_MS


def _report_times(rows: Iterable[Row], times: Iterable[str], key: TopicPartition) -> Iterator[Row]:
    """Log one warning if rows of a task have times that become null, other than Kafka's -1."""
    is_reported = False
    for row in rows:
        for name in () if is_reported else times:
            value = row.get(name)
            if value is not None and value != -1 and not is_in_range(value):
                is_reported = True
                logger.warning(
                    "%s-%d: %s %d ms is outside of the years 1970 to 9999 and becomes null, like others of this task",
                    *(*key, name, value),
                )
        yield row


def _history(log: PartitionLog, options: InternalOptions) -> Iterator[Row]:
    read = RECORD_READERS[options.topic]
    for record in read(log, at_offset=options.at_offset, at_time=options.at_time):
        row = record_row(record, redact=options.redact)
        for name in ("key", "value"):
            if row[name] is not None:
                row[name] = json.dumps(row[name], ensure_ascii=False, separators=(",", ":"))
        yield row


def _current(logs: Logs, log: PartitionLog, options: InternalOptions) -> Iterator[Row]:
    at_offset, at_time = options.at_offset, options.at_time
    is_past = at_offset is not None or at_time is not None
    ends = LogEnds(None if is_past else logs)
    if options.topic == GROUPS_TOPIC:
        state = replay_groups(log, at_offset=at_offset, at_time=at_time)
        _check(state.problems, options)
        names = {} if options.kind == "groups" else topic_names(logs, deleted=is_past)
        for _, group in sorted(state.groups.items()):
            if options.kind == "groups":
                yield group_row(group, ends)
            elif options.kind == "members":
                yield from member_rows(group, group.topic_names | names)
            else:
                yield from offset_rows(group, ends, group.topic_names | names)
    elif options.topic == TRANSACTIONS_TOPIC:
        transactions = replay_transactions(log, at_offset=at_offset, at_time=at_time)
        _check(transactions.problems, options)
        yield from (transaction_row(each) for _, each in sorted(transactions.transactions.items()))
    elif options.topic == SHARE_STATE_TOPIC:
        shares = replay_share_state(log, at_offset=at_offset, at_time=at_time)
        _check(shares.problems, options)
        names = topic_names(logs, deleted=is_past)
        yield from (share_row(each, ends, names) for each in shares.partitions.values())
    else:
        cluster = replay_cluster(log, at_offset=at_offset, at_time=at_time)
        _check(cluster.problems, options)
        assert options.kind is not None
        yield from cluster_rows(cluster, ClusterPart(options.kind), redact=options.redact)


def _check(problems: Problems, options: InternalOptions) -> None:
    """Raise LogError for unreadable records, or with failOnDataLoss false log a warning."""
    if not problems.count:
        return
    first = problems.records[0]
    lost = (
        f"{problems.count} records of {first.topic}-{first.partition} cannot be read, "
        f"the first at offset {first.offset}: {first.error}; to see them, set mode to history"
    )
    report_data_loss(lost, "skip them", fail=options.fail_on_data_loss)
