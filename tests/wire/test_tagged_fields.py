"""The section of tagged fields."""

from __future__ import annotations

import pytest

from kwire.errors import EncodeError
from kwire.wire.tagged_fields import MAX_TAG, write_tagged_fields


@pytest.mark.requirement("S482-47", "S482-63", "S482-64", "S482-65", "S482-66", "S482-67", "S482-69", "S482-70")
@pytest.mark.requirement("S482-71", "S482-72", "S482-95", "S482D-06", "S482D-08", "S482D-09", "S482D-10", "S482D-11")
@pytest.mark.parametrize(
    ("fields", "encoded"),
    [
        ([], "00"),
        ([(5, b"abcd")], "01 05 04 61626364"),
        ([(5, b""), (0, b"\xff")], "02 00 01 ff 05 00"),
        ([(300, b"x" * 200)], "01 ac02 c801" + "78" * 200),
        ([(MAX_TAG, b"")], "01 ffffffff07 00"),
    ],
)
def test_sections(fields: list[tuple[int, bytes]], encoded: str) -> None:
    out = bytearray(b"before")
    write_tagged_fields(out, fields)
    assert out == b"before" + bytes.fromhex(encoded)


def test_a_negative_tag_would_never_end() -> None:
    with pytest.raises(EncodeError):
        write_tagged_fields(bytearray(), [(-1, b"")])
