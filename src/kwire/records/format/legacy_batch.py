"""Messages of magic 0 and 1: what brokers wrote until Kafka 0.11, one by one or packed into a compressed message.

    pos     bytes  field          note
      0         8  offset         of the last inner message if compressed
      8         4  size           bytes after this field, 14 (magic 0) or 22 (magic 1) at least
     12         4  crc            CRC-32 of pos 16 to the end
     16         1  magic          0 or 1
     17         1  attributes     codec; timestamp type in magic 1
     18         8  timestamp      magic 1 only; milliseconds, -1 for none
     18/26      4  key length     below zero is null
                K  key
                4  value length   below zero is null; whatever follows the value is ignored
                V  value

A compressed message has the codec in its attributes and, as its value, the compressed run of whole inner messages, each
with the twelve bytes of offset and size. Inner offsets are absolute in magic 0, relative in magic 1 (KIP-31): the last
one belongs to the outer offset, so gaps that compaction left count. An outer offset of 0 is taken as "not set": some
librdkafka versions left it so.
Source: KIP-31, KIP-32; org.apache.kafka.common.record.LegacyRecord, AbstractLegacyRecordBatch.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from kwire import native
from kwire.records.attributes import (
    CODEC_MASK,
    LOG_APPEND_TIME_FLAG,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    Compression,
    TimestampType,
)
from kwire.records.format.batch import Batch
from kwire.records.format.batch_header import (
    FRAME_BYTES,
    LEGACY_HEADER,
    LEGACY_TIMESTAMP,
    MAGIC_POSITION,
    OFFSET,
    SMALLEST_SIZE,
    batch_bytes,
    batch_spans,
)
from kwire.records.format.checksum import crc32
from kwire.records.format.faults import Fault
from kwire.records.format.record import Record, factory
from kwire.records.format.wrapping import MAX_INT64, MIN_INT64, to_int64

__all__ = ["LegacyBatch", "no_zstd"]

LENGTH = struct.Struct(">i")


class Message(NamedTuple):
    """The fixed fields of one message, regardless of its wrapper."""

    offset: int
    crc: int
    magic: int
    attributes: int
    timestamp: int
    timestamp_type: TimestampType


def read_message(buf: memoryview) -> Message:
    """Read the fixed fields of a message with its frame; buf needs 26 bytes, which every legal size guarantees."""
    offset, _, crc, magic, attributes = LEGACY_HEADER.unpack_from(buf)
    if magic == 0:
        return Message(offset, crc, magic, attributes, NO_TIMESTAMP, TimestampType.NO_TIMESTAMP_TYPE)
    append_time = attributes & LOG_APPEND_TIME_FLAG
    kind = TimestampType.LOG_APPEND_TIME if append_time else TimestampType.CREATE_TIME
    return Message(offset, crc, magic, attributes, LEGACY_TIMESTAMP.unpack_from(buf, LEGACY_HEADER.size)[0], kind)


def read_key_and_value(buf: memoryview, magic: int) -> tuple[memoryview | None, memoryview | None] | None:
    """Return views of key and value of a message with its frame; None if they extend beyond its end."""
    pos = LEGACY_HEADER.size if magic == 0 else LEGACY_HEADER.size + LEGACY_TIMESTAMP.size
    fields: list[memoryview | None] = []
    for _ in range(2):
        if len(buf) - pos < LENGTH.size:
            return None
        (length,) = LENGTH.unpack_from(buf, pos)
        pos += LENGTH.size
        if length > len(buf) - pos:
            return None
        fields.append(None if length < 0 else buf[pos : pos + length])
        pos += max(length, 0)
    return fields[0], fields[1]


class LegacyBatch(Batch):
    """A message of magic 0 or 1 in the log: a batch of one record, or of all inner messages."""

    __slots__ = ("_base_offset",)

    def __init__(self, buffer: memoryview, position: int, file: str | None, max_decompressed_bytes: int) -> None:
        message = read_message(buffer)
        self.buffer, self.position, self.file, self.size_bytes = buffer, position, file, len(buffer)
        self._max_decompressed_bytes = max_decompressed_bytes
        self.last_offset, self.crc, self.magic, self.attributes = message[:4]
        self.base_timestamp = self.max_timestamp = message.timestamp
        self.timestamp_type = message.timestamp_type
        self.count = None
        self.producer_id, self.producer_epoch = NO_PRODUCER_ID, NO_PRODUCER_EPOCH
        self.base_sequence = self.last_sequence = NO_SEQUENCE
        self.partition_leader_epoch = NO_LEADER_EPOCH
        self.delete_horizon_ms = None
        self._base_offset: int | None = None if self.attributes & CODEC_MASK else message.offset

    @property
    def base_offset(self) -> int:
        """Offset of the first (inner) message; decompresses on first use if there is a codec (R-23)."""
        if self._base_offset is None:
            payload = self.inner_payload()
            base, _ = self.inner_base(payload)
            self._base_offset = to_int64(base + OFFSET.unpack_from(payload)[0])
        return self._base_offset

    def computed_crc(self) -> int:
        """CRC-32 from the magic to the end of the message."""
        return crc32(self.buffer[MAGIC_POSITION:])

    def record_lists(
        self, *, check_crc: bool = True, start_offset: int = MIN_INT64, end_offset: int = MAX_INT64 + 1
    ) -> Iterator[list[Record]]:
        """Decode the message, or the inner messages of a compressed one; check_crc verifies the inner checksums."""
        wanted = range(start_offset, end_offset)
        if self.compression == Compression.NONE:
            record = self.record_of(self.buffer, self.last_offset, self.base_timestamp)
            yield [record] if record.offset in wanted else []
            return
        payload = self.inner_payload()
        base, count = self.inner_base(payload)
        if factory() is None:
            records = self.inner_records(payload, base, check_crc)
            yield from ([record] for record in records if record.offset in wanted)
            return
        header = (base, NO_TIMESTAMP, self.is_append_time, self.max_timestamp, NO_SEQUENCE, check_crc)
        yield from self.built_lists(native.read_messages, payload, count, header, start_offset, end_offset)

    def record_of(self, buf: memoryview, offset: int, timestamp: int, index: int | None = None) -> Record:
        """Create the record of a message, outer or inner (index); the outer timestamp type applies (R-24)."""
        fields = read_key_and_value(buf, buf[MAGIC_POSITION])
        if fields is None:
            raise self.corrupt(Fault.MESSAGE_FIELDS.text, index)
        key, value = (None if field is None else bytes(field) for field in fields)
        return Record(
            offset=offset, timestamp=timestamp, timestamp_type=self.timestamp_type, key=key, value=value, headers=[]
        )

    def inner_records(self, payload: memoryview, base: int, check_crc: bool) -> Iterator[Record]:
        """Decode the inner messages in Python; the wrapper may override their timestamps (R-24)."""
        for index, (start, end) in enumerate(batch_spans(payload)):
            buf = payload[start:end]
            message = read_message(buf)
            if message.attributes & CODEC_MASK:
                raise self.corrupt(Fault.INNER_COMPRESSED.text, index)
            if check_crc and message.crc != crc32(buf[MAGIC_POSITION:]):
                raise self.corrupt(Fault.INNER_CRC.text, index)
            append_time = self.is_append_time and message.magic == 1
            timestamp = self.max_timestamp if append_time else message.timestamp
            yield self.record_of(buf, to_int64(base + message.offset), timestamp, index)

    def inner_payload(self) -> memoryview:
        """Decompress the value of a compressed message."""
        codec = self.compression
        if codec == Compression.ZSTD:
            raise self.corrupt(no_zstd(self.magic))
        fields = read_key_and_value(self.buffer, self.magic)
        if fields is None:
            raise self.corrupt(Fault.MESSAGE_FIELDS.text)
        if fields[1] is None:
            raise self.corrupt(Fault.WRAPPER_VALUE.text)
        return self.decompress(fields[1])

    def inner_base(self, payload: memoryview) -> tuple[int, int]:
        """Return (what to add to inner offsets, number of whole inner messages); a cut last one is ignored (R-26)."""
        count, last, _, fault = measure_plain(payload) if factory() is None else native.measure_messages(payload)
        if fault:
            raise self.corrupt(Fault(fault).text, count)
        if not count:
            raise self.corrupt(Fault.WRAPPER_EMPTY.text)
        if self.magic == 0 or self.last_offset == 0:
            return 0, count
        if self.last_offset < last:
            raise self.corrupt(Fault.WRAPPER_OFFSET.text)
        return to_int64(self.last_offset - last), count


def measure_plain(payload: memoryview) -> tuple[int, int, int, int]:
    """Scan decompressed messages in Python: (messages, last offset, bytes of them, Fault or 0)."""
    last_start = end = count = 0
    for start, next_start in batch_spans(payload):
        if payload[start + MAGIC_POSITION] > 1:
            return count, 0, end, Fault.INNER_MAGIC
        last_start, end = start, next_start
        count += 1
    if len(payload) - end >= FRAME_BYTES and batch_bytes(payload, end) < FRAME_BYTES + SMALLEST_SIZE:
        return count, 0, end, Fault.INNER_SIZE
    return count, OFFSET.unpack_from(payload, last_start)[0] if count else 0, end, 0


def no_zstd(magic: int) -> str:
    """The error text for a compressed message of magic 0 or 1 whose codec is zstd."""
    return f"zstd is not supported in magic {magic}"
