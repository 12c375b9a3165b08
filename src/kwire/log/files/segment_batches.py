"""Read the batches of one segment as objects."""

from __future__ import annotations

from collections.abc import Iterator

from kwire.log.files.chunks import BatchWalk
from kwire.log.files.segment import Segment
from kwire.records import DEFAULT_MAX_DECOMPRESSED_BYTES, Batch
from kwire.storage.store import StoredFile

__all__ = ["open_batches", "segment_batches"]


def segment_batches(
    segment: Segment, start_offset: int = 0, *, max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES
) -> Iterator[Batch]:
    """Iterate over the batches of a segment from the one that contains start_offset on.

    Ends silently where a growing log ends: inside a batch, or in zeros at the end of the active segment.
    Raises CorruptBatch for other bytes that are not a batch, LogError.
    """
    with segment.open() as file:
        yield from open_batches(segment, file, start_offset, max_decompressed_bytes=max_decompressed_bytes)


def open_batches(
    segment: Segment,
    file: StoredFile,
    start_offset: int = 0,
    *,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> Iterator[Batch]:
    """Iterate over the same batches from the open file of a segment."""
    walk = BatchWalk(
        file,
        segment.position_of(file, start_offset),
        max_batch_bytes=max_decompressed_bytes,
        max_decompressed_bytes=max_decompressed_bytes,
    )
    yield from walk
    damage = walk.damage
    if damage is not None and segment.ends_in_zeros(file, damage.position):
        return
    if damage := damage or segment.cut(file, walk.position, walk.stop):
        raise damage
