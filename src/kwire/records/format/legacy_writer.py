"""Write messages of magic 0 and 1, single or packed into a compressed message. For the layout see legacy_batch.

A compressed message carries the offset of its last inner message. Inner offsets are absolute in magic 0 and relative in
magic 1 (KIP-31), where the broker then has only the outer offset to set.
Source: KIP-31, KIP-32; org.apache.kafka.common.record.LegacyRecord, MemoryRecordsBuilder.
"""

from __future__ import annotations

from kwire.errors import EncodeError
from kwire.records.attributes import LOG_APPEND_TIME_FLAG, Compression, TimestampType
from kwire.records.format.batch_header import (
    CRC,
    FRAME_BYTES,
    LARGEST_SIZE,
    LEGACY_CRC_POSITION,
    LEGACY_HEADER,
    LEGACY_TIMESTAMP,
    MAGIC_POSITION,
)
from kwire.records.format.checksum import crc32
from kwire.records.format.legacy_batch import LENGTH

__all__ = ["append_message", "legacy_attributes", "message_bytes"]

Bytes = bytes | bytearray | memoryview

NULL_LENGTH = LENGTH.pack(-1)


def message_bytes(magic: int, key: Bytes | None, value: Bytes | None) -> int:
    """Return the size of a message with its frame: 26 bytes (magic 0) or 34 (magic 1) plus key and value."""
    fixed = LEGACY_HEADER.size + 2 * LENGTH.size + (LEGACY_TIMESTAMP.size if magic else 0)
    return fixed + (len(key) if key is not None else 0) + (len(value) if value is not None else 0)


def legacy_attributes(magic: int, codec: Compression, timestamp_type: TimestampType) -> int:
    """Return the attributes byte; magic 0 has no timestamp type."""
    return codec | (LOG_APPEND_TIME_FLAG if magic and timestamp_type == TimestampType.LOG_APPEND_TIME else 0)


def append_message(
    out: bytearray,
    magic: int,
    *,
    offset: int,
    attributes: int,
    timestamp: int,
    key: Bytes | None,
    value: Bytes | None,
) -> None:
    """Append one message with its frame. timestamp: milliseconds, ignored in magic 0.

    Raises EncodeError when the message does not fit its size field; nothing is appended then.
    """
    size = message_bytes(magic, key, value) - FRAME_BYTES
    if size > LARGEST_SIZE:
        raise EncodeError(f"message of {size} bytes exceeds the maximum of {LARGEST_SIZE}")
    start = len(out)
    out += LEGACY_HEADER.pack(offset, size, 0, magic, attributes)
    if magic:
        out += LEGACY_TIMESTAMP.pack(timestamp)
    for field in (key, value):
        if field is None:
            out += NULL_LENGTH
        else:
            out += LENGTH.pack(len(field))
            out += field
    with memoryview(out) as view:
        CRC.pack_into(view, start + LEGACY_CRC_POSITION, crc32(view[start + MAGIC_POSITION :]))
