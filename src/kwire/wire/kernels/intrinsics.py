"""What kernels are made of, for the compiler: loads and stores at addresses and a few instructions, as LLVM code.

`kwire.wire.kernels.primitives` chooses between this module and `interpreted`, which has the same names.
An address is an int64.
"""
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.ir as ir
import numba.extending
from numba import types
from numba.core import cgutils

__all__ = [
    "apart",
    "byte_swap",
    "copy_word",
    "crc32c_byte",
    "crc32c_word",
    "double_bits",
    "equal_doubles",
    "load",
    "move",
    "move_exactly",
    "move_wide",
    "store",
]

Emitted = Any
"""What numba's and llvmlite's code generation passes around; neither has types for it."""
Intrinsic = Any
"""A function for kernels to call; numba's stubs take the typing context for an argument of callers."""

BYTE, WORD = ir.IntType(8), ir.IntType(64)
POINTER = BYTE.as_pointer()
WIDE_BYTES = 32


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
    return numba.extending.intrinsic(wrapper)


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


def emit_wide_move(context: Emitted, builder: Emitted, arguments: Emitted) -> Emitted:
    """Emit one unaligned move of 32 bytes from the second address to the first."""
    kind = ir.VectorType(BYTE, WIDE_BYTES)
    value = builder.load(pointer_at(builder, arguments[1], kind), align=1)
    builder.store(value, pointer_at(builder, arguments[0], kind), align=1)
    return context.get_dummy_value()


def emit_memcpy(context: Emitted, builder: Emitted, arguments: Emitted) -> Emitted:
    """Emit a memcpy of (target, source, size)."""
    target, source = (pointer_at(builder, address, BYTE) for address in arguments[:2])
    cgutils.raw_memcpy(builder, target, source, arguments[2], 1)
    return context.get_dummy_value()


def copy_word(bits: int) -> Emitted:
    """Make an intrinsic that copies a number of the given width from the second address to the first."""

    def emit(context: Emitted, builder: Emitted, args: Emitted) -> Emitted:
        kind = ir.IntType(bits)
        value = builder.load(pointer_at(builder, args[1], kind), align=1)
        builder.store(value, pointer_at(builder, args[0], kind), align=1)
        return context.get_dummy_value()

    return operation(types.void(types.int64, types.int64), emit)


def _emit_move(context: Emitted, builder: Emitted, args: Emitted) -> Emitted:
    move = builder.module.declare_intrinsic("llvm.memmove", [POINTER, POINTER, WORD])
    target, source = (pointer_at(builder, a, BYTE) for a in args[:2])
    builder.call(move, [target, source, args[2], ir.Constant(ir.IntType(1), 0)])
    return context.get_dummy_value()


def _emit_apart(context: Emitted, builder: Emitted, args: Emitted) -> Emitted:
    builder.function.attributes.add("noinline")
    return context.get_dummy_value()


def _emit_double_bits(context: Emitted, builder: Emitted, args: Emitted) -> Emitted:
    return builder.bitcast(builder.sitofp(args[0], ir.DoubleType()), WORD)


def _emit_equal_doubles(context: Emitted, builder: Emitted, args: Emitted) -> Emitted:
    a, b = (builder.bitcast(x, ir.DoubleType()) for x in args)
    return builder.zext(builder.fcmp_ordered("==", a, b), WORD)


def _external(name: str, number: Emitted, word: Emitted) -> Intrinsic:
    """Make a call of an instruction that differs between processors: `kwire.native.build` defines the function."""
    kind = ir.FunctionType(ir.IntType(number.bitwidth), [ir.IntType(number.bitwidth), ir.IntType(word.bitwidth)])

    def emit(context: Emitted, builder: Emitted, arguments: Emitted) -> Emitted:
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)

    return operation(number(number, word), emit)


move_wide = operation(types.void(types.int64, types.int64), emit_wide_move)
move_exactly = operation(types.void(types.int64, types.int64, types.int64), emit_memcpy)
apart = operation(types.void(), _emit_apart)
"""Keeps the helper that says it out of its callers' code: what is rare must not cost the rest its registers."""
move = operation(types.void(types.int64, types.int64, types.int64), _emit_move)
double_bits = operation(types.int64(types.int64), _emit_double_bits)
equal_doubles = operation(types.int64(types.int64, types.int64), _emit_equal_doubles)
crc32c_word = _external("kwire_crc32c_word", types.uint64, types.uint64)
crc32c_byte = _external("kwire_crc32c_byte", types.uint32, types.uint8)
