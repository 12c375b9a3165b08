"""The offset for a timestamp, as a broker's ListOffsets answers it.

The first segment whose largest timestamp is at or after the target decides: its earliest record at or above the log
start with such a timestamp is the answer, and no record there means no answer. Two things surprise and are kept because
Kafka does them: transaction markers count as records, and a segment without any timestamp counts as having its file's
modification time, so it can end the search with nothing.
Source: rules F-22, F-64, D-08; Kafka's UnifiedLog.fetchOffsetByTimestamp, LogSegment.findOffsetByTimestamp.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kwire.log.segment import Segment
from kwire.records import Batch, Record, read_batches
from kwire.records.attributes import NO_TIMESTAMP
from kwire.records.batch_header import BatchHeader
from kwire.storage.header_walk import HeaderWalk
from kwire.storage.store import StoredFile

LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
MAX_TIMESTAMP = -3


class TimestampAndOffset(NamedTuple):
    """An answer. timestamp: of the record in ms, -1 for the log's ends. leader_epoch: of its batch, None if unknown."""

    offset: int
    timestamp: int
    leader_epoch: int | None = None


def find_timestamp(segments: Sequence[Segment], timestamp: int, log_start_offset: int) -> TimestampAndOffset | None:
    """The earliest record with a timestamp at or after `timestamp` (ms), by Kafka's rules above; None without one.

    Raises CorruptBatch where the records that would tell are damaged, LogError where files cannot be read.
    """
    for segment in segments:
        if segment.next_base is not None and segment.next_base <= log_start_offset:
            continue
        with segment.open() as file:
            largest = segment.largest_timestamp(file)
            if largest < 0 and segment.modified_ms is not None:
                largest = segment.modified_ms
            if largest >= timestamp:
                return _search(segment, file, timestamp, log_start_offset)
    return None


def find_max_timestamp(segments: Sequence[Segment]) -> TimestampAndOffset | None:
    """The first record with the largest timestamp of the log; None where no record has one.

    Source: Kafka's UnifiedLog.fetchOffsetByTimestamp for MAX_TIMESTAMP (KIP-734).
    """
    best, where = NO_TIMESTAMP, None
    for segment in segments:
        with segment.open() as file:
            largest = segment.largest_timestamp(file)
        if largest > best:
            best, where = largest, segment
    if where is None:
        return None
    with where.open() as file:
        return _search(where, file, best, where.base_offset)


def _search(segment: Segment, file: StoredFile, timestamp: int, start_offset: int) -> TimestampAndOffset | None:
    walk = HeaderWalk(file, segment.time_start(file, timestamp, start_offset))
    for header in walk:
        if header.max_timestamp >= timestamp and header.last_offset >= start_offset:
            for record in records_of(file, header):
                if record.timestamp >= timestamp and record.offset >= start_offset:
                    return TimestampAndOffset(record.offset, record.timestamp, record.leader_epoch)
    if walk.damage and not segment.ends_in_zeros(file, walk.position):
        raise walk.damage
    return None


def batch_of(file: StoredFile, header: BatchHeader) -> Iterator[Batch]:
    """The batch a header belongs to, read whole and checked."""
    for batch in read_batches(file.pread(header.position, header.size_bytes), position=header.position, file=file.url):
        batch.check()
        yield batch


def records_of(file: StoredFile, header: BatchHeader) -> Iterator[Record]:
    """The records of the batch a header belongs to, markers included. Raises CorruptBatch."""
    for batch in batch_of(file, header):
        yield from batch.records()
