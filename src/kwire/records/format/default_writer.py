"""Write records, batches and empty batches of magic 2. For the layout see default_batch.

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
from kwire.records.format.batch_header import DEFAULT_HEADER, FRAME_BYTES, LARGEST_RECORD, LARGEST_SIZE, write_crc
from kwire.records.format.wrapping import to_int64
from kwire.wire.varint import write_varlong

__all__ = ["BatchFields", "append_record", "join_batch", "write_empty_batch"]

Bytes = bytes | bytearray | memoryview
Headers = Iterable[tuple[str, bytes | None]]

MAX_INT64, MAX_INT32, MAX_INT16 = 2**63 - 1, 2**31 - 1, 2**15 - 1
NO_ATTRIBUTES = b"\0"
NULL = b"\1"  # length -1 in zig-zag
KNOWN_VARINTS = 8192  # numbers of at most two bytes, which most are
VARINTS = [bytes((n << 1,)) if n < 64 else bytes((n << 1 & 0x7F | 0x80, n >> 6)) for n in range(KNOWN_VARINTS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFields:
    """Header fields of a batch of magic 2 that do not depend on its records; -1 for none.

    delete_horizon_ms: when tombstones of the batch may be removed; stored in place of the base timestamp.
    Raises EncodeError if the fields contradict each other (R-34) or do not fit.
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
            raise EncodeError("timestamp_type is missing; batches above magic 0 need one")
        if self.is_transactional and self.producer_id == NO_PRODUCER_ID:
            raise EncodeError("producer_id is missing; a transactional batch needs one")
        if self.producer_id != NO_PRODUCER_ID:
            if self.producer_epoch == NO_PRODUCER_EPOCH:
                raise EncodeError("producer_epoch is missing; a batch with a producer_id needs one")
            if self.base_sequence == NO_SEQUENCE and not self.is_control:
                raise EncodeError(
                    "base_sequence is missing; a batch with a producer_id needs one, unless it is a control batch"
                )

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
        raise EncodeError(f"{name} {value} is out of range: -1 to {largest}")


def append_record(
    out: bytearray,
    offset_delta: int,
    timestamp_delta: int,
    key: Bytes | None,
    value: Bytes | None,
    headers: Headers = (),
) -> None:
    """Append one record. offset_delta: 0 to 2**31 - 1. timestamp_delta: milliseconds, taken modulo 2**64.

    Raises EncodeError for a number or length that does not fit, or a header key that is not a str; then nothing is
    appended. Lengths are checked before anything is copied.
    """
    if not 0 <= offset_delta <= MAX_INT32:
        raise EncodeError(f"offset delta {offset_delta} is out of range: 0 to {MAX_INT32}")
    size = (len(key) if key is not None else 0) + (len(value) if value is not None else 0)
    if size > LARGEST_RECORD:
        raise EncodeError(f"record with key and value of {size} bytes exceeds the maximum of {LARGEST_RECORD}")
    if headers is None:
        raise EncodeError("headers is None; use an empty list for a record without headers")
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
            raise EncodeError(f"record with a header of {len(parts[-1])} bytes exceeds the maximum of {LARGEST_RECORD}")
    body = b"".join(parts)
    if len(body) > LARGEST_RECORD:
        raise EncodeError(f"record of {len(body)} bytes exceeds the maximum of {LARGEST_RECORD}")
    out += varlong(len(body))
    out += body


def varlong(value: int) -> bytes:
    """Encode a number of at most 64 bits with zig-zag; for 32 bits this equals a varint."""
    if 0 <= value < KNOWN_VARINTS:
        return VARINTS[value]
    out = bytearray()
    write_varlong(out, value)
    return bytes(out)


def add_field(parts: list[Bytes], field: Bytes | None) -> None:
    """Append a length and the bytes; null is length -1."""
    if field is None:
        parts.append(NULL)
    else:
        n = len(field)
        parts.append(VARINTS[n] if n < KNOWN_VARINTS else varlong(n))
        parts.append(field)


def encode_header_key(name: str) -> bytes:
    """Encode a header key in UTF-8; it may be empty but not null."""
    if not isinstance(name, str):
        raise EncodeError(f"header key {name!r} is not a str")
    try:
        return name.encode()
    except UnicodeEncodeError:
        raise EncodeError(f"header key {name!r} cannot be encoded as UTF-8") from None


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
    """Create a batch from header fields and payload (the records, compressed if fields name a codec).

    Raises EncodeError if the offsets or the size do not fit.
    """
    if not 0 <= base_offset <= last_offset <= MAX_INT64 or last_offset - base_offset > MAX_INT32:
        raise EncodeError(f"offsets {base_offset} to {last_offset}: ascending int64 from 0, at most {MAX_INT32} apart")
    size = DEFAULT_HEADER.size - FRAME_BYTES + len(payload)
    if size > LARGEST_SIZE:
        raise EncodeError(f"batch of {size} bytes exceeds the maximum of {LARGEST_SIZE}")
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
    """Write an empty batch, which keeps the offsets and the producer of a batch that compaction emptied (X-27).

    fields: of the original batch; codec and delete horizon are dropped.
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
