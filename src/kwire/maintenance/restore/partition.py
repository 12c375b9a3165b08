"""Write the log of one partition up to its cut, and what ends its transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

from kwire.errors import BrokerError, CorruptBatch, LogError, Malformed
from kwire.maintenance.new_log import NewLog
from kwire.maintenance.restore.changes import NewMarker, Writes
from kwire.maintenance.restore.survey import Survey
from kwire.records import BatchBuilder, ControlRecordType, RejectedRecords, write_transaction_marker
from kwire.records.format.batch_header import BatchHeader, batch_bytes, batch_spans, parse_header
from kwire.records.format.default_writer import BatchFields, write_empty_batch
from kwire.storage.store import StoredFile

__all__ = ["end_after", "write_partition"]

READ_BYTES = 4 << 20
RECORDS_PER_BATCH = 1000


def end_after(survey: Survey, writes: Writes) -> int:
    """Return the log end offset after the cut and its writes."""
    return survey.cut_offset + len(writes.markers) + len(writes.records)


def write_partition(
    survey: Survey, writes: Writes, new: NewLog, *, now_ms: int, advance: Callable[[int], None] = lambda n: None
) -> None:
    """Write the kept batches into a new log, then markers and records. now_ms: of records without a timestamp.

    Segments keep their base offsets and modification times. Raises LogError for damaged batches, which names the
    remedy, and for failed reads and writes.
    """
    try:
        for segment in survey.log.segments:
            if segment.base_offset >= survey.cut_offset:
                break
            new.begin_segment(segment.base_offset, segment.modified_ms)
            with closing(segment.open()) as file:
                for run in stored_runs(file, segment.position_of(file, survey.cut_offset)):
                    for piece in with_aborts(survey, file, run, writes.aborted):
                        new.append(piece)
                    advance(len(run))
    except (RejectedRecords, CorruptBatch, Malformed, BrokerError) as error:
        what = f"{survey.name}, after offset {new.next_offset - 1}: {error}; run kwire log repair first"
        raise LogError(what, survey.log.url) from error
    timestamp = survey.largest_timestamp if survey.largest_timestamp >= 0 else now_ms
    for number, marker in enumerate(writes.markers):
        new.append(marker_batch(new, marker, survey.cut_offset + number, timestamp))
    first = survey.cut_offset + len(writes.markers)
    for at in range(0, len(writes.records), RECORDS_PER_BATCH):
        builder = BatchBuilder(base_offset=first + at, partition_leader_epoch=new.leader_epoch)
        for key, value in writes.records[at : at + RECORDS_PER_BATCH]:
            builder.append(key, value, timestamp=timestamp)
        new.append(builder.build())
    end = end_after(survey, writes)
    if max(new.next_offset, survey.log_start_offset) < end:
        new.append(empty_batch(end - 1, new.leader_epoch))
    new.finish(log_start_offset=survey.log_start_offset, log_end_offset=end)


def empty_batch(offset: int, leader_epoch: int) -> bytes:
    """Return the last batch of a log whose last offsets have no records, as after compaction.

    A consumer gets past such offsets by the batch that follows them. Without one it never reaches the log end offset.
    """
    fields = BatchFields(partition_leader_epoch=leader_epoch)
    return write_empty_batch(fields, base_offset=offset, last_offset=offset)


def stored_runs(file: StoredFile, end: int) -> Iterator[memoryview]:
    """Yield the batches of a file below a position that is the end of a batch, as runs."""
    position = 0
    while position < end:
        data = file.pread(position, min(READ_BYTES, end - position))
        whole = max((stop for _, stop in batch_spans(data)), default=0)
        if not whole:  # a batch that is larger than a run
            data = file.pread(position, min(batch_bytes(data), end - position))
            whole = len(data)
        yield memoryview(data)[:whole]
        position += whole


def with_aborts(survey: Survey, file: StoredFile, run: memoryview, aborted: set[int]) -> Iterator[memoryview | bytes]:
    """Yield a run, with ABORT markers instead of the COMMIT markers at some offsets."""
    if not aborted:
        yield run
        return
    first = 0
    for start, end in batch_spans(run):
        header = parse_header(run, start, start, file.url)
        if header is not None and header.is_control and header.base_offset in aborted:
            if start > first:
                yield run[first:start]
            yield abort_of(run[start:end], header)
            first = end
    if first < len(run):
        yield run[first:]


def abort_of(batch: memoryview, header: BatchHeader) -> bytes:
    """Return the ABORT marker in the place of a COMMIT marker."""
    from kwire.records import parse_control_record, read_batches

    control = next(parse_control_record(record) for each in read_batches(batch) for record in each.records())
    return write_transaction_marker(
        ControlRecordType.ABORT,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        coordinator_epoch=control.coordinator_epoch or 0,
        timestamp=header.max_timestamp,
        base_offset=header.base_offset,
        partition_leader_epoch=header.leader_epoch,
    )


def marker_batch(new: NewLog, marker: NewMarker, offset: int, timestamp: int) -> bytes:
    """Return an appended marker."""
    return write_transaction_marker(
        ControlRecordType.COMMIT if marker.is_commit else ControlRecordType.ABORT,
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        coordinator_epoch=max(marker.coordinator_epoch, new.coordinator_epoch(marker.producer_id), 0),
        timestamp=timestamp,
        base_offset=offset,
        partition_leader_epoch=new.leader_epoch,
    )
