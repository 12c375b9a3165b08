"""Checksums of many magic 2 batches in one call, with the processor's instruction: only where crc32c.usable()."""
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

from __future__ import annotations

from kwire.records.batch_header import ATTRIBUTES_POSITION, CRC_POSITION
from kwire.records.kernels.crc32c import crc32c
from kwire.records.kernels.encode import POSITION, SIZE, put_int32
from kwire.wire.kernels.arrays import Int64Table
from kwire.wire.kernels.compiler import export

__all__ = ["sum_batches"]


@export
def sum_batches(room: int, table: Int64Table, batches: int) -> None:
    """Store the checksum of each batch whose place and size the table has."""
    for i in range(batches):
        at = room + table[i, POSITION]
        put_int32(at + CRC_POSITION, crc32c(at + ATTRIBUTES_POSITION, table[i, SIZE] - ATTRIBUTES_POSITION))
