"""The length prefix of strings, bytes and arrays: the number of bytes or elements, or null.

    plain      int16 before strings, int32 before the rest; any negative number is null, written as -1
    compact    unsigned varint of the length plus one; 0 is null            flexible versions, KIP-482

Source: KIP-482, "Compact Arrays" and the types after it; org.apache.kafka.common.protocol.types.Type.
"""

from __future__ import annotations

import struct

from kwire.errors import Truncated
from kwire.wire.varint import read_unsigned_varint, write_unsigned_varint

__all__ = ["read_compact_length", "read_length", "write_compact_length", "write_length"]

Buffer = bytes | bytearray | memoryview

_UNPACK = {2: struct.Struct(">h").unpack_from, 4: struct.Struct(">i").unpack_from}


def read_length(buf: Buffer, pos: int, width: int) -> tuple[int, int]:
    """Read a plain length of 2 or 4 bytes: (length, position after it), -1 for null.

    Raises Truncated when buf ends inside it. The caller checks that the bytes follow.
    """
    if len(buf) - pos < width:
        raise Truncated(f"length of {width} bytes, {max(0, len(buf) - pos)} left", pos)
    length: int = _UNPACK[width](buf, pos)[0]
    return (length if length >= 0 else -1), pos + width


def write_length(out: bytearray, length: int, width: int) -> None:
    """Append a plain length that fits the width; -1 is null."""
    out += length.to_bytes(width, "big", signed=True)


def read_compact_length(buf: Buffer, pos: int) -> tuple[int, int]:
    """Read a compact length: (length, position after it), -1 for null; up to 2**32 - 2.

    Raises Truncated, or Malformed when the varint is longer than five bytes.
    """
    value, after = read_unsigned_varint(buf, pos)
    return value - 1, after


def write_compact_length(out: bytearray, length: int) -> None:
    """Append a compact length; -1 is null. Raises EncodeError above 2**32 - 2."""
    write_unsigned_varint(out, length + 1)
