"""Read the batch headers of a file without the batches, for seeking, planning and finding log ends.

Magic 0 and 1 have no batch header; each message, possibly a compressed wrapper, counts as a batch. Reads are sparse:
one small pread per batch where batches are large, one for many where they are small. Nothing is decompressed or
checksummed.
Layouts: `kwire.records`; rules R-01 to R-04.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from kwire.errors import CorruptBatch
from kwire.records.default_batch import add_to_sequence
from kwire.storage.store import StoredFile

OVERHEAD_BYTES = 12  # offset and size, which size does not count
PREFIX = struct.Struct(">qiib")  # magic is at the same place in every format
MAGIC_2 = struct.Struct(">hiqqqhi")  # from pos 21: attributes to base sequence
MAGIC_1 = struct.Struct(">bq")  # from pos 17: attributes, timestamp
HEADER_BYTES = 61
SMALLEST_SIZE = (14, 22, 49)  # of the size field, by magic

TRANSACTIONAL, CONTROL = 0x10, 0x20
CODEC_MASK = 0x07
NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_SEQUENCE = -1


class BatchHeader(NamedTuple):
    """The header of one batch.

    stored_offset: the offset field: base offset in magic 2, last inner offset in magic 0 and 1. max_timestamp: in ms,
    -1 for none. producer_id, producer_epoch, base_sequence: -1 for none and below magic 2.
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
    producer_epoch: int = -1
    base_sequence: int = NO_SEQUENCE

    @property
    def base_offset(self) -> int:
        """Offset of the first record of a magic 2 batch."""
        return self.stored_offset

    @property
    def last_sequence(self) -> int:
        """Sequence number of the last record, -1 for none."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return add_to_sequence(self.base_sequence, self.last_offset - self.stored_offset)

    @property
    def is_transactional(self) -> bool:
        """Whether the batch is part of a transaction, or the marker that ends one."""
        return bool(self.attributes & TRANSACTIONAL) and self.magic == 2

    @property
    def is_control(self) -> bool:
        """Whether the batch holds control records, which consumers never see."""
        return bool(self.attributes & CONTROL) and self.magic == 2


def parse_header(buf: bytes | memoryview, at: int, position: int, file: str) -> BatchHeader | None:
    """Parse the header at buf[at:], which is at `position` in the file; None where buf ends inside the header.

    Raises CorruptBatch on an impossible size or magic (R-03), negative offsets, or an offset range beyond int64.
    """
    if at + PREFIX.size > len(buf):
        return None
    offset, size, leader_epoch, magic = PREFIX.unpack_from(buf, at)
    if magic not in (0, 1, 2):
        raise CorruptBatch(f"magic {magic}, expected 0, 1 or 2", position, (), file)
    if size < SMALLEST_SIZE[magic]:
        raise CorruptBatch(
            f"batch size {size} is below the minimum of magic {magic}, {SMALLEST_SIZE[magic]}", position, (), file
        )
    if offset < 0:
        raise CorruptBatch(f"offset {offset} is negative", position, (), file)
    total = size + OVERHEAD_BYTES
    if magic == 2:
        if at + HEADER_BYTES > len(buf):
            return None
        attributes, delta, _, max_timestamp, producer_id, epoch, sequence = MAGIC_2.unpack_from(buf, at + 21)
        last = offset + delta
        if delta < 0 or last >= 1 << 63:
            raise CorruptBatch(f"last offset delta {delta} after base offset {offset}", position, (), file)
        return BatchHeader(
            position, total, offset, last, 2, attributes, max_timestamp, producer_id, leader_epoch, epoch, sequence
        )
    if magic == 1:
        if at + 26 > len(buf):
            return None
        attributes, timestamp = MAGIC_1.unpack_from(buf, at + 17)
    else:
        if at + 18 > len(buf):
            return None
        attributes, timestamp = buf[at + 17], NO_TIMESTAMP
    return BatchHeader(position, total, offset, offset, magic, attributes & 0xFF, timestamp, NO_PRODUCER_ID, -1)


class HeaderWalk:
    """Iterate over the batch headers from a batch start on; afterwards position and damage say how it ended.

    position: after the last whole batch. damage: the CorruptBatch that stopped the iteration, or None. Without damage,
    a position before the end of the file means that it ends inside a batch.
    """

    def __init__(self, file: StoredFile, position: int = 0, stop: int | None = None) -> None:
        """stop: iterate over batches that start before this position; default: the end of the file."""
        self._file = file
        self._size = file.size()
        self._stop = self._size if stop is None else min(stop, self._size)
        self.position = position
        self.damage: CorruptBatch | None = None

    def __iter__(self) -> Iterator[BatchHeader]:
        file, size, stop = self._file, self._size, self._stop
        window, start = b"", 0
        while self.position < stop:
            position = self.position
            try:
                header = None
                if start <= position <= start + len(window) - PREFIX.size:
                    header = parse_header(window, position - start, position, file.url)
                if header is None:
                    window, start = file.pread(position, max(file.window_bytes, HEADER_BYTES)), position
                    header = parse_header(window, 0, position, file.url)
            except CorruptBatch as error:
                self.damage = error
                return
            if header is None or position + header.size_bytes > size:
                return
            self.position = position + header.size_bytes
            yield header


def is_zero_tail(file: StoredFile, position: int) -> bool:
    """Return whether only zeros follow: preallocated space, or data lost in a crash."""
    while chunk := file.pread(position, 1 << 20):
        if chunk.count(0) != len(chunk):
            return False
        position += len(chunk)
    return True
