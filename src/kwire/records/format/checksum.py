"""The two checksums of Kafka's formats, both as unsigned 32-bit numbers.

    crc32c   CRC-32C (Castagnoli): record batches of magic 2, producer snapshots
    crc32    CRC-32 (ISO 3309, as in zlib and gzip): messages of magic 0 and 1

Source: org.apache.kafka.common.utils.Crc32C, java.util.zip.CRC32.
"""

from __future__ import annotations

import zlib

from kwire import native

__all__ = ["crc32", "crc32c"]


def crc32c(data: bytes | bytearray | memoryview) -> int:
    """CRC-32C of data, 0 <= crc < 2**32. Cost without the processor's instruction: a copy, unless data is bytes."""
    if native.HAS_CRC32C:
        return native.sum_bytes(data)
    import google_crc32c  # not above: without a wheel, as on musl, it is plain Python and warns of it

    return int(google_crc32c.value(data if isinstance(data, bytes) else bytes(data)))


def crc32(data: bytes | bytearray | memoryview) -> int:
    """CRC-32 of data, 0 <= crc < 2**32."""
    return zlib.crc32(data)
