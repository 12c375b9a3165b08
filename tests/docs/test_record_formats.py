"""docs/record-formats.md: every dump is what the code writes."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from kwire.messages import ApiVersionsRequest
from kwire.records import BatchBuilder, read_batches

PAGE = (Path(__file__).parents[2] / "docs" / "record-formats.md").read_text("utf-8")
DUMPS = re.findall(r"^```text\npos .*?\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
NOW_MS = 1_760_000_000_000


def batch(magic: int, compression: str = "none") -> bytes:
    builder = BatchBuilder(magic=magic, base_offset=100, compression=compression)
    if compression != "none":
        for i, value in enumerate((b"one", b"two", b"three")):
            builder.append(b"k%d" % i, value, timestamp=NOW_MS + i)
        return builder.build()
    builder.append(b"k", b"one", timestamp=NOW_MS, headers=[("h", b"x")] if magic == 2 else [])
    if magic == 2:
        builder.append(b"k", None, timestamp=NOW_MS + 5)
    return builder.build()


def wrapper() -> bytes:
    return batch(1, "gzip")


EXPECTED = [
    batch(0),
    batch(1),
    wrapper()[:34],
    gzip.decompress(wrapper()[34:]),
    batch(2),
    ApiVersionsRequest(client_software_name="kwire", client_software_version="0.1").encode(version=3),
]


def test_there_is_a_dump_of_each() -> None:
    assert len(DUMPS) == len(EXPECTED)


@pytest.mark.requirement("R-21", "S31-01")
@pytest.mark.parametrize("number", range(len(EXPECTED)))
def test_a_dump_is_what_the_code_writes(number: int) -> None:
    found = b""
    for line in DUMPS[number].splitlines():
        match = re.fullmatch(r" *(\d+)  ((?:[0-9a-f]{2} )+) *(\S.*)", line)
        assert match is not None, line
        assert int(match[1]) == len(found), line
        found += bytes.fromhex(match[2])
    assert found == EXPECTED[number]


def test_offsets_inside_a_wrapper_count_from_its_end() -> None:
    (read,) = read_batches(wrapper())
    assert [record.offset for record in read.records()] == [100, 101, 102]
