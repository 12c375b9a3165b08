"""The kernels' own tools: MessagePack tokens, comparisons, and what the compiler may assume about pointers."""

from __future__ import annotations

import ctypes
import math
import random
import struct
from typing import Any

import msgspec
import pytest

from kwire.plan.kernels import messagepack
from kwire.plan.kernels.encode import equal_with_floats
from kwire.wire.kernels import memory, primitives, varints

pack = msgspec.msgpack.Encoder().encode

VALUES: list[Any] = [
    *(None, True, False, 0, 127, 128, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**63 - 1, 2**64 - 1),
    *(-1, -32, -33, -128, -129, -32768, -32769, -(2**31), -(2**31) - 1, -(2**63)),
    *(0.0, -0.0, 1.5, math.inf, "", "x" * 31, "x" * 32, "x" * 255, "x" * 256, "x" * 65536),
    *(b"", b"x" * 255, b"x" * 256, b"x" * 65536, [], [1], [1] * 15, [1] * 16, [[]] * 70000, {}, {"a": [1, {}]}),
    *(msgspec.msgpack.Ext(1, b"x" * n) for n in (1, 2, 3, 4, 8, 16, 17, 255, 256, 65536)),
    {str(i): i for i in range(20)},
]  # fmt: skip


class Placed:
    """Bytes at an address."""

    def __init__(self, data: bytes) -> None:
        self.buffer = ctypes.create_string_buffer(data, len(data))
        self.address, self.size = ctypes.addressof(self.buffer), len(data)


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:20])
def test_skip_ends_where_the_value_ends(value: Any) -> None:
    placed = Placed(pack(value) + b"\xc1\xc1")
    assert messagepack.skip(placed.address) - placed.address == placed.size - 2


@pytest.mark.parametrize("value", [v for v in VALUES if isinstance(v, int) and not isinstance(v, bool)])
def test_integers_of_every_form_are_read(value: int) -> None:
    placed = Placed(pack(value))
    read, end = messagepack.read_int(placed.address)
    assert (read, end) == ((0, 0) if value >= 2**63 else (value, placed.address + placed.size))


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


@pytest.mark.parametrize(
    ("value", "default", "equal"),
    [
        (0.0, -0.0, True),
        (0, 0.0, True),
        (5, 5.0, True),
        (5.0, 5.0, True),
        (math.nan, math.nan, False),
        (True, 1.0, False),
        ("x", 1.0, False),
        (None, 0.0, False),
        ([1, 0.0, "a"], [1, -0.0, "a"], True),
        ([1, 2, []], [1, 2.0, []], True),
        ([1, 2.0, [1]], [1, 2.0, []], False),
        ([2, 2.0], [1, 2.0], False),
        ([[1.0], 2], [[1.0], 2], True),
        ([1.0], [1.0, 2], False),
        (2**63 - 1, float(2**63), True),
    ],
)
def test_floats_are_compared_by_value(value: Any, default: Any, equal: bool) -> None:
    given, constant = Placed(pack(value)), Placed(pack(default))
    assert bool(equal_with_floats(given.address, given.address + given.size, constant.address, constant.size)) is equal


def test_doubles_of_integers() -> None:
    for value in (0, 1, -1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)):
        assert memory_double(value) == struct.pack("<d", float(value))


def memory_double(value: int) -> bytes:
    """The bits of the double that an integer turns into."""

    return struct.pack("<q", primitives.double_bits(value))
