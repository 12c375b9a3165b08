"""Magic 0 and 1: single messages, and KIP-31's relative offsets inside compressed ones."""

from __future__ import annotations

import gzip

import pytest
from tests.records.both_paths import through_both
from tests.records.building import batch, framed, message

from kwire.errors import CorruptBatch
from kwire.records import Compression, TimestampType, read_batches
from kwire.records.format.faults import Fault

GZIP, ZSTD, LOG_APPEND_TIME = 1, 4, 8

WORKED = [
    ("0000000000000000 00000010 1fecd70a 00 00 00000001 6b 00000001 76", (0, -1, -1, b"k", b"v", [])),
    ("0000000000000000 00000018 cf056e6e 01 00 0000000000000001 00000001 6b 00000001 76", (0, 1, 0, b"k", b"v", [])),
    ("0000000000000005 00000017 09b66caa 01 00 00000000000003e8 ffffffff 00000001 76", (5, 1000, 0, None, b"v", [])),
]


def wrapper(inner: bytes, magic: int = 1, *, offset: int, attributes: int = GZIP, timestamp: int = 99) -> bytes:
    """Return a gzip wrapper message of other messages."""
    value = gzip.compress(inner, mtime=0)
    return message(magic, offset=offset, attributes=attributes, timestamp=timestamp, key=None, value=value)


def inners(offsets: list[int], magic: int = 1) -> bytes:
    return b"".join(message(magic, offset=o, timestamp=10 + o, value=b"%d" % o) for o in offsets)


@pytest.mark.requirement("R-10", "R-11", "R-12", "S31-23", "S31-37")
@pytest.mark.parametrize(("encoded", "row"), WORKED)
def test_messages_of_the_specification_are_read(encoded: str, row: tuple[object, ...]) -> None:
    assert through_both(bytes.fromhex(encoded)) == ([row], [])


@pytest.mark.requirement("R-12")
def test_a_legacy_message_is_a_batch_without_producer_data() -> None:
    (found,) = read_batches(message(1, offset=7))
    assert (found.base_offset, found.last_offset, found.next_offset, found.count) == (7, 7, 8, None)
    assert (found.producer_id, found.producer_epoch, found.base_sequence, found.partition_leader_epoch) == (-1,) * 4
    assert (found.is_control, found.is_transactional, found.delete_horizon_ms) == (False, False, None)
    (one,) = found.records()
    assert (one.sequence, one.leader_epoch, one.headers) == (-1, None, [])


def test_magic_2_flags_are_ignored_in_legacy_messages() -> None:
    (found,) = read_batches(message(1, attributes=0x70))
    assert (found.is_control, found.is_transactional, found.delete_horizon_ms) == (False, False, None)
    assert len(through_both(message(1, attributes=0x70)).rows) == 1


@pytest.mark.requirement("R-10")
def test_magic_0_has_no_timestamps_for_any_attributes() -> None:
    assert through_both(message(0, attributes=LOG_APPEND_TIME)).rows[0][1:3] == (-1, TimestampType.NO_TIMESTAMP_TYPE)
    assert through_both(message(1, attributes=LOG_APPEND_TIME)).rows[0][1:3] == (1000, TimestampType.LOG_APPEND_TIME)


@pytest.mark.requirement("R-20", "R-21", "R-22", "R-23", "R-28", "S31-01", "S31-12")
def test_relative_offsets_are_resolved_from_the_outer_offset() -> None:
    data = wrapper(inners([0, 1, 2]), offset=102)
    assert [row[0] for row in through_both(data).rows] == [100, 101, 102]
    (found,) = read_batches(data)
    assert (found.base_offset, found.last_offset, found.compression) == (100, 102, Compression.GZIP)


@pytest.mark.requirement("R-27", "S31-07", "S31-11")
def test_gaps_of_compaction_are_kept_in_relative_offsets() -> None:
    assert [row[0] for row in through_both(wrapper(inners([0, 3, 7]), offset=107)).rows] == [100, 103, 107]


@pytest.mark.requirement("R-23", "S31-02")
def test_an_outer_offset_of_0_means_unset() -> None:
    assert [row[0] for row in through_both(wrapper(inners([0, 1, 2]), offset=0)).rows] == [0, 1, 2]


@pytest.mark.requirement("R-23")
def test_an_outer_offset_below_the_inner_one_is_rejected() -> None:
    data = wrapper(inners([0, 1, 2]), offset=1)
    assert Fault.WRAPPER_OFFSET.text in through_both(data).errors[0]
    (found,) = read_batches(data)
    with pytest.raises(CorruptBatch, match="below that of its last"):
        _ = found.base_offset


@pytest.mark.requirement("R-22")
def test_inner_offsets_of_magic_0_are_absolute() -> None:
    assert [row[0] for row in through_both(wrapper(inners([100, 101], 0), 0, offset=101)).rows] == [100, 101]
    assert [row[0] for row in through_both(wrapper(inners([0, 1], 0), 0, offset=101)).rows] == [0, 1]


@pytest.mark.requirement("R-24")
def test_the_outer_timestamp_type_applies() -> None:
    create = wrapper(inners([0, 1]), offset=1, timestamp=11)
    assert [row[1:3] for row in through_both(create).rows] == [(10, 0), (11, 0)]
    append = wrapper(inners([0, 1]), offset=1, timestamp=777, attributes=GZIP | LOG_APPEND_TIME)
    assert [row[1:3] for row in through_both(append).rows] == [(777, 1), (777, 1)]


@pytest.mark.requirement("R-25")
def test_inner_messages_of_another_magic_are_accepted() -> None:
    mixed = message(0, offset=0) + message(1, offset=1, timestamp=5)
    for magic in (0, 1):
        rows, errors = through_both(wrapper(mixed, magic, offset=1))
        assert [row[:2] for row in rows] == [(0, -1), (1, 5)]
        assert not errors


@pytest.mark.requirement("R-26")
def test_a_truncated_inner_message_ends_the_set() -> None:
    whole = inners([0, 1])
    for cut in range(len(whole) // 2, len(whole)):
        assert [row[0] for row in through_both(wrapper(whole[:cut], offset=5)).rows] == [5]
    smallest = message(0, offset=1, key=None, value=None)
    assert len(smallest) == 12 + 14
    first = message(0, key=b"k", value=b"0")
    for cut in range(len(smallest)):
        found = through_both(wrapper(first + smallest[:cut], 0, offset=5))
        assert (len(found.rows), found.errors) == (1, [])


@pytest.mark.requirement("R-11")
def test_bytes_after_the_value_are_ignored() -> None:
    assert through_both(message(1, tail=b"more")).rows == [(0, 1000, 0, b"k", b"v", [])]


@pytest.mark.requirement("R-11")
def test_null_and_empty_differ() -> None:
    data = message(1, key=None, value=None) + message(0, key=b"", value=b"")
    assert [row[3:5] for row in through_both(data).rows] == [(None, None), (b"", b"")]


def raw(magic: int, rest: bytes, attributes: int = 0) -> bytes:
    """Return a message with these bytes after the attributes."""
    return framed(bytes((magic, attributes)) + rest)


FAULTS = [
    (Fault.MESSAGE_FIELDS, raw(0, (99).to_bytes(4, "big") + bytes(8))),
    (Fault.MESSAGE_FIELDS, raw(0, bytes(4) + (99).to_bytes(4, "big"))),
    (Fault.MESSAGE_FIELDS, raw(0, (4).to_bytes(4, "big") + bytes(4))),
    (Fault.MESSAGE_FIELDS, raw(0, (2**31 - 1).to_bytes(4, "big") + bytes(8))),
    (Fault.MESSAGE_FIELDS, raw(1, bytes(8))),
    (Fault.MESSAGE_FIELDS, raw(1, bytes(12))),
    (Fault.MESSAGE_FIELDS, raw(1, bytes(10), GZIP)),
    (Fault.WRAPPER_VALUE, message(1, attributes=GZIP, value=None)),
    (Fault.WRAPPER_EMPTY, wrapper(b"", offset=0)),
    (Fault.WRAPPER_EMPTY, wrapper(inners([0])[:-1], offset=0)),
    (Fault.INNER_SIZE, wrapper(inners([0]) + bytes(8) + (13).to_bytes(4, "big"), offset=0)),
    (Fault.INNER_SIZE, wrapper(bytes(8) + (-1 & 0xFFFF_FFFF).to_bytes(4, "big"), offset=0)),
    (Fault.INNER_MAGIC, wrapper(inners([0]) + batch(), offset=0)),
    (Fault.INNER_COMPRESSED, wrapper(wrapper(inners([0]), offset=0), offset=0)),
    (Fault.INNER_COMPRESSED, wrapper(inners([0]) + message(1, attributes=7), offset=0)),
    (Fault.INNER_CRC, wrapper(inners([0]) + message(1, offset=1, crc=5), offset=1)),
    (Fault.MESSAGE_FIELDS, wrapper(inners([0]) + raw(1, bytes(8)), offset=0)),
]


@pytest.mark.requirement("R-25", "R-03")
@pytest.mark.parametrize(("fault", "data"), FAULTS, ids=lambda x: x.name if isinstance(x, Fault) else str(len(x)))
def test_an_invalid_message_is_rejected(fault: Fault, data: bytes) -> None:
    rows, errors = through_both(message(1, offset=3) + data + message(0, offset=4))
    assert [row[0] for row in rows] == [3, 4]
    assert len(errors) == 1
    assert fault.text in errors[0]


@pytest.mark.requirement("R-25", "C-06")
@pytest.mark.parametrize("magic", [0, 1])
def test_zstd_is_rejected_in_magic_0_and_1(magic: int) -> None:
    (error,) = through_both(message(magic, attributes=ZSTD, value=b"x")).errors
    assert "zstd" in error


@pytest.mark.requirement("D-05")
def test_inner_checksums_are_verified_by_default() -> None:
    data = wrapper(inners([0]) + message(1, offset=1, crc=5), offset=1)
    (found,) = read_batches(data)
    found.check()
    assert [r.offset for r in found.records(check_crc=False)] == [0, 1]
    records = found.records()
    assert next(records).offset == 0
    with pytest.raises(CorruptBatch, match="record 1: an inner message's checksum"):
        next(records)
