"""The state of a log as the cleaner needs it, from an open partition or from read-only files.

Source: kafka.log.LogToClean; rule F-64 for a segment's largest timestamp.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kwire.errors import LogError, Malformed
from kwire.log.cleaner.retention import LastRecord
from kwire.log.files.segment import Segment
from kwire.log.files.transaction_index import TransactionIndexEntry
from kwire.log.reading.partition_log import PartitionLog
from kwire.log.writing.log_config import LogConfig
from kwire.log.writing.producer_state import ProducerStates
from kwire.log.writing.recovery import replay_header
from kwire.log.writing.segment_writer import SegmentWriter
from kwire.storage.header_walk import HeaderWalk

if TYPE_CHECKING:
    from kwire.log.writing.partition_writer import PartitionWriter

__all__ = ["LogState", "SourceSegment", "StoredSegment", "open_state", "stored_state"]


class StoredSegment:
    """A read-only segment with the properties of a SegmentWriter. Raises LogError for unreadable files."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self.base_offset, self.size_bytes = segment.base_offset, segment.size_bytes
        self.modified_ms = segment.modified_ms or 0
        self.opened = segment.open

    @property
    def index_bytes(self) -> int:
        """Size of the offset index entries."""
        index = self._segment.index
        return 0 if index is None else len(index.entries)

    @property
    def time_index_bytes(self) -> int:
        """Size of the time index entries."""
        index = self._segment.time_index
        return 0 if index is None else len(index.entries)

    @property
    def first_timestamp(self) -> int:
        """Largest timestamp of the first batch, -1 if empty."""
        with self._segment.open() as file:
            return next((header.max_timestamp for header in HeaderWalk(file)), -1)

    @property
    def largest_timestamp(self) -> int:
        """Largest timestamp; the modification time if no record has one."""
        with self._segment.open() as file:
            largest = self._segment.largest_timestamp(file)
        return largest if largest >= 0 else self.modified_ms

    @property
    def aborted(self) -> Sequence[TransactionIndexEntry]:
        """Entries of the transaction index."""
        return self._segment.transaction_index or ()

    def position_of(self, offset: int) -> int:
        """Return the start of a batch before everything at or above offset."""
        with self._segment.open() as file:
            return self._segment.start_for(file, offset)


SourceSegment = SegmentWriter | StoredSegment


@dataclass(frozen=True, slots=True, kw_only=True)
class LogState:
    """A snapshot of a log. segments: in order, at least one, the last one active.

    last_records: the last record of each active producer, by producer id.
    """

    topic: str
    partition: int
    config: LogConfig
    segments: Sequence[SourceSegment]
    log_start_offset: int
    log_end_offset: int
    last_stable_offset: int
    last_records: Mapping[int, LastRecord]

    @property
    def active_base_offset(self) -> int:
        """Base offset of the active segment, which is never cleaned."""
        return self.segments[-1].base_offset

    def segments_from(self, from_offset: int, to_offset: int) -> Sequence[SourceSegment]:
        """Return the segments that may contain offsets in [from_offset, to_offset). Source: LogSegments.values."""
        if from_offset >= to_offset:
            return []
        first = max((i for i, each in enumerate(self.segments) if each.base_offset <= from_offset), default=0)
        return [each for each in self.segments[first:] if each.base_offset < to_offset]


def last_records_of(producers: ProducerStates) -> dict[int, LastRecord]:
    """Return the last record of each producer. Source: UnifiedLog.lastRecordsOfActiveProducers."""
    return {
        producer_id: LastRecord(entry.last_offset if entry.last_offset >= 0 else None, entry.producer_epoch)
        for producer_id, entry in producers.entries.items()
    }


def open_state(log: PartitionWriter) -> LogState:
    """Return the state of an open log."""
    return LogState(
        topic=log.topic,
        partition=log.partition,
        config=log.config,
        segments=list(log.segments),
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        last_stable_offset=log.last_stable_offset,
        last_records=last_records_of(log.producers),
    )


def stored_state(log: PartitionLog, config: LogConfig, now_ms: int) -> LogState:
    """Return the state of a stored log, read from its files. Raises LogError, CorruptBatch."""
    return LogState(
        topic=log.topic,
        partition=log.partition,
        config=config,
        segments=[StoredSegment(each) for each in log.segments],
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        last_stable_offset=log.last_stable_offset,
        last_records=last_records_of(stored_producers(log, config, now_ms)),
    )


def stored_producers(log: PartitionLog, config: LogConfig, now_ms: int) -> ProducerStates:
    """Return the producers of a log from its newest valid snapshot and the batches after it (G-13)."""
    producers = ProducerStates(f"{log.topic}-{log.partition}", expiration_ms=config.producer_id_expiration_ms)
    start = log.log_start_offset
    for offset in sorted((each for each in log.snapshots if each <= log.log_end_offset), reverse=True):
        name = log.snapshots[offset]
        try:
            producers.load(log.read_file(name), now_ms)
        except (LogError, Malformed):  # F-42: try an older one
            continue
        start = offset
        break
    for segment in log.segments_between(start, log.log_end_offset):
        with segment.open() as file:
            for header in HeaderWalk(file, segment.start_for(file, start)):
                if header.stored_offset >= start:
                    replay_header(producers, file, header)
    producers.remove_expired(now_ms)
    return producers
