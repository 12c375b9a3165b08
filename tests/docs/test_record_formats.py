"""docs/record-formats.md: every dump equals the bytes of the code."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from kwire import schema
from kwire.messages import ApiVersionsRequest
from kwire.records import BatchBuilder, ControlRecordType, read_batches, write_transaction_marker
from kwire.wire.integer_encoding import ENCODINGS

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


def marker() -> bytes:
    return write_transaction_marker(
        ControlRecordType.COMMIT,
        producer_id=7,
        producer_epoch=0,
        coordinator_epoch=3,
        timestamp=NOW_MS,
        base_offset=102,
    )


def api_versions(unknown: list[tuple[int, bytes]]) -> bytes:
    request = ApiVersionsRequest(client_software_name="kwire", client_software_version="0.1")
    request.unknown_tagged_fields.extend(unknown)
    return request.encode(version=3)


def partition_state(version: int) -> bytes:
    """Return a message with the fields of the page's definition."""
    (fields,) = re.findall(r"^```json\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    spec = schema.parse(
        '{ "type": "data", "name": "PartitionState", "validVersions": "0-1", "flexibleVersions": "1+", "fields": ['
        f"{','.join(fields.splitlines())}] }}"
    )
    data: bytes = schema.compile(spec)(partition_index=150, leader_id=-1, offset=1_000_000).encode(version=version)
    return data


EXPECTED = [
    batch(0),
    batch(1),
    wrapper()[:34],
    gzip.decompress(wrapper()[34:]),
    batch(2),
    marker(),
    api_versions([]),
    api_versions([(5, b"\x2a\x2b")]),
    partition_state(0),
    partition_state(1),
]


def test_the_page_has_a_dump_of_each_format() -> None:
    assert len(DUMPS) == len(EXPECTED)


@pytest.mark.requirement("R-21", "S31-01")
@pytest.mark.parametrize("number", range(len(EXPECTED)))
def test_dumps_equal_the_bytes_of_the_code(number: int) -> None:
    found = b""
    for line in DUMPS[number].splitlines():
        match = re.fullmatch(r" *(\d+)  ((?:[0-9a-f]{2} )+) *(\S.*)", line)
        assert match is not None, line
        assert int(match[1]) == len(found), line
        found += bytes.fromhex(match[2])
    assert found == EXPECTED[number]


def test_wrapper_offsets_are_relative_to_its_last_offset() -> None:
    (read,) = read_batches(wrapper())
    assert [record.offset for record in read.records()] == [100, 101, 102]


def test_the_table_of_varints_equals_the_bytes_of_the_code() -> None:
    rows = re.findall(r"^\| (-?\d+) \| `([^`]+)` \| `([^`]+)` \| `([^`]+)` \|$", PAGE, re.MULTILINE)
    assert len(rows) == 12
    for value, *encoded in rows:
        for name, text in zip(("fixed32", "upacked32", "packed32"), encoded, strict=True):
            out = bytearray()
            ENCODINGS[name].write(out, int(value))
            assert out.hex(" ") == text, (value, name)
