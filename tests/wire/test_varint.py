"""Varints both ways: borders, Kafka's own bytes, and every way to be cut or too long."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import golden

from kwire.errors import DecodeError, EncodeError, Malformed, Truncated
from kwire.wire import varint

Read = Callable[[bytes, int], tuple[int, int]]
Write = Callable[[bytearray, int], None]

KINDS: dict[str, tuple[Read, Write, int, int]] = {
    "unsigned_varint": (varint.read_unsigned_varint, varint.write_unsigned_varint, 0, 2**32 - 1),
    "varint": (varint.read_varint, varint.write_varint, -(2**31), 2**31 - 1),
    "varlong": (varint.read_varlong, varint.write_varlong, -(2**63), 2**63 - 1),
    "unsigned_varlong": (varint.read_unsigned_varlong, varint.write_unsigned_varlong, 0, 2**64 - 1),
}
# Borders of 1, 2, 5 and 10 bytes.
CASES = [
    ("unsigned_varint", 0, "00"),
    ("unsigned_varint", 127, "7f"),
    ("unsigned_varint", 128, "80 01"),
    ("unsigned_varint", 16383, "ff 7f"),
    ("unsigned_varint", 2**32 - 1, "ff ff ff ff 0f"),
    ("varint", 0, "00"),
    ("varint", -1, "01"),
    ("varint", 63, "7e"),
    ("varint", -64, "7f"),
    ("varint", 64, "80 01"),
    ("varint", -(2**31), "ff ff ff ff 0f"),
    ("varlong", 2**63 - 1, "fe ff ff ff ff ff ff ff ff 01"),
    ("varlong", -(2**63), "ff ff ff ff ff ff ff ff ff 01"),
    ("unsigned_varlong", 2**64 - 1, "ff ff ff ff ff ff ff ff ff 01"),
]


@pytest.mark.requirement("S482D-12")
@pytest.mark.parametrize(("kind", "value", "encoded"), CASES)
def test_a_number_reads_and_writes_the_same_bytes(kind: str, value: int, encoded: str) -> None:
    read, write, _, _ = KINDS[kind]
    data, out = bytes.fromhex(encoded), bytearray()
    write(out, value)
    assert bytes(out) == data
    assert read(b"??" + data + b"tail", 2) == (value, 2 + len(data))  # stops at its own end
    for cut in range(len(data)):
        with pytest.raises(Truncated):
            read(data[:cut], 0)


def lines(op: str) -> list[golden.Line]:
    return [line for line in golden.lines("primitives.jsonl") if line["op"] == op and line["type"] in KINDS]


@pytest.mark.requirement("W-10")
@pytest.mark.parametrize("line", lines("write"), ids=lambda line: f"{line['type']}-{line['hex']}")
def test_numbers_have_the_bytes_that_kafka_writes(line: golden.Line) -> None:
    out = bytearray()
    KINDS[line["type"]][1](out, line["value"])
    assert out.hex() == line["hex"]


@pytest.mark.requirement("W-10", "W-40")
@pytest.mark.parametrize("line", lines("read"), ids=lambda line: f"{line['type']}-{line['from']}-{line['hex']}")
def test_bytes_are_the_numbers_that_kafka_reads(line: golden.Line) -> None:
    read = KINDS[line["type"]][0]
    data = bytes.fromhex(line["hex"])
    if "exception" in line:
        with pytest.raises(DecodeError):
            read(data, 0)
    else:
        assert read(data, 0) == (line["value"], line["consumed"])


@pytest.mark.parametrize("kind", KINDS)
def test_a_number_that_never_ends_is_malformed(kind: str) -> None:
    read, _, _, largest = KINDS[kind]
    longest = 10 if largest > 2**32 else 5
    with pytest.raises(Malformed):
        read(b"\x80" * longest + b"\0", 0)
    assert read(b"\x80" * (longest - 1) + b"\0", 0) == (0, longest)  # over-long, which Kafka takes


@pytest.mark.parametrize("kind", KINDS)
def test_a_number_out_of_range_is_not_written(kind: str) -> None:
    _, write, smallest, largest = KINDS[kind]
    for value in (smallest - 1, largest + 1):
        with pytest.raises(EncodeError):
            write(bytearray(), value)


@given(st.data())
def test_every_number_comes_back(data: st.DataObject) -> None:
    read, write, smallest, largest = KINDS[data.draw(st.sampled_from(sorted(KINDS)))]
    value = data.draw(st.integers(smallest, largest) | st.sampled_from([smallest, largest]))
    out = bytearray()
    write(out, value)
    assert read(memoryview(out), 0) == (value, len(out))


@pytest.mark.requirement("S482-92", "S482-93")
@given(st.integers(0, 2**31 - 1))
def test_an_unsigned_varint_suits_positive_numbers(value: int) -> None:
    unsigned, signed, negative = bytearray(), bytearray(), bytearray()
    varint.write_unsigned_varint(unsigned, value)
    varint.write_varint(signed, value)
    varint.write_unsigned_varint(negative, (-1 - value) & 0xFFFF_FFFF)  # what 32 bits of a negative number look like
    assert len(unsigned) <= len(signed) <= len(negative) == 5
