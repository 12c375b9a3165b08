"""Both checksums against Kafka's, for every kind of buffer."""

from __future__ import annotations

import pytest
from tests import golden

from kwire.records.format.checksum import crc32, crc32c

LINES = [line for line in golden.lines("primitives.jsonl") if line["type"] == "crc"]


@pytest.mark.parametrize("line", LINES, ids=lambda line: line["hex"][:16] or "empty")
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_checksums_are_those_of_kafka(line: golden.Line, kind: type) -> None:
    data = kind(bytes.fromhex(line["hex"]))
    assert (crc32(data), crc32c(data)) == (line["crc32"], line["crc32c"])
