"""Captures that are written, read again, by kwire's reader and by the layout of their bytes."""

from __future__ import annotations

import io
import struct
from itertools import count

import pytest

from kwire.capture.packets import read_segments
from kwire.capture.writing import SEGMENT_BYTES, CaptureWriter, checksum
from kwire.storage.open_store import open_store


def segments(tmp_path: object, data: bytes) -> list:
    (tmp_path / "file").write_bytes(data)  # type: ignore[operator]
    with open_store(str(tmp_path)).open("file") as file:
        return list(read_segments(file))


@pytest.mark.parametrize(
    ("client", "server"), [(("10.0.0.1", 5), ("10.0.0.2", 9092)), (("fe80::1%eth0", 5), ("::1", 9092))]
)
@pytest.mark.parametrize("size", [0, 1, SEGMENT_BYTES - 1, SEGMENT_BYTES, SEGMENT_BYTES + 1, 3 * SEGMENT_BYTES])
def test_both_directions_come_back(client: tuple, server: tuple, size: int, tmp_path: object) -> None:
    file = io.BytesIO()
    clock = count(1_700_000_000_123_456_789)
    connection = CaptureWriter(file, lambda: next(clock)).connection(client, server)
    data = bytes(range(256)) * (size // 256 + 1)
    connection.sent(data[:size])
    connection.received(memoryview(data)[: size // 2])
    connection.close()
    found = segments(tmp_path, file.getvalue())
    from_client = [each for each in found if each.source[1] == client[1]]
    from_server = [each for each in found if each.source[1] == server[1]]
    assert b"".join(each.data for each in from_client) == data[:size]
    assert b"".join(each.data for each in from_server) == data[: size // 2]
    assert [each.time_ns for each in found] == list(range(1_700_000_000_123_456_789, next(clock)))
    for side, sent in ((from_client, size), (from_server, size // 2)):
        assert side[0].sequence == 0
        assert side[-1].sequence == sent + 1, "after SYN and data"
    assert not any(each.missing_bytes for each in found)


def test_the_checksum_is_that_of_rfc_1071() -> None:
    header = bytes.fromhex("4500003c1c4640004006" + "0000" + "ac100a63ac100a0c")
    assert checksum(header) == 0xB1E6
    whole = header[:10] + struct.pack(">H", 0xB1E6) + header[12:]
    assert checksum(whole) == 0


def test_sequence_numbers_wrap(tmp_path: object) -> None:
    file = io.BytesIO()
    connection = CaptureWriter(file).connection(("10.0.0.1", 5), ("10.0.0.2", 9092))
    connection._next[0] = (1 << 32) - 2
    connection.sent(b"abc")
    connection.sent(b"d")
    assert [each.sequence for each in segments(tmp_path, file.getvalue())[-2:]] == [(1 << 32) - 2, 1]
