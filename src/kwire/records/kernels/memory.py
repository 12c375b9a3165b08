"""Loads, stores and copies at raw addresses.

Everything here trusts its caller: the ranges are checked where they come from the wire.
"""
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import extending, njit, types
from numba.core import cgutils

__all__ = [
    "WIDE",
    "byte_swap32",
    "byte_swap64",
    "clear_bit",
    "copy_bytes",
    "load_int16",
    "load_int32",
    "load_int64",
    "load_uint8",
    "load_uint32",
    "load_uint64",
    "store_int32",
    "store_int64",
]

intrinsic: Any = extending.intrinsic  # its stubs take the typing context for an argument of callers

WIDE = 32  # bytes of one vector move
LONGEST_WIDE_COPY = 512  # beyond it memcpy wins (measured, 100 B to 1 KB values)


def pointer_at(builder, address, kind):
    """A pointer to the address, in a function for which no pointer is null.

    numba lowers a helper, links the result into its callers and optimizes it again. Lowered, `base + 16 * i` may be a
    pointer of 16 * i indexed by base: null for i = 0, so that LLVM may take the first round of a loop for undefined
    behaviour.
    """
    set.add(builder.function.attributes, "null_pointer_is_valid")  # llvmlite does not know this one
    return builder.inttoptr(address, kind.as_pointer())


def make_load(width):
    """An intrinsic that loads an unsigned number of so many bits, at any alignment, little-endian."""
    number = getattr(types, f"uint{width}")

    @intrinsic
    def load(typing_context, address):
        def generate(context, builder, signature, arguments):
            pointer = pointer_at(builder, arguments[0], ir.IntType(width))
            value = builder.load(pointer)
            value.align = 1
            return value

        return number(types.int64), generate

    return load


def make_store(width):
    """An intrinsic that stores the low bits of an int64, at any alignment, little-endian."""

    @intrinsic
    def store(typing_context, address, value):
        def generate(context, builder, signature, arguments):
            pointer = pointer_at(builder, arguments[0], ir.IntType(width))
            number = arguments[1] if width == 64 else builder.trunc(arguments[1], ir.IntType(width))
            instruction = builder.store(number, pointer)
            instruction.align = 1
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), generate

    return store


def make_byte_swap(width):
    """An intrinsic that reverses the bytes of an unsigned number."""
    number = getattr(types, f"uint{width}")

    @intrinsic
    def byte_swap(typing_context, value):
        def generate(context, builder, signature, arguments):
            return builder.bswap(arguments[0])

        return number(number), generate

    return byte_swap


load_uint8 = make_load(8)
load_uint16 = make_load(16)
load_uint32 = make_load(32)
load_uint64 = make_load(64)
store_uint8 = make_store(8)
store_int32 = make_store(32)
store_int64 = make_store(64)
byte_swap16 = make_byte_swap(16)
byte_swap32 = make_byte_swap(32)
byte_swap64 = make_byte_swap(64)


@intrinsic
def move_wide(typing_context, target, source):
    """One unaligned move of WIDE bytes."""

    def generate(context, builder, signature, arguments):
        kind = ir.VectorType(ir.IntType(8), WIDE)
        value = builder.load(pointer_at(builder, arguments[1], kind))
        value.align = 1
        instruction = builder.store(value, pointer_at(builder, arguments[0], kind))
        instruction.align = 1
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@intrinsic
def move_exactly(typing_context, target, source, n):
    """memcpy."""

    def generate(context, builder, signature, arguments):
        target_at, source_at = (pointer_at(builder, address, ir.IntType(8)) for address in arguments[:2])
        cgutils.raw_memcpy(builder, target_at, source_at, arguments[2], 1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@njit(inline="always")
def copy_bytes(target, source, n, source_end):
    """Copy n bytes. target has WIDE bytes to spare behind them; nothing at or behind source_end is read."""
    if n <= LONGEST_WIDE_COPY and source + n + WIDE <= source_end:
        done = 0
        while done < n:
            move_wide(target + done, source + done)
            done += WIDE
    else:
        move_exactly(target, source, n)


@njit(inline="always")
def load_int64(address):
    """A big-endian int64."""
    return np.int64(byte_swap64(load_uint64(address)))


@njit(inline="always")
def load_int32(address):
    """A big-endian int32, as int64."""
    return np.int64(np.int32(byte_swap32(load_uint32(address))))


@njit(inline="always")
def load_int16(address):
    """A big-endian int16, as int64."""
    return np.int64(np.int16(byte_swap16(load_uint16(address))))


@njit(inline="always")
def clear_bit(bitmap, index):
    """Clear one bit of an Arrow validity bitmap: the value at index is null."""
    at = bitmap + (index >> 3)
    store_uint8(at, np.int64(load_uint8(at)) & ~(1 << (index & 7)))
