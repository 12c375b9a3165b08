"""The two checksums of Kafka's formats, both as unsigned 32-bit numbers.

    crc32c   CRC-32C (Castagnoli): record batches of magic 2, producer snapshots
    crc32    CRC-32 (ISO 3309, as in zlib and gzip): messages of magic 0 and 1

Source: org.apache.kafka.common.utils.Crc32C, java.util.zip.CRC32.
"""

from __future__ import annotations

import zlib

import google_crc32c

__all__ = ["crc32", "crc32c"]


def crc32c(data: bytes | bytearray | memoryview) -> int:
    """CRC-32C of data, 0 <= crc < 2**32. Cost: a copy when data is not bytes (the library takes nothing else)."""
    return int(google_crc32c.value(data if isinstance(data, bytes) else bytes(data)))


def crc32(data: bytes | bytearray | memoryview) -> int:
    """CRC-32 of data, 0 <= crc < 2**32."""
    return zlib.crc32(data)
