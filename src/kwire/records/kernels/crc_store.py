"""Checksums of many magic 2 batches in one call, with the processor's instruction: only where crc32c.usable()."""
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

from __future__ import annotations

from numba import njit

from kwire.records.batch_header import ATTRIBUTES_POSITION, CRC_POSITION
from kwire.records.kernels.crc32c import crc32c
from kwire.records.kernels.encode import POSITION, SIZE, put_int32

__all__ = ["sum_batches"]


@njit(nogil=True, cache=True)
def sum_batches(room, table, batches):
    """Store the checksum of each batch whose place and size the table has."""
    for i in range(batches):
        at = room + table[i, POSITION]
        put_int32(at + CRC_POSITION, crc32c(at + ATTRIBUTES_POSITION, table[i, SIZE] - ATTRIBUTES_POSITION))
