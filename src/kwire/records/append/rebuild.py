"""Rebuild produced messages of magic 0 and 1 as a batch of magic 2 by columns: what producers of old clients send.

For valid, uncompressed messages only. Anything else gives None and goes through objects (validation), which raise the
errors.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kwire.errors import CorruptBatch, EncodeError
from kwire.records.append.settings import AppendSettings
from kwire.records.attributes import CODEC_MASK, LOG_APPEND_TIME_FLAG, NO_TIMESTAMP, Compression, TimestampType
from kwire.records.columns.reader import ColumnReader
from kwire.records.columns.writer import ColumnWriter
from kwire.records.convert.column_conversion import MICROSECONDS, MORE_BYTES, read_headers
from kwire.records.format import batch_table as t
from kwire.records.format.batch_header import DEFAULT_HEADER_BYTES, LARGEST_SIZE
from kwire.records.format.builder import LargestTimestamp
from kwire.records.format.default_writer import MAX_INT64

__all__ = ["Rebuilt", "rebuild_messages"]

Rebuilt = tuple[bytes, int, LargestTimestamp]


def rebuild_messages(view: memoryview, first_offset: int, target: Compression, given: AppendSettings) -> Rebuilt | None:
    """Return (batch, record count, largest timestamp) of messages; None if objects are required."""
    parts = list(read_headers(view))
    table, size = np.concatenate([part for part, _ in parts]), parts[-1][1]
    if not len(table) or (table[:, t.MAGIC] != table[0, t.MAGIC]).any() or table[0, t.MAGIC] > 1:
        return None
    attributes = table[:, t.ATTRIBUTES]
    if (attributes & CODEC_MASK).any() or (table[0, t.MAGIC] and (attributes & LOG_APPEND_TIME_FLAG).any()):
        return None
    if first_offset + len(table) - 1 > MAX_INT64:
        return None
    times = table[:, t.MAX_TIMESTAMP]
    largest, is_create_time = int(times.max()), given.timestamp_type == TimestampType.CREATE_TIME
    if times.min() < NO_TIMESTAMP or largest > MAX_INT64 // MICROSECONDS:
        return None
    if is_create_time and largest != NO_TIMESTAMP:
        smallest = int(times[times != NO_TIMESTAMP].min())
        before, after = given.message_timestamp_before_max_ms, given.message_timestamp_after_max_ms
        if given.now_ms - smallest > before or largest - given.now_ms > after:
            return None
    try:
        batches = list(ColumnReader(("key", "value", "timestamp")).read(view[:size]))
        rows = pa.Table.from_batches(batches).combine_chunks().to_batches() if batches else []
        if len(rows) != 1 or rows[0].num_rows != len(table) or (given.compacted and rows[0].column("key").null_count):
            return None
        writer = ColumnWriter(
            magic=2,
            compression=target,
            level=given.compression_level,
            base_offset=first_offset,
            batch_size=min(size + MORE_BYTES * len(table) + DEFAULT_HEADER_BYTES, LARGEST_SIZE),
            timestamp_type=given.timestamp_type,
            log_append_time_ms=NO_TIMESTAMP if is_create_time else given.now_ms,
            partition_leader_epoch=given.leader_epoch,
        )
        data = b"".join(bytes(piece) for piece in writer.write(rows[0]))
    except (CorruptBatch, EncodeError):
        return None
    last_offset = first_offset + len(table) - 1
    if not is_create_time:
        return data, len(table), LargestTimestamp(given.now_ms, last_offset)
    return data, len(table), LargestTimestamp(largest, -1 if largest == NO_TIMESTAMP else last_offset)
