"""MessagePack as msgspec writes it: one token at a time, at addresses.

The first byte of a token has the kind of value, and its size or the width of the size:

    00 to 7F, E0 to FF    MP_NEGATIVE       integers from -32 to 127, in the byte itself
    80, 90, A0            MP_MAP, _ARRAY, _STRING    with the count in the low 4 bits (strings: 5)
    C0, C2, C3            MP_NIL, _FALSE, _TRUE
    C4 to C6              MP_BIN8 to 32     binary, size of 1, 2 or 4 bytes
    C7 to C9, D4 to D8    MP_EXT8 to 32, MP_FIXEXT   extensions: a byte for the type; C7 to C9 have a size
    CA, CB                MP_FLOAT32, _FLOAT64
    CC to CF, D0 to D3    MP_UINT8 to 64, MP_INT8 to 64
    D9 to DB              MP_STRING8 to 32  size of 1, 2 or 4 bytes
    DC to DF              MP_ARRAY16, _ARRAY32, MP_MAP16, _MAP32

All numbers are big-endian. Nothing here checks bounds: the values come from msgspec or from a plan, complete and
well-formed.
Source: https://github.com/msgpack/msgpack/blob/master/spec.md
"""

from __future__ import annotations

from kwire.wire.kernels.compiler import inlined, kernel
from kwire.wire.kernels.memory import (
    load_big_int16,
    load_big_int32,
    load_big_int64,
    load_big_uint16,
    load_big_uint32,
    load_byte,
    load_int8,
)

MP_MAP, MP_ARRAY, MP_STRING, MP_NEGATIVE = 0x80, 0x90, 0xA0, 0xE0
MP_NIL, MP_FALSE, MP_TRUE = 0xC0, 0xC2, 0xC3
MP_BIN8, MP_BIN16, MP_BIN32, MP_EXT8, MP_EXT16, MP_EXT32, MP_FLOAT32, MP_FLOAT64 = range(0xC4, 0xCC)
MP_UINT8, MP_UINT16, MP_UINT32, MP_UINT64, MP_INT8, MP_INT16, MP_INT32, MP_INT64 = range(0xCC, 0xD4)
MP_FIXEXT, MP_STRING8, MP_STRING16, MP_STRING32 = 0xD4, 0xD9, 0xDA, 0xDB
MP_ARRAY16, MP_ARRAY32, MP_MAP16, MP_MAP32 = range(0xDC, 0xE0)


@inlined
def read_array_header(p: int) -> tuple[int, int]:
    """Return the number of values, -1 if this is not an array, and the address after the header."""
    b = load_byte(p)
    if b & 0xF0 == MP_ARRAY:
        return b & 15, p + 1
    if b == MP_ARRAY16:
        return load_big_uint16(p + 1), p + 3
    if b == MP_ARRAY32:
        return load_big_uint32(p + 1), p + 5
    return -1, p


@inlined
def read_bytes_header(p: int) -> tuple[int, int]:
    """Return the number of bytes, -1 if this is not binary, and the address of the first."""
    b = load_byte(p)
    if b == MP_BIN8:
        return load_byte(p + 1), p + 2
    if b == MP_BIN16:
        return load_big_uint16(p + 1), p + 3
    if b == MP_BIN32:
        return load_big_uint32(p + 1), p + 5
    return -1, p


@inlined
def read_text_header(p: int) -> tuple[int, int]:
    """Return the number of UTF-8 bytes, -1 if this is not a string, and the address of the first."""
    b = load_byte(p)
    if b & 0xE0 == MP_STRING:
        return b & 31, p + 1
    if b == MP_STRING8:
        return load_byte(p + 1), p + 2
    if b == MP_STRING16:
        return load_big_uint16(p + 1), p + 3
    if b == MP_STRING32:
        return load_big_uint32(p + 1), p + 5
    return -1, p


@inlined
def read_int(p: int) -> tuple[int, int]:
    """Return an integer and the address after it; address 0 if this is not an integer or exceeds int64."""
    b = load_byte(p)
    if b < MP_MAP:
        return b, p + 1
    if b >= MP_NEGATIVE:
        return b - 256, p + 1
    if b == MP_UINT8:
        return load_byte(p + 1), p + 2
    if b == MP_UINT16:
        return load_big_uint16(p + 1), p + 3
    if b == MP_UINT32:
        return load_big_uint32(p + 1), p + 5
    if b == MP_INT8:
        return load_int8(p + 1), p + 2
    if b == MP_INT16:
        return load_big_int16(p + 1), p + 3
    if b == MP_INT32:
        return load_big_int32(p + 1), p + 5
    if b == MP_INT64 or (b == MP_UINT64 and load_byte(p + 1) < 0x80):
        return load_big_int64(p + 1), p + 9
    return 0, 0


@kernel
def token(p: int) -> tuple[int, int]:
    """Read the token at p: (address after it, how many values follow that are part of it)."""
    b = load_byte(p)
    if b < MP_MAP or b >= MP_NEGATIVE or b == MP_NIL or b == MP_FALSE or b == MP_TRUE:
        return p + 1, 0
    if b < MP_ARRAY:
        return p + 1, 2 * (b & 15)
    if b < MP_STRING:
        return p + 1, b & 15
    if b < MP_NIL:
        return p + 1 + (b & 31), 0
    if b == MP_BIN8 or b == MP_STRING8:
        return p + 2 + load_byte(p + 1), 0
    if b == MP_BIN16 or b == MP_STRING16:
        return p + 3 + load_big_uint16(p + 1), 0
    if b == MP_BIN32 or b == MP_STRING32:
        return p + 5 + load_big_uint32(p + 1), 0
    if b == MP_UINT8 or b == MP_INT8:
        return p + 2, 0
    if b == MP_UINT16 or b == MP_INT16:
        return p + 3, 0
    if b == MP_FLOAT32 or b == MP_UINT32 or b == MP_INT32:
        return p + 5, 0
    if b == MP_FLOAT64 or b == MP_UINT64 or b == MP_INT64:
        return p + 9, 0
    if b == MP_ARRAY16:
        return p + 3, load_big_uint16(p + 1)
    if b == MP_ARRAY32:
        return p + 5, load_big_uint32(p + 1)
    if b == MP_MAP16:
        return p + 3, 2 * load_big_uint16(p + 1)
    if b == MP_MAP32:
        return p + 5, 2 * load_big_uint32(p + 1)
    if b == MP_EXT8:
        return p + 3 + load_byte(p + 1), 0
    if b == MP_EXT16:
        return p + 4 + load_big_uint16(p + 1), 0
    if b == MP_EXT32:
        return p + 6 + load_big_uint32(p + 1), 0
    return p + 2 + (1 << (b - MP_FIXEXT)), 0  # an extension of 1, 2, 4, 8 or 16 bytes


@kernel
def skip(p: int) -> int:
    """Return the address after the value at p."""
    values = 1
    while values > 0:
        p, inside = token(p)
        values += inside - 1
    return p
