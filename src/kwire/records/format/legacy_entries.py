"""The messages of a magic 0 or 1 batch on append, where some faults reject a record, not the batch.

Readers (legacy_batch) accept an inner magic that differs from the outer one; a broker rejects that record, with Kafka's
error message.
Source: org.apache.kafka.common.record.AbstractLegacyRecordBatch.DeepRecordsIterator, LegacyRecord.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kwire.errors import Malformed
from kwire.records.attributes import CODEC_MASK, Compression, TimestampType
from kwire.records.compression.codecs import TooLarge, expand
from kwire.records.format.append_error import AppendErrorCode, RejectedRecords, TooMuchWork
from kwire.records.format.batch import CODECS, Batch, too_large
from kwire.records.format.batch_header import FRAME_BYTES, MAGIC_POSITION, SMALLEST_SIZE, batch_bytes, batch_spans
from kwire.records.format.checksum import crc32
from kwire.records.format.faults import Fault
from kwire.records.format.legacy_batch import read_key_and_value, read_message
from kwire.records.format.wrapping import to_int64

__all__ = ["LegacyEntry", "legacy_entries"]


class LegacyEntry(NamedTuple):
    """One message, with its absolute offset (R-23) and the timestamp and type that the wrapper determines (R-24)."""

    offset: int
    magic: int
    attributes: int
    crc: int
    computed_crc: int
    timestamp: int
    timestamp_type: TimestampType
    key: memoryview | None
    value: memoryview | None

    def __str__(self) -> str:
        """Format as Kafka's LegacyRecordBatch does in errors."""
        attributes = self.attributes - 256 if self.attributes > 127 else self.attributes
        time = f"{self.timestamp_type.text}={self.timestamp}, " if self.magic else ""
        return (
            f"LegacyRecordBatch(offset={self.offset}, Record(magic={self.magic}, attributes={attributes}, "
            f"compression={Compression(self.attributes & CODEC_MASK).text}, crc={self.crc}, {time}"
            f"key={len(self.key or b'')} bytes, value={len(self.value or b'')} bytes))"
        )


def legacy_entries(batch: Batch, limit: int) -> Iterator[LegacyEntry]:
    """Read the message, or the inner messages of a compressed one. limit: maximum decompressed bytes.

    Raises RejectedRecords with Kafka's code where Kafka stops reading.
    """
    if not batch.attributes & CODEC_MASK:
        yield entry_of(batch.buffer, batch.last_offset, batch)
        return
    payload = decompressed(batch, limit)
    spans = inner_spans(payload)
    if not spans:
        raise RejectedRecords(Fault.WRAPPER_EMPTY.text, AppendErrorCode.INVALID_RECORD)
    base = 0
    if batch.magic == 1 and batch.last_offset:
        last = read_message(payload[spans[-1][0] :]).offset
        if batch.last_offset < last:
            raise RejectedRecords(Fault.WRAPPER_OFFSET.text, AppendErrorCode.INVALID_RECORD)
        base = batch.last_offset - last
    for start, end in spans:
        buf = payload[start:end]
        message = read_message(buf)
        if message.attributes & CODEC_MASK:
            raise RejectedRecords("Inner messages must not be compressed", AppendErrorCode.INVALID_RECORD)
        yield entry_of(buf, to_int64(base + message.offset), batch)


def entry_of(buf: memoryview, offset: int, outer: Batch) -> LegacyEntry:
    """Read one message, with its offset in the log; the outer message's timestamp type applies."""
    message = read_message(buf)
    fields = read_key_and_value(buf, message.magic)
    if fields is None and message.magic == outer.magic:
        raise RejectedRecords(Fault.MESSAGE_FIELDS.text, AppendErrorCode.INVALID_RECORD)
    append_time = outer.timestamp_type == TimestampType.LOG_APPEND_TIME and message.magic == 1
    return LegacyEntry(
        offset=offset,
        magic=message.magic,
        attributes=message.attributes,
        crc=message.crc,
        computed_crc=crc32(buf[MAGIC_POSITION:]),
        timestamp=outer.max_timestamp if append_time else message.timestamp,
        timestamp_type=outer.timestamp_type,
        key=fields[0] if fields else None,
        value=fields[1] if fields else None,
    )


def decompressed(batch: Batch, limit: int) -> memoryview:
    """Decompress the inner messages of a compressed message."""
    codec = known_codec(batch)
    if codec == Compression.ZSTD:
        raise RejectedRecords(f"zstd is not supported in magic {batch.magic}", AppendErrorCode.INVALID_RECORD)
    fields = read_key_and_value(batch.buffer, batch.magic)
    if fields is None:
        raise RejectedRecords(Fault.MESSAGE_FIELDS.text, AppendErrorCode.INVALID_RECORD)
    if fields[1] is None:
        raise RejectedRecords(Fault.WRAPPER_VALUE.text, AppendErrorCode.INVALID_RECORD)
    return expand_or_reject(codec, batch.magic, fields[1], limit)


def known_codec(batch: Batch) -> Compression:
    """Return the batch's codec; Kafka has no error code for an unassigned number."""
    codec = batch.attributes & CODEC_MASK
    if codec > Compression.ZSTD:
        raise RejectedRecords(f"Unknown compression type id: {codec}", AppendErrorCode.UNKNOWN_SERVER_ERROR)
    return CODECS[codec]


def expand_or_reject(codec: Compression, magic: int, payload: memoryview, limit: int) -> memoryview:
    """Decompress payload; Kafka has no error code for one that does not decompress."""
    try:
        return expand(codec, magic, payload, limit)
    except Malformed as error:
        raise RejectedRecords(error.what, AppendErrorCode.UNKNOWN_SERVER_ERROR) from None
    except TooLarge:
        raise TooMuchWork(too_large(codec, limit), AppendErrorCode.INVALID_RECORD) from None


def inner_spans(payload: memoryview) -> list[tuple[int, int]]:
    """Return (start, end) of each whole inner message; one that is cut at the end is ignored (R-26)."""
    spans = list(batch_spans(payload))
    end = spans[-1][1] if spans else 0
    if len(payload) - end >= FRAME_BYTES and (size := batch_bytes(payload, end) - FRAME_BYTES) < SMALLEST_SIZE:
        raise RejectedRecords(
            f"Found record size {size} smaller than minimum record overhead ({SMALLEST_SIZE}).",
            AppendErrorCode.CORRUPT_MESSAGE,
        )
    return spans
