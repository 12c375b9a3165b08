"""Batches of magic 2, written: a record, a batch around its records, and an emptied batch. Their layout: default_batch.

Source: KIP-98, KIP-534; org.apache.kafka.common.record.DefaultRecord.writeTo, DefaultRecordBatch.writeHeader.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kwire.errors import EncodeError
from kwire.records.attributes import (
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    LOG_APPEND_TIME_FLAG,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
    Compression,
    TimestampType,
)
from kwire.records.batch_header import DEFAULT_HEADER, FRAME_BYTES, LARGEST_SIZE, write_crc
from kwire.records.wrapping import to_int64
from kwire.wire.varint import write_varlong

__all__ = ["BatchFields", "append_record", "join_batch", "write_empty_batch"]

Bytes = bytes | bytearray | memoryview
Headers = Iterable[tuple[str, bytes | None]]

MAX_INT64, MAX_INT32, MAX_INT16 = 2**63 - 1, 2**31 - 1, 2**15 - 1
NO_ATTRIBUTES = b"\0"
NULL = b"\1"  # length -1 in zig-zag
KNOWN_VARINTS = 8192  # numbers of at most two bytes, which most are
VARINTS = [bytes((n << 1,)) if n < 64 else bytes((n << 1 & 0x7F | 0x80, n >> 6)) for n in range(KNOWN_VARINTS)]
LARGEST_RECORD = LARGEST_SIZE + FRAME_BYTES - DEFAULT_HEADER.size  # what a batch of the largest size has room for


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFields:
    """What a batch of magic 2 says about its writer; -1 is none throughout.

    delete_horizon_ms: when tombstones of the batch may go; stored in place of the base timestamp.
    Raises EncodeError when the fields contradict each other (R-34) or do not fit.
    """

    compression: Compression = Compression.NONE
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    base_sequence: int = NO_SEQUENCE
    is_transactional: bool = False
    is_control: bool = False
    partition_leader_epoch: int = NO_LEADER_EPOCH
    delete_horizon_ms: int | None = None

    def __post_init__(self) -> None:
        check_range("producer_id", self.producer_id, MAX_INT64)
        check_range("producer_epoch", self.producer_epoch, MAX_INT16)
        check_range("base_sequence", self.base_sequence, MAX_INT32)
        check_range("partition_leader_epoch", self.partition_leader_epoch, MAX_INT32)
        if self.delete_horizon_ms is not None:
            check_range("delete_horizon_ms", self.delete_horizon_ms, MAX_INT64)
        if self.timestamp_type == TimestampType.NO_TIMESTAMP_TYPE:
            raise EncodeError("a timestamp type is needed above magic 0")
        if self.is_transactional and self.producer_id == NO_PRODUCER_ID:
            raise EncodeError("a transactional batch needs a producer_id")
        if self.producer_id != NO_PRODUCER_ID:
            if self.producer_epoch == NO_PRODUCER_EPOCH:
                raise EncodeError("a batch with a producer_id needs a producer_epoch")
            if self.base_sequence == NO_SEQUENCE and not self.is_control:
                raise EncodeError("a batch with a producer_id needs a base_sequence, unless it is a control batch")

    @property
    def attributes(self) -> int:
        """The attributes field."""
        return (
            self.compression
            | (LOG_APPEND_TIME_FLAG if self.timestamp_type == TimestampType.LOG_APPEND_TIME else 0)
            | (TRANSACTIONAL_FLAG if self.is_transactional else 0)
            | (CONTROL_FLAG if self.is_control else 0)
            | (DELETE_HORIZON_FLAG if self.delete_horizon_ms is not None else 0)
        )


def check_range(name: str, value: int, largest: int) -> None:
    """Raise EncodeError unless -1 <= value <= largest."""
    if not -1 <= value <= largest:
        raise EncodeError(f"{name} {value}: -1 to {largest}")


def append_record(
    out: bytearray,
    *,
    offset_delta: int,
    timestamp_delta: int,
    key: Bytes | None,
    value: Bytes | None,
    headers: Headers = (),
) -> None:
    """Append one record. offset_delta: 0 to 2**31 - 1. timestamp_delta: milliseconds, taken modulo 2**64.

    Raises EncodeError on a number or length that does not fit, or a header key that is no text; nothing is appended
    then. Lengths are looked at before anything is copied.
    """
    if not 0 <= offset_delta <= MAX_INT32:
        raise EncodeError(f"offset delta {offset_delta}: 0 to {MAX_INT32}")
    size = (len(key) if key is not None else 0) + (len(value) if value is not None else 0)
    if size > LARGEST_RECORD:
        raise EncodeError(f"record with key and value of {size} bytes, {LARGEST_RECORD} at most")
    if headers is None:
        raise EncodeError("headers: null; a record without headers has an empty list")
    headers = headers if isinstance(headers, list | tuple) else list(headers)
    parts: list[Bytes] = [
        NO_ATTRIBUTES,
        # Two timestamps can be more than 64 bits apart; the delta wraps as in Java, and readers wrap it back.
        VARINTS[timestamp_delta] if 0 <= timestamp_delta < KNOWN_VARINTS else varlong(to_int64(timestamp_delta)),
        VARINTS[offset_delta] if offset_delta < KNOWN_VARINTS else varlong(offset_delta),
    ]
    add_field(parts, key)
    add_field(parts, value)
    parts.append(varlong(len(headers)))
    for name, content in headers:
        add_field(parts, encode_header_key(name))
        add_field(parts, content)
        size += len(parts[-1])
        if size > LARGEST_RECORD:
            raise EncodeError(f"record with a header of {len(parts[-1])} bytes, {LARGEST_RECORD} at most")
    body = b"".join(parts)
    if len(body) > LARGEST_RECORD:
        raise EncodeError(f"record of {len(body)} bytes, {LARGEST_RECORD} at most")
    out += varlong(len(body))
    out += body


def varlong(value: int) -> bytes:
    """A number of at most 64 bits in zig-zag form; one of 32 bits is the same as varint."""
    if 0 <= value < KNOWN_VARINTS:
        return VARINTS[value]
    out = bytearray()
    write_varlong(out, value)
    return bytes(out)


def add_field(parts: list[Bytes], field: Bytes | None) -> None:
    """Add a length and the bytes; null is length -1."""
    if field is None:
        parts.append(NULL)
    else:
        n = len(field)
        parts.append(VARINTS[n] if n < KNOWN_VARINTS else varlong(n))
        parts.append(field)


def encode_header_key(name: str) -> bytes:
    """A header's key in UTF-8; it may be empty but not null."""
    if not isinstance(name, str):
        raise EncodeError(f"header key {name!r} is not a str")
    try:
        return name.encode()
    except UnicodeEncodeError:
        raise EncodeError(f"header key {name!r} has no UTF-8 form") from None


def join_batch(
    fields: BatchFields,
    payload: Bytes,
    *,
    base_offset: int,
    last_offset: int,
    base_timestamp: int,
    max_timestamp: int,
    count: int,
) -> bytes:
    """A batch: header, checksum and payload (the records, compressed if fields name a codec).

    Raises EncodeError when the offsets or the size do not fit.
    """
    if not 0 <= base_offset <= last_offset <= MAX_INT64 or last_offset - base_offset > MAX_INT32:
        raise EncodeError(f"offsets {base_offset} to {last_offset}: ascending int64 from 0, at most {MAX_INT32} apart")
    size = DEFAULT_HEADER.size - FRAME_BYTES + len(payload)
    if size > LARGEST_SIZE:
        raise EncodeError(f"batch of {size} bytes, {LARGEST_SIZE} at most")
    batch = bytearray(
        DEFAULT_HEADER.pack(
            base_offset,
            size,
            fields.partition_leader_epoch,
            2,
            0,
            fields.attributes,
            last_offset - base_offset,
            base_timestamp,
            max_timestamp,
            fields.producer_id,
            fields.producer_epoch,
            fields.base_sequence,
            count,
        )
    )
    batch += payload
    with memoryview(batch) as view:
        write_crc(view)
    return bytes(batch)


def write_empty_batch(
    fields: BatchFields, *, base_offset: int, last_offset: int, max_timestamp: int = NO_TIMESTAMP
) -> bytes:
    """A batch that compaction has emptied: it stands for its offsets and its producer, and holds no record (X-27).

    fields: of the batch it stands for; codec and delete horizon are dropped.
    Source: DefaultRecordBatch.writeEmptyHeader.
    """
    bare = BatchFields(
        timestamp_type=fields.timestamp_type,
        producer_id=fields.producer_id,
        producer_epoch=fields.producer_epoch,
        base_sequence=fields.base_sequence,
        is_transactional=fields.is_transactional,
        is_control=fields.is_control,
        partition_leader_epoch=fields.partition_leader_epoch,
    )
    return join_batch(
        bare,
        b"",
        base_offset=base_offset,
        last_offset=last_offset,
        base_timestamp=NO_TIMESTAMP,
        max_timestamp=max_timestamp,
        count=0,
    )
