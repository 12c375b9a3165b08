"""Varints: seven bits per byte, the lowest first, the high bit set in every byte but the last.

    read_uvarint, read_uvarlong    unsigned: lengths, tags and packed integers of messages
    read_varint                    zig-zag: the numbers of records, and whether each has its shortest form
    write_uvarint                  numbers of 32 bits: lengths and tags
    write_uvarlong                 numbers of 64 bits, and zig-zag numbers

A reader returns (value, address after it, ...); the address is 0 if the number is cut off at `end` or too long. Bits
beyond the type's width are dropped, as Kafka does (W-10).
"""

from __future__ import annotations

from kwire.wire.kernels.compiler import inlined
from kwire.wire.kernels.memory import load_byte, store_byte

__all__ = [
    "VARINT_BYTES",
    "VARLONG_BYTES",
    "read_uvarint",
    "read_uvarlong",
    "read_varint",
    "unzigzag",
    "uvarint_bytes",
    "write_uvarint",
    "write_uvarlong",
    "zigzag",
]

VARINT_BYTES, VARLONG_BYTES = 5, 10
"""The longest forms of 32 and of 64 bits."""

# An int64 that holds 64 bits without a sign is shifted to the right with these masks.
BITS_57, BITS_63 = 0x01FF_FFFF_FFFF_FFFF, 0x7FFF_FFFF_FFFF_FFFF


@inlined
def zigzag(value: int) -> int:
    """Return the 64 bits of a signed number's zig-zag form, which is small for small absolute values."""
    return (value << 1) ^ (value >> 63)


@inlined
def unzigzag(bits: int) -> int:
    """Return the signed number of a zig-zag form of up to 64 bits."""
    return (bits >> 1 & BITS_63) ^ -(bits & 1)


@inlined
def read_uvarint(p: int, end: int) -> tuple[int, int]:
    """Read an unsigned number of 32 bits: (value, address after it)."""
    value = 0
    shift = 0
    while p < end and shift <= 28:
        byte = load_byte(p)
        p += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFF, p
        shift += 7
    return 0, 0


@inlined
def read_uvarlong(p: int, end: int) -> tuple[int, int]:
    """Read a number of 64 bits: (its bits, address after it)."""
    value = 0
    shift = 0
    while p < end and shift <= 63:
        byte = load_byte(p)
        p += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, p
        shift += 7
    return 0, 0


@inlined
def read_varint(at: int, end: int, longest: int) -> tuple[int, int, bool]:
    """Read a zig-zag number: (value, address after it, whether it has its shortest form).

    longest: VARINT_BYTES or VARLONG_BYTES. Numbers of one byte, which most are, take a path of their own.
    """
    if at >= end:
        return 0, 0, True
    byte = load_byte(at)
    at += 1
    if byte < 0x80:
        return unzigzag(byte), at, True
    value = byte & 0x7F
    shift = 7
    while byte >= 0x80:
        if at >= end or shift == 7 * longest:
            return 0, 0, True
        byte = load_byte(at)
        value |= (byte & 0x7F) << shift
        shift += 7
        at += 1
    if longest == VARINT_BYTES:
        value &= 0xFFFFFFFF
    return unzigzag(value), at, byte != 0


@inlined
def uvarint_bytes(bits: int) -> int:
    """Return the size of an unsigned number of up to 64 bits."""
    n = 1
    while bits & ~0x7F:
        bits = bits >> 7 & BITS_57
        n += 1
    return n


@inlined
def write_uvarint(at: int, value: int) -> int:
    """Write a number that is not negative; returns the address after it."""
    while value >= 0x80:
        store_byte(at, value & 0x7F | 0x80)
        at += 1
        value >>= 7
    store_byte(at, value)
    return at + 1


@inlined
def write_uvarlong(at: int, bits: int) -> int:
    """Write 64 bits as an unsigned number; returns the address after it."""
    while bits & ~0x7F:
        store_byte(at, bits & 0x7F | 0x80)
        at += 1
        bits = bits >> 7 & BITS_57
    store_byte(at, bits)
    return at + 1
