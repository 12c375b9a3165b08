"""What a task of `kafka-live` does: a range of offsets in, Arrow batches out.

A worker keeps its connections from task to task: opening one, with TLS and SASL, can cost more than a small range.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from kwire.client import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, Client, Fetched
from kwire.errors import BrokerError, LogError
from kwire.protocol.error_codes import ErrorCode
from kwire.records import ControlRecordType, parse_control_record, read_batches
from kwire.records.columns import ColumnReader
from kwire.spark.offset_ranges import OffsetRange
from kwire.spark.worker import prepare_worker

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["aborted_ranges", "read_range"]

logger = logging.getLogger("kwire.spark")

LARGEST_OFFSET = 2**63 - 1
MOST_CLIENTS = 4
LENIENT = "set the option failOnDataLoss to false"

_clients: dict[tuple[tuple[str, str], ...], Client] = {}


def client_for(settings: Mapping[str, str]) -> Client:
    """This process's client of a cluster."""
    key = tuple(sorted(settings.items()))
    if key not in _clients:
        while len(_clients) >= MOST_CLIENTS:
            _clients.pop(next(iter(_clients))).close()
        _clients[key] = Client(**settings)
    return _clients[key]


def read_range(
    wanted: OffsetRange,
    columns: tuple[str, ...],
    settings: Mapping[str, str],
    isolation: str,
    *,
    fail_on_data_loss: bool,
    topic_id: uuid.UUID | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of a range of offsets of one partition.

    topic_id: of the topic that the range was planned for.
    Raises CorruptBatch for what the broker's checksums do not bear out, LogError where offsets are gone since the query
    was planned (with fail_on_data_loss false the rest is read), BrokerError, ConnectionFailed.
    """
    prepare_worker()
    client = client_for(settings)
    reader = ColumnReader(columns, topic=wanted.topic, partition=wanted.partition)
    start = wanted.start
    while True:
        try:
            for fetched in client.read(
                wanted.topic, wanted.partition, start, wanted.end, isolation=isolation, topic_id=topic_id
            ):
                yield from reader.read(
                    fetched.records,
                    file=f"{wanted.topic}-{wanted.partition}",
                    start_offset=start,
                    end_offset=wanted.end,
                    aborted=aborted_ranges(fetched) if fetched.aborted else (),
                )
        except BrokerError as error:
            if error.code == ErrorCode.UNKNOWN_TOPIC_ID:
                lost = f"topic '{wanted.topic}' was deleted and created again after this task was planned"
                if fail_on_data_loss:
                    raise LogError(f"{lost}; to skip the deleted records, {LENIENT}") from error
                logger.warning("%s; skipping offsets [%d, %d) of the deleted topic", lost, start, wanted.end)
                return
            if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
            key = (wanted.topic, wanted.partition)
            first = client.list_offsets({key: EARLIEST_TIMESTAMP})[key].offset
            where = f"begins at {first}"
            if start >= first:
                where = f"ends at {client.list_offsets({key: LATEST_TIMESTAMP})[key].offset}"
            lost = f"{error}: offsets from {start} on are gone (the log {where})"
            if fail_on_data_loss:
                raise LogError(f"{lost}; to continue with the remaining records, {LENIENT}") from error
            logger.warning("%s; continuing with the remaining records", lost)
            if start >= first or first >= wanted.end:  # the topic was made anew, or nothing of the range is left
                return
            start = first
        else:
            return


def aborted_ranges(fetched: Fetched) -> list[tuple[int, int, int]]:
    """(producer id, first offset, offset of the abort marker) of the aborted transactions in an answer.

    A transaction whose marker comes in a later answer goes on to the end of this one.
    """
    open_now: dict[int, int] = {}
    waiting = sorted(fetched.aborted, key=lambda each: each[1], reverse=True)
    found = []
    for batch in read_batches(fetched.records):
        while waiting and waiting[-1][1] <= batch.last_offset:
            producer_id, first = waiting.pop()
            open_now[producer_id] = first
        if batch.is_control and batch.producer_id in open_now:
            record = next(iter(batch.records()), None)
            if record is not None and parse_control_record(record).type == ControlRecordType.ABORT:
                found.append((batch.producer_id, open_now.pop(batch.producer_id), batch.last_offset))
    return found + [(producer_id, first, LARGEST_OFFSET) for producer_id, first in open_now.items()]
