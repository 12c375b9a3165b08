"""Build batches of any magic from records.

`write_batch` writes all records into one batch; `write_batches` splits a stream of records into batches of a size, as a
producer does; both use `BatchBuilder`, for callers who decide themselves when a batch is complete.
Source: org.apache.kafka.common.record.MemoryRecordsBuilder, clients.producer.internals.ProducerBatch,
CompressionRatioEstimator.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from itertools import islice
from operator import index
from typing import Any, NamedTuple, TypedDict, Unpack

from kwire import native
from kwire.errors import EncodeError, OptionError
from kwire.records.attributes import (
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    Compression,
    TimestampType,
)
from kwire.records.compression.compressor import check_level, compress, parse_compression
from kwire.records.format.batch_header import DEFAULT_HEADER, LARGEST_SIZE
from kwire.records.format.default_writer import MAX_INT64, BatchFields, Bytes, Headers, append_record, join_batch
from kwire.records.format.legacy_writer import append_message, legacy_attributes, message_bytes
from kwire.records.format.record import Record, factory
from kwire.records.format.wrapping import add_to_sequence

__all__ = ["DEFAULT_BATCH_SIZE", "BatchBuilder", "BatchOptions", "LargestTimestamp", "write_batch", "write_batches"]

INT64, DOUBLE = struct.Struct("q"), struct.Struct("d")
STATE = (
    *("BASE_OFFSET", "LAST_OFFSET", "HAS_BASE_TIMESTAMP", "BASE_TIMESTAMP", "COUNT", "FIXED_BYTES", "MAX_BYTES"),
    *("MAX_TIMESTAMP", "OFFSET_OF_MAX", "RATIO"),
)
BASE_OFFSET, LAST_OFFSET, HAS_BASE_TIMESTAMP, BASE_TIMESTAMP, COUNT, FIXED_BYTES, MAX_BYTES = range(7)
MAX_TIMESTAMP, OFFSET_OF_MAX, RATIO = range(7, 10)
"""Where a builder's state is in its memory, which native/records.c changes too. RATIO: the bits of a double."""
LOOK_AHEAD = 256  # records taken at once for one batch
DEFAULT_BATCH_SIZE = 16384  # bytes; the producer's batch.size

# How a producer guesses what a batch will shrink to from the batches before: slow to hope, quick to learn that data got
# worse. Source: CompressionRatioEstimator, MemoryRecordsBuilder.COMPRESSION_RATE_ESTIMATION_FACTOR.
RATIO_IMPROVING_STEP, RATIO_DETERIORATING_STEP, RATIO_SAFETY = 0.005, 0.05, 1.05


class LargestTimestamp(NamedTuple):
    """The largest timestamp of what was written (milliseconds) and the last offset of the earliest batch that has it;
    both -1 if there is none (A-26)."""

    timestamp: int
    offset: int


class BatchOptions(TypedDict, total=False):
    """Keyword arguments that all writers of batches have; see BatchBuilder."""

    level: int | None
    timestamp_type: TimestampType
    log_append_time_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    is_transactional: bool
    partition_leader_epoch: int


class BatchBuilder:
    """Collects records into one batch (magic 0 or 1 uncompressed: one message each).

    magic: 0, 1 or 2. compression, level: as in Kafka's configs compression.type and compression.<codec>.level.
    base_offset: of the first record, unless records are appended with offsets.
    log_append_time_ms: with timestamp_type LOG_APPEND_TIME, the time of the whole batch.
    max_bytes: maximum size of the batch, frame included; the first record is always accepted. None: the limit of the
    format. compression_ratio: expected compressed size per byte, to estimate the size.
    Other options: see BatchFields; for magic 2 only.
    Raises EncodeError for what the magic does not support, OptionError for an unknown codec or level.
    """

    def __init__(
        self,
        *,
        magic: int = 2,
        compression: str | Compression = Compression.NONE,
        level: int | None = None,
        base_offset: int = 0,
        timestamp_type: TimestampType = TimestampType.CREATE_TIME,
        log_append_time_ms: int = NO_TIMESTAMP,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        base_sequence: int = NO_SEQUENCE,
        is_transactional: bool = False,
        is_control: bool = False,
        partition_leader_epoch: int = NO_LEADER_EPOCH,
        delete_horizon_ms: int | None = None,
        max_bytes: int | None = None,
        compression_ratio: float = 1.0,
    ) -> None:
        if magic not in (0, 1, 2):
            raise OptionError(f"unsupported magic {magic}; expected 0, 1 or 2")
        codec = parse_compression(compression)
        if not 0 <= base_offset <= MAX_INT64:
            raise EncodeError(f"base_offset {base_offset} is out of range: 0 to {MAX_INT64}")
        check_timestamp(log_append_time_ms)
        if magic < 2:
            check_legacy(magic, codec, is_transactional, is_control, delete_horizon_ms)
            timestamp_type = max(timestamp_type, TimestampType.CREATE_TIME) if magic else timestamp_type
        self.magic, self.codec, self.level = magic, codec, check_level(codec, level)
        self.base_offset, self.log_append_time_ms = base_offset, log_append_time_ms
        self.timestamp_type = timestamp_type
        self.fields = (
            BatchFields(
                compression=codec,
                timestamp_type=timestamp_type,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                base_sequence=base_sequence,
                is_transactional=is_transactional,
                is_control=is_control,
                partition_leader_epoch=partition_leader_epoch,
                delete_horizon_ms=delete_horizon_ms,
            )
            if magic == 2
            else None
        )
        self._ratio = compression_ratio * RATIO_SAFETY if codec else 1.0
        self._out = bytearray()
        self._memory = bytearray(8 * len(STATE))
        self._state = state = memoryview(self._memory).cast("q")
        if delete_horizon_ms is not None:  # else the base timestamp is that of the first record
            state[HAS_BASE_TIMESTAMP], state[BASE_TIMESTAMP] = 1, delete_horizon_ms
        state[BASE_OFFSET], state[LAST_OFFSET] = base_offset, -1
        state[MAX_TIMESTAMP], state[OFFSET_OF_MAX] = NO_TIMESTAMP, -1
        state[FIXED_BYTES] = DEFAULT_HEADER.size if magic == 2 else message_bytes(magic, None, None) if codec else 0
        state[MAX_BYTES] = LARGEST_SIZE if max_bytes is None else min(max_bytes, MAX_INT64)
        (state[RATIO],) = INT64.unpack(DOUBLE.pack(self._ratio))
        self._is_compiled = magic == 2 and factory() is not None

    @property
    def count(self) -> int:
        """Number of records."""
        return self._state[COUNT]

    @property
    def next_offset(self) -> int:
        """The offset of the next record."""
        return self._state[LAST_OFFSET] + 1 if self.count else self.base_offset

    @property
    def estimated_bytes(self) -> int:
        """Current size of the batch with its frame; estimated by compression_ratio if there is a codec."""
        return self._state[FIXED_BYTES] + int(len(self._out) * self._ratio)

    @property
    def largest_timestamp(self) -> LargestTimestamp:
        """The largest timestamp and its offset, for the time index (A-26)."""
        alone = self.codec == Compression.NONE and self.magic < 2  # every record is its own batch
        last_offset, max_timestamp = self._state[LAST_OFFSET], self._state[MAX_TIMESTAMP]
        if self.timestamp_type == TimestampType.LOG_APPEND_TIME:
            return LargestTimestamp(self.log_append_time_ms, self.base_offset if alone else last_offset)
        if max_timestamp == NO_TIMESTAMP:
            return LargestTimestamp(NO_TIMESTAMP, -1)
        return LargestTimestamp(max_timestamp, self._state[OFFSET_OF_MAX] if alone else last_offset)

    def append(
        self,
        key: Bytes | None,
        value: Bytes | None,
        *,
        timestamp: int = NO_TIMESTAMP,
        headers: Headers = (),
        offset: int | None = None,
    ) -> bool:
        """Add a record; returns False without adding it if the batch would exceed max_bytes.

        timestamp: milliseconds since 1970, or -1. offset: above the previous one; default the next one.
        Raises EncodeError for a value that does not fit the format.
        """
        if self._is_compiled and native.append_record(self._memory, self._out, key, value, timestamp, headers, offset):
            return True
        state = self._state
        timestamp, offset = integer_of(timestamp, "timestamp"), None if offset is None else integer_of(offset, "offset")
        count, following = state[COUNT], self.next_offset
        offset = following if offset is None else offset
        if offset < 0:
            raise EncodeError(f"offset {offset} is negative")
        if offset < following:
            raise EncodeError(f"offset {offset} is not above the previous one, {following - 1}")
        if offset > MAX_INT64:
            raise EncodeError(f"offset {offset} is above {MAX_INT64}")
        check_timestamp(timestamp)
        key, value, headers = bytes_of(key, "key"), bytes_of(value, "value"), pairs_of(headers)
        record = bytearray()
        if self.magic == 2:
            base = state[BASE_TIMESTAMP] if state[HAS_BASE_TIMESTAMP] else timestamp
            append_record(
                record,
                offset_delta=offset - self.base_offset,
                timestamp_delta=timestamp - base,
                key=key,
                value=value,
                headers=headers,
            )
        else:
            base, timestamp = NO_TIMESTAMP, self._append_message(record, key, value, timestamp, headers, offset)
        if state[COUNT] != count:
            raise EncodeError("the batch was appended to while a record was converted; use one thread for a batch")
        if count and self.estimated_bytes + len(record) > state[MAX_BYTES]:
            return False
        self._out += record
        state[HAS_BASE_TIMESTAMP], state[BASE_TIMESTAMP] = 1, base
        if self.magic and timestamp > state[MAX_TIMESTAMP]:
            state[MAX_TIMESTAMP], state[OFFSET_OF_MAX] = timestamp, offset
        state[LAST_OFFSET] = offset
        state[COUNT] += 1
        return True

    def extend(self, records: list[Record], start: int = 0, *, keep_offsets: bool = False) -> int:
        """Add records[start:] up to the first one that would exceed max_bytes; returns its index.

        keep_offsets: with their offsets; otherwise they are numbered. Raises EncodeError as `append`.
        """
        while start < len(records):
            if self._is_compiled:
                start = native.append_records(self._memory, self._out, factory(), records, start, keep_offsets)
            if start < len(records):
                if not append_whole(self, records[start], keep_offsets):
                    break  # it does not fit
                start += 1  # it had fields that compiled code leaves to Python
        return start

    def _append_message(
        self, out: bytearray, key: Bytes | None, value: Bytes | None, timestamp: int, headers: Headers, offset: int
    ) -> int:
        """Write a message of magic 0 or 1 to `out`; returns its timestamp."""
        if headers:
            raise EncodeError(f"Magic v{self.magic} does not support record headers")
        if self.timestamp_type == TimestampType.LOG_APPEND_TIME:
            timestamp = self.log_append_time_ms
        append_message(
            out,
            self.magic,
            offset=offset - self.base_offset if self.codec and self.magic else offset,
            attributes=legacy_attributes(self.magic, Compression.NONE, self.timestamp_type),
            timestamp=timestamp,
            key=key,
            value=value,
        )
        return timestamp

    def build(self, *, last_offset: int | None = None) -> bytes:
        """Return the batch, b"" without records. May be called again after more records.

        last_offset: of the batch, if it must cover offsets after its last record that compaction removed (magic 2).
        """
        if not self.count:
            return b""
        append_time = self.timestamp_type == TimestampType.LOG_APPEND_TIME
        max_timestamp = self.log_append_time_ms if append_time else self._state[MAX_TIMESTAMP]
        payload = compress(self.codec, self._out, magic=self.magic, level=self.level)
        if self.fields is None:
            return self._wrap(payload, max_timestamp) if self.codec else payload
        return join_batch(
            self.fields,
            payload,
            base_offset=self.base_offset,
            last_offset=self._state[LAST_OFFSET] if last_offset is None else last_offset,
            base_timestamp=self._state[BASE_TIMESTAMP],
            max_timestamp=max_timestamp,
            count=self.count,
        )

    def _wrap(self, payload: bytes, timestamp: int) -> bytes:
        """Wrap the messages in a compressed message."""
        out = bytearray()
        append_message(
            out,
            self.magic,
            offset=self._state[LAST_OFFSET],
            attributes=legacy_attributes(self.magic, self.codec, self.timestamp_type),
            timestamp=timestamp,
            key=None,
            value=payload,
        )
        return bytes(out)

    def observed_ratio(self, batch: bytes) -> float:
        """Return the compression ratio of a batch that this builder has built."""
        return (len(batch) - self._state[FIXED_BYTES]) / max(len(self._out), 1)


def bytes_of(value: Bytes | None, *path: str | int) -> Bytes | None:
    """Return a key or value whose length is its number of bytes. Raises EncodeError for anything but bytes."""
    if value is None or isinstance(value, bytes | bytearray):
        return value
    if not isinstance(value, memoryview):
        raise EncodeError(f"expected bytes or None, got {type(value).__name__}", path)
    return value if value.ndim == 1 and value.itemsize == 1 and value.contiguous else value.tobytes()


def integer_of(value: int, name: str) -> int:
    """Return an integer, also one of NumPy. Raises EncodeError for anything else."""
    try:
        return index(value)
    except TypeError:
        raise EncodeError(f"expected an integer, got {value!r}", (name,)) from None


def pairs_of(headers: object) -> list[tuple[str, Any]]:
    """Return headers whose values are bytes. Raises EncodeError for anything but pairs of key and value."""
    if headers is None:
        raise EncodeError("headers is None; use an empty list for a record without headers")
    if isinstance(headers, str | bytes) or not isinstance(headers, Iterable):
        raise EncodeError(f"expected pairs of key and value, got {headers!r}", ("headers",))
    pairs = []
    for number, each in enumerate(headers):
        if not isinstance(each, tuple | list) or len(each) != 2:
            raise EncodeError(f"expected a pair of key and value, got {each!r}", ("headers", number))
        pairs.append((each[0], bytes_of(each[1], "headers", number, "value")))
    return pairs


def check_timestamp(timestamp: int) -> None:
    """Raise EncodeError unless timestamp is -1, or from 1970 on and fits the field."""
    if not NO_TIMESTAMP <= timestamp <= MAX_INT64:
        raise EncodeError(f"timestamp {timestamp} is out of range: 0 to {MAX_INT64} ms since 1970, or -1 for none")


def check_legacy(
    magic: int, codec: Compression, is_transactional: bool, is_control: bool, delete_horizon_ms: int | None
) -> None:
    """Raise EncodeError for what magic 0 and 1 do not support. Producer ids are silently dropped, as in Kafka."""
    for said, what in (
        (is_transactional, "transactional records"),
        (is_control, "control records"),
        (delete_horizon_ms is not None, "a delete horizon"),
        (codec == Compression.ZSTD, "zstd"),
    ):
        if said:
            raise EncodeError(f"magic {magic} does not support {what}")


def write_batch(
    records: Iterable[Record],
    magic: int = 2,
    compression: str | Compression = "none",
    base_offset: int = 0,
    *,
    is_control: bool = False,
    delete_horizon_ms: int | None = None,
    keep_offsets: bool = False,
    last_offset: int | None = None,
    **options: Unpack[BatchOptions],
) -> bytes:
    """One batch of all the records (magic 0 or 1 uncompressed: a message each); no bytes without records.

    Of a record, key, value, headers and timestamp are written. keep_offsets: its offset too, so that there may be gaps
    (base_offset is then at most the first one); otherwise records are numbered from base_offset on. options: of
    BatchBuilder.
    Raises EncodeError, OptionError.
    """
    builder = BatchBuilder(
        magic=magic,
        compression=compression,
        base_offset=base_offset,
        is_control=is_control,
        delete_horizon_ms=delete_horizon_ms,
        **options,
    )
    for some in lists_of(records, LOOK_AHEAD):
        if builder.extend(some, keep_offsets=keep_offsets) < len(some):
            raise EncodeError(f"the records exceed the maximum batch size of {LARGEST_SIZE} bytes")
    return builder.build(last_offset=last_offset)


def lists_of(records: Iterable[Record], at_once: int) -> Iterator[list[Record]]:
    """Return a list as it is, other records in lists of `at_once`."""
    if isinstance(records, list):
        yield records
        return
    source = iter(records)
    while some := list(islice(source, at_once)):
        yield some


def append_whole(builder: BatchBuilder, record: Record, keep_offset: bool) -> bool:
    """Append a record with its offset, or the next one."""
    offset = record.offset if keep_offset else None
    return builder.append(record.key, record.value, timestamp=record.timestamp, headers=record.headers, offset=offset)


def write_batches(
    records: Iterable[Record],
    *,
    batch_size: int = DEFAULT_BATCH_SIZE,
    magic: int = 2,
    compression: str | Compression = "none",
    base_offset: int = 0,
    **options: Unpack[BatchOptions],
) -> Iterator[bytes]:
    """Write a stream of records as batches of at most batch_size bytes, with offsets from base_offset on.

    A larger record gets a separate batch. With a codec the size is estimated from earlier batches, so a batch may
    exceed batch_size when data suddenly compresses worse. Sequence numbers continue from batch to batch.
    Holds one batch in memory; lingering is up to the caller.
    Raises EncodeError, OptionError.
    """
    codec, ratio = parse_compression(compression), 1.0
    offset, sequence = base_offset, options.get("base_sequence", NO_SEQUENCE)

    def start() -> BatchBuilder:
        options["base_sequence"] = sequence
        return BatchBuilder(
            magic=magic,
            compression=codec,
            base_offset=offset,
            max_bytes=batch_size,
            compression_ratio=ratio,
            **options,
        )

    builder = start()
    for some in lists_of(records, 1):  # a batch is returned before the record after the next is asked for
        done = builder.extend(some)
        while done < len(some):
            batch = builder.build()
            yield batch
            if codec:
                ratio = learn_ratio(ratio, builder.observed_ratio(batch))
            offset = builder.next_offset
            if sequence != NO_SEQUENCE:
                sequence = add_to_sequence(sequence, builder.count)
            builder = start()
            done = builder.extend(some, done)
    if builder.count:
        yield builder.build()


def learn_ratio(expected: float, observed: float) -> float:
    """Update the expected compression ratio for the next batch."""
    if observed > expected:
        return max(expected + RATIO_DETERIORATING_STEP, observed)
    return max(expected - RATIO_IMPROVING_STEP, observed)
