"""Record sets: batches one after another, in a segment file, a fetch response or a produce request.

Source: org.apache.kafka.common.record.ByteBufferLogInputStream.
"""

from __future__ import annotations

from collections.abc import Iterator

from kwire.errors import CorruptBatch
from kwire.records.compression.codecs import DEFAULT_MAX_DECOMPRESSED_BYTES
from kwire.records.format.batch import Batch
from kwire.records.format.batch_header import FRAME_BYTES, MAGIC_POSITION, batch_bytes, header_fault
from kwire.records.format.default_batch import DefaultBatch
from kwire.records.format.legacy_batch import LegacyBatch

__all__ = ["byte_view", "read_batches"]


def read_batches(
    buf: bytes | bytearray | memoryview,
    *,
    position: int = 0,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
    file: str | None = None,
) -> Iterator[Batch]:
    """Read the batches of buf in order. Parses headers only; records are decoded on demand.

    position: of buf in the file, for Batch.position and errors. file: its name, for errors.
    max_decompressed_bytes: maximum decompressed size of a batch.
    A batch that buf cuts off ends the iteration without an error: fetch responses and growing segments end that way.
    Raises CorruptBatch for an impossible size or magic, after which no batch can be found.
    """
    view = byte_view(buf)
    pos = 0
    while len(view) - pos >= FRAME_BYTES:
        end = pos + batch_bytes(view, pos)
        magic = view[pos + MAGIC_POSITION] if len(view) - pos > MAGIC_POSITION else None
        fault = header_fault(end - pos - FRAME_BYTES, magic)
        if fault:
            raise CorruptBatch(fault, position + pos, (), file)
        if end > len(view):
            return
        kind = LegacyBatch if magic in (0, 1) else DefaultBatch
        yield kind(view[pos:end], position + pos, file, max_decompressed_bytes)
        pos = end


def byte_view(buf: bytes | bytearray | memoryview) -> memoryview:
    """Return the bytes of buf."""
    view = memoryview(buf)
    return view if view.format == "B" else view.cast("B")
