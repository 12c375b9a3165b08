"""Conversion of the batches of a log to another magic or codec. Offsets, and all that the format can hold, are kept.

    already in the format    copied byte for byte
    magic 2, another codec   header kept (producer, sequences, epochs, flags, horizon, timestamps), payload recompressed
                             without parsing; control batches and emptied ones are copied
    another magic            by columns (column_conversion), with records of neighboring batches merged
    anything else            through magic 2: up_convert, recompress, down_convert

Magic 0 and 1 have no transactions. Records of aborted transactions would become readable, so they are dropped and
counted. Records of open transactions are kept and counted: nothing will abort them. Checksums are verified first, so
that damage does not get a valid checksum.
Source: rules R-36, R-37, A-23, 5.2, 5.3 of spec/records.md; KIP-98.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace

from kwire.errors import OptionError
from kwire.maintenance.convert.column_conversion import ColumnConversion, supports_columns
from kwire.records import Batch, Compression, down_convert, read_batches, up_convert
from kwire.records.attributes import CODEC_MASK
from kwire.records.compression.compressor import compress
from kwire.records.convert.conversion import Lost
from kwire.records.format.append_error import RejectedRecords
from kwire.records.format.batch_header import (
    ATTRIBUTES_POSITION,
    DEFAULT_HEADER,
    FRAME_BYTES,
    SIZE,
    SIZE_POSITION,
    write_crc,
)
from kwire.storage.free_space import SMALLEST_SHARE

__all__ = ["BatchConverter", "Loss", "TargetFormat", "recompress"]

RUN_BYTES = 4 << 20  # source bytes converted together
COPY, OBJECTS = -2, -1  # how to convert a batch; a codec means by columns
ATTRIBUTES = struct.Struct(">h")


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetFormat:
    """The format to convert to: magic 0, 1 or 2, and codec; None keeps each. level: of the codec, or None."""

    magic: int | None = None
    codec: Compression | None = None
    level: int | None = None

    def least_bytes(self, size_bytes: int) -> int:
        """Return the minimum size of logs of size_bytes in this format."""
        keeps_size = self.magic is None and self.codec in (None, Compression.NONE)
        return size_bytes if keeps_size else size_bytes // SMALLEST_SHARE

    def __post_init__(self) -> None:
        if self.magic not in (None, 0, 1, 2):
            raise OptionError(f"magic {self.magic}: expected 0, 1 or 2")
        if self.codec == Compression.ZSTD and self.magic in (0, 1):
            raise OptionError(f"zstd is not supported by magic {self.magic}; choose another codec")

    def has(self, batch: Batch) -> bool:
        """Return whether a batch is in this format."""
        if self.magic is not None and batch.magic != self.magic:
            return False
        if batch.is_control or (batch.magic == 2 and not batch.count):
            return True
        return self.codec is None or batch.compression == self.codec


@dataclass(slots=True, kw_only=True)
class Loss:
    """Loss of a conversion, in records or batches; see kwire.records.convert.conversion for the first six.

    records_of_aborted_transactions: dropped. records_of_open_transactions: kept, and readable afterwards.
    """

    records_with_headers: int = 0
    records_with_timestamp: int = 0
    control_batches: int = 0
    batches_with_producer: int = 0
    batches_with_leader_epoch: int = 0
    empty_batches: int = 0
    records_of_aborted_transactions: int = 0
    records_of_open_transactions: int = 0

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) for field in fields(self))

    def add(self, lost: Lost | Loss) -> None:
        """Add the loss of a part."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(lost, field.name, 0))

    def described(self) -> str:
        """Return `3 control batches, 20 records with headers`, or "nothing"."""
        return (
            ", ".join(
                f"{getattr(self, field.name)} {field.name.replace('_', ' ')}"
                for field in fields(self)
                if getattr(self, field.name)
            )
            or "nothing"
        )


class BatchConverter:
    """Converter of the batches of one partition, in order, over any number of calls.

    batches, records, largest_batch_bytes: of the result. is_aborted: whether a batch is of an aborted transaction;
    called for targets below magic 2 only.
    """

    def __init__(self, target: TargetFormat, is_aborted: Callable[[Batch], bool]) -> None:
        self.target, self._loss, self._is_aborted = target, Loss(), is_aborted
        self.records = self.batches = self.largest_batch_bytes = 0
        self._open: dict[int, int] = {}  # producer id -> records of its open transaction
        self._is_lossy = target.magic is not None and target.magic < 2
        self._columns: ColumnConversion | None = None

    def convert(self, batches: Iterable[Batch]) -> Iterator[bytes]:
        """Yield converted batches in chunks of some MB. Raises CorruptBatch; OptionError if zstd is not supported."""
        run: list[Batch] = []
        size = 0
        for batch in batches:
            batch.check()
            if self._is_lossy and self._is_dropped(batch):
                continue
            run.append(batch)
            size += batch.size_bytes
            if size >= RUN_BYTES:
                yield self._converted(run)
                run, size = [], 0
        if run:
            yield self._converted(run)

    @property
    def loss(self) -> Loss:
        """The loss so far; transactions without an end count as open."""
        return replace(self._loss, records_of_open_transactions=sum(self._open.values()))

    def _is_dropped(self, batch: Batch) -> bool:
        """Return whether a batch is dropped below magic 2, and count transactions."""
        if batch.is_control:
            self._open.pop(batch.producer_id, None)
        elif batch.is_transactional:
            if self._is_aborted(batch):
                self._loss.records_of_aborted_transactions += batch.count or 0
                return True
            self._open[batch.producer_id] = self._open.get(batch.producer_id, 0) + (batch.count or 0)
        return False

    def _converted(self, run: list[Batch]) -> bytes:
        """Return a run of batches in the target format."""
        out = bytearray()
        for kind, group in itertools.groupby(run, self._kind_of):
            batches = list(group)
            data = b"".join(batch.buffer for batch in batches)
            if kind == COPY:
                out += data
                self.records += sum(map(count_of, batches))
            else:
                out += self._by_columns(batches, data, kind) or self._rewritten(batches, data)
        for batch in read_batches(out):
            self.batches += 1
            self.largest_batch_bytes = max(self.largest_batch_bytes, batch.size_bytes)
        return bytes(out)

    def _kind_of(self, batch: Batch) -> int:
        """Return COPY, OBJECTS, or the codec of batches converted by columns."""
        target = self.target
        if target.has(batch):
            return COPY
        if target.magic is None or not supports_columns(batch, target.magic):
            return OBJECTS
        codec = batch.compression if target.codec is None else target.codec
        return OBJECTS if codec == Compression.ZSTD and target.magic < 2 else codec

    def _by_columns(self, run: list[Batch], data: bytes, kind: int) -> bytes:
        """Convert batches to another magic by columns; returns no bytes if that is not possible."""
        if kind == OBJECTS:
            return b""
        if self._columns is None:
            assert self.target.magic is not None
            self._columns = ColumnConversion(self.target.magic, self.target.level)
        converted = self._columns.convert(run, data, Compression(kind))
        if converted is None:
            return b""
        self._loss.add(converted.lost)
        self.records += converted.records
        return converted.data

    def _rewritten(self, run: list[Batch], data: bytes) -> bytes:
        """Convert batches through magic 2: up, another codec, down."""
        target = self.target
        magic = target.magic if target.magic is not None else run[0].magic
        if any(batch.magic < 2 for batch in run):
            if target.magic is None and any(batch.magic != magic for batch in run):
                return b"".join(self._rewritten([batch], bytes(batch.buffer)) for batch in run)
            data = up_convert(data, 2)
        if target.codec is not None:
            data = b"".join(recompress(batch, target.codec, target.level) for batch in read_batches(data))
        if magic == 2:
            self.records += sum(batch.count or 0 for batch in read_batches(data))
            return data
        try:
            converted = down_convert(data, magic)
        except RejectedRecords:
            remedy = "convert to magic 2" if target.codec == Compression.ZSTD else "choose another codec"
            raise OptionError(f"the log has zstd batches, not supported by magic {magic}; {remedy}") from None
        self._loss.add(converted.lost)
        self.records += converted.records_converted
        return converted


def count_of(batch: Batch) -> int:
    """Return the record count of a batch. Decompresses wrappers of magic 0 and 1."""
    if batch.count is None and not batch.compression:
        return 1
    return batch.count if batch.count is not None else sum(1 for _ in batch.records(check_crc=False))


def recompress(batch: Batch, codec: Compression, level: int | None = None) -> bytes | memoryview:
    """Return a batch of magic 2 with another codec. Only size, codec and checksum of its header change.

    Control batches and batches without records are returned unchanged. Raises CorruptBatch.
    """
    if batch.is_control or not batch.count or batch.compression == codec:
        return batch.buffer
    payload = compress(codec, batch.decompress(batch.buffer[DEFAULT_HEADER.size :]), magic=2, level=level)
    out = bytearray(batch.buffer[: DEFAULT_HEADER.size])
    SIZE.pack_into(out, SIZE_POSITION, DEFAULT_HEADER.size - FRAME_BYTES + len(payload))
    ATTRIBUTES.pack_into(out, ATTRIBUTES_POSITION, batch.attributes & ~CODEC_MASK | codec)
    out += payload
    with memoryview(out) as view:
        write_crc(view)
    return bytes(out)
