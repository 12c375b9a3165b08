"""Read the batches of one segment as objects."""

from __future__ import annotations

from collections.abc import Iterator

from kwire.errors import CorruptBatch
from kwire.log.chunks import Chunks
from kwire.log.segment import Segment
from kwire.records import DEFAULT_MAX_DECOMPRESSED_BYTES, Batch, read_batches

__all__ = ["segment_batches"]

CHUNK_BYTES = 1 << 20


def segment_batches(
    segment: Segment, start_offset: int = 0, *, max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES
) -> Iterator[Batch]:
    """Iterate over the batches of a segment from the one that contains start_offset on.

    Ends silently where a growing log ends: inside a batch, or in zeros at the end of the active segment.
    Raises CorruptBatch for other bytes that are not a batch, LogError.
    """
    with segment.open() as file:
        position, size = segment.position_of(file, start_offset), file.size()
        chunks = Chunks(
            file,
            position,
            size,
            chunk_bytes=CHUNK_BYTES,
            max_batch_bytes=max_decompressed_bytes,
            buffer=bytearray(),
        )
        while (chunk := chunks.next_chunk()) is not None:
            used = 0
            try:
                for batch in read_batches(
                    chunk, position=chunks.position, max_decompressed_bytes=max_decompressed_bytes, file=file.url
                ):
                    used += batch.size_bytes
                    yield batch
            except CorruptBatch as error:
                if not segment.ends_in_zeros(file, error.position):
                    raise
                return
            if not chunks.advance(used):
                break
            chunks.buffer = bytearray()  # batches are views of the old buffer, and callers may keep them
        if damage := chunks.refused or segment.cut(file, chunks.position, size):
            raise damage
