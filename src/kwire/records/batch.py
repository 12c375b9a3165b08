"""What batches of every magic have in common: where they are, what their header says, how they are refused."""

from __future__ import annotations

import abc
from collections.abc import Iterator

from kwire.errors import CorruptBatch, Malformed
from kwire.records.attributes import (
    CODEC_MASK,
    CONTROL_FLAG,
    TRANSACTIONAL_FLAG,
    Compression,
    TimestampType,
)
from kwire.records.compression import TooLarge, expand
from kwire.records.record import Record
from kwire.records.wrapping import to_int64

__all__ = [
    "Batch",
    "too_large",
    "unknown_codec",
    "wrong_crc",
]


class Batch(abc.ABC):
    """A batch of records, or one message of magic 0 or 1. Made by read_batches, which decodes the header only.

    buffer: the whole batch, a view of the bytes given to read_batches.
    position: of its first byte, as errors name it. size_bytes: of the whole batch.
    magic: 0, 1 or 2. attributes: the field as stored. crc: as stored, unsigned.
    last_offset: of its last record, even if compaction has removed that one. next_offset: last_offset + 1.
    base_timestamp, max_timestamp: milliseconds, -1 for none; in magic 0 and 1 both are the message's own timestamp.
    count: records as the header counts them, None below magic 2.
    producer_id, producer_epoch, base_sequence, last_sequence, partition_leader_epoch: -1 for none, as below magic 2.
    delete_horizon_ms: when tombstones of this batch may go, None if not set.
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
        """Offset of the first record. Below magic 2 a compressed message has to be decompressed for it (CorruptBatch
        if that fails)."""

    @abc.abstractmethod
    def computed_crc(self) -> int:
        """The checksum of the batch's bytes, to be compared with crc."""

    @abc.abstractmethod
    def records(self, *, check_crc: bool = True) -> Iterator[Record]:
        """The records, offsets absolute, decoded one after another.

        check_crc: verify inner messages of magic 0 and 1, which have checksums of their own; the batch's checksum is
        verified by check() alone.
        Raises CorruptBatch, after the records before the fault, and when the payload decompresses to more than
        max_decompressed_bytes.
        """

    @property
    def next_offset(self) -> int:
        """The offset after the last one: where a reader goes on."""
        return to_int64(self.last_offset + 1)

    @property
    def compression(self) -> Compression:
        """The codec of the payload; raises CorruptBatch on a number that names none (5 to 7)."""
        codec = self.attributes & CODEC_MASK
        if codec > Compression.ZSTD:
            raise self.corrupt(unknown_codec(codec))
        return Compression(codec)

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
        """Whether the stored checksum is that of the bytes."""
        return self.crc == self.computed_crc()

    def check(self) -> None:
        """Raises CorruptBatch unless the checksum holds and the codec is known. Costs a pass over the bytes."""
        computed = self.computed_crc()
        if self.crc != computed:
            raise self.corrupt(wrong_crc(self.crc, computed))
        _ = self.compression

    def corrupt(self, what: str, record: int | None = None) -> CorruptBatch:
        """The error to raise for this batch. record: index in the batch of the record at fault."""
        what = what if record is None else f"record {record}: {what}"
        return CorruptBatch(what, self.position, (), self.file, self.claimed_offsets())

    def claimed_offsets(self) -> tuple[int, int]:
        """(first, last) as far as the header tells; a compressed message of magic 0 or 1 tells the last one only."""
        return self.last_offset, self.last_offset

    def decompress(self, payload: memoryview) -> memoryview:
        """payload without its compression; raises CorruptBatch."""
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
    """The message of a checksum that does not hold."""
    return f"stored CRC {stored}, computed {computed}"


def unknown_codec(codec: int) -> str:
    """The message of a codec number from 5 to 7."""
    return f"unknown compression type id {codec}"


def too_large(codec: Compression, limit: int) -> str:
    """The message of a payload that is above the limit; names the setting to change."""
    return f"{codec.text} payload decompresses to more than max_decompressed_bytes={limit}"
