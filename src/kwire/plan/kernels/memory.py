"""Numbers of the wire and tokens of MessagePack at addresses.

An address is an int64. Nothing here checks bounds: the caller has. `ld` loads an int64, `st` stores one; numbers on the
wire and in MessagePack are big-endian, hence swapped; `ldw` and `stw` are words of our own tables in machine order.
"""

from __future__ import annotations

from kwire.wire.kernels.compiler import inlined, kernel
from kwire.wire.kernels.primitives import copy_word, load, move, store

ld8, ld8s = load(8, signed=False), load(8, signed=True)
ld16, ld16s = load(16, swap=True, signed=False), load(16, swap=True, signed=True)
ld32, ld32s = load(32, swap=True, signed=False), load(32, swap=True, signed=True)
ld64, ldw = load(64, swap=True, signed=True), load(64, signed=True)
st8, st16, st32, st64 = (store(bits, swap=bits > 8) for bits in (8, 16, 32, 64))
stn16, stn32, stw = (store(bits) for bits in (16, 32, 64))
cp16, cp32, cp64 = (copy_word(bits) for bits in (16, 32, 64))


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
