"""Checks of a broker before it assigns offsets."""

from __future__ import annotations

from typing import Any

import pytest
from tests.records.test_builder import plain

from kwire.records import AppendErrorCode, AppendOrigin, Compression, RejectedRecords, write_batch
from kwire.records.append.checks import analyze_append, check_given_offsets


def one(base_offset: int = 0, magic: int = 2, codec: str = "none", time: int = 5, **settings: Any) -> bytes:
    return write_batch(
        [plain(0, b"k", b"v", time), plain(0, b"k", b"w", time - 1)], magic, codec, base_offset, **settings
    )


def refused(data: bytes, code: AppendErrorCode, **settings: Any) -> None:
    with pytest.raises(RejectedRecords) as raised:
        analyze_append(data, **settings)
    assert raised.value.code == code


@pytest.mark.requirement("A-01")
def test_a_client_batch_of_magic_2_starts_at_offset_0() -> None:
    refused(one(1), AppendErrorCode.INVALID_RECORD)
    assert analyze_append(one(1), origin=AppendOrigin.REPLICATION).first_offset == 1
    assert analyze_append(one(1, magic=1)).first_offset == 1


@pytest.mark.requirement("A-02")
def test_a_raft_leader_must_write_its_own_epoch() -> None:
    data = one(5, partition_leader_epoch=3)
    assert analyze_append(data, origin=AppendOrigin.RAFT_LEADER, leader_epoch=3).last_leader_epoch == 3
    refused(data, AppendErrorCode.INVALID_RECORD, origin=AppendOrigin.RAFT_LEADER, leader_epoch=4)


@pytest.mark.requirement("A-03", "A-07")
def test_the_sizes_of_batches_and_record_sets_are_limited() -> None:
    data = one()
    analyze_append(data, max_message_bytes=len(data), segment_bytes=len(data))
    refused(data, AppendErrorCode.MESSAGE_TOO_LARGE, max_message_bytes=len(data) - 1)
    analyze_append(data, max_message_bytes=1, origin=AppendOrigin.REPLICATION)
    refused(data, AppendErrorCode.RECORD_LIST_TOO_LARGE, segment_bytes=len(data) - 1)


@pytest.mark.requirement("A-04")
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_a_changed_byte_is_detected(magic: int) -> None:
    data = bytearray(one(magic=magic, codec="gzip"))
    data[-1] ^= 1
    refused(bytes(data), AppendErrorCode.CORRUPT_MESSAGE)
    refused(b"\0" * 40, AppendErrorCode.CORRUPT_MESSAGE)


@pytest.mark.requirement("A-05")
def test_offsets_of_followers_increase_and_continue_the_log() -> None:
    follower = {"origin": AppendOrigin.REPLICATION}
    good = analyze_append(one(5) + one(7), **follower)
    assert good.offsets_monotonic
    check_given_offsets(good, 5)
    with pytest.raises(RejectedRecords, match="next offset 6"):
        check_given_offsets(good, 6)
    with pytest.raises(RejectedRecords, match="Out of order"):
        check_given_offsets(analyze_append(one(7) + one(5), **follower), 5)
    check_given_offsets(analyze_append(b""), 5)


@pytest.mark.requirement("A-06")
def test_bytes_after_the_last_whole_batch_are_ignored() -> None:
    data = one()
    info = analyze_append(data + data[:50])
    assert (info.valid_bytes, info.batch_count) == (len(data), 1)


@pytest.mark.requirement("A-26")
def test_headers_of_several_batches_are_combined() -> None:
    data = one(5, time=30, codec="lz4") + one(7, time=40) + one(9, time=40)
    info = analyze_append(data, origin=AppendOrigin.REPLICATION)
    assert (info.first_offset, info.last_offset) == (5, 10)
    assert (info.max_timestamp, info.offset_of_max_timestamp) == (40, 8)
    assert info.source_codec == Compression.LZ4
