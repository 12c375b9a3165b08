"""A record set: batches one after another, in a segment file, a fetch response or a produce request.

Every batch starts alike, whatever its magic: int64 offset, int32 size of what follows, four bytes that mean different
things, int8 magic.
Source: org.apache.kafka.common.record.ByteBufferLogInputStream.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from kwire.errors import CorruptBatch
from kwire.records.batch import FRAME_BYTES, LARGEST_SIZE, MAGIC_POSITION, SMALLEST_SIZE, Batch
from kwire.records.compression import DEFAULT_MAX_DECOMPRESSED_BYTES
from kwire.records.default_batch import HEADER as DEFAULT_HEADER
from kwire.records.default_batch import DefaultBatch
from kwire.records.legacy_batch import LegacyBatch

__all__ = ["bad_header_text", "read_batches"]

FRAME = struct.Struct(">qi")
assert FRAME.size == FRAME_BYTES


def read_batches(
    buf: bytes | bytearray | memoryview,
    *,
    position: int = 0,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
    file: str | None = None,
) -> Iterator[Batch]:
    """The batches of buf in their order; headers only, records are decoded when asked for.

    position: what byte 0 of buf is called in errors and in Batch.position, such as its position in the file.
    max_decompressed_bytes: what a compressed batch may grow to.
    file: named in errors.
    A batch that buf cuts off ends the iteration without an error: that is how fetch responses and growing segments end.
    Raises CorruptBatch on a size or magic that cannot be, from where nothing more can be found in buf.
    """
    view = memoryview(buf).cast("B") if not isinstance(buf, memoryview) or buf.format != "B" else buf
    pos = 0
    while len(view) - pos >= FRAME_BYTES:
        _, size = FRAME.unpack_from(view, pos)
        magic = view[pos + MAGIC_POSITION] if len(view) - pos > MAGIC_POSITION else None
        bad = bad_header_text(size, magic)
        if bad:
            raise CorruptBatch(bad, position + pos, (), file)
        end = pos + FRAME_BYTES + size
        if end > len(view):
            return
        kind = LegacyBatch if magic in (0, 1) else DefaultBatch
        yield kind(view[pos:end], position + pos, file, max_decompressed_bytes)
        pos = end


def bad_header_text(size: int, magic: int | None) -> str | None:
    """What makes a size and magic unbelievable, None if nothing. magic: as an unsigned byte, None if cut off."""
    if size < SMALLEST_SIZE:
        return f"size {size} is below the smallest there is ({SMALLEST_SIZE})"
    if size > LARGEST_SIZE:
        return f"size {size} is above the largest there is ({LARGEST_SIZE})"
    if magic is not None and magic > 2:
        return f"unknown magic {magic if magic < 128 else magic - 256}"
    if magic == 2 and size < DEFAULT_HEADER.size - FRAME_BYTES:
        return f"size {size} leaves no room for the header of magic 2 ({DEFAULT_HEADER.size - FRAME_BYTES})"
    return None
