"""Rewrite a batch without some of its records.

Magic 2 keeps its base and last offset. A compressed message of magic 0 or 1 starts at the first retained message:
relative offsets count from there, with gaps (KIP-31). Codec, timestamps and producer fields are kept.
Source: rules X-26, X-27, X-31 to X-33, R-27; MemoryRecords.buildRetainedRecordsInto,
DefaultRecordBatch.writeEmptyHeader.
"""

from __future__ import annotations

from collections.abc import Iterable

from kwire.records import Batch, BatchBuilder, Record, TimestampType
from kwire.records.format.default_writer import BatchFields, write_empty_batch

__all__ = ["empty_batch", "rebuild_batch"]


def empty_batch(batch: Batch) -> bytes:
    """Return a batch of magic 2 with the offsets of this one and no records."""
    fields = BatchFields(
        timestamp_type=batch.timestamp_type,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        is_transactional=batch.is_transactional,
        is_control=batch.is_control,
        partition_leader_epoch=batch.partition_leader_epoch,
    )
    return write_empty_batch(
        fields, base_offset=batch.base_offset, last_offset=batch.last_offset, max_timestamp=batch.max_timestamp
    )


def rebuild_batch(batch: Batch, records: Iterable[Record], delete_horizon_ms: int | None) -> bytes:
    """Return the batch with these of its records, at least one. delete_horizon_ms: of the new batch; magic 2 only."""
    kept = list(records)
    append_time = batch.timestamp_type == TimestampType.LOG_APPEND_TIME
    builder = BatchBuilder(
        magic=batch.magic,
        compression=batch.compression,
        base_offset=batch.base_offset if batch.magic == 2 else kept[0].offset,
        timestamp_type=batch.timestamp_type,
        log_append_time_ms=batch.max_timestamp if append_time else -1,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        is_transactional=batch.is_transactional,
        is_control=batch.is_control,
        partition_leader_epoch=batch.partition_leader_epoch,
        delete_horizon_ms=delete_horizon_ms,
    )
    for record in kept:
        builder.append(
            record.key, record.value, timestamp=record.timestamp, headers=record.headers, offset=record.offset
        )
    return builder.build(last_offset=batch.last_offset if batch.magic == 2 else None)
