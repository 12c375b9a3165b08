"""Conversion of batches: down for old clients, up for logs with a single format.

`down_convert` does what a broker does for an old fetch request, byte for byte. `lost` counts what the older format
cannot hold. `up_convert` rewrites a log and loses nothing. Neither changes an offset.

    lost by going down             from     to
    headers                        2        0, 1
    control batches                2        0, 1     consumers never see their records
    producer ids and sequences     2        0, 1
    leader epochs                  2        0, 1
    batches that are empty         2        0, 1     what compaction has left of a batch
    records below first_offset     1, 2     0, 1     of uncompressed batches: there every record is one by itself
    timestamps                     1, 2     0

zstd does not exist below magic 2, and is refused.
Source: KIP-31, KIP-32, KIP-110, KIP-283; org.apache.kafka.common.record.RecordsUtil.downConvert 3.9.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from kwire import native
from kwire.errors import EncodeError, OptionError
from kwire.extras import is_installed
from kwire.records.attributes import NO_LEADER_EPOCH, NO_PRODUCER_ID, NO_TIMESTAMP, Compression, TimestampType
from kwire.records.compression.codecs import DEFAULT_MAX_DECOMPRESSED_BYTES
from kwire.records.compression.compressor import KAFKA_LEVELS
from kwire.records.format.append_error import AppendErrorCode, RejectedRecords
from kwire.records.format.batch import Batch
from kwire.records.format.builder import BatchBuilder
from kwire.records.format.default_writer import MAX_INT32
from kwire.records.format.record import Record
from kwire.records.format.record_set import byte_view, read_batches

if TYPE_CHECKING:
    from kwire.records.convert.column_conversion import ConvertedRun

__all__ = ["DEFAULT_UP_CONVERTED_BYTES", "Converted", "Lost", "down_convert", "up_convert"]

SMALLEST_OFFSET = -(2**63)
FEW_BYTES = 4096  # fewer are converted as objects: columns have a fixed cost of 0.3 ms
DEFAULT_UP_CONVERTED_BYTES = 1_000_000  # of records in one new batch: below the default max.message.bytes of a topic


@dataclass(slots=True, kw_only=True)
class Lost:
    """Counts of what the older format cannot hold, in records or batches."""

    records_with_headers: int = 0
    control_batches: int = 0
    batches_with_producer: int = 0
    batches_with_leader_epoch: int = 0
    empty_batches: int = 0
    records_below_first_offset: int = 0
    records_with_timestamp: int = 0


class Converted(bytes):
    """The converted batches as bytes, and statistics of the conversion.

    records_converted: records that were rewritten; the others were copied with their batches.
    """

    records_converted: int
    lost: Lost

    def __new__(cls, data: bytes | bytearray, records_converted: int = 0, lost: Lost | None = None) -> Converted:
        converted = super().__new__(cls, data)
        converted.records_converted = records_converted
        converted.lost = lost or Lost()
        return converted

    def __getnewargs__(self) -> tuple[bytes, int, Lost]:  # type: ignore[override]  # pickle and copy take any tuple
        return bytes(self), self.records_converted, self.lost


def down_convert(
    buf: bytes | bytearray | memoryview,
    to_magic: int,
    first_offset: int = 0,
    *,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> Converted:
    """Convert batches to magic to_magic (0, 1 or 2) at most, as a broker does for an older fetch request.

    A batch whose magic is low enough is copied; codecs stay. first_offset: the fetch offset; records below it are left
    out of uncompressed batches that are converted. A batch that buf cuts off is dropped.
    Raises RejectedRecords (UNSUPPORTED_COMPRESSION_TYPE) for zstd, CorruptBatch for a batch that does not decode.
    """
    check_magic(to_magic)
    view = byte_view(buf)
    out, lost, converted = bytearray(), Lost(), 0
    limits = Limits(max_batch_bytes=0, max_decompressed_bytes=max_decompressed_bytes)
    for start, end, run in runs_by_columns(view, to_magic, first_offset, limits, down=True):
        if run is not None:
            out += run.data
            converted += run.records
            lost.records_with_headers += run.with_headers
            lost.records_with_timestamp += run.with_timestamp if to_magic == 0 else 0
            lost.batches_with_producer += run.with_producer
            lost.batches_with_leader_epoch += run.with_leader_epoch
            continue
        for batch in read_batches(view[start:end], position=start, max_decompressed_bytes=max_decompressed_bytes):
            converted += down_convert_batch(out, lost, batch, to_magic, first_offset)
    return Converted(out, converted, lost)


def down_convert_batch(out: bytearray, lost: Lost, batch: Batch, to_magic: int, first_offset: int) -> int:
    """Append a batch in the older format to out; returns the number of converted records."""
    if to_magic < 2 and batch.is_control:
        lost.control_batches += 1
        return 0
    if to_magic < 2 and batch.compression == Compression.ZSTD:
        raise RejectedRecords(
            "Down-conversion of zstandard-compressed batches is not supported",
            AppendErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        )
    if batch.magic <= to_magic:
        out += batch.buffer
        return 0
    records = list(batch.records())
    kept = [r for r in records if batch.compression or r.offset >= first_offset]
    count_lost(lost, batch, records, kept, to_magic)
    if kept:
        out += rewrite(batch, kept, to_magic)
    return len(kept)


def count_lost(lost: Lost, batch: Batch, records: list[Record], kept: list[Record], to_magic: int) -> None:
    """Count what a batch loses."""
    lost.records_below_first_offset += len(records) - len(kept)
    lost.empty_batches += not records
    if kept and batch.magic == 2:
        lost.batches_with_producer += batch.producer_id != NO_PRODUCER_ID
        lost.batches_with_leader_epoch += batch.partition_leader_epoch != NO_LEADER_EPOCH
        lost.records_with_headers += sum(1 for record in kept if record.headers)
    if to_magic == 0:
        lost.records_with_timestamp += sum(1 for record in kept if record.timestamp != NO_TIMESTAMP)


def rewrite(batch: Batch, records: list[Record], magic: int) -> bytes:
    """Rewrite a batch with a lower magic, the same codec at Kafka's level and the same offsets (U-13, U-14)."""
    append_time = batch.timestamp_type == TimestampType.LOG_APPEND_TIME
    try:
        builder = BatchBuilder(
            magic=magic,
            compression=batch.compression,
            level=KAFKA_LEVELS.get(batch.compression),
            base_offset=records[0].offset,
            timestamp_type=batch.timestamp_type,
            log_append_time_ms=batch.max_timestamp if append_time else NO_TIMESTAMP,
        )
        for record in records:
            builder.append(record.key, record.value, timestamp=record.timestamp, offset=record.offset)
        return builder.build()
    except EncodeError as error:  # offsets that do not ascend, timestamps before 1970: no writer makes them
        raise batch.corrupt(error.what) from None


def up_convert(
    buf: bytes | bytearray | memoryview,
    to_magic: int,
    *,
    max_batch_bytes: int = DEFAULT_UP_CONVERTED_BYTES,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> Converted:
    """Convert batches to magic to_magic (0, 1 or 2) at least; nothing is lost, offsets and codecs stay.

    Magic 0 gets the timestamp -1 of CREATE_TIME (U-20). A compressed message becomes one batch; uncompressed messages
    that follow one another become batches of up to max_batch_bytes in magic 2, and separate messages in magic 1.
    A batch whose magic is high enough is copied; a batch that buf cuts off is dropped.
    Raises CorruptBatch for a batch that does not decode.
    """
    check_magic(to_magic)
    view = byte_view(buf)
    out, converted = bytearray(), 0
    limits = Limits(max_batch_bytes=max_batch_bytes, max_decompressed_bytes=max_decompressed_bytes)
    for start, end, run in runs_by_columns(view, to_magic, SMALLEST_OFFSET, limits, down=False):
        if run is not None:
            out += run.data
            converted += run.records
        else:
            converted += up_convert_objects(out, view[start:end], to_magic, start, limits)
    return Converted(out, converted)


def up_convert_objects(out: bytearray, view: memoryview, to_magic: int, position: int, limits: Limits) -> int:
    """Append batches in the newer format to out, through records; returns the number of converted records."""
    converted = 0
    open_run: Run | None = None
    for batch in read_batches(view, position=position, max_decompressed_bytes=limits.max_decompressed_bytes):
        if open_run is not None and not open_run.takes(batch, limits.max_batch_bytes):
            out += open_run.builder.build()
            open_run = None
        if batch.magic >= to_magic:
            out += batch.buffer
            continue
        records = list(batch.records())
        converted += len(records)
        try:
            if open_run is None:
                open_run = Run.start(batch, records[0].offset, to_magic)
            for record in records:
                open_run.builder.append(record.key, record.value, timestamp=record.timestamp, offset=record.offset)
        except EncodeError as error:
            raise batch.corrupt(error.what) from None
    if open_run is not None:
        out += open_run.builder.build()
    return converted


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of these names of up_convert."""

    max_batch_bytes: int
    max_decompressed_bytes: int


class Run(msgspec.Struct, frozen=True):
    """A new batch that collects uncompressed messages as long as they fit in one batch."""

    builder: BatchBuilder
    first: Batch

    @classmethod
    def start(cls, batch: Batch, base_offset: int, magic: int) -> Run:
        """Start a run with this batch."""
        append_time = batch.timestamp_type == TimestampType.LOG_APPEND_TIME
        builder = BatchBuilder(
            magic=magic,
            compression=batch.compression,
            base_offset=base_offset,
            timestamp_type=max(batch.timestamp_type, TimestampType.CREATE_TIME),
            log_append_time_ms=batch.max_timestamp if append_time else NO_TIMESTAMP,
        )
        return cls(builder, batch)

    def takes(self, batch: Batch, max_batch_bytes: int) -> bool:
        """Whether a batch can be added to this run: uncompressed, same magic and timestamp type, and enough room."""
        first = self.first
        if self.builder.magic != 2 or first.compression or batch.compression or batch.magic != first.magic:
            return False
        if batch.timestamp_type != first.timestamp_type or not self.builder.next_offset <= batch.last_offset:
            return False
        if batch.timestamp_type == TimestampType.LOG_APPEND_TIME and batch.max_timestamp != first.max_timestamp:
            return False  # magic 2 has one append time for all
        if batch.last_offset - self.builder.base_offset > MAX_INT32:
            return False
        return self.builder.estimated_bytes + batch.size_bytes <= max_batch_bytes


def runs_by_columns(
    view: memoryview, to_magic: int, first_offset: int, limits: Limits, *, down: bool
) -> Iterator[tuple[int, int, ConvertedRun | None]]:
    """Yield (start, end, result) of runs of batches; without a result they are left to the object path."""
    if native.LEVEL is None or len(view) < FEW_BYTES or not is_installed("pyarrow"):
        yield 0, len(view), None
        return
    from kwire.records.convert.column_conversion import convert_span, spans_to_convert

    for span in spans_to_convert(view, to_magic, first_offset, down=down):
        yield from convert_span(
            view,
            span,
            to_magic,
            max_batch_bytes=limits.max_batch_bytes,
            max_decompressed_bytes=limits.max_decompressed_bytes,
        )


def check_magic(to_magic: int) -> None:
    """Raise OptionError unless to_magic is 0, 1 or 2."""
    if to_magic not in (0, 1, 2):
        raise OptionError(f"unsupported to_magic {to_magic}; expected 0, 1 or 2")
