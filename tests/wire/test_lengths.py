"""Lengths before strings, bytes and arrays, in both forms."""

from __future__ import annotations

import pytest

from kwire.errors import EncodeError, Malformed, Truncated
from kwire.wire.lengths import read_compact_length, read_length, write_compact_length, write_length

# length, int16, int32, compact
CASES = [
    (-1, "ffff", "ffffffff", "00"),
    (0, "0000", "00000000", "01"),
    (1, "0001", "00000001", "02"),
    (126, "007e", "0000007e", "7f"),
    (127, "007f", "0000007f", "8001"),
    (299, "012b", "0000012b", "ac02"),
    (16382, "3ffe", "00003ffe", "ff7f"),
    (16383, "3fff", "00003fff", "808001"),
    (32767, "7fff", "00007fff", "808002"),
]


@pytest.mark.requirement("S482-15", "S482-17", "S482-18", "S482-42", "S482-43", "S482-44", "S482-45", "S482-46")
@pytest.mark.requirement("S482-73", "S482-74", "S482-75", "S482-76", "S482-77", "S482-78", "S482-79", "S482-80")
@pytest.mark.requirement("S482-81", "S482-82", "S482-83", "S482-84", "S482-85", "S482-90")
@pytest.mark.parametrize(("length", "int16", "int32", "compact"), CASES)
def test_lengths_both_ways(length: int, int16: str, int32: str, compact: str) -> None:
    for width, encoded in ((2, int16), (4, int32)):
        data, out = bytes.fromhex(encoded), bytearray()
        write_length(out, length, width)
        assert out == data
        assert read_length(b"?" + data + b"tail", 1, width) == (length, 1 + width)
        for cut in range(width):
            with pytest.raises(Truncated, match=f"{cut} left"):
                read_length(data[:cut], 0, width)
    data, out = bytes.fromhex(compact), bytearray()
    write_compact_length(out, length)
    assert out == data
    assert read_compact_length(b"?" + data + b"tail", 1) == (length, 1 + len(data))
    for cut in range(len(data)):
        with pytest.raises(Truncated):
            read_compact_length(data[:cut], 0)


@pytest.mark.requirement("W-14")
@pytest.mark.parametrize("encoded", ["fffe", "8000", "fffffffe", "80000000"])
def test_every_negative_length_is_null(encoded: str) -> None:
    data = bytes.fromhex(encoded)
    assert read_length(data, 0, len(data)) == (-1, len(data))


@pytest.mark.requirement("W-61")
def test_compact_lengths_have_32_bits_with_the_one_that_is_added() -> None:
    out = bytearray()
    write_compact_length(out, 2**32 - 2)
    assert read_compact_length(out, 0) == (2**32 - 2, 5)
    with pytest.raises(EncodeError):
        write_compact_length(out, 2**32 - 1)
    with pytest.raises(Malformed):
        read_compact_length(b"\x80" * 6, 0)
