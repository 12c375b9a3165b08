"""Append records to an open partition and fetch them from it.

    append             produced records: checked, given offsets, written
    append_as_given    records that have offsets: copies, restores, conversions
    append_marker      the end of a producer's transaction

Appended records are in the page cache when append returns, and durable after flush().
Source: kafka.log.UnifiedLog, LocalLog 3.9.1; rules A-01 to A-08, P-01 to P-08.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kwire.errors import BrokerError, LogError
from kwire.log.files.time_lookup import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, MAX_TIMESTAMP, TimestampAndOffset
from kwire.log.files.transaction_index import AbortedTransaction, TransactionIndexEntry
from kwire.log.writing import log_reads
from kwire.log.writing.append_preparation import AppendPreparation, Data, Prepared
from kwire.log.writing.log_config import LogConfig
from kwire.log.writing.log_reads import Fetched
from kwire.log.writing.open_partition import OFFSET_OUT_OF_RANGE, OpenPartition
from kwire.log.writing.recovery import control_record_of
from kwire.log.writing.segment_writer import SegmentWriter
from kwire.records import (
    AppendErrorCode,
    AppendOrigin,
    ControlRecord,
    ControlRecordType,
    RejectedRecords,
    ValidatedRecords,
    read_batches,
    write_transaction_marker,
)
from kwire.records.append.checks import AppendInfo, analyze_append, check_given_offsets
from kwire.records.append.whole_batch import WholeBatch
from kwire.records.format.batch_header import DEFAULT_HEADER, BatchHeader, parse_header
from kwire.storage.checkpoints import end_offset_for

__all__ = ["Appended", "PartitionWriter", "Prepared"]

UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
OFFSET_SPAN = (1 << 31) - 1
NO_TIMESTAMP = -1


class Appended(NamedTuple):
    """Result of an append. Offsets are -1 if there was nothing to append.

    log_append_time_ms: with LogAppendTime; for a duplicate its timestamp; otherwise -1. duplicate: the log already has
    these records, at these offsets, and nothing was appended. records_converted: records that were re-encoded.
    """

    first_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    max_timestamp: int
    duplicate: bool = False
    records_converted: int = 0


class AppendBatches(NamedTuple):
    """Batches ready to be written: bytes and parsed headers.

    parts: a validated batch is a new header and the old payload, which are written without joining them. first_offset:
    None for compressed magic 0 or 1, where it is not in the header.
    """

    parts: Sequence[Data]
    size_bytes: int
    headers: list[BatchHeader]
    first_offset: int | None
    last_offset: int
    max_timestamp: int
    offset_of_max_timestamp: int


class PartitionWriter(OpenPartition):
    """An open partition that records are appended to and fetched from. Created by open()."""

    def _use(self, config: LogConfig) -> None:
        self._preparation = AppendPreparation(self.name, config)

    # ---- appending

    def append(
        self,
        data: Data,
        *,
        now_ms: int,
        leader_epoch: int = 0,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        produce_version: int | None = None,
    ) -> Appended:
        """Check produced records, assign offsets and write them: all of them or, with an error, none.

        leader_epoch: this node's as the partition's leader. produce_version: of the Produce request, if any; decides
        which record formats are valid (U-01).
        Raises RejectedRecords or BrokerError with Kafka's code (P-02 to P-05), LogError for failed writes.
        """
        prepared = self.prepare(
            data, now_ms=now_ms, leader_epoch=leader_epoch, origin=origin, produce_version=produce_version
        )
        return self.append_prepared(prepared)

    def prepare(
        self,
        data: Data,
        *,
        now_ms: int,
        leader_epoch: int = 0,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        produce_version: int | None = None,
        quick: bool = False,
    ) -> Prepared:
        """Check produced records and assign offsets as if they were appended now; arguments as for append.

        The log is not changed, and only its configs and its end are read, so any thread may do this.
        data: must not change before it is appended. quick: give up if that takes more than about a millisecond.
        Raises RejectedRecords; TooMuchWork with quick.
        """
        return self._preparation.prepare(
            data,
            self.log_end_offset,
            now_ms=now_ms,
            leader_epoch=leader_epoch,
            origin=origin,
            produce_version=produce_version,
            quick=quick,
        )

    def append_prepared(self, prepared: Prepared) -> Appended:
        """Write prepared records after everything appended since. Raises like append."""
        if self.log_end_offset != prepared.first_offset:
            prepared = self._move(prepared)
        now_ms, origin, first_offset = prepared.now_ms, prepared.origin, prepared.first_offset
        if prepared.whole is not None:
            new = from_whole_batch(prepared.data, prepared.whole, first_offset, prepared.leader_epoch)
            return self._write(new, origin, now_ms, NO_TIMESTAMP, 0)
        checked = prepared.checked
        if checked is None:
            return Appended(-1, -1, NO_TIMESTAMP, self.log_start_offset, NO_TIMESTAMP)
        append_time = now_ms if self._config.message_timestamp_type == "LogAppendTime" else NO_TIMESTAMP
        return self._write(
            from_validated(checked, first_offset), origin, now_ms, append_time, checked.records_converted
        )

    def _move(self, prepared: Prepared) -> Prepared:
        """Return the same records with offsets from the current log end on."""
        moved = prepared.moved_to(self.log_end_offset)
        if moved is None:
            return self.prepare(
                prepared.data,
                now_ms=prepared.now_ms,
                leader_epoch=prepared.leader_epoch,
                origin=prepared.origin,
                produce_version=prepared.produce_version,
            )
        return moved

    def append_as_given(self, data: Data, *, now_ms: int, origin: AppendOrigin = AppendOrigin.REPLICATION) -> Appended:
        """Write batches unchanged, with their offsets, epochs and timestamps; gaps are allowed (A-05).

        Raises RejectedRecords for offsets that do not increase or begin below the log end, and wrong checksums.
        """
        info = analyze_append(data, origin=origin, topic_partition=self.name)
        if info.valid_bytes <= 0:
            return Appended(-1, -1, NO_TIMESTAMP, self.log_start_offset, NO_TIMESTAMP)
        check_given_offsets(info, self.log_end_offset)
        return self._write(unchanged(data, info), origin, now_ms, NO_TIMESTAMP, 0)

    def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        commit: bool,
        coordinator_epoch: int,
        *,
        now_ms: int,
        leader_epoch: int = 0,
    ) -> Appended:
        """Write the marker that ends a producer's transaction, even if this partition has no part of it.

        Raises BrokerError for a stale epoch of the producer or the coordinator (P-02, P-05).
        """
        kind = ControlRecordType.COMMIT if commit else ControlRecordType.ABORT
        data = write_transaction_marker(
            kind,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            coordinator_epoch=coordinator_epoch,
            timestamp=now_ms,
        )
        return self.append(data, now_ms=now_ms, leader_epoch=leader_epoch, origin=AppendOrigin.COORDINATOR)

    def _write(
        self, new: AppendBatches, origin: AppendOrigin, now_ms: int, append_time: int, records_converted: int
    ) -> Appended:
        self._check_writable()
        self._assign_epochs(new.headers)
        if new.size_bytes > self._config.max_segment_bytes:
            raise RejectedRecords(
                f"Message batch size is {new.size_bytes} bytes in append to partition {self.name}, which exceeds the "
                f"maximum configured segment size of {self._config.max_segment_bytes}.",
                AppendErrorCode.RECORD_LIST_TOO_LARGE,
            )
        segment = self._segment_for(new, now_ms)
        update = self.producers.prepare(with_control_records(new), origin)
        if update.duplicate is not None:
            first, last, timestamp = update.duplicate
            return Appended(first, last, timestamp, self.log_start_offset, timestamp, duplicate=True)
        only = new.headers[0].base_offset if len(new.headers) == 1 and new.headers[0].magic == 2 else None
        try:
            segment.append(
                new.parts, new.last_offset, new.max_timestamp, new.offset_of_max_timestamp, only_base_offset=only
            )
            self.log_end_offset = new.last_offset + 1
            if update.entries:
                self.producers.commit(update)
                for completed in update.completed:
                    if completed.is_aborted:
                        stable = self.producers.last_stable_offset(completed)
                        segment.transaction_index.append(
                            TransactionIndexEntry(
                                completed.producer_id, completed.first_offset, completed.last_offset, stable
                            )
                        )
                    self.producers.complete(completed)
        except LogError as error:
            self._failure = error
            raise
        self.producers.end_offset = self.log_end_offset
        self.high_watermark = self.log_end_offset
        if self.log_end_offset - self.recovery_point >= self._config.flush_messages:
            self.flush(now_ms=now_ms)
        return Appended(
            new.headers[0].base_offset if new.first_offset is None else new.first_offset,
            new.last_offset,
            append_time,
            self.log_start_offset,
            new.max_timestamp,
            records_converted=records_converted,
        )

    def begin_leader_epoch(self, leader_epoch: int) -> None:
        """Begin the epoch of a new leader at the end of the log, as Kafka does before the epoch has a record.

        Records of a later epoch, which a directory can have whose metadata is older, keep it.
        """
        latest = self.leader_epochs.latest
        if self._config.magic >= 2 and (latest is None or leader_epoch > latest):
            self.leader_epochs.begin(leader_epoch, self.log_end_offset)

    def _assign_epochs(self, headers: Sequence[BatchHeader]) -> None:
        """Update the leader epochs (A-08); a topic of an older record format has none."""
        if self._config.magic < 2:
            return
        for header in headers:
            if header.magic >= 2:
                self.leader_epochs.assign(header.leader_epoch, header.base_offset)
            else:
                self.leader_epochs.clear()

    def _segment_for(self, new: AppendBatches, now_ms: int) -> SegmentWriter:
        segment = self.segments.active
        if not segment.should_roll(self._config, now_ms, new.size_bytes, new.last_offset, new.max_timestamp):
            return segment
        base = new.last_offset - OFFSET_SPAN if new.first_offset is None else new.first_offset
        return self.roll(now_ms, base)

    # ---- reading

    def fetch(self, offset: int, max_bytes: int, *, up_to: int | None = None, at_least_one: bool = True) -> Fetched:
        """Fetch batches, as ranges of files, from the one that contains offset up to up_to.

        up_to: the high watermark (default) or the last stable offset. at_least_one: return the first batch whole even
        if it is larger than max_bytes; otherwise the last batch may be cut.
        Raises BrokerError OFFSET_OUT_OF_RANGE outside of [log_start_offset, log_end_offset].
        """
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise BrokerError(
                f"offset {offset} of {self.name} is out of range {self.log_start_offset} to {self.log_end_offset}",
                OFFSET_OUT_OF_RANGE,
            )
        limit = self._high_watermark if up_to is None else min(up_to, self.log_end_offset)
        return log_reads.fetch(
            self.segments,
            offset,
            max_bytes,
            limit=limit,
            log_end_offset=self.log_end_offset,
            at_least_one=at_least_one,
        )

    def aborted_transactions(self, from_offset: int, to_offset: int) -> list[AbortedTransaction]:
        """Return aborted transactions with data in [from_offset, to_offset); to_offset: a fetch's next_offset_bound."""
        return log_reads.aborted_transactions(self.segments, from_offset, to_offset)

    def offset_for_time(self, timestamp: int, *, up_to: int | None = None) -> TimestampAndOffset | None:
        """Find the earliest record at or after timestamp (ms), like ListOffsets; None if there is none below up_to.

        Special timestamps: EARLIEST_TIMESTAMP, LATEST_TIMESTAMP and MAX_TIMESTAMP, as for PartitionLog. up_to: the high
        watermark (default) or the last stable offset.
        Raises BrokerError UNSUPPORTED_FOR_MESSAGE_FORMAT in a log of magic 0, CorruptBatch for damaged batches.
        """
        limit = self._high_watermark if up_to is None else up_to
        if timestamp == EARLIEST_TIMESTAMP:
            first = self.leader_epochs.earliest
            known = first is not None and first.start_offset <= self.log_start_offset
            return TimestampAndOffset(
                self.log_start_offset, NO_TIMESTAMP, first.leader_epoch if known and first else None
            )
        if timestamp == LATEST_TIMESTAMP:
            return TimestampAndOffset(limit, NO_TIMESTAMP, self.leader_epochs.latest)
        if self._config.magic == 0:
            raise BrokerError(
                f"{self.name} cannot be searched by timestamp: its message.format.version is "
                f"{self._config.message_format_version}",
                UNSUPPORTED_FOR_MESSAGE_FORMAT,
            )
        if timestamp == MAX_TIMESTAMP:
            found = log_reads.offset_of_largest_time(self.segments)
        else:
            found = log_reads.offset_for_time(self.segments, timestamp, self.log_start_offset)
        return found if found is not None and found.offset < limit else None

    def end_offset_for(self, leader_epoch: int) -> tuple[int, int]:
        """Return (leader epoch, end offset) as in OffsetForLeaderEpoch responses; (-1, -1) is undefined."""
        return end_offset_for(leader_epoch, self.leader_epochs.entries, self.log_end_offset)


def from_validated(checked: ValidatedRecords, first_offset: int) -> AppendBatches:
    """Return validated batches with offsets from first_offset on."""
    return AppendBatches(
        checked.parts,
        checked.size_bytes,
        headers_of(checked.parts),
        first_offset,
        checked.next_offset - 1,
        checked.max_timestamp_ms,
        checked.offset_of_max_timestamp,
    )


def from_whole_batch(data: Data, whole: WholeBatch, first_offset: int, leader_epoch: int) -> AppendBatches:
    """Return the single batch of the fast path."""
    header = BatchHeader(
        0, len(data), first_offset, whole.last_offset, 2, whole.attributes, whole.max_timestamp, whole.producer_id,
        leader_epoch, whole.producer_epoch, whole.base_sequence,
    )  # fmt: skip
    return AppendBatches(
        (whole.head, memoryview(data)[DEFAULT_HEADER.size :]),
        len(data),
        [header],
        first_offset,
        whole.last_offset,
        whole.max_timestamp,
        whole.offset_of_max_timestamp,
    )


def headers_of(parts: Sequence[Data]) -> list[BatchHeader]:
    """Parse the headers of batches in parts: each begins with a part or after another batch in the same part."""
    headers, i, at, position = list[BatchHeader](), 0, 0, 0
    while i < len(parts):
        header = parse_header(memoryview(parts[i]), at, position, "")
        assert header is not None
        headers.append(header)
        position += header.size_bytes
        at += header.size_bytes
        while i < len(parts) and at >= len(parts[i]):
            at -= len(parts[i])
            i += 1
    return headers


def unchanged(data: Data, info: AppendInfo) -> AppendBatches:
    """Return batches that are written unchanged."""
    whole = memoryview(data)[: info.valid_bytes]
    headers = headers_of([whole])
    return AppendBatches(
        [whole],
        info.valid_bytes,
        headers,
        headers[0].base_offset if headers[0].magic == 2 else None,
        info.last_offset,
        info.max_timestamp,
        info.offset_of_max_timestamp,
    )


def with_control_records(new: AppendBatches) -> Iterator[tuple[BatchHeader, ControlRecord | None]]:
    """Yield the headers of batches that have a producer id, each with its control record if any."""
    for header in new.headers:
        if header.producer_id < 0:
            continue
        marker = None
        if header.is_control:
            data = b"".join(new.parts)[header.position : header.position + header.size_bytes]
            marker = next((control_record_of(batch) for batch in read_batches(data)), None)
        yield header, marker
