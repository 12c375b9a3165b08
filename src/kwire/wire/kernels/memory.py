"""Loads, stores and copies at raw addresses: the names that the kernels of all packages use.

An address is an int64. Nothing here checks bounds: callers check the ranges that come from outside.

    name                                    byte order     value
    load_byte, store_byte                   -              int64 from 0 to 255
    load_int8, _int32, _int64               little         int64, sign-extended
    store_int16, _int32, _int64             little         the low bits of an int64
    load_big_int16, _int32, _int64          big            int64, sign-extended
    load_big_uint16, _uint32                big            int64, zero-extended
    store_big_int16, _int32, _int64         big            the low bits of an int64
    load_uint8, _uint32, _uint64            little         a number of this very type, whose arithmetic wraps (hashes)
    int32_at, int64_at, set_*               little         element i of an array: of an Arrow buffer or a kernel's table

Little-endian is the byte order of every machine that kernels are compiled for, and of Arrow; big-endian is that of the
wire and of MessagePack.
"""

from __future__ import annotations

from kwire.wire.kernels.arrays import WIDE
from kwire.wire.kernels.compiler import inlined, kernel
from kwire.wire.kernels.primitives import copy_word, load, move, move_exactly, move_wide, store

__all__ = [
    "clear_bit",
    "copy_bytes",
    "copy_int64",
    "copy_short",
    "equal_bytes",
    "int32_at",
    "int64_at",
    "load_big_int16",
    "load_big_int32",
    "load_big_int64",
    "load_big_uint16",
    "load_big_uint32",
    "load_byte",
    "load_int8",
    "load_int32",
    "load_int64",
    "load_uint8",
    "load_uint32",
    "load_uint64",
    "move_exactly",
    "set_int32",
    "set_int64",
    "store_big_int16",
    "store_big_int32",
    "store_big_int64",
    "store_byte",
    "store_int16",
    "store_int32",
    "store_int64",
]

LONGEST_SHORT_COPY = 32  # copy_short: beyond it a call of memmove wins
LONGEST_WIDE_COPY = 512  # copy_bytes: beyond it memcpy wins (measured, 100 B to 1 KB values)

load_byte, load_int8, load_int32, load_int64 = load(8, signed=False), *(load(n, signed=True) for n in (8, 32, 64))
load_uint8, load_uint32, load_uint64 = (load(bits) for bits in (8, 32, 64))
load_big_int16, load_big_int32, load_big_int64 = (load(bits, swap=True, signed=True) for bits in (16, 32, 64))
load_big_uint16, load_big_uint32 = (load(bits, swap=True, signed=False) for bits in (16, 32))
store_byte, store_int16, store_int32, store_int64 = (store(bits) for bits in (8, 16, 32, 64))
store_big_int16, store_big_int32, store_big_int64 = (store(bits, swap=True) for bits in (16, 32, 64))
copy_int64 = copy_word(64)


@inlined
def int32_at(array: int, i: int) -> int:
    """Return element i of an array of int32."""
    value: int = load_int32(array + 4 * i)
    return value


@inlined
def int64_at(array: int, i: int) -> int:
    """Return element i of an array of int64."""
    value: int = load_int64(array + 8 * i)
    return value


@inlined
def set_int32(array: int, i: int, value: int) -> None:
    """Set element i of an array of int32."""
    store_int32(array + 4 * i, value)


@inlined
def set_int64(array: int, i: int, value: int) -> None:
    """Set element i of an array of int64."""
    store_int64(array + 8 * i, value)


@inlined
def clear_bit(bitmap: int, index: int) -> None:
    """Clear one bit of an Arrow validity bitmap: the value at index is null."""
    at = bitmap + (index >> 3)
    store_byte(at, load_byte(at) & ~(1 << (index & 7)))


@inlined
def copy_bytes(target: int, source: int, n: int, source_end: int) -> None:
    """Copy n bytes. target needs WIDE spare bytes after them; nothing at or after source_end is read."""
    if n <= LONGEST_WIDE_COPY and source + n + WIDE <= source_end:
        done = 0
        while done < n:
            move_wide(target + done, source + done)
            done += WIDE
    else:
        move_exactly(target, source, n)


@kernel
def copy_short(target: int, source: int, n: int) -> None:
    """Copy n bytes, few as a rule, that do not overlap. No byte beyond them is read or written."""
    if n > LONGEST_SHORT_COPY:
        move(target, source, n)
        return
    while n >= 8:
        copy_int64(target, source)
        target += 8
        source += 8
        n -= 8
    while n > 0:
        store_byte(target, load_byte(source))
        target += 1
        source += 1
        n -= 1


@kernel
def equal_bytes(p: int, q: int, n: int) -> bool:
    """Return whether the n bytes at p and the n bytes at q are equal."""
    while n >= 8:
        if load_int64(p) != load_int64(q):
            return False
        p += 8
        q += 8
        n -= 8
    while n > 0:
        if load_byte(p) != load_byte(q):
            return False
        p += 1
        q += 1
        n -= 1
    return True
