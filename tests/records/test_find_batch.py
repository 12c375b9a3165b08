"""The search for a header stays within its buffer and misses no valid header."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from tests.records.building import batch, record

from kwire.maintenance.verify import resync
from kwire.maintenance.verify.resync import Range, find_header, find_plain
from kwire.storage.store import LocalStore

HEADER_BYTES = 61


def search(data: bytes, start: int = 0, *, left: int | None = None, floor: int = 0, ceiling: int = 1 << 62) -> int:
    """Search with the kernel and in Python, which must give the same."""
    array, size = np.frombuffer(data, np.uint8), len(data) if left is None else left
    found = find_header(array, start, size, Range(floor, ceiling))
    assert find_plain(array, start, size, floor, ceiling) == found
    return found


def test_a_header_is_found_at_any_position() -> None:
    one = batch(record(), base_offset=77)
    for before in range(40):
        assert search(b"\xff" * before + one) == before
        assert search(b"\xff" * before + one, before + 1) == -1


def test_a_truncated_header_is_ignored() -> None:
    one = batch(record(), base_offset=77)
    for cut in range(HEADER_BYTES):
        assert search(one[:cut], left=len(one)) == -1
    assert search(one[:HEADER_BYTES], left=len(one)) == 0
    assert search(one[:HEADER_BYTES], left=len(one) - 1) == -1  # the batch would pass the end of the file


def test_headers_with_offsets_out_of_range_are_ignored() -> None:
    one = batch(record() + record(1), base_offset=77, count=2, last_offset_delta=1)
    assert search(one, floor=77, ceiling=79) == 0
    assert search(one, floor=78, ceiling=79) == -1
    assert search(one, floor=77, ceiling=78) == -1


def test_zeros_and_ones_are_not_headers() -> None:
    assert search(bytes(500)) == -1  # a size of 0
    assert search(b"\xff" * 500) == -1
    assert search(struct.pack(">qiib", 5, 13, 0, 1) + bytes(100)) == -1
    assert search(struct.pack(">qiib", 5, 14, 0, 1) + bytes(100)) == 0


@pytest.mark.parametrize("magic", [0, 1, 2, 3])
def test_both_searches_agree_at_every_limit(magic: int) -> None:
    """Of the size, the offset, the number of records, and the last offset."""
    floor, ceiling, left = 10, 20, 100
    found = set()
    for size in (13, 14, 48, 49, left - 12, left - 11):
        for offset in (floor - 1, floor, ceiling - 1, ceiling):
            for delta in (-1, 0, ceiling - offset - 1, ceiling - offset):
                for count in (-1, 0):
                    header = struct.pack(">qiibIhiqqqhii", offset, size, 0, magic, 0, 0, delta, 0, 0, -1, -1, -1, count)
                    found.add(search(header, left=left, floor=floor, ceiling=ceiling))
    assert found == ({-1} if magic == 3 else {-1, 0})


@pytest.mark.parametrize(("free", "is_found"), [(0, True), (-1, False)])
def test_checksums_are_computed_for_a_limited_number_of_bytes(
    free: int, is_found: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file full of headers would cost its square."""
    monkeypatch.setattr(resync, "FREE_CHECKS_BYTES", free)
    monkeypatch.setattr(resync, "CHECKS_PER_BYTE", 1)
    data = batch()
    (tmp_path / "file").write_bytes(data)
    with LocalStore(str(tmp_path)).open("file") as file:
        assert (resync.next_valid_batch(file, 0, len(data), Range(0, 10)) is not None) is is_found
