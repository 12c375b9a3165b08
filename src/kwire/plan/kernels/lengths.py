"""Lengths, markers and packed integers of messages, as `decode` and `walk` read them.

length    unsigned varint of n + 1 (COMPACT), else int16 for strings and int32 for the rest
marker    of a struct that may be null: a varint in a tag section, else a signed byte
packed    a varint, zig-zag or not (KIP-625)
"""

from __future__ import annotations

from kwire.plan.rows import COMPACT, MAY_BE_NULL, PACKED16, PACKED32, PACKED64, STRING, UPACKED32, UPACKED64
from kwire.wire.kernels.compiler import inlined
from kwire.wire.kernels.memory import load_big_int16, load_big_int32, load_byte, load_int8
from kwire.wire.kernels.varints import read_uvarint, read_uvarlong, unzigzag


@inlined
def read_length(op: int, flags: int, p: int, end: int) -> tuple[int, int]:
    """Read a length or count: (value, address after it). The value is -1 for null, -2 on failure."""
    if flags & COMPACT:
        if p < end and load_byte(p) < 0x80:
            n = load_byte(p) - 1
            p += 1
        else:
            n, p = read_uvarint(p, end)
            if p == 0:
                return -2, 0
            n -= 1
    elif op == STRING:
        if end - p < 2:
            return -2, 0
        n = load_big_int16(p)
        p += 2
    else:
        if end - p < 4:
            return -2, 0
        n = load_big_int32(p)
        p += 4
    if n < 0:
        return -1 if flags & MAY_BE_NULL else -2, p  # W-14: any negative length is null
    return n, p


@inlined
def read_marker(tagged: int, p: int, end: int) -> tuple[int, int]:
    """Read the marker before a struct that may be null: (below 0 for null, address after it); address 0 on failure."""
    if tagged:  # a varint, 0 is null (W-16)
        n, p = read_uvarint(p, end)
        return n - 1, p
    if p >= end:
        return 0, 0
    return load_int8(p), p + 1  # a signed byte, negative is null (W-15)


@inlined
def read_packed(code: int, p: int, end: int) -> tuple[int, int]:
    """Read an integer as KIP-625 packs it: (value, address after it); address 0 if cut off, too long or too large."""
    if code == PACKED64 or code == UPACKED64:
        v, p = read_uvarlong(p, end)
        if code == PACKED64:
            v = unzigzag(v)
        return v, p
    v, p = read_uvarint(p, end)
    if code == PACKED32:
        return unzigzag(v), p
    if code == UPACKED32:
        return (v ^ 0x8000_0000) - 0x8000_0000, p
    if v > 0xFFFF:
        return 0, 0
    if code == PACKED16:
        return unzigzag(v), p
    return (v ^ 0x8000) - 0x8000, p
