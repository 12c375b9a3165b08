"""Loads, stores and copies at addresses, and the few C functions of Python that the kernels call.

An address is an int64. Nothing here checks bounds: the caller has. `ld` loads an int64, `st` stores one; numbers on the
wire and in MessagePack are big-endian, hence swapped; `ldw` and `stw` are words of our own tables in machine order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import llvmlite.ir as ir
import numba.core.cgutils
import numba.extending
from numba import njit, types

from kwire.wire.kernels.memory import Emitted, load, operation, pointer_at, store

F = TypeVar("F", bound=Callable[..., object])

# numba is mostly untyped
cgutils: Any = numba.core.cgutils
extending: Any = numba.extending

BYTE, WORD = ir.IntType(8), ir.IntType(64)
POINTER = BYTE.as_pointer()


def kernel(function: F) -> F:
    """Compile a helper: no Python objects, C's division, no numba bounds checks (it uses addresses, not arrays)."""
    return cast(F, njit(error_model="numpy")(function))


def inlined(function: F) -> F:
    """Compile a helper into its callers' code: a call of numba's costs as much as reading a small number."""
    return cast(F, njit(error_model="numpy", forceinline=True)(function))


def separate(function: F) -> F:
    """Compile a helper that stays out of its callers' code if it begins with `apart()`; it would inherit inlining."""
    return cast(F, njit(error_model="numpy", forceinline=False)(function))


def _copy(bits: int) -> Emitted:
    def emit(context: Emitted, builder: Emitted, args: Emitted) -> Emitted:
        kind = ir.IntType(bits)
        value = builder.load(pointer_at(builder, args[1], kind), align=1)
        builder.store(value, pointer_at(builder, args[0], kind), align=1)
        return context.get_dummy_value()

    return operation(types.void(types.int64, types.int64), emit)


ld8, ld8s = load(8, signed=False), load(8, signed=True)
ld16, ld16s = load(16, swap=True, signed=False), load(16, swap=True, signed=True)
ld32, ld32s = load(32, swap=True, signed=False), load(32, swap=True, signed=True)
ld64, ldw = load(64, swap=True, signed=True), load(64, signed=True)
st8, st16, st32, st64 = (store(bits, swap=bits > 8) for bits in (8, 16, 32, 64))
stn16, stn32, stw = (store(bits) for bits in (16, 32, 64))
cp16, cp32, cp64 = (_copy(bits) for bits in (16, 32, 64))


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


apart = operation(types.void(), _emit_apart)
"""Keeps the helper that says it out of its callers' code: what is rare must not cost the rest its registers."""
move = operation(types.void(types.int64, types.int64, types.int64), _emit_move)
double_bits = operation(types.int64(types.int64), _emit_double_bits)
equal_doubles = operation(types.int64(types.int64, types.int64), _emit_equal_doubles)


@kernel
def copy(target: int, source: int, n: int) -> None:
    """n bytes that do not overlap. Most are short: words, then single bytes, beat a call of memmove up to 32."""
    if n > 32:
        move(target, source, n)
        return
    while n >= 8:
        cp64(target, source)
        target += 8
        source += 8
        n -= 8
    while n > 0:
        st8(target, ld8(source))
        target += 1
        source += 1
        n -= 1


@kernel
def same(p: int, q: int, n: int) -> bool:
    """Whether n bytes at both addresses are equal; both must have n."""
    while n >= 8:
        if ldw(p) != ldw(q):
            return False
        p += 8
        q += 8
        n -= 8
    while n > 0:
        if ld8(p) != ld8(q):
            return False
        p += 1
        q += 1
        n -= 1
    return True


# Unsigned varints


@inlined
def read_uvarint(p: int, end: int) -> tuple[int, int]:
    """(value, address after it); address 0 when it is cut or longer than 5 bytes. Bits above 32 are dropped (W-10)."""
    value = 0
    shift = 0
    while p < end and shift <= 28:
        byte = ld8(p)
        p += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFF, p
        shift += 7
    return 0, 0


@inlined
def write_uvarint(o: int, value: int) -> int:
    """Address after the number."""
    while value >= 0x80:
        st8(o, value & 0x7F | 0x80)
        o += 1
        value >>= 7
    st8(o, value)
    return o + 1


@inlined
def read_uvarlong(p: int, end: int) -> tuple[int, int]:
    """(the 64 bits, address after it); address 0 when it is cut or longer than 10 bytes. Bits above 64 are dropped."""
    value = 0
    shift = 0
    while p < end and shift <= 63:
        byte = ld8(p)
        p += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, p
        shift += 7
    return 0, 0


@inlined
def write_uvarlong(o: int, value: int) -> int:
    """Address after the number, which is all 64 bits of value without a sign."""
    while value & ~0x7F:
        st8(o, value & 0x7F | 0x80)
        o += 1
        value = value >> 7 & 0x01FF_FFFF_FFFF_FFFF
    st8(o, value)
    return o + 1


# MessagePack: what msgspec writes and reads. Only complete, well-formed values come here.


@inlined
def write_array_header(o: int, n: int) -> int:
    """Address after the header of an array of n values."""
    if n < 16:
        st8(o, 0x90 | n)
        return o + 1
    if n < 65536:
        st8(o, 0xDC)
        st16(o + 1, n)
        return o + 3
    st8(o, 0xDD)
    st32(o + 1, n)
    return o + 5


@inlined
def write_int(o: int, value: int) -> int:
    """Address after an integer in a short form; up to 9 bytes."""
    if -32 <= value < 128:
        st8(o, value & 0xFF)
        return o + 1
    if -0x8000 <= value <= 0x7FFF:
        st8(o, 0xD1)
        st16(o + 1, value)
        return o + 3
    if -0x80000000 <= value <= 0x7FFFFFFF:
        st8(o, 0xD2)
        st32(o + 1, value)
        return o + 5
    st8(o, 0xD3)
    st64(o + 1, value)
    return o + 9


@inlined
def read_array_header(p: int) -> tuple[int, int]:
    """Return the number of values, -1 if this is not an array, and the address after the header."""
    b = ld8(p)
    if b & 0xF0 == 0x90:
        return b & 15, p + 1
    if b == 0xDC:
        return ld16(p + 1), p + 3
    if b == 0xDD:
        return ld32(p + 1), p + 5
    return -1, p


@inlined
def read_bytes_header(p: int) -> tuple[int, int]:
    """Return the number of bytes, -1 if this is not binary, and the address of the first."""
    b = ld8(p)
    if b == 0xC4:
        return ld8(p + 1), p + 2
    if b == 0xC5:
        return ld16(p + 1), p + 3
    if b == 0xC6:
        return ld32(p + 1), p + 5
    return -1, p


@inlined
def read_text_header(p: int) -> tuple[int, int]:
    """Return the number of UTF-8 bytes, -1 if this is not a string, and the address of the first."""
    b = ld8(p)
    if b & 0xE0 == 0xA0:
        return b & 31, p + 1
    if b == 0xD9:
        return ld8(p + 1), p + 2
    if b == 0xDA:
        return ld16(p + 1), p + 3
    if b == 0xDB:
        return ld32(p + 1), p + 5
    return -1, p


@inlined
def read_int(p: int) -> tuple[int, int]:
    """Return an integer and the address after it; address 0 if this is not an integer or exceeds int64."""
    b = ld8(p)
    if b < 0x80:
        return b, p + 1
    if b >= 0xE0:
        return b - 256, p + 1
    if b == 0xCC:
        return ld8(p + 1), p + 2
    if b == 0xCD:
        return ld16(p + 1), p + 3
    if b == 0xCE:
        return ld32(p + 1), p + 5
    if b == 0xD0:
        return ld8s(p + 1), p + 2
    if b == 0xD1:
        return ld16s(p + 1), p + 3
    if b == 0xD2:
        return ld32s(p + 1), p + 5
    if b == 0xD3 or (b == 0xCF and ld8(p + 1) < 0x80):
        return ld64(p + 1), p + 9
    return 0, 0


@kernel
def token(p: int) -> tuple[int, int]:
    """(address after the token at p, values that belong inside it): one step of walking a MessagePack value."""
    b = ld8(p)
    if b < 0x80 or b >= 0xE0 or b == 0xC0 or b == 0xC2 or b == 0xC3:
        return p + 1, 0
    if b < 0x90:
        return p + 1, 2 * (b & 15)
    if b < 0xA0:
        return p + 1, b & 15
    if b < 0xC0:
        return p + 1 + (b & 31), 0
    if b == 0xC4 or b == 0xD9:
        return p + 2 + ld8(p + 1), 0
    if b == 0xC5 or b == 0xDA:
        return p + 3 + ld16(p + 1), 0
    if b == 0xC6 or b == 0xDB:
        return p + 5 + ld32(p + 1), 0
    if b == 0xCC or b == 0xD0:
        return p + 2, 0
    if b == 0xCD or b == 0xD1:
        return p + 3, 0
    if b == 0xCA or b == 0xCE or b == 0xD2:
        return p + 5, 0
    if b == 0xCB or b == 0xCF or b == 0xD3:
        return p + 9, 0
    if b == 0xDC:
        return p + 3, ld16(p + 1)
    if b == 0xDD:
        return p + 5, ld32(p + 1)
    if b == 0xDE:
        return p + 3, 2 * ld16(p + 1)
    if b == 0xDF:
        return p + 5, 2 * ld32(p + 1)
    if b == 0xC7:
        return p + 3 + ld8(p + 1), 0
    if b == 0xC8:
        return p + 4 + ld16(p + 1), 0
    if b == 0xC9:
        return p + 6 + ld32(p + 1), 0
    return p + 2 + (1 << (b - 0xD4)), 0  # D4 to D8: an extension of 1, 2, 4, 8 or 16 bytes


@kernel
def skip(p: int) -> int:
    """Address after the value at p."""
    values = 1
    while values > 0:
        p, inside = token(p)
        values += inside - 1
    return p


# Python objects. The kernels that touch them run with the GIL held, and are called straight from Python.


class Handle(types.Opaque):
    """A Python object, or NULL with an exception set, as it comes and goes."""

    def __init__(self) -> None:
        super().__init__("kwire.plan.Handle")


HANDLE = Handle()
extending.register_model(Handle)(extending.models.OpaqueModel)


def _unbox(typ: Emitted, obj: Emitted, context: Emitted) -> Emitted:
    return extending.NativeValue(obj)


def _box(typ: Emitted, value: Emitted, context: Emitted) -> Emitted:
    return value


extending.unbox(Handle)(_unbox)
extending.box(Handle)(_box)


def _c_function(name: str, result: Emitted, *parameters: Emitted) -> Callable[[Emitted, list[Emitted]], Emitted]:
    def call(builder: Emitted, args: list[Emitted]) -> Emitted:
        declared = cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, parameters), name)
        return builder.call(declared, args)

    return call


_GET_BUFFER = _c_function("PyObject_GetBuffer", ir.IntType(32), POINTER, POINTER, ir.IntType(32))
_RELEASE_BUFFER = _c_function("PyBuffer_Release", ir.VoidType(), POINTER)
_NEW_BYTES = _c_function("PyBytes_FromStringAndSize", POINTER, POINTER, WORD)
_BYTES_DATA = _c_function("PyBytes_AsString", POINTER, POINTER)
_RESIZE_BYTES = _c_function("_PyBytes_Resize", ir.IntType(32), POINTER.as_pointer(), WORD)
_DECREF = _c_function("Py_DecRef", ir.VoidType(), POINTER)
BUFFER_BYTES = 80  # sizeof(Py_buffer), part of the stable ABI: void *buf, PyObject *obj, Py_ssize_t len, ...
assert BUFFER_BYTES == 10 * 8


def _emit_open(context: Emitted, builder: Emitted, args: Emitted) -> Emitted:
    view = cgutils.alloca_once(builder, BYTE, size=ir.Constant(WORD, BUFFER_BYTES))
    code = _GET_BUFFER(builder, [args[0], view, ir.Constant(ir.IntType(32), 0)])  # PyBUF_SIMPLE: contiguous bytes
    failed = builder.icmp_signed("<", code, ir.Constant(code.type, 0))
    return builder.select(failed, ir.Constant(WORD, 0), builder.ptrtoint(view, WORD))


def _emit_close(context: Emitted, builder: Emitted, args: Emitted) -> Emitted:
    _RELEASE_BUFFER(builder, [builder.inttoptr(args[0], POINTER)])
    return context.get_dummy_value()


def _emit_new(context: Emitted, builder: Emitted, args: Emitted) -> Emitted:
    return builder.ptrtoint(_NEW_BYTES(builder, [builder.inttoptr(args[0], POINTER), args[1]]), WORD)


def _emit_data(context: Emitted, builder: Emitted, args: Emitted) -> Emitted:
    return builder.ptrtoint(_BYTES_DATA(builder, [builder.inttoptr(args[0], POINTER)]), WORD)


def _emit_resize(context: Emitted, builder: Emitted, args: Emitted) -> Emitted:
    slot = cgutils.alloca_once_value(builder, builder.inttoptr(args[0], POINTER))
    _RESIZE_BYTES(builder, [slot, args[1]])
    return builder.ptrtoint(builder.load(slot), WORD)


def _emit_drop(context: Emitted, builder: Emitted, args: Emitted) -> Emitted:
    _DECREF(builder, [builder.inttoptr(args[0], POINTER)])
    return context.get_dummy_value()


def _emit_none(context: Emitted, builder: Emitted, args: Emitted) -> Emitted:
    return context.get_python_api(builder).make_none()


def _emit_handle(context: Emitted, builder: Emitted, args: Emitted) -> Emitted:
    return builder.inttoptr(args[0], POINTER)


open_buffer = operation(types.int64(HANDLE), _emit_open)
"""Address of a Py_buffer (first word: address of the data, third: its length), 0 with an exception set."""
close_buffer = operation(types.void(types.int64), _emit_close)
new_bytes = operation(types.int64(types.int64, types.int64), _emit_new)
"""Address of a new bytes object of (address of its content or 0, size); 0 with an exception set."""
bytes_data = operation(types.int64(types.int64), _emit_data)
resize_bytes = operation(types.int64(types.int64, types.int64), _emit_resize)
"""The bytes object cut to a size, perhaps elsewhere; 0 with an exception set."""
drop = operation(types.void(types.int64), _emit_drop)
none = operation(HANDLE(), _emit_none)
handle = operation(HANDLE(types.int64), _emit_handle)


def stack(size_bytes: int) -> Emitted:
    """An intrinsic: the address of that many bytes on the stack, the same one wherever it is called in one function."""

    def emit(context: Emitted, builder: Emitted, args: Emitted) -> Emitted:
        return builder.ptrtoint(cgutils.alloca_once(builder, BYTE, size=ir.Constant(WORD, size_bytes)), WORD)

    return operation(types.int64(), emit)
