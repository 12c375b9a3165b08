"""Batch headers straight from a file, without the batches: for seeking, planning and finding the end of a log.

Reading is sparse: one small pread per batch where batches are large, one for many where they are small. Where each is a
request to a store, it doubles in size while batches are small. Nothing is decompressed or checksummed. The layouts are
in `kwire.records.format.batch_header`; rules R-01 to R-04.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import NamedTuple

from kwire.errors import CorruptBatch
from kwire.records.attributes import TRANSACTIONAL_FLAG
from kwire.records.format.batch_header import (
    DEFAULT_HEADER_BYTES,
    FRAME_BYTES,
    PREFIX_BYTES,
    BatchHeader,
    header_fault,
    parse_header,
)
from kwire.storage.store import REMOTE_WINDOW_BYTES, DescriptorFile, StoredFile

__all__ = ["HeaderWalk", "PlainBatches", "header_at", "is_zero_tail", "plain_batches"]

PLAIN = struct.Struct(">qi4xb4xhi")  # offset, size, magic, attributes, last offset delta


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
        window, start, n = b"", 0, max(file.window_bytes, DEFAULT_HEADER_BYTES)
        while self.position < stop:
            position = self.position
            try:
                header = None
                if start <= position <= start + len(window) - PREFIX_BYTES:
                    header = parse_header(window, position - start, position, file.url)
                if header is None:
                    if window and file.most_window_bytes > file.window_bytes:
                        is_near = position <= start + max(2 * len(window), REMOTE_WINDOW_BYTES)
                        n = min(2 * n, file.most_window_bytes) if is_near else file.window_bytes
                    window, start = file.pread(position, n), position
                    header = parse_header(window, 0, position, file.url)
            except CorruptBatch as error:
                self.damage = error
                return
            if header is None or position + header.size_bytes > size:
                return
            self.position = position + header.size_bytes
            yield header


class PlainBatches(NamedTuple):
    """Batches of a local file, one after the other, that are magic 2 and outside of transactions.

    start, end: their positions in the file. last, header: position and header of the last one. inode: of the file.
    """

    start: int
    end: int
    last: int
    header: bytes
    inode: int

    def reach(self, file: DescriptorFile, position: int) -> bool:
        """Return whether the file still has them, and a position is in them: if the last one is there, so are all."""
        return (
            self.start <= position < self.end
            and os.fstat(file.fileno()).st_ino == self.inode
            and file.pread(self.last, DEFAULT_HEADER_BYTES) == self.header
        )


def plain_batches(
    file: DescriptorFile, position: int, end_offset: int | None = None, known: PlainBatches | None = None
) -> PlainBatches | None:
    """Return the plain batches from a position on, of offsets below end_offset; None if the first one is none of them.

    position: of a batch. known: found before, and not read again. A batch with an impossible header, or that the file
    does not have whole, is not plain. It takes a quarter of the time of a HeaderWalk: each batch is a pread of its own.
    """
    start, last = position, -1
    if known is not None and known.reach(file, position):
        start, last, position = known.start, known.last, known.end
    size, limit = file.size(), 1 << 63 if end_offset is None else end_offset
    while len(header := file.pread(position, PLAIN.size)) == PLAIN.size:
        offset, batch_size, magic, attributes, delta = PLAIN.unpack(header)
        end = position + FRAME_BYTES + batch_size
        if magic != 2 or attributes & TRANSACTIONAL_FLAG or not 0 <= offset < limit or end > size:
            break
        if delta < 0 or offset + delta >= 1 << 63 or header_fault(batch_size, magic) is not None:
            break
        last, position = position, end
    if last < 0:
        return None
    return PlainBatches(start, position, last, file.pread(last, DEFAULT_HEADER_BYTES), os.fstat(file.fileno()).st_ino)


def header_at(file: StoredFile, position: int) -> BatchHeader | None:
    """Return the header at a position; None if the bytes there are not one."""
    try:
        return parse_header(file.pread(position, DEFAULT_HEADER_BYTES), 0, position, file.url)
    except CorruptBatch:
        return None


def is_zero_tail(file: StoredFile, position: int) -> bool:
    """Return whether only zeros follow: preallocated space, or data lost in a crash."""
    while chunk := file.pread(position, 1 << 20):
        if chunk.count(0) != len(chunk):
            return False
        position += len(chunk)
    return True
