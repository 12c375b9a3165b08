"""Varints: 7 bits a byte, low bits first, the high bit set on all but the last byte.

    unsigned_varint     0 .. 2**32 - 1      1 to 5 bytes
    unsigned_varlong    0 .. 2**64 - 1      1 to 10 bytes
    varint              -2**31 .. 2**31-1   zig-zag (0, -1, 1, -2 ... become 0, 1, 2, 3 ...), then unsigned_varint
    varlong             -2**63 .. 2**63-1   zig-zag, then unsigned_varlong

Readers accept what Kafka's readers accept: over-long forms of small numbers (`80 00` is 0). Excess bits of the last
byte are dropped (`ff ff ff ff 10` is 2**28 - 1). Writers use the shortest form.
Source: KIP-482, "Unsigned Varints"; org.apache.kafka.common.utils.ByteUtils.
"""

from __future__ import annotations

from kwire.errors import EncodeError, Malformed, Truncated

__all__ = [
    "read_unsigned_varint",
    "read_unsigned_varlong",
    "read_varint",
    "read_varlong",
    "write_unsigned_varint",
    "write_unsigned_varlong",
    "write_varint",
    "write_varlong",
]


def read_unsigned_varint(buf: bytes | bytearray | memoryview, pos: int) -> tuple[int, int]:
    """Read an unsigned varint of 32 bits.

    Returns (value, position after it); 0 <= value < 2**32.
    Raises Truncated when buf ends inside the number, Malformed when a fifth byte announces a sixth.
    """
    value = 0
    for i in range(5):
        if pos + i >= len(buf):
            raise Truncated("unsigned varint ends early", pos)
        byte = buf[pos + i]
        value |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            return value & 0xFFFF_FFFF, pos + i + 1
    raise Malformed("unsigned varint longer than 5 bytes", pos)


def write_unsigned_varint(out: bytearray, value: int) -> None:
    """Append value; raises EncodeError unless 0 <= value < 2**32 (a negative number would never end)."""
    if not 0 <= value <= 0xFFFF_FFFF:
        raise EncodeError(f"unsigned varint out of range: {value}")
    append_groups(out, value)


def read_unsigned_varlong(buf: bytes | bytearray | memoryview, pos: int) -> tuple[int, int]:
    """Read an unsigned varint of 64 bits.

    Returns (value, position after it); 0 <= value < 2**64.
    Raises Truncated when buf ends inside the number, Malformed when a tenth byte announces an eleventh.
    """
    value = 0
    for i in range(10):
        if pos + i >= len(buf):
            raise Truncated("unsigned varlong ends early", pos)
        byte = buf[pos + i]
        value |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, pos + i + 1
    raise Malformed("unsigned varlong longer than 10 bytes", pos)


def write_unsigned_varlong(out: bytearray, value: int) -> None:
    """Append value; raises EncodeError unless 0 <= value < 2**64."""
    if not 0 <= value <= 0xFFFF_FFFF_FFFF_FFFF:
        raise EncodeError(f"unsigned varlong out of range: {value}")
    append_groups(out, value)


def read_varint(buf: bytes | bytearray | memoryview, pos: int) -> tuple[int, int]:
    """Read a zig-zag varint: (value, position after it), -2**31 <= value < 2**31. Raises Truncated, Malformed."""
    if pos < len(buf) and (byte := buf[pos]) < 0x80:  # nearly always: records are full of small numbers
        return (byte >> 1) ^ -(byte & 1), pos + 1
    value, pos = read_unsigned_varint(buf, pos)
    return (value >> 1) ^ -(value & 1), pos


def write_varint(out: bytearray, value: int) -> None:
    """Append value in zig-zag form; raises EncodeError unless it fits a signed 32-bit number."""
    if not -0x8000_0000 <= value <= 0x7FFF_FFFF:
        raise EncodeError(f"varint out of range: {value}")
    append_groups(out, value << 1 if value >= 0 else (-value << 1) - 1)


def read_varlong(buf: bytes | bytearray | memoryview, pos: int) -> tuple[int, int]:
    """Read a zig-zag varlong: (value, position after it), -2**63 <= value < 2**63. Raises Truncated, Malformed."""
    if pos < len(buf) and (byte := buf[pos]) < 0x80:
        return (byte >> 1) ^ -(byte & 1), pos + 1
    value, pos = read_unsigned_varlong(buf, pos)
    return (value >> 1) ^ -(value & 1), pos


def write_varlong(out: bytearray, value: int) -> None:
    """Append value in zig-zag form; raises EncodeError unless it fits a signed 64-bit number."""
    if not -0x8000_0000_0000_0000 <= value <= 0x7FFF_FFFF_FFFF_FFFF:
        raise EncodeError(f"varlong out of range: {value}")
    append_groups(out, value << 1 if value >= 0 else (-value << 1) - 1)


def append_groups(out: bytearray, value: int) -> None:
    """Append a non-negative number in groups of 7 bits, low ones first."""
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
