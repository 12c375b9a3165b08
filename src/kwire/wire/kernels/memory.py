"""Loads, stores and copies at raw addresses.

An address is an int64. Nothing here checks bounds: callers check ranges where they come from outside.
Names say the byte order: `load_` and `store_` use the machine's, which is little-endian; `load_big_` the wire's.
"""
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

from __future__ import annotations

from kwire.wire.kernels.arrays import WIDE
from kwire.wire.kernels.compiler import inlined
from kwire.wire.kernels.primitives import byte_swap, load, move_exactly, move_wide, store

__all__ = [
    "byte_swap32",
    "byte_swap64",
    "clear_bit",
    "copy_bytes",
    "load_big_int16",
    "load_big_int32",
    "load_big_int64",
    "load_uint8",
    "load_uint32",
    "load_uint64",
    "move_exactly",
    "store_int32",
    "store_int64",
    "store_uint8",
]

LONGEST_WIDE_COPY = 512  # beyond it memcpy wins (measured, 100 B to 1 KB values)

load_uint8, load_uint32, load_uint64 = (load(bits) for bits in (8, 32, 64))
load_big_int16, load_big_int32, load_big_int64 = (load(bits, swap=True, signed=True) for bits in (16, 32, 64))
store_uint8, store_int32, store_int64 = (store(bits) for bits in (8, 32, 64))
byte_swap32, byte_swap64 = byte_swap(32), byte_swap(64)


@inlined
def copy_bytes(target, source, n, source_end):
    """Copy n bytes. target needs WIDE spare bytes after them; nothing at or after source_end is read."""
    if n <= LONGEST_WIDE_COPY and source + n + WIDE <= source_end:
        done = 0
        while done < n:
            move_wide(target + done, source + done)
            done += WIDE
    else:
        move_exactly(target, source, n)


@inlined
def clear_bit(bitmap, index):
    """Clear one bit of an Arrow validity bitmap: the value at index is null."""
    at = bitmap + (index >> 3)
    store_uint8(at, load_uint8(at) & ~(1 << (index & 7)))
