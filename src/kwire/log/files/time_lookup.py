"""Find the offset for a timestamp, like a broker's ListOffsets.

The first segment whose largest timestamp is at or after the target decides: the result is its earliest record at or
above the log start offset with such a timestamp, or nothing. Two details are surprising and match Kafka: transaction
markers count as records, and a segment without timestamps counts with its file's modification time, so it can end the
search without a result.
Source: rules F-22, F-64, D-08; Kafka's UnifiedLog.fetchOffsetByTimestamp, LogSegment.findOffsetByTimestamp.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kwire.log.files.segment import Segment
from kwire.records import Record, read_batches
from kwire.records.attributes import NO_TIMESTAMP
from kwire.records.format.batch_header import BatchHeader
from kwire.storage.header_walk import HeaderWalk
from kwire.storage.store import StoredFile

LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
MAX_TIMESTAMP = -3


class TimestampAndOffset(NamedTuple):
    """Result of a lookup. timestamp: the record's in ms, -1 for log ends. leader_epoch: None if unknown."""

    offset: int
    timestamp: int
    leader_epoch: int | None = None


def find_timestamp(segments: Sequence[Segment], timestamp: int, log_start_offset: int) -> TimestampAndOffset | None:
    """Find the earliest record with a timestamp at or after `timestamp` (ms) by the rules above; None without one.

    Raises CorruptBatch if the records in question are damaged, LogError if files cannot be read.
    """
    for segment in segments:
        if segment.next_base is not None and segment.next_base <= log_start_offset:
            continue
        with segment.open() as file:
            largest = segment.largest_timestamp(file, enough=timestamp)
            if largest < 0 and segment.modified_ms is not None:
                largest = segment.modified_ms
            if largest >= timestamp:
                return _search(segment, file, timestamp, log_start_offset)
    return None


def find_max_timestamp(segments: Sequence[Segment]) -> TimestampAndOffset | None:
    """Find the first record with the largest timestamp of the log; None if no record has one.

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


def records_of(file: StoredFile, header: BatchHeader) -> Iterator[Record]:
    """Read, check and decode the records of the batch of a header, markers included. Raises CorruptBatch."""
    for batch in read_batches(file.pread(header.position, header.size_bytes), position=header.position, file=file.url):
        batch.check()
        yield from batch.records()
