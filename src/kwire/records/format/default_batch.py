"""Record batch, magic 2: what brokers have written since Kafka 0.11.

    pos  bytes  field                    note
      0      8  base_offset              set by the broker on append, kept by compaction
      8      4  batch_length             bytes after this field, 49 at least
     12      4  partition_leader_epoch   outside the checksum, so the broker can set it without a new one
     16      1  magic                    2; at the same place in magic 0 and 1, so read it first
     17      4  crc                      CRC-32C of pos 21 to the end of the batch
     21      2  attributes               see attributes
     23      4  last_offset_delta        kept by compaction; also the last sequence less the first
     27      8  base_timestamp           or the delete horizon (bit 6); -1 in an emptied batch
     35      8  max_timestamp            the append time of all records if the timestamp type is LOG_APPEND_TIME
     43      8  producer_id
     51      2  producer_epoch
     53      4  base_sequence
     57      4  count                    of records; 0 in an emptied batch
     61         records                  one compressed stream if a codec is set

A record: varint length of what follows | int8 attributes, unused | varlong timestamp delta | varint offset delta |
varint key length, key | varint value length, value | varint header count, and for each header: varint key length, key,
varint value length, value. Lengths below zero are null (a header's key cannot be).
Source: KIP-98, KIP-534; org.apache.kafka.common.record.DefaultRecordBatch, DefaultRecord.
"""

from __future__ import annotations

from collections.abc import Iterator

from kwire import native
from kwire.errors import Malformed, Truncated
from kwire.records.attributes import (
    DELETE_HORIZON_FLAG,
    LOG_APPEND_TIME_FLAG,
    NO_SEQUENCE,
    TimestampType,
)
from kwire.records.format.batch import Batch
from kwire.records.format.batch_header import ATTRIBUTES_POSITION, DEFAULT_HEADER, DEFAULT_HEADER_BYTES
from kwire.records.format.checksum import crc32c
from kwire.records.format.faults import MAX_HEADERS, Fault
from kwire.records.format.record import Record, decode_header_key, factory
from kwire.records.format.wrapping import MAX_INT64, MIN_INT64, add_to_sequence, to_int64
from kwire.wire.varint import read_varint, read_varlong

__all__ = ["SMALLEST_RECORD_BYTES", "DefaultBatch"]

SMALLEST_RECORD_BYTES = 7  # length, attributes, two deltas, two lengths, header count: a byte each

Headers = list[tuple[str, bytes | None]]


class DefaultBatch(Batch):
    """A batch of magic 2. read_batches guarantees that its buffer has at least the 61 bytes of the header."""

    __slots__ = ("_base_offset",)

    _base_offset: int

    def __init__(self, buffer: memoryview, position: int, file: str | None, max_decompressed_bytes: int) -> None:
        (
            self._base_offset,
            _,
            self.partition_leader_epoch,
            self.magic,
            self.crc,
            self.attributes,
            last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.count,
        ) = DEFAULT_HEADER.unpack_from(buffer)
        self.buffer, self.position, self.file, self.size_bytes = buffer, position, file, len(buffer)
        self._max_decompressed_bytes = max_decompressed_bytes
        self.last_offset = to_int64(self._base_offset + last_offset_delta)
        self.last_sequence = (
            NO_SEQUENCE if self.base_sequence == NO_SEQUENCE else add_to_sequence(self.base_sequence, last_offset_delta)
        )
        append_time = self.attributes & LOG_APPEND_TIME_FLAG
        self.timestamp_type = TimestampType.LOG_APPEND_TIME if append_time else TimestampType.CREATE_TIME
        self.delete_horizon_ms = self.base_timestamp if self.attributes & DELETE_HORIZON_FLAG else None

    @property
    def base_offset(self) -> int:
        """Offset of the first record that was in the batch when it was written."""
        return self._base_offset

    def computed_crc(self) -> int:
        """CRC-32C from the attributes to the end of the batch."""
        return crc32c(self.buffer[ATTRIBUTES_POSITION:])

    def claimed_offsets(self) -> tuple[int, int]:
        """(base_offset, last_offset) of the header."""
        return self._base_offset, self.last_offset

    def record_lists(
        self, *, check_crc: bool = True, start_offset: int = MIN_INT64, end_offset: int = MAX_INT64 + 1
    ) -> Iterator[list[Record]]:
        """Decode the records; raises CorruptBatch at the first that does not decode. check_crc has no effect."""
        count = self.count
        assert count is not None
        if not count:
            return  # as in Kafka, not even decompressed
        if count < 0:
            raise self.corrupt(Fault.RECORD_COUNT.text)
        section = self.decompress(self.buffer[DEFAULT_HEADER_BYTES:])
        if count * SMALLEST_RECORD_BYTES > len(section):
            raise self.corrupt(Fault.RECORD_COUNT.text)
        if factory() is None:
            wanted = range(start_offset, end_offset)
            yield from ([record] for record in self.plain_records(bytes(section), count) if record.offset in wanted)
            return
        header = (
            self._base_offset,
            self.base_timestamp,
            self.is_append_time,
            self.max_timestamp,
            self.base_sequence,
            False,
        )
        yield from self.built_lists(native.read_records, section, count, header, start_offset, end_offset)

    def plain_records(self, section: bytes, count: int) -> Iterator[Record]:
        """Decode the records in Python, where there is no compiled code."""
        pos = 0
        for index in range(count):
            record, pos = self.read_record(section, pos, index)
            if index == count - 1 and pos != len(section):
                raise self.corrupt(Fault.BYTES_LEFT.text)
            yield record

    def read_record(self, section: bytes, pos: int, index: int) -> tuple[Record, int]:
        """Decode the record at pos of the decompressed section; returns it and the position after it."""
        fault = Fault.RECORD_LENGTH
        try:
            length, pos = read_varint(section, pos)
            if not 0 <= length <= len(section) - pos:
                raise self.corrupt(fault.text, index)
            body = section[pos : pos + length]
            pos += length
            fault = Fault.RECORD_FIELDS
            timestamp_delta, at = read_varlong(body, 1)  # after the attributes, which are unused
            offset_delta, at = read_varint(body, at)
            key_length, at = read_varint(body, at)
            if key_length > length - at:
                raise self.corrupt(Fault.KEY_LENGTH.text, index)
            key = None if key_length < 0 else body[at : at + key_length]
            value_length, at = read_varint(body, at + max(key_length, 0))
            if value_length > length - at:
                raise self.corrupt(Fault.VALUE_LENGTH.text, index)
            value = None if value_length < 0 else body[at : at + value_length]
            header_count, at = read_varint(body, at + max(value_length, 0))
        except (Truncated, Malformed):
            raise self.corrupt(fault.text, index) from None
        headers, at = self.read_headers(body, at, header_count, index) if header_count else ([], at)
        if at != length:
            raise self.corrupt(Fault.RECORD_SIZE.text, index)
        record = Record(
            offset=to_int64(self._base_offset + offset_delta),
            timestamp=self.max_timestamp if self.is_append_time else to_int64(self.base_timestamp + timestamp_delta),
            timestamp_type=self.timestamp_type,
            key=key,
            value=value,
            headers=headers,
            sequence=add_to_sequence(self.base_sequence, offset_delta) if self.base_sequence >= 0 else NO_SEQUENCE,
            leader_epoch=self.leader_epoch,
        )
        return record, pos

    def read_headers(self, body: bytes, at: int, count: int, index: int) -> tuple[Headers, int]:
        """Decode `count` headers from `at` of a record's body; returns them and the position after them."""
        if not 0 <= count <= min(len(body) - at, MAX_HEADERS):
            raise self.corrupt(Fault.HEADER_COUNT.text, index)
        headers: Headers = []
        fault = Fault.HEADER_KEY
        try:
            for _ in range(count):
                fault = Fault.HEADER_KEY
                length, at = read_varint(body, at)
                if not 0 <= length <= len(body) - at:
                    raise self.corrupt(fault.text, index)
                key = decode_header_key(body[at : at + length])
                fault = Fault.HEADER_VALUE
                value_length, at = read_varint(body, at + length)
                if value_length > len(body) - at:
                    raise self.corrupt(fault.text, index)
                headers.append((key, None if value_length < 0 else body[at : at + value_length]))
                at += max(value_length, 0)
        except (Truncated, Malformed):
            raise self.corrupt(fault.text, index) from None
        return headers, at
