"""Batch headers of every magic: their layout, and the walk from one batch to the next.

    pos   magic 0 and 1 (one message)             magic 2 (a batch)
      0   int64  offset                           int64  base_offset
      8   int32  size                             int32  batch_length
     12   uint32 crc                              int32  partition_leader_epoch
     16   int8   magic                            int8   magic
     17   uint8  attributes                       uint32 crc
     18   int64  timestamp (magic 1 only)
     21                                           int16  attributes
     23                                           int32  last_offset_delta
     27                                           int64  base_timestamp
     35                                           int64  max_timestamp
     43                                           int64  producer_id, int16 producer_epoch, int32 base_sequence
     57                                           int32  record count

The first 17 bytes have one layout for all: where a batch ends and which format it has can be read without knowing the
format. Magic 0 and 1 have no batch header; a message, perhaps a compressed wrapper, takes its place.
The bits of the attributes are in `attributes`, what the fields mean in `default_batch` and `legacy_batch`.
Source: KIP-31, KIP-32, KIP-98; org.apache.kafka.common.record.Records, DefaultRecordBatch, LegacyRecord.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from kwire.errors import CorruptBatch
from kwire.records.attributes import (
    CODEC_MASK,
    CONTROL_FLAG,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
)
from kwire.records.format.checksum import crc32c
from kwire.records.format.wrapping import add_to_sequence

__all__ = [
    "ATTRIBUTES_POSITION",
    "BASE_SEQUENCE_POSITION",
    "BASE_TIMESTAMP_POSITION",
    "COUNT_POSITION",
    "CRC",
    "CRC_POSITION",
    "DEFAULT_HEADER",
    "DEFAULT_HEADER_BYTES",
    "FRAME_BYTES",
    "LARGEST_RECORD",
    "LARGEST_SIZE",
    "LAST_OFFSET_DELTA_POSITION",
    "LEADER_EPOCH",
    "LEADER_EPOCH_POSITION",
    "LEGACY_ATTRIBUTES_POSITION",
    "LEGACY_CRC_POSITION",
    "LEGACY_HEADER",
    "LEGACY_TIMESTAMP",
    "LEGACY_TIMESTAMP_POSITION",
    "MAGIC_POSITION",
    "MAX_TIMESTAMP_POSITION",
    "OFFSET",
    "PREFIX_BYTES",
    "PRODUCER_EPOCH_POSITION",
    "PRODUCER_ID_POSITION",
    "SIZE",
    "SIZE_POSITION",
    "SMALLEST_DEFAULT_SIZE",
    "SMALLEST_SIZE",
    "BatchHeader",
    "batch_bytes",
    "batch_spans",
    "header_fault",
    "parse_header",
    "write_crc",
]

Buffer = bytes | bytearray | memoryview

FRAME_BYTES = 12
"""Offset and size: the bytes before those that the size counts."""
PREFIX = struct.Struct(">qiib")
PREFIX_BYTES = PREFIX.size
"""From the offset to the magic. Kafka's file reader ignores a file's tail of up to this many bytes (R-04)."""
OFFSET = struct.Struct(">q")
SIZE = struct.Struct(">i")
SIZE_POSITION = 8
MAGIC_POSITION = 16

DEFAULT_HEADER = struct.Struct(">qiibIhiqqqhii")
DEFAULT_HEADER_BYTES = DEFAULT_HEADER.size
LEADER_EPOCH = struct.Struct(">i")
LEADER_EPOCH_POSITION = 12
CRC = struct.Struct(">I")
CRC_POSITION = 17
ATTRIBUTES_POSITION = 21
"""Also the first byte that the checksum of magic 2 covers."""
LAST_OFFSET_DELTA_POSITION = 23
BASE_TIMESTAMP_POSITION = 27
MAX_TIMESTAMP_POSITION = 35
PRODUCER_ID_POSITION = 43
PRODUCER_EPOCH_POSITION = 51
BASE_SEQUENCE_POSITION = 53
COUNT_POSITION = 57

LEGACY_HEADER = struct.Struct(">qiIbB")
LEGACY_TIMESTAMP = struct.Struct(">q")
LEGACY_CRC_POSITION = 12
"""The checksum of magic 0 and 1 covers all bytes from MAGIC_POSITION on."""
LEGACY_ATTRIBUTES_POSITION = 17
LEGACY_TIMESTAMP_POSITION = 18

SMALLEST_SIZE = 14
"""A message of magic 0 with neither key nor value."""
SMALLEST_DEFAULT_SIZE = DEFAULT_HEADER_BYTES - FRAME_BYTES
SMALLEST_SIZES = (SMALLEST_SIZE, SMALLEST_SIZE + LEGACY_TIMESTAMP.size, SMALLEST_DEFAULT_SIZE)  # by magic
LARGEST_SIZE = 0x7FFF_FFFF - FRAME_BYTES
"""Kafka counts the bytes of a whole batch in a signed 32-bit number."""
LARGEST_RECORD = LARGEST_SIZE + FRAME_BYTES - DEFAULT_HEADER_BYTES
"""Largest record that a batch has room for."""

# the positions above, held to the structs
assert DEFAULT_HEADER_BYTES == 61
assert struct.calcsize(">qi") == FRAME_BYTES
assert struct.calcsize(">qiib") == CRC_POSITION == LEGACY_ATTRIBUTES_POSITION == PREFIX_BYTES
assert struct.calcsize(">qiibI") == ATTRIBUTES_POSITION
assert struct.calcsize(">qiibIhiqq") == PRODUCER_ID_POSITION
assert LEGACY_HEADER.size == LEGACY_TIMESTAMP_POSITION


def batch_bytes(buf: Buffer, pos: int = 0) -> int:
    """Return the size in bytes of the batch or message at pos, according to its size field. Needs FRAME_BYTES bytes."""
    return FRAME_BYTES + int(SIZE.unpack_from(buf, pos + SIZE_POSITION)[0])


def batch_spans(buf: Buffer, pos: int = 0) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each whole batch or message from pos on, following the size fields.

    Stops without an error at one that buf cuts off, and at a size below SMALLEST_SIZE, which leads nowhere.
    """
    length = len(buf)
    while length - pos >= FRAME_BYTES:
        end = pos + batch_bytes(buf, pos)
        if end - pos < FRAME_BYTES + SMALLEST_SIZE or end > length:
            return
        yield pos, end
        pos = end


def header_fault(size: int, magic: int | None) -> str | None:
    """Return what is wrong with a batch's size and magic; None if nothing is.

    magic: signed or unsigned; None where the buffer ends before it.
    """
    if size < SMALLEST_SIZE:
        return f"size {size} is below the minimum of {SMALLEST_SIZE}"
    if size > LARGEST_SIZE:
        return f"size {size} is above the maximum of {LARGEST_SIZE}"
    if magic is not None and not 0 <= magic <= 2:
        return f"unknown magic {magic if magic < 128 else magic - 256}"
    if magic == 2 and size < SMALLEST_DEFAULT_SIZE:
        return f"size {size} leaves no room for the header of magic 2, which needs {SMALLEST_DEFAULT_SIZE}"
    return None


def write_crc(batch: memoryview) -> None:
    """Compute the checksum of a batch of magic 2 and store it in the header."""
    CRC.pack_into(batch, CRC_POSITION, crc32c(batch[ATTRIBUTES_POSITION:]))


class BatchHeader(NamedTuple):
    """The header of one batch, or of one message of magic 0 or 1, without its records.

    position: of its first byte in the file. size_bytes: of the whole batch.
    stored_offset: the offset field: the base offset in magic 2, the (last inner) offset in magic 0 and 1.
    max_timestamp: milliseconds. It, producer_id, producer_epoch, base_sequence and leader_epoch are -1 for none, as
    the last four always are below magic 2.
    """

    position: int
    size_bytes: int
    stored_offset: int
    last_offset: int
    magic: int
    attributes: int
    max_timestamp: int
    producer_id: int
    leader_epoch: int
    producer_epoch: int = NO_PRODUCER_EPOCH
    base_sequence: int = NO_SEQUENCE

    @property
    def base_offset(self) -> int:
        """Offset of the first record; below magic 2, of the last one."""
        return self.stored_offset

    @property
    def last_sequence(self) -> int:
        """Sequence number of the last record, -1 for none."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return add_to_sequence(self.base_sequence, self.last_offset - self.stored_offset)

    @property
    def codec(self) -> int:
        """Number of the compression codec; 5 to 7 are not assigned."""
        return self.attributes & CODEC_MASK

    @property
    def is_transactional(self) -> bool:
        """Whether the batch is part of a transaction, or the marker that ends one."""
        return self.magic == 2 and self.attributes & TRANSACTIONAL_FLAG != 0

    @property
    def is_control(self) -> bool:
        """Whether the batch holds control records, which consumers never see."""
        return self.magic == 2 and self.attributes & CONTROL_FLAG != 0


def parse_header(buf: Buffer, pos: int, position: int, file: str) -> BatchHeader | None:
    """Parse the header at buf[pos:]; None if buf ends inside it.

    position, file: where the batch is, for the header and for errors.
    Raises CorruptBatch on a size or magic that is impossible (R-03), a negative offset, or offsets beyond int64.
    """
    if pos + PREFIX_BYTES > len(buf):
        return None
    offset, size, leader_epoch, magic = PREFIX.unpack_from(buf, pos)
    fault = header_fault(size, magic)
    if fault is None and magic == 1 and size < SMALLEST_SIZES[1]:
        fault = f"size {size} is below the minimum of {SMALLEST_SIZES[1]} in magic 1"
    if fault is None and offset < 0:
        fault = f"offset {offset} is negative"
    if fault is not None:
        raise CorruptBatch(fault, position, (), file)
    size += FRAME_BYTES
    if magic == 2:
        if pos + DEFAULT_HEADER_BYTES > len(buf):
            return None
        fields = DEFAULT_HEADER.unpack_from(buf, pos)
        attributes, delta, _, max_timestamp, producer_id, epoch, sequence = fields[5:12]
        last = offset + delta
        if delta < 0 or last >= 1 << 63:
            raise CorruptBatch(f"last offset delta {delta} after base offset {offset}", position, (), file)
        return BatchHeader(
            position, size, offset, last, 2, attributes, max_timestamp, producer_id, leader_epoch, epoch, sequence
        )
    end = pos + LEGACY_HEADER.size + (LEGACY_TIMESTAMP.size if magic else 0)
    if end > len(buf):
        return None
    attributes = buf[pos + LEGACY_ATTRIBUTES_POSITION]
    timestamp = LEGACY_TIMESTAMP.unpack_from(buf, pos + LEGACY_TIMESTAMP_POSITION)[0] if magic else NO_TIMESTAMP
    return BatchHeader(position, size, offset, offset, magic, attributes, timestamp, NO_PRODUCER_ID, NO_LEADER_EPOCH)
