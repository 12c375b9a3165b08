"""Rows of one partition as batches of magic 2. Rows with LogAppendTime keep it: a batch has one append time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kwire.records import ColumnWriter, Compression, TimestampType
from kwire.records.columns.writer import ColumnWriterOptions

__all__ = ["TAKEN", "batch_options", "encode_rows"]

TAKEN = ("key", "value", "headers", "timestamp", "timestampType")
"""Columns of a record besides topic, partition and offset."""
BATCH_BYTES = 128 << 10  # of a Kafka batch before compression
LEADER_EPOCH = 0

Order = npt.NDArray[np.int64]


def batch_options(codec: Compression, level: int | None, segment_bytes: int) -> ColumnWriterOptions:
    """Return the options of batches for segments of this size."""
    return ColumnWriterOptions(
        compression=codec,
        level=level,
        batch_size=min(BATCH_BYTES, segment_bytes // 2),
        partition_leader_epoch=LEADER_EPOCH,
    )


def encode_rows(
    batch: pa.RecordBatch, options: ColumnWriterOptions, order: Order | None = None
) -> Iterator[memoryview]:
    """Yield the rows as complete batches; a piece is valid until the next one.

    order: numbers of the rows to write; all by default. Raises EncodeError for rows that batches cannot hold.
    """
    next_offset = options.get("base_offset", 0)
    for rows, some, append_time in runs_of_time(batch, order):
        is_append_time = append_time is not None
        of_run = ColumnWriterOptions(
            base_offset=next_offset,
            timestamp_type=TimestampType.LOG_APPEND_TIME if is_append_time else TimestampType.CREATE_TIME,
            log_append_time_ms=append_time if append_time is not None else -1,
        )
        writer = ColumnWriter(**(options | of_run))
        yield from writer.write(rows, some)
        next_offset = writer.next_offset


def runs_of_time(
    batch: pa.RecordBatch, order: Order | None
) -> Iterator[tuple[pa.RecordBatch, Order | None, int | None]]:
    """Split rows into runs that can share a batch: (rows, order, append time in ms or None for CreateTime)."""
    if "timestampType" not in batch.schema.names or "timestamp" not in batch.schema.names:
        yield batch, order, None
        return
    column = batch.column("timestampType")
    if order is not None:
        column = column.take(pa.array(order))
    kinds = column.fill_null(0).cast(pa.int64()).to_numpy() == 1
    if not kinds.any():
        yield batch, order, None
        return
    if order is not None:
        batch = batch.take(pa.array(order))
    column = batch.column("timestamp")
    times = column if pa.types.is_integer(column.type) else column.cast(pa.timestamp("ms"), safe=False).cast(pa.int64())
    ms = np.where(kinds, times.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False), -2)
    start = 0
    for end in [*(np.flatnonzero(np.diff(ms)) + 1).tolist(), batch.num_rows]:
        yield batch.slice(start, end - start), None, int(ms[start]) if kinds[start] else None
        start = end
