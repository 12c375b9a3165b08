"""Estimate the work to validate records before an append, from their first header.

A small batch may decompress to 100 MB or contain millions of records. Real brokers accept it, so kwire does, and
decides whether to process it in the event loop or in another thread.
"""

from __future__ import annotations

from kwire.records import section_scan
from kwire.records.attributes import CODEC_MASK, Compression
from kwire.records.batch_header import DEFAULT_HEADER, MAGIC_POSITION

__all__ = ["is_quick", "quick_bytes"]

QUICK_COMPRESSED_BYTES = 16 * 1024
"""Maximum size of a compressed batch that is processed in the event loop."""
QUICK_REBUILT_BYTES, QUICK_REBUILT_RECORDS = 4096, 50
"""Maximum size of a batch that is rebuilt in the event loop: 20 us per record, and gzip 30 us per kilobyte."""
QUICK_RECORDS, QUICK_RECORDS_COMPILED = 1000, 100_000
QUICK_BYTES, QUICK_BYTES_COMPILED = 64 * 1024, 1024 * 1024
"""Maximum decompressed size of a batch that is validated in the event loop."""


def quick_bytes() -> int:
    """Maximum bytes that records may decompress to in the event loop."""
    return QUICK_BYTES_COMPILED if section_scan.is_compiled() else QUICK_BYTES


def is_quick(data: bytes | bytearray | memoryview, *, magic: int, codec: Compression | None) -> bool:
    """Whether records can be checked in about a millisecond, unless they decompress to more than quick_bytes().

    magic, codec: the topic's format, and its codec if it has one.
    """
    if len(data) < DEFAULT_HEADER.size:
        return True
    if data[MAGIC_POSITION] != 2 or magic != 2:
        return len(data) <= QUICK_REBUILT_BYTES
    fields = DEFAULT_HEADER.unpack_from(data)
    batch_codec, count = fields[5] & CODEC_MASK, fields[-1]
    if codec is not None and codec != batch_codec:
        return len(data) <= QUICK_REBUILT_BYTES and count <= QUICK_REBUILT_RECORDS
    if batch_codec and len(data) > QUICK_COMPRESSED_BYTES:
        return False
    compiled = section_scan.is_compiled()
    if not batch_codec and not compiled and count > 1 and len(data) > QUICK_BYTES:
        return False
    return bool(count <= (QUICK_RECORDS_COMPILED if compiled else QUICK_RECORDS))
