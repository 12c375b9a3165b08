"""Search for a possible batch start after damaged bytes, by the header's fields and without checksums.

Reads the fields of `kwire.records.batch_header` at every position; writes nothing.
"""
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

from __future__ import annotations

from kwire.records.batch_header import (
    COUNT_POSITION,
    DEFAULT_HEADER_BYTES,
    FRAME_BYTES,
    LAST_OFFSET_DELTA_POSITION,
    MAGIC_POSITION,
    SIZE_POSITION,
    SMALLEST_DEFAULT_SIZE,
    SMALLEST_SIZE,
)
from kwire.wire.kernels.compiler import export
from kwire.wire.kernels.memory import load_big_int32, load_big_int64, load_byte

__all__ = ["find_header"]


@export
def find_header(start: int, length: int, position: int, left: int, floor: int, ceiling: int) -> int:
    """Return the first position in [position, length) where the header of a batch can be; -1 if there is none.

    start, length: address and number of the bytes. A header that they cut off is not found.
    left: bytes from address start to the end of the file; no batch extends beyond it.
    floor, ceiling: the batch's offsets are in [floor, ceiling).
    """
    while position + DEFAULT_HEADER_BYTES <= length:
        at = start + position
        magic = load_byte(at + MAGIC_POSITION)
        if magic <= 2:
            size = load_big_int32(at + SIZE_POSITION)
            offset = load_big_int64(at)
            if SMALLEST_SIZE <= size <= left - position - FRAME_BYTES and floor <= offset < ceiling:
                if magic < 2:
                    return position
                delta = load_big_int32(at + LAST_OFFSET_DELTA_POSITION)
                if (
                    size >= SMALLEST_DEFAULT_SIZE
                    and 0 <= delta < ceiling - offset
                    and load_big_int32(at + COUNT_POSITION) >= 0
                ):
                    return position
        position += 1
    return -1
