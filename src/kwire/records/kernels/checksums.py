"""CRC-32 (ISO 3309) of messages of magic 0 and 1, for kernels of numba."""
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

from __future__ import annotations

import numpy as np

from kwire.wire.kernels.compiler import kernel
from kwire.wire.kernels.memory import load_uint8, load_uint64

__all__ = ["crc32"]

POLYNOMIAL = 0xEDB88320


def slicing_tables() -> np.ndarray:
    """Return uint32[8, 256]: entry [k, b] is the CRC of byte b followed by k zero bytes."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, table >> 1 ^ POLYNOMIAL, table >> 1).astype(np.uint32)
    tables = [table]
    for _ in range(7):
        tables.append(tables[-1] >> 8 ^ table[tables[-1] & 0xFF])
    return np.array(tables, np.uint32)


TABLES = slicing_tables()


@kernel
def crc32(address, n):
    """Return the CRC-32 of n bytes."""
    crc = np.uint64(0xFFFFFFFF)
    end = address + n
    while end - address >= 8:
        word = load_uint64(address) ^ crc
        crc = np.uint64(
            TABLES[7, word & np.uint64(0xFF)]
            ^ TABLES[6, word >> np.uint64(8) & np.uint64(0xFF)]
            ^ TABLES[5, word >> np.uint64(16) & np.uint64(0xFF)]
            ^ TABLES[4, word >> np.uint64(24) & np.uint64(0xFF)]
            ^ TABLES[3, word >> np.uint64(32) & np.uint64(0xFF)]
            ^ TABLES[2, word >> np.uint64(40) & np.uint64(0xFF)]
            ^ TABLES[1, word >> np.uint64(48) & np.uint64(0xFF)]
            ^ TABLES[0, word >> np.uint64(56)]
        )
        address += 8
    while address < end:
        byte = (crc ^ np.uint64(load_uint8(address))) & np.uint64(0xFF)
        crc = np.uint64(TABLES[0, byte]) ^ crc >> np.uint64(8)
        address += 1
    return np.int64(crc ^ np.uint64(0xFFFFFFFF))
