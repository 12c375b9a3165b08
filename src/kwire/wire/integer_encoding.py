"""Integers in the encodings of KIP-625: nine names, a form and a width each.

    fixed16, fixed32, fixed64         2, 4, 8 bytes       two's complement, big-endian
    packed16, packed32, packed64      1-3, 1-5, 1-10      zig-zag (0, -1, 1, -2 become 0, 1, 2, 3), then unsigned varint
    upacked16, upacked32, upacked64   1-3, 1-5, 1-10      the two's complement pattern as unsigned varint

All hold the signed numbers of their width. "upacked" is short for unsigned packed: small numbers that are not negative
take fewer bytes than packed, negative ones the maximum (I-42).

Readers accept over-long forms and ignore excess bits, as readers of varints do (W-10); a number of 16 bits must fit
them (I-25). Writers use the shortest form.
Source: KIP-625; docs/spec/messages.md part 6.
"""

from __future__ import annotations

from typing import Final

import msgspec

from kwire.errors import EncodeError, Malformed, Truncated
from kwire.wire.varint import append_groups, read_unsigned_varint, read_unsigned_varlong

__all__ = ["ENCODINGS", "FORMS", "WIDTHS", "IntegerEncoding"]

FORMS: Final = ("fixed", "packed", "upacked")
WIDTHS: Final = (16, 32, 64)


class IntegerEncoding(msgspec.Struct, frozen=True):
    """An encoding. form: one of FORMS; bits: one of WIDTHS."""

    form: str
    bits: int

    @property
    def name(self) -> str:
        """The name in definitions."""
        return f"{self.form}{self.bits}"

    @property
    def smallest(self) -> int:
        """The smallest number that fits."""
        return -(1 << self.bits - 1)

    @property
    def largest(self) -> int:
        """The largest number that fits."""
        return (1 << self.bits - 1) - 1

    @property
    def least_bytes(self) -> int:
        """Minimum bytes of a number."""
        return self.bits // 8 if self.form == "fixed" else 1

    @property
    def most_bytes(self) -> int:
        """Maximum bytes of a number."""
        return self.bits // 8 if self.form == "fixed" else -(-self.bits // 7)

    def read(self, buf: bytes | bytearray | memoryview, pos: int) -> tuple[int, int]:
        """Read a number: (value, position after it). Raises Truncated if buf ends inside it, else Malformed."""
        if self.form == "fixed":
            after = pos + self.bits // 8
            if after > len(buf):
                raise Truncated(f"{self.bits // 8} bytes, {len(buf) - pos} left", pos)
            return int.from_bytes(buf[pos:after], "big", signed=True), after
        pattern, after = (read_unsigned_varlong if self.bits == 64 else read_unsigned_varint)(buf, pos)
        if pattern >> self.bits:
            raise Malformed(f"varint {pattern} has more than {self.bits} bits", pos)
        if self.form == "packed":
            return (pattern >> 1) ^ -(pattern & 1), after
        return pattern - (pattern >> self.bits - 1 << self.bits), after

    def write(self, out: bytearray, value: int) -> None:
        """Append a number; raises EncodeError with value and width if it does not fit, before anything is written."""
        if not self.smallest <= value <= self.largest:
            raise EncodeError(self.refusal(str(value)))
        if self.form == "fixed":
            out += value.to_bytes(self.bits // 8, "big", signed=True)
        elif self.form == "packed":
            append_groups(out, value << 1 if value >= 0 else (~value << 1) + 1)
        else:
            append_groups(out, value & (1 << self.bits) - 1)

    def size(self, value: int) -> int:
        """Return the encoded size in bytes of a value that fits."""
        if self.form == "fixed":
            return self.bits // 8
        if self.form == "packed":
            return max(1, -(-((value if value >= 0 else ~value).bit_length() + 1) // 7))
        return max(1, -(-(value & (1 << self.bits) - 1).bit_length() // 7))

    def refusal(self, value: str) -> str:
        """Return the error text for a value that does not fit."""
        return f"{value} does not fit {self.name}: {self.bits} bits, {self.smallest} to {self.largest}"


ENCODINGS: Final = {f"{form}{bits}": IntegerEncoding(form, bits) for form in FORMS for bits in WIDTHS}
"""All encodings by their name in definitions."""
