"""Loads, stores and copies at raw addresses, and the intrinsics they are made of.

An address is an int64. Nothing here checks bounds: callers check ranges where they come from outside.
Names say the byte order: `load_` and `store_` use the machine's, which is little-endian; `load_big_` the wire's.
"""
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.ir as ir
import numba.extending
from numba import njit, types
from numba.core import cgutils

__all__ = [
    "WIDE",
    "Emitted",
    "byte_swap32",
    "byte_swap64",
    "clear_bit",
    "copy_bytes",
    "load",
    "load_big_int16",
    "load_big_int32",
    "load_big_int64",
    "load_uint8",
    "load_uint32",
    "load_uint64",
    "move_exactly",
    "operation",
    "pointer_at",
    "store",
    "store_int32",
    "store_int64",
    "store_uint8",
]

Emitted = Any
"""What numba's and llvmlite's code generation passes around; neither has types for it."""
Intrinsic = Any
"""A function for kernels to call; numba's stubs take the typing context for an argument of callers."""

intrinsic: Any = numba.extending.intrinsic

WORD = ir.IntType(64)
WIDE = 32  # bytes of one vector move
LONGEST_WIDE_COPY = 512  # beyond it memcpy wins (measured, 100 B to 1 KB values)


def pointer_at(builder: Emitted, address: Emitted, kind: Emitted) -> Emitted:
    """Make a pointer to the address, in a function for which no pointer is null.

    numba lowers a helper, links the result into its callers and optimizes it again. Lowered, `base + 16 * i` may be a
    pointer of 16 * i indexed by base: null for i = 0, so LLVM took the first round of a loop for undefined behaviour
    and dropped it. (Only in code loaded from the cache; otherwise the helper's own library serves.)
    """
    set.add(builder.function.attributes, "null_pointer_is_valid")  # llvmlite does not know this attribute
    return builder.inttoptr(address, kind.as_pointer())


def operation(signature: Emitted, emit: Callable[..., Emitted]) -> Intrinsic:
    """Make an intrinsic of fixed signature: emit(context, builder, arguments) returns an LLVM value."""

    def typed(typing_context: Emitted, *arguments: Emitted) -> Emitted:
        return signature, lambda context, builder, _, values: emit(context, builder, values)

    # numba counts the arguments of the function it is given
    names = ", ".join(f"a{i}" for i in range(len(signature.args)))
    wrapper = eval(
        f"lambda typing_context{', ' if names else ''}{names}: typed(typing_context, {names})", {"typed": typed}
    )
    return intrinsic(wrapper)


def load(bits: int, *, swap: bool = False, signed: bool | None = None) -> Intrinsic:
    """Make an intrinsic that loads a number of the given width, at any alignment.

    swap: big-endian. signed: extend to int64 with or without the sign; None: an unsigned number of this width.
    """

    def emit(context: Emitted, builder: Emitted, arguments: Emitted) -> Emitted:
        value = builder.load(pointer_at(builder, arguments[0], ir.IntType(bits)), align=1)
        if swap:
            value = builder.bswap(value)
        if signed is None or bits == 64:
            return value
        return builder.sext(value, WORD) if signed else builder.zext(value, WORD)

    kind = getattr(types, f"uint{bits}") if signed is None else types.int64
    return operation(kind(types.int64), emit)


def store(bits: int, *, swap: bool = False) -> Intrinsic:
    """Make an intrinsic that stores the low bits of an int64, at any alignment. swap: big-endian."""

    def emit(context: Emitted, builder: Emitted, arguments: Emitted) -> Emitted:
        value = arguments[1] if bits == 64 else builder.trunc(arguments[1], ir.IntType(bits))
        pointer = pointer_at(builder, arguments[0], ir.IntType(bits))
        builder.store(builder.bswap(value) if swap else value, pointer, align=1)
        return context.get_dummy_value()

    return operation(types.void(types.int64, types.int64), emit)


def byte_swap(bits: int) -> Intrinsic:
    """Make an intrinsic that reverses the bytes of an unsigned number."""
    number = getattr(types, f"uint{bits}")
    return operation(number(number), lambda context, builder, arguments: builder.bswap(arguments[0]))


load_uint8, load_uint32, load_uint64 = (load(bits) for bits in (8, 32, 64))
load_big_int16, load_big_int32, load_big_int64 = (load(bits, swap=True, signed=True) for bits in (16, 32, 64))
store_uint8, store_int32, store_int64 = (store(bits) for bits in (8, 32, 64))
byte_swap32, byte_swap64 = byte_swap(32), byte_swap(64)


def emit_wide_move(context: Emitted, builder: Emitted, arguments: Emitted) -> Emitted:
    """Emit one unaligned move of WIDE bytes from the second address to the first."""
    kind = ir.VectorType(ir.IntType(8), WIDE)
    value = builder.load(pointer_at(builder, arguments[1], kind), align=1)
    builder.store(value, pointer_at(builder, arguments[0], kind), align=1)
    return context.get_dummy_value()


def emit_memcpy(context: Emitted, builder: Emitted, arguments: Emitted) -> Emitted:
    """Emit a memcpy of (target, source, size)."""
    target, source = (pointer_at(builder, address, ir.IntType(8)) for address in arguments[:2])
    cgutils.raw_memcpy(builder, target, source, arguments[2], 1)
    return context.get_dummy_value()


move_wide = operation(types.void(types.int64, types.int64), emit_wide_move)
move_exactly = operation(types.void(types.int64, types.int64, types.int64), emit_memcpy)


@njit(inline="always")
def copy_bytes(target, source, n, source_end):
    """Copy n bytes. target needs WIDE spare bytes after them; nothing at or after source_end is read."""
    if n <= LONGEST_WIDE_COPY and source + n + WIDE <= source_end:
        done = 0
        while done < n:
            move_wide(target + done, source + done)
            done += WIDE
    else:
        move_exactly(target, source, n)


@njit(inline="always")
def clear_bit(bitmap, index):
    """Clear one bit of an Arrow validity bitmap: the value at index is null."""
    at = bitmap + (index >> 3)
    store_uint8(at, load_uint8(at) & ~(1 << (index & 7)))
