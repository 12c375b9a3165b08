"""Change only the header of a batch, as a broker does with most batches that it appends.

The records are neither decoded nor copied: the new header is returned as separate bytes, to be written before the rest
of the batch (with `os.writev`, or joined).
Source: DefaultRecordBatch.setLastOffset, setMaxTimestamp, setPartitionLeaderEpoch;
AbstractLegacyRecordBatch.ByteBufferLegacyRecordBatch.
"""

from __future__ import annotations

import zlib

from kwire.records.attributes import (
    CODEC_MASK,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    LOG_APPEND_TIME_FLAG,
    TRANSACTIONAL_FLAG,
    TimestampType,
)
from kwire.records.format.batch import Batch
from kwire.records.format.batch_header import (
    ATTRIBUTES_POSITION,
    CRC,
    CRC_POSITION,
    DEFAULT_HEADER,
    LAST_OFFSET_DELTA_POSITION,
    LEADER_EPOCH,
    LEADER_EPOCH_POSITION,
    LEGACY_ATTRIBUTES_POSITION,
    LEGACY_CRC_POSITION,
    LEGACY_HEADER,
    LEGACY_TIMESTAMP,
    MAGIC_POSITION,
    MAX_TIMESTAMP_POSITION,
    OFFSET,
)
from kwire.records.format.checksum import crc32c
from kwire.records.format.wrapping import to_int64

__all__ = ["patch_header"]

KEPT_FLAGS = CODEC_MASK | TRANSACTIONAL_FLAG | CONTROL_FLAG | DELETE_HORIZON_FLAG


def patch_header(
    batch: Batch,
    *,
    last_offset: int,
    leader_epoch: int | None = None,
    timestamp_type: TimestampType | None = None,
    max_timestamp: int = -1,
) -> bytes:
    """Return the header of the batch with new values; it replaces the first bytes of the batch.

    last_offset: determines the base offset (R-36). leader_epoch: magic 2 only, None keeps it.
    timestamp_type, max_timestamp (milliseconds): from magic 1 on, None keeps both. A change of either needs a new
    checksum, which is the only case in which the records are read.
    """
    if batch.magic < 2:
        return patch_legacy_header(batch, last_offset, timestamp_type, max_timestamp)
    head = bytearray(batch.buffer[: DEFAULT_HEADER.size])
    last_offset_delta = int.from_bytes(
        head[LAST_OFFSET_DELTA_POSITION : LAST_OFFSET_DELTA_POSITION + 4], "big", signed=True
    )
    OFFSET.pack_into(head, 0, to_int64(last_offset - last_offset_delta))
    if leader_epoch is not None:
        LEADER_EPOCH.pack_into(head, LEADER_EPOCH_POSITION, leader_epoch)
    if timestamp_type is not None and (batch.timestamp_type, batch.max_timestamp) != (timestamp_type, max_timestamp):
        flag = LOG_APPEND_TIME_FLAG if timestamp_type == TimestampType.LOG_APPEND_TIME else 0
        head[ATTRIBUTES_POSITION : ATTRIBUTES_POSITION + 2] = (batch.attributes & KEPT_FLAGS | flag).to_bytes(2, "big")
        OFFSET.pack_into(head, MAX_TIMESTAMP_POSITION, max_timestamp)
        CRC.pack_into(head, CRC_POSITION, crc32c(head[ATTRIBUTES_POSITION:] + batch.buffer[DEFAULT_HEADER.size :]))
    return bytes(head)


def patch_legacy_header(
    batch: Batch, last_offset: int, timestamp_type: TimestampType | None, max_timestamp: int
) -> bytes:
    """Patch the header of a message of magic 0, which has only the offset, or 1."""
    size = LEGACY_HEADER.size + (LEGACY_TIMESTAMP.size if batch.magic else 0)
    head = bytearray(batch.buffer[:size])
    OFFSET.pack_into(head, 0, last_offset)
    if (
        batch.magic
        and timestamp_type is not None
        and (batch.timestamp_type, batch.max_timestamp) != (timestamp_type, max_timestamp)
    ):
        flag = LOG_APPEND_TIME_FLAG if timestamp_type == TimestampType.LOG_APPEND_TIME else 0
        head[LEGACY_ATTRIBUTES_POSITION] = batch.attributes & CODEC_MASK | flag
        LEGACY_TIMESTAMP.pack_into(head, LEGACY_HEADER.size, max_timestamp)
        crc = zlib.crc32(batch.buffer[size:], zlib.crc32(head[MAGIC_POSITION:]))
        CRC.pack_into(head, LEGACY_CRC_POSITION, crc)
    return bytes(head)
