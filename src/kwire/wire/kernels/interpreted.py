"""What kernels are made of, for Python: slow, and as exact as the compiled code. Same names as in `intrinsics`.

Unsigned loads return numbers of numpy, whose arithmetic wraps as in the compiled code.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

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

WIDE_BYTES = 32


def load(bits: int, *, swap: bool = False, signed: bool | None = None) -> Callable[[int], Any]:
    """Make a function that loads a number of the given width, at any alignment.

    swap: big-endian. signed: with or without the sign; None: an unsigned number of this width.
    """
    size = bits // 8
    order: Literal["big", "little"] = "big" if swap else "little"
    is_signed = bool(signed) or (signed is not None and bits == 64)
    unsigned = getattr(np, f"uint{bits}") if signed is None else None

    def load_number(address: int) -> Any:
        value = int.from_bytes(ctypes.string_at(int(address), size), order, signed=is_signed)
        return value if unsigned is None else unsigned(value)

    return load_number


def store(bits: int, *, swap: bool = False) -> Callable[[int, int], None]:
    """Make a function that stores the low bits of a number, at any alignment. swap: big-endian."""
    size, mask = bits // 8, (1 << bits) - 1
    order: Literal["big", "little"] = "big" if swap else "little"

    def store_number(address: int, value: int) -> None:
        ctypes.memmove(int(address), (int(value) & mask).to_bytes(size, order), size)

    return store_number


def byte_swap(bits: int) -> Callable[[Any], Any]:
    """Make a function that reverses the bytes of an unsigned number."""
    kind = getattr(np, f"uint{bits}")

    def swap(value: Any) -> Any:
        return kind(int.from_bytes(int(value).to_bytes(bits // 8, "little"), "big"))

    return swap


def copy_word(bits: int) -> Callable[[int, int], None]:
    """Make a function that copies a number of the given width from the second address to the first."""

    def copy(target: int, source: int) -> None:
        move(target, source, bits // 8)

    return copy


def move(target: int, source: int, size: int) -> None:
    """Copy bytes that may overlap."""
    ctypes.memmove(int(target), int(source), int(size))


move_exactly = move


def move_wide(target: int, source: int) -> None:
    """Copy 32 bytes."""
    move(target, source, WIDE_BYTES)


def apart() -> None:
    """Keep the compiled function out of its callers; nothing in Python."""


def double_bits(value: int) -> int:
    """Return the bits of a number as a double."""
    bits: int = struct.unpack("<q", struct.pack("<d", value))[0]
    return bits


def equal_doubles(a: int, b: int) -> int:
    """Return 1 if the doubles with these bits are equal, else 0."""
    x, y = struct.unpack("<2d", struct.pack("<2q", a, b))
    return int(x == y)


def crc32c_word(crc: Any, word: Any) -> Any:
    """Add eight bytes to a CRC-32C."""
    for shift in range(0, 64, 8):
        crc = crc32c_byte(crc, int(word) >> shift & 0xFF)
    return np.uint64(crc)


def crc32c_byte(crc: Any, byte: Any) -> Any:
    """Add a byte to a CRC-32C."""
    value = int(crc) ^ int(byte)
    for _ in range(8):
        value = value >> 1 ^ 0x82F63B78 if value & 1 else value >> 1
    return np.uint32(value)
