"""The nine encodings of KIP-625: the worked bytes of docs/spec/messages.md 6.5, and what hostile bytes come to."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwire.errors import DecodeError, EncodeError, Malformed, Truncated
from kwire.wire.integer_encoding import ENCODINGS

SPEC = Path(__file__).parents[2] / "docs" / "spec" / "messages.md"


def worked_bytes() -> list[tuple[str, int, bytes | None]]:
    """(encoding, value, bytes; None for a range error) of the table."""
    lines = SPEC.read_text(encoding="utf-8").partition("### 6.5")[2].partition("LeaderId")[0].splitlines()
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return [
        (name, int(row[0]), None if cell == "ERR" else bytes.fromhex(cell))
        for row in table[2:]
        for name, cell in zip(table[0][1:], row[1:], strict=True)
    ]


CASES = worked_bytes()


def test_the_table_of_worked_bytes_is_whole() -> None:
    assert len(CASES) == 9 * 35
    assert {name for name, _, _ in CASES} == ENCODINGS.keys()


@pytest.mark.requirement("I-42", "I-43", "S625-26", "S625-27", "S625-28", "S625-29", "S625-36")
@pytest.mark.parametrize(("name", "value", "data"), CASES, ids=lambda case: str(case) if case != b"" else None)
def test_worked_bytes_both_ways(name: str, value: int, data: bytes | None) -> None:
    encoding, out = ENCODINGS[name], bytearray(b"kept")
    if data is None:
        with pytest.raises(EncodeError, match=f"{value} does not fit {name}: {encoding.bits} bits"):
            encoding.write(out, value)
        assert out == b"kept"
        return
    encoding.write(out, value)
    assert out == b"kept" + data
    assert encoding.size(value) == len(data)
    assert encoding.least_bytes <= len(data) <= encoding.most_bytes
    assert encoding.read(data + b"tail", 0) == (value, len(data))
    for cut in range(len(data)):
        with pytest.raises(Truncated):
            encoding.read(data[:cut], 0)


@pytest.mark.requirement("I-25", "W-10")
@pytest.mark.parametrize(
    ("name", "data", "value"),
    [
        ("packed32", "8000", 0),
        ("packed16", "8280808000", 1),
        ("upacked16", "ff80808000", 127),
        ("upacked64", "81808080808080808000", 1),
        ("upacked32", "ffffffff1f", -1),  # the bit above 32 is dropped
        ("upacked16", "80808080f0", None),  # a sixth byte is announced
        ("upacked16", "8080808010", 0),  # bit 32, dropped before the 16 bits are checked
        ("packed64", "ffffffffffffffffff7f", -(2**63)),
        ("packed16", "808004", None),  # 2**16
        ("upacked16", "808004", None),
        ("packed16", "ffffffff0f", None),
        ("packed32", "808080808000", None),
        ("upacked64", "8080808080808080808000", None),
    ],
)
def test_readers_take_long_forms_and_refuse_what_has_more_bits(name: str, data: str, value: int | None) -> None:
    raw = bytes.fromhex(data)
    if value is not None:
        assert ENCODINGS[name].read(raw, 0) == (value, len(raw))
        return
    with pytest.raises(Malformed if len(raw) > 2 else DecodeError):
        ENCODINGS[name].read(raw + b"\0", 0)
