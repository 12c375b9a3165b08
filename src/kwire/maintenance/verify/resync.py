"""Find the next valid batch after damage: bytes that parse as a header, with a valid checksum.

A wrong length field makes everything after it uncertain until a checksum matches. Every byte is tried; the `.index`
would be faster, but would skip valid batches before its next entry.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kwire import native
from kwire.errors import CorruptBatch
from kwire.records import DEFAULT_MAX_DECOMPRESSED_BYTES, Compression, read_batches
from kwire.records.format.batch_header import (
    DEFAULT_HEADER,
    DEFAULT_HEADER_BYTES,
    FRAME_BYTES,
    MAGIC_POSITION,
    SMALLEST_DEFAULT_SIZE,
    SMALLEST_SIZE,
    BatchHeader,
    batch_bytes,
)
from kwire.storage.header_walk import header_at
from kwire.storage.store import StoredFile

__all__ = ["Range", "find_header", "find_plain", "next_valid_batch", "valid_batch"]

WINDOW_BYTES = 1 << 20
FREE_CHECKS_BYTES = 64 << 20
CHECKS_PER_BYTE = 64  # bounds the cost for a file full of plausible headers, which would be quadratic


class Range(NamedTuple):
    """Offsets that a batch may have: [floor, ceiling)."""

    floor: int
    ceiling: int


def valid_batch(file: StoredFile, position: int, stop: int, offsets: Range) -> BatchHeader | None:
    """Return the header of the batch at position if its offsets are in range and its checksum is valid, else None."""
    header = header_at(file, position)
    if header is None or position + header.size_bytes > stop or header.size_bytes > DEFAULT_MAX_DECOMPRESSED_BYTES:
        return None
    if header.stored_offset < offsets.floor or header.last_offset >= offsets.ceiling:
        return None
    try:
        for batch in read_batches(file.pread(position, header.size_bytes)):
            return header if batch.is_valid and header.codec <= Compression.ZSTD else None
    except CorruptBatch:
        return None
    return None


def find_header(data: npt.NDArray[np.uint8], position: int, left: int, offsets: Range) -> int:
    """Return the first position from `position` on where the header of a batch can be; -1 if there is none.

    By the header's fields, without checksums; a header that data cuts off is not found.
    left: bytes from the start of data to the end of the file; no batch extends beyond it.
    """
    find = find_plain if native.LEVEL is None else native.find_header
    return find(data, position, left, offsets.floor, offsets.ceiling)


def find_plain(data: npt.NDArray[np.uint8], position: int, left: int, floor: int, ceiling: int) -> int:
    """Search in Python."""
    view = data.data
    for at in range(position, len(view) - DEFAULT_HEADER_BYTES + 1):
        magic = view[at + MAGIC_POSITION]
        if magic > 2:
            continue
        offset, size, _, _, _, _, delta, _, _, _, _, _, count = DEFAULT_HEADER.unpack_from(view, at)
        if not (SMALLEST_SIZE <= size <= left - at - FRAME_BYTES and floor <= offset < ceiling):
            continue
        if magic < 2 or (size >= SMALLEST_DEFAULT_SIZE and 0 <= delta < ceiling - offset and count >= 0):
            return at
    return -1


def next_valid_batch(file: StoredFile, position: int, stop: int, offsets: Range) -> BatchHeader | None:
    """Find the first batch in [position, stop) with offsets in range and a valid checksum; None without one."""
    budget = FREE_CHECKS_BYTES
    while position < stop:
        window = file.pread(position, min(WINDOW_BYTES + DEFAULT_HEADER_BYTES, stop - position))
        # padded with zeros: a message of magic 0 or 1 at the end is shorter than the header searched for
        data = np.frombuffer(window + bytes(DEFAULT_HEADER_BYTES), np.uint8)
        ends_here = position + len(window) >= stop
        if not ends_here:
            data = data[: len(window)]
        budget += len(window) * CHECKS_PER_BYTE
        at = 0
        while True:
            at = find_header(data, at, stop - position, offsets)
            if at < 0 or at >= WINDOW_BYTES:
                break
            size = batch_bytes(window, at)
            budget -= size
            if budget >= 0 and (header := valid_batch(file, position + at, stop, offsets)) is not None:
                return header
            at += 1
        if ends_here and len(window) <= WINDOW_BYTES:
            return None
        position += WINDOW_BYTES
    return None
