"""The tasks that read `kafka-live`: a range of offsets in, Arrow batches out.

A process reuses its connections: opening one, with TLS and SASL, can take longer than reading a small range.
"""

from __future__ import annotations

import atexit
import logging
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from kwire.client import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, Client
from kwire.client.aborted import aborted_transactions
from kwire.client.shared_fetch import read_together
from kwire.errors import BrokerError, LogTruncated
from kwire.identifiers import TopicPartition
from kwire.protocol.error_codes import ErrorCode
from kwire.records.columns.reader import ColumnReader
from kwire.spark.live.options import LiveOptions
from kwire.spark.live.planning import LivePartition
from kwire.spark.offsets import OffsetRange, report_data_loss
from kwire.spark.process.worker import finish_rows, warm_up

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["read_partition", "read_range"]

logger = logging.getLogger("kwire.spark")

MAX_IDLE = 4

Settings = tuple[tuple[str, str], ...]
_idle: list[tuple[Settings, Client]] = []  # the least recently used first
_idle_lock = threading.Lock()


@contextmanager
def borrow_client(settings: Mapping[str, str]) -> Iterator[Client]:
    """Lend a client to one task: an idle one, or a new one. Tasks of a process are threads on Sail.

    A client whose task fails or stops early is closed, since a response may be outstanding.
    """
    key = tuple(sorted(settings.items()))
    with _idle_lock:
        idle = next((each for each in reversed(_idle) if each[0] == key), None)
        if idle is not None:
            _idle.remove(idle)
    client = Client(**settings) if idle is None else idle[1]
    try:
        yield client
    except BaseException:
        client.close()
        raise
    with _idle_lock:
        _idle.append((key, client))
        surplus = [_idle.pop(0) for _ in range(len(_idle) - MAX_IDLE)]
    for _, each in surplus:
        each.close()


@atexit.register
def close_clients() -> None:
    """Close the idle connections of this process."""
    while _idle:
        _idle.pop()[1].close()


def read_partition(
    partition: InputPartition, columns: tuple[str, ...], options: LiveOptions
) -> Iterator[pa.RecordBatch]:
    """Read the rows of one task; called in a worker. Raises the errors of read_range."""
    if not isinstance(partition, LivePartition):
        return iter(())  # Spark's placeholder for a query without tasks: InputPartition(None)
    warm_up()
    return finish_rows(lambda names: _read_task(partition, names, options), columns, options.decoded)


def _read_task(task: LivePartition, columns: tuple[str, ...], options: LiveOptions) -> Iterator[pa.RecordBatch]:
    with borrow_client(options.kafka) as client:
        done: dict[TopicPartition, int] = {}
        if len(task.ranges) > 1:
            yield from _read_together(client, task, columns, options, done)
        for each in task.ranges:
            start = done.get((each.topic, each.partition), each.start)
            if start < each.end:
                yield from _read(
                    client,
                    OffsetRange(each.topic, each.partition, start, each.end),
                    columns,
                    options.isolation,
                    fail_on_data_loss=options.fail_on_data_loss,
                    topic_id=task.topic_ids.get(each.topic),
                )


def _read_together(
    client: Client,
    task: LivePartition,
    columns: tuple[str, ...],
    options: LiveOptions,
    done: dict[TopicPartition, int],
) -> Iterator[pa.RecordBatch]:
    """Read what common requests for all ranges return. done: is filled with the next offset of each partition."""
    reader = ColumnReader(columns)
    ranges = {(each.topic, each.partition): (each.start, each.end) for each in task.ranges}
    try:
        for key, fetched in read_together(client, ranges, isolation=options.isolation, topic_ids=task.topic_ids):
            reader.set_partition(*key)
            yield from reader.read(
                fetched.records,
                file=f"{key[0]}-{key[1]}",
                start_offset=fetched.start_offset,
                end_offset=ranges[key][1],
                aborted=aborted_transactions(fetched),
            )
            done[key] = fetched.next_offset
    except LogTruncated as error:
        report_data_loss(str(error), "continue with the remaining records", fail=options.fail_on_data_loss)


def read_range(
    offsets: OffsetRange,
    columns: tuple[str, ...],
    settings: Mapping[str, str],
    isolation: str,
    *,
    fail_on_data_loss: bool,
    topic_id: uuid.UUID | None = None,
) -> Iterator[pa.RecordBatch]:
    """Read a range of offsets of one partition.

    topic_id: of the topic for which the range was planned.
    Raises CorruptBatch for a wrong checksum; LogError for offsets that were deleted after planning (with
    fail_on_data_loss false the remaining ones are read), BrokerError, ConnectionFailed.
    """
    with borrow_client(settings) as client:
        yield from _read(client, offsets, columns, isolation, fail_on_data_loss=fail_on_data_loss, topic_id=topic_id)


def _read(
    client: Client,
    offsets: OffsetRange,
    columns: tuple[str, ...],
    isolation: str,
    *,
    fail_on_data_loss: bool,
    topic_id: uuid.UUID | None,
) -> Iterator[pa.RecordBatch]:
    reader = ColumnReader(columns, topic=offsets.topic, partition=offsets.partition)
    start = offsets.start
    while True:
        try:
            for fetched in client.read(
                offsets.topic, offsets.partition, start, offsets.end, isolation=isolation, topic_id=topic_id
            ):
                yield from reader.read(
                    fetched.records,
                    file=f"{offsets.topic}-{offsets.partition}",
                    start_offset=start,
                    end_offset=offsets.end,
                    aborted=aborted_transactions(fetched),
                )
        except BrokerError as error:
            if error.code == ErrorCode.UNKNOWN_TOPIC_ID:
                lost = (
                    f"topic '{offsets.topic}' was deleted and created again after this task was planned; offsets "
                    f"[{start}, {offsets.end}) belong to the deleted topic"
                )
                report_data_loss(lost, "skip them", fail=fail_on_data_loss)
                return
            if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
            key = (offsets.topic, offsets.partition)
            first = client.list_offsets({key: EARLIEST_TIMESTAMP})[key].offset
            where = f"starts at {first}"
            if start >= first:
                where = f"ends at {client.list_offsets({key: LATEST_TIMESTAMP})[key].offset}"
            lost = f"{error}: offsets from {start} on were deleted (the log {where})"
            report_data_loss(lost, "continue with the remaining records", fail=fail_on_data_loss)
            if start >= first or first >= offsets.end:  # the topic was created again, or the whole range was deleted
                return
            start = first
        else:
            return
