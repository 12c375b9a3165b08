"""Down-conversion for a fetch response in chunks, with a size announced before the conversion.

A broker announces the size of its response before it has converted it. It converts the first batch, announces the
larger of its size and that of the source, and converts the rest in chunks while sending. If the result is too short,
the rest is an entry that claims to be longer than the response, which clients drop as incomplete; if it is too long,
it is cut off.
Source: KIP-283; org.apache.kafka.common.record.LazyDownConversionRecords, LazyDownConversionRecordsSend 3.9.1.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from kwire.errors import OptionError
from kwire.records.compression.codecs import DEFAULT_MAX_DECOMPRESSED_BYTES
from kwire.records.convert.conversion import down_convert
from kwire.records.format.append_error import AppendErrorCode, RejectedRecords
from kwire.records.format.batch_header import DEFAULT_HEADER
from kwire.records.format.record_set import read_batches

__all__ = ["CHUNK_BYTES", "FetchConversion"]

CHUNK_BYTES = 128 << 10  # of source batches that are converted at a time
SMALLEST_OVERFLOW = 12  # offset and length
OVERFLOW = struct.Struct(">qi")


@dataclass(slots=True)
class FetchConversion:
    """The response to a fetch that needs an older format.

    buf: the stored batches. to_magic, first_offset: see down_convert.
    size_bytes: the size to announce; chunks() yields exactly this many bytes.
    Raises RejectedRecords when the first batch that would be sent is zstd, CorruptBatch when it does not decode.
    """

    buf: bytes | memoryview
    to_magic: int
    first_offset: int
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES
    size_bytes: int = field(init=False)
    _first: bytes = field(init=False)
    _position: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        if self.to_magic not in (0, 1, 2):
            raise OptionError(f"unsupported to_magic {self.to_magic}; expected 0, 1 or 2")
        self._first = self._next_chunk(0)
        self.size_bytes = max(len(self.buf), len(self._first)) if self._first else SMALLEST_OVERFLOW

    def _next_chunk(self, limit: int) -> bytes:
        """Convert batches from where the last call stopped: at least one, up to `limit` bytes of source.

        Continues until a chunk is not empty, because control batches are dropped. Returns b"" at the end.
        """
        source = memoryview(self.buf)
        while True:
            start = end = self._position
            for batch in read_batches(source[start:]):
                if end > start and end - start + batch.size_bytes > limit:
                    break
                end += batch.size_bytes
                if end - start >= limit:
                    break
            if end == start:
                return b""
            self._position = end
            converted = down_convert(
                source[start:end], self.to_magic, self.first_offset, max_decompressed_bytes=self.max_decompressed_bytes
            )
            if converted:
                return converted

    def chunks(self) -> Iterator[bytes]:
        """Yield the bytes of the response, size_bytes in total; can be used once."""
        left, chunk = self.size_bytes, self._first
        while left:
            if not chunk:
                chunk = overflow_entry(left)
            piece = chunk[:left]
            yield piece
            left -= len(piece)
            try:
                chunk = self._next_chunk(CHUNK_BYTES) if left else b""
            except RejectedRecords as error:
                if error.code != AppendErrorCode.UNSUPPORTED_COMPRESSION_TYPE:
                    raise
                chunk = b""  # the client learns of it when it fetches from there


def overflow_entry(left: int) -> bytes:
    """Create an entry that is longer than the remaining bytes, so that the client drops it."""
    size = max(SMALLEST_OVERFLOW, min(left + 1, CHUNK_BYTES))
    return OVERFLOW.pack(-1, max(left + 1, DEFAULT_HEADER.size)).ljust(size, b"\0")
