"""Formats by request version, and record sets that a version must not contain."""

from __future__ import annotations

import pytest
from tests.records.test_builder import plain

from kwire.records import AppendErrorCode, RejectedRecords, write_batch
from kwire.records.append.request_magic import check_produced, fetch_magic, produce_magic


@pytest.mark.requirement("U-02", "S31-16", "S31-17", "S31-24", "S31-28", "S31-29")
def test_each_request_version_has_its_magic() -> None:
    assert [produce_magic(version) for version in (0, 1, 2, 3, 11)] == [0, 0, 1, 2, 2]
    assert [fetch_magic(version) for version in (0, 1, 2, 3, 4, 16)] == [0, 0, 1, 1, 2, 2]


def produced(magic: int = 2, codec: str = "none") -> bytes:
    return write_batch([plain(0, b"k", b"v", 1)], magic, codec)


@pytest.mark.requirement("U-01", "S31-18", "S31-31", "S31-32")
def test_old_versions_are_not_checked() -> None:
    for version in (0, 1, 2):
        check_produced(produced(0) + produced(1), version)


@pytest.mark.requirement("U-01")
@pytest.mark.parametrize(
    ("data", "version", "code"),
    [
        (b"", 3, AppendErrorCode.INVALID_RECORD),
        (produced() + produced(), 3, AppendErrorCode.INVALID_RECORD),
        (produced(1), 11, AppendErrorCode.INVALID_RECORD),
        (produced(0), 3, AppendErrorCode.INVALID_RECORD),
        (produced(2, "zstd"), 6, AppendErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (b"\0" * 30, 9, AppendErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_from_version_3_produce_requires_one_magic_2_batch(data: bytes, version: int, code: AppendErrorCode) -> None:
    with pytest.raises(RejectedRecords) as raised:
        check_produced(data, version)
    assert raised.value.code == code


@pytest.mark.requirement("U-01")
def test_record_sets_valid_for_the_version_are_accepted() -> None:
    check_produced(produced(), 3)
    check_produced(produced(2, "zstd"), 7)
