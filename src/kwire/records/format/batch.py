"""Base class of batches of every magic: position, header fields, errors."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator
from itertools import chain

from kwire.errors import CorruptBatch, Malformed
from kwire.records.attributes import (
    CODEC_MASK,
    CONTROL_FLAG,
    NO_LEADER_EPOCH,
    TRANSACTIONAL_FLAG,
    Compression,
    TimestampType,
)
from kwire.records.compression.codecs import TooLarge, expand
from kwire.records.format.faults import Fault
from kwire.records.format.record import Record, factory
from kwire.records.format.wrapping import MAX_INT64, MIN_INT64, to_int64

__all__ = [
    "CODECS",
    "Batch",
    "too_large",
    "unknown_codec",
    "wrong_crc",
]

CODECS = tuple(Compression)  # a look-up by number takes a fifth of the time of a call of the enumeration


class Batch(abc.ABC):
    """A batch of records, or one message of magic 0 or 1. Created by read_batches, which decodes only the header.

    buffer: the whole batch, a view of the bytes passed to read_batches.
    position: of its first byte, for errors. size_bytes: of the whole batch.
    magic: 0, 1 or 2. attributes: the field as stored. crc: as stored, unsigned.
    last_offset: of its last record, even if compaction has removed that one. next_offset: last_offset + 1.
    base_timestamp, max_timestamp: milliseconds, -1 for none; in magic 0 and 1 both are the message's own timestamp.
    count: records as the header counts them, None below magic 2.
    producer_id, producer_epoch, base_sequence, last_sequence, partition_leader_epoch: -1 for none, as below magic 2.
    delete_horizon_ms: when tombstones of this batch may be removed, None if not set.
    """

    __slots__ = (
        "_max_decompressed_bytes",
        "attributes",
        "base_sequence",
        "base_timestamp",
        "buffer",
        "count",
        "crc",
        "delete_horizon_ms",
        "file",
        "last_offset",
        "last_sequence",
        "magic",
        "max_timestamp",
        "partition_leader_epoch",
        "position",
        "producer_epoch",
        "producer_id",
        "size_bytes",
        "timestamp_type",
    )

    _max_decompressed_bytes: int
    buffer: memoryview
    position: int
    file: str | None
    size_bytes: int
    magic: int
    attributes: int
    crc: int
    last_offset: int
    timestamp_type: TimestampType
    base_timestamp: int
    max_timestamp: int
    count: int | None
    producer_id: int
    producer_epoch: int
    base_sequence: int
    last_sequence: int
    partition_leader_epoch: int
    delete_horizon_ms: int | None

    @property
    @abc.abstractmethod
    def base_offset(self) -> int:
        """Offset of the first record. Decompresses compressed messages of magic 0 and 1; raises CorruptBatch."""

    @abc.abstractmethod
    def computed_crc(self) -> int:
        """Compute the checksum of the batch, to compare with crc."""

    def records(self, *, check_crc: bool = True) -> Iterator[Record]:
        """Decode the records one after another, with absolute offsets.

        check_crc: verify the checksums of inner messages of magic 0 and 1; check() verifies the batch's.
        Raises CorruptBatch, after the records before the fault, and if the records decompress to more than
        max_decompressed_bytes.
        """
        return chain.from_iterable(self.record_lists(check_crc=check_crc))

    @abc.abstractmethod
    def record_lists(
        self, *, check_crc: bool = True, start_offset: int = MIN_INT64, end_offset: int = MAX_INT64 + 1
    ) -> Iterator[list[Record]]:
        """Decode the records as `records` does, in lists of some, less those outside [start_offset, end_offset)."""

    def built_lists(
        self,
        read: Callable[..., tuple[list[Record], int, int, int]],
        section: memoryview,
        count: int,
        header: tuple[int, ...],
        start_offset: int,
        end_offset: int,
    ) -> Iterator[list[Record]]:
        """Decode `count` records of a decompressed section with compiled code, as record_lists.

        read: of `native`. header: the first fields of the batch that it wants, see BatchFields in native/records.c.
        """
        maker = factory()
        limits = max(start_offset, MIN_INT64), min(end_offset - 1, MAX_INT64)
        index = position = 0
        while index < count:
            records, done, position, fault = read(
                maker, section, self.leader_epoch, self.timestamp_type, position, count - index, *header, *limits
            )
            index += done
            yield records
            if fault:
                raise self.corrupt(Fault(fault).text, None if fault == Fault.BYTES_LEFT else index)

    @property
    def is_append_time(self) -> bool:
        """Whether all records have the time of the append, max_timestamp."""
        return self.timestamp_type == TimestampType.LOG_APPEND_TIME

    @property
    def leader_epoch(self) -> int | None:
        """The epoch of the partition's leader when the batch was appended, None where there is none."""
        return None if self.partition_leader_epoch == NO_LEADER_EPOCH else self.partition_leader_epoch

    @property
    def next_offset(self) -> int:
        """The offset after the last record, where a reader continues."""
        return to_int64(self.last_offset + 1)

    @property
    def compression(self) -> Compression:
        """Compression codec; raises CorruptBatch for the unassigned numbers 5 to 7."""
        codec = self.attributes & CODEC_MASK
        if codec >= len(CODECS):
            raise self.corrupt(unknown_codec(codec))
        return CODECS[codec]

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction."""
        return self.magic >= 2 and self.attributes & TRANSACTIONAL_FLAG != 0

    @property
    def is_control(self) -> bool:
        """Whether the batch holds control records, which consumers never see."""
        return self.magic >= 2 and self.attributes & CONTROL_FLAG != 0

    @property
    def is_valid(self) -> bool:
        """Whether the stored checksum matches the bytes."""
        return self.crc == self.computed_crc()

    def check(self) -> None:
        """Raise CorruptBatch unless the checksum matches and the codec is known. Cost: one pass over the bytes."""
        computed = self.computed_crc()
        if self.crc != computed:
            raise self.corrupt(wrong_crc(self.crc, computed))
        _ = self.compression

    def corrupt(self, what: str, record: int | None = None) -> CorruptBatch:
        """Create the error for this batch. record: index in the batch of the record at fault."""
        what = what if record is None else f"record {record}: {what}"
        return CorruptBatch(what, self.position, (), self.file, self.claimed_offsets())

    def claimed_offsets(self) -> tuple[int, int]:
        """(first, last) offset according to the header, which has only the last one in messages of magic 0 and 1."""
        return self.last_offset, self.last_offset

    def decompress(self, payload: memoryview) -> memoryview:
        """Decompress payload with the codec of this batch; raises CorruptBatch."""
        codec = self.compression
        if codec == Compression.NONE:
            return payload
        try:
            return expand(codec, self.magic, payload, self._max_decompressed_bytes)
        except Malformed as error:
            raise self.corrupt(error.what) from None
        except TooLarge:
            raise self.corrupt(too_large(codec, self._max_decompressed_bytes)) from None

    def __repr__(self) -> str:
        offsets = "..".join(map(str, self.claimed_offsets()))
        return f"<{type(self).__name__} magic {self.magic}, offsets {offsets}, {self.size_bytes} bytes>"


def wrong_crc(stored: int, computed: int) -> str:
    """The error text for a checksum that does not match."""
    return f"stored CRC {stored}, computed {computed}"


def unknown_codec(codec: int) -> str:
    """The error text for a codec number from 5 to 7."""
    return f"unknown compression type id {codec}"


def too_large(codec: Compression, limit: int) -> str:
    """The error text for records above the limit."""
    return f"{codec.text} payload decompresses to more than max_decompressed_bytes={limit}, the limit of one batch"
