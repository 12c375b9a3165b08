"""Arrow memory for the output of kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import pyarrow as pa

__all__ = ["allocate_together", "bitmap_bytes"]

K = TypeVar("K")
ALIGNMENT = 64  # of Arrow's buffers


def allocate_together(sizes: Mapping[K, int], begins: Mapping[K, bytes]) -> dict[K, pa.Buffer]:
    """Allocate buffers as parts of one, which cannot grow: each allocation waits for the interpreter's lock twice.

    sizes: in bytes. begins: what some begin with.
    """
    room = {each: -(-size // ALIGNMENT) * ALIGNMENT for each, size in sizes.items()}
    whole = pa.allocate_buffer(sum(room.values()))
    view, parts, at = memoryview(whole).cast("B"), dict[K, pa.Buffer](), 0
    for each, size in sizes.items():
        begin = begins.get(each, b"")
        view[at : at + len(begin)] = begin
        parts[each] = whole.slice(at, size)
        at += room[each]
    return parts


def bitmap_bytes(bits: int) -> int:
    """Return the size of a bitmap."""
    return (bits + 7) // 8
