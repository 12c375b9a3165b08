"""Find the next valid batch after damage: bytes that parse as a header, with a valid checksum.

A wrong length field makes everything after it uncertain until a checksum matches. Every byte is tried; the `.index`
would be faster, but would skip valid batches before its next entry.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kwire import native
from kwire.errors import CorruptBatch
from kwire.records import DEFAULT_MAX_DECOMPRESSED_BYTES, Compression, read_batches
from kwire.records.batch_header import DEFAULT_HEADER_BYTES, BatchHeader, batch_bytes
from kwire.storage.header_walk import header_at
from kwire.storage.store import StoredFile

__all__ = ["Range", "next_valid_batch", "valid_batch"]

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


def next_valid_batch(file: StoredFile, position: int, stop: int, offsets: Range) -> BatchHeader | None:
    """Find the first batch in [position, stop) with offsets in range and a valid checksum; None without one."""
    budget = FREE_CHECKS_BYTES
    while position < stop:
        window = file.pread(position, min(WINDOW_BYTES + DEFAULT_HEADER_BYTES, stop - position))
        # padded with zeros: a message of magic 0 or 1 at the end is shorter than the header searched for
        data = np.frombuffer(window + bytes(DEFAULT_HEADER_BYTES), np.uint8)
        ends_here = position + len(window) >= stop
        length = len(data) if ends_here else len(window)
        budget += len(window) * CHECKS_PER_BYTE
        at = 0
        while True:
            at = native.find_header(data.ctypes.data, length, at, stop - position, offsets.floor, offsets.ceiling)
            if at < 0 or at >= WINDOW_BYTES:
                break
            size = batch_bytes(window, at)
            budget -= size
            if budget >= 0 and (found := valid_batch(file, position + at, stop, offsets)) is not None:
                return found
            at += 1
        if ends_here and len(window) <= WINDOW_BYTES:
            return None
        position += WINDOW_BYTES
    return None
