"""The kernels' own tools: varints, copies, comparisons."""

from __future__ import annotations

import ctypes
import random
import struct

import pytest

from kwire.wire.kernels import memory, primitives, varints


class Placed:
    """Bytes at an address."""

    def __init__(self, data: bytes) -> None:
        self.buffer = ctypes.create_string_buffer(data, len(data))
        self.address, self.size = ctypes.addressof(self.buffer), len(data)


@pytest.mark.parametrize("value", [0, 1, 127, 128, 16383, 16384, 2**21 - 1, 2**21, 2**28 - 1, 2**28, 2**32 - 1])
def test_varints_both_ways_and_cut_anywhere(value: int) -> None:
    placed = Placed(bytes(8))
    n = varints.write_uvarint(placed.address, value) - placed.address
    assert varints.read_uvarint(placed.address, placed.address + n) == (value, placed.address + n)
    for cut in range(n):
        assert varints.read_uvarint(placed.address, placed.address + cut) == (0, 0)


@pytest.mark.parametrize("n", [*range(70), 1000])
def test_copies_are_whole_and_stay_inside(n: int) -> None:
    data = random.Random(n).randbytes(n)
    source, target = Placed(data), Placed(b"\xee" * (n + 2))
    memory.copy_short(target.address + 1, source.address, n)
    assert target.buffer.raw == b"\xee" + data + b"\xee"
    assert memory.equal_bytes(target.address + 1, source.address, n)
    for at in range(0, n, max(1, n // 9)):
        other = Placed(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        assert not memory.equal_bytes(other.address, source.address, n)


def test_doubles_of_integers() -> None:
    for value in (0, 1, -1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)):
        assert memory_double(value) == struct.pack("<d", float(value))


def memory_double(value: int) -> bytes:
    """The bits of the double that an integer turns into."""

    return struct.pack("<q", primitives.double_bits(value))
