"""Magic 2: header fields, records, and every error of a record."""

from __future__ import annotations

import pytest
from tests.records.both_paths import through_both
from tests.records.building import batch, field, record, varint

from kwire.errors import CorruptBatch
from kwire.records import TimestampType, read_batches
from kwire.records.format.faults import Fault
from kwire.records.format.wrapping import add_to_sequence

LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 8, 16, 32, 64

# Worked examples of the format's description.
BOTH = bytes.fromhex(
    "0000000000000000 00000048 ffffffff 02 b45370ad 0000 00000001 00000000000003e8 00000000000003ed ffffffffffffffff"
    "ffff ffffffff 00000002 10 00 00 00 02 6b 02 76 00 1a 00 0a 02 01 01 04 02 68 02 78 02 6e 01"
)
EMPTIED = bytes.fromhex(
    "0000000000000000 00000031 ffffffff 02 0a63be3d 0000 00000001 ffffffffffffffff 00000000000003ed ffffffffffffffff"
    "ffff ffffffff 00000000"
)
DELETE_HORIZON_SET = bytes.fromhex(
    "0000000000000064 00000044 ffffffff 02 937d56ca 0040 00000001 00000000000013ec 0000000000000014 ffffffffffffffff"
    "ffff ffffffff 00000002 12 00 c34f 00 02 61 02 31 00 10 00 af4f 02 02 62 01 00"
)


@pytest.mark.requirement("R-30", "R-31")
def test_the_batch_of_the_specification_is_read() -> None:
    (found,) = read_batches(BOTH)
    found.check()
    first, second = found.records()
    assert (first.offset, first.timestamp, first.key, first.value, first.headers) == (0, 1000, b"k", b"v", [])
    assert (second.offset, second.timestamp, second.key, second.value) == (1, 1005, None, None)
    assert second.headers == [("h", b"x"), ("n", None)]
    assert (first.sequence, first.leader_epoch, first.timestamp_type) == (-1, None, TimestampType.CREATE_TIME)
    assert batch(record() + record(1, 5, None, None, [(b"h", b"x"), (b"n", None)]), count=2, max_timestamp=1005) == BOTH


@pytest.mark.requirement("R-38")
def test_an_emptied_batch_keeps_its_offsets() -> None:
    (found,) = read_batches(EMPTIED)
    found.check()
    assert (found.base_offset, found.last_offset, found.next_offset, found.count) == (0, 1, 2, 0)
    assert (found.base_timestamp, found.max_timestamp) == (-1, 1005)
    assert list(found.records()) == []
    assert through_both(EMPTIED) == ([], [])


def test_a_batch_with_record_count_0_is_not_decoded() -> None:
    assert through_both(batch(b"garbage", count=0, attributes=1)) == ([], [])


@pytest.mark.requirement("R-30")
def test_a_delete_horizon_does_not_move_timestamps() -> None:
    (found,) = read_batches(DELETE_HORIZON_SET)
    found.check()
    assert found.delete_horizon_ms == found.base_timestamp == 5100
    assert [(r.offset, r.timestamp, r.key, r.value) for r in found.records()] == [
        (100, 10, b"a", b"1"),
        (101, 20, b"b", None),
    ]
    assert [row[:2] for row in through_both(DELETE_HORIZON_SET).rows] == [(100, 10), (101, 20)]


@pytest.mark.requirement("R-36")
def test_base_offset_and_leader_epoch_are_outside_the_checksum() -> None:
    data = bytearray(batch(base_offset=0))
    data[0:8] = (77).to_bytes(8, "big")
    data[12:16] = (5).to_bytes(4, "big")
    (found,) = read_batches(data)
    found.check()
    (one,) = found.records()
    assert (one.offset, one.leader_epoch) == (77, 5)


@pytest.mark.requirement("R-30", "R-35")
def test_the_append_time_applies_to_every_record() -> None:
    data = batch(
        record(0, 3) + record(1, -9), count=2, attributes=LOG_APPEND_TIME, base_timestamp=10, max_timestamp=777
    )
    assert [row[1:3] for row in through_both(data).rows] == [(777, 1), (777, 1)]


@pytest.mark.requirement("R-30")
def test_timestamp_and_sequence_sums_wrap_as_in_java() -> None:
    data = batch(record(5, 2), base_offset=2**63 - 3, base_timestamp=2**63 - 1)
    (found,) = read_batches(data)
    (one,) = found.records()
    assert (one.offset, one.timestamp) == (-(2**63) + 2, -(2**63) + 1)


def test_a_timestamp_beyond_microseconds_is_null_in_columns() -> None:
    largest = (2**63 - 1) // 1000
    data = b"".join(
        batch(record(), base_offset=i, base_timestamp=time)
        for i, time in enumerate([largest, largest + 1, -largest, -largest - 1, 2**63 - 1, -(2**63), 0])
    )
    assert [row[1] for row in through_both(data).rows] == [largest, None, -largest, None, None, None, 0]


@pytest.mark.requirement("R-31")
def test_sequences_wrap_after_the_largest() -> None:
    data = batch(record(0) + record(1) + record(2), count=3, producer_id=9, producer_epoch=2, base_sequence=2**31 - 2)
    (found,) = read_batches(data)
    assert [r.sequence for r in found.records()] == [2**31 - 2, 2**31 - 1, 0]
    assert (found.producer_id, found.producer_epoch, found.base_sequence, found.last_sequence) == (9, 2, 2**31 - 2, 0)
    assert add_to_sequence(5, 2**31 - 1) == 4


@pytest.mark.requirement("R-30")
def test_flags_are_independent() -> None:
    for flags in range(0, 128, 8):
        (found,) = read_batches(batch(attributes=flags))
        assert found.is_transactional == bool(flags & TRANSACTIONAL)
        assert found.is_control == bool(flags & CONTROL)
        assert (found.delete_horizon_ms is not None) == bool(flags & DELETE_HORIZON)
        assert found.timestamp_type == bool(flags & LOG_APPEND_TIME)


def test_unknown_attribute_bits_are_ignored() -> None:
    data = batch(attributes=-128)
    (found,) = read_batches(data)
    found.check()
    assert found.attributes == -128
    assert len(through_both(data).rows) == 1


@pytest.mark.requirement("R-32")
@pytest.mark.parametrize("codec", [5, 6, 7])
def test_an_unknown_codec_is_rejected(codec: int) -> None:
    data = batch(attributes=codec)
    (found,) = read_batches(data)
    with pytest.raises(CorruptBatch, match=f"unknown compression type id {codec}"):
        found.check()
    with pytest.raises(CorruptBatch, match=f"unknown compression type id {codec}"):
        list(found.records())
    assert through_both(data).errors


def body(*parts: bytes) -> bytes:
    """Return a record of these bytes with its length."""
    joined = b"".join(parts)
    return varint(len(joined)) + joined


START = bytes(3)  # attributes, timestamp delta, offset delta
NULL = b"\x01"

FAULTS = [
    (Fault.RECORD_LENGTH, varint(-1) + bytes(8)),
    (Fault.RECORD_LENGTH, varint(100) + bytes(8)),
    (Fault.RECORD_LENGTH, varint(2**31 - 1) + bytes(8)),
    (Fault.RECORD_LENGTH, b"\x80" * 9),
    (Fault.RECORD_FIELDS, varint(0) + bytes(8)),
    (Fault.RECORD_FIELDS, body(b"\0" + b"\x80" * 10)),
    (Fault.RECORD_FIELDS, body(b"\0" + b"\x80" * 3) + bytes(4)),
    (Fault.RECORD_FIELDS, body(b"\0\0" + b"\x80" * 6)),
    (Fault.RECORD_FIELDS, body(START) + bytes(4)),
    (Fault.RECORD_FIELDS, body(START, field(b"key")) + bytes(4)),
    (Fault.RECORD_FIELDS, body(START, NULL, NULL) + bytes(4)),
    (Fault.KEY_LENGTH, body(START, varint(50), b"key") + bytes(60)),
    (Fault.VALUE_LENGTH, body(START, NULL, varint(50), b"value") + bytes(60)),
    (Fault.VALUE_LENGTH, body(START, NULL, varint(2**31 - 1), b"value")),
    (Fault.HEADER_COUNT, body(START, NULL, NULL, varint(-1)) + bytes(2)),
    (Fault.HEADER_COUNT, body(START, NULL, NULL, varint(2), NULL) + bytes(2)),
    (Fault.HEADER_COUNT, body(START, NULL, NULL, varint(2**31 - 1), bytes(9))),
    (Fault.HEADER_KEY, body(START, NULL, NULL, varint(1), NULL, bytes(3))),
    (Fault.HEADER_KEY, body(START, NULL, NULL, varint(1), varint(9), bytes(3)) + bytes(9)),
    (Fault.HEADER_KEY, body(START, NULL, NULL, varint(1), b"\x80" * 7)),
    (Fault.HEADER_VALUE, body(START, NULL, NULL, varint(1), field(b"h"), varint(9), bytes(3)) + bytes(9)),
    (Fault.HEADER_VALUE, body(START, NULL, NULL, varint(1), field(b"h"))),
    (Fault.RECORD_SIZE, body(START, NULL, NULL, varint(0), b"more")),
    (Fault.RECORD_SIZE, body(START, NULL, NULL, varint(1), field(b"h"), field(b"x"), b"more")),
]


@pytest.mark.requirement("R-32")
@pytest.mark.parametrize(("fault", "second"), FAULTS, ids=lambda x: x.name if isinstance(x, Fault) else x.hex())
def test_an_invalid_record_is_reported_with_its_index(fault: Fault, second: bytes) -> None:
    good = record()
    data = batch(good + second, count=2, base_offset=3)
    rows, errors = through_both(batch(base_offset=2) + data + batch(base_offset=9))
    assert [row[0] for row in rows] == [2, 9]
    assert errors == [f"record 1: {fault.text}, in the batch at byte {len(batch())} (offsets 3 to 4)"]
    (found,) = read_batches(data)
    records = found.records()
    assert next(records).offset == 3  # those before the fault are delivered
    with pytest.raises(CorruptBatch, match=fault.text):
        next(records)


@pytest.mark.requirement("R-32")
def test_every_error_of_magic_2_has_a_test() -> None:
    tested = {fault for fault, _ in FAULTS}
    elsewhere = {Fault.RECORD_COUNT, Fault.BYTES_LEFT} | {fault for fault in Fault if fault >= Fault.WRAPPER_VALUE}
    assert tested | elsewhere == set(Fault)


@pytest.mark.requirement("R-32")
@pytest.mark.parametrize(
    ("count", "fault"),
    [
        (-1, Fault.RECORD_COUNT),
        (-(2**31), Fault.RECORD_COUNT),
        (1, Fault.BYTES_LEFT),
        (3, Fault.RECORD_FIELDS),
        (1000, Fault.RECORD_COUNT),
        (2**31 - 1, Fault.RECORD_COUNT),
    ],
)
def test_a_wrong_record_count_is_rejected(count: int, fault: Fault) -> None:
    rows, errors = through_both(batch(record() + record(1) + bytes(8), count=count))
    assert not rows
    assert fault.text in errors[0]


@pytest.mark.parametrize("length", [-1, -2, -(2**31)])
def test_any_negative_length_is_null(length: int) -> None:
    data = batch(body(START, varint(length), varint(length), varint(1), field(b"h"), varint(length)))
    assert through_both(data).rows == [(0, 1000, 0, None, None, [("h", None)])]


def test_empty_is_not_null() -> None:
    data = batch(record(key=b"", value=b"", headers=[(b"", b""), (b"", None)]))
    assert through_both(data).rows == [(0, 1000, 0, b"", b"", [("", b""), ("", None)])]


def test_over_long_varints_and_dropped_bits_are_read_as_in_kafka() -> None:
    long_zero = b"\x80\x80\x80\x80\x70"  # zero, and bits that an int32 has no room for
    data = batch(body(b"\0", b"\x80" * 9 + b"\x7e", long_zero, NULL, NULL, long_zero))
    assert through_both(data).rows == [(0, 1000, 0, None, None, [])]


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"\xff\xfeA", "\ufffd\ufffdA"),
        (b"\xed\xa0\x80x", "\ufffdx"),  # an encoded surrogate is one bad sequence to Java, three bad bytes to Python
        (b"\xe2\x82", "\ufffd"),
        (b"\xf0\x9f\x98\x80", "\N{GRINNING FACE}"),
        (b"\xc0\x80", "\ufffd\ufffd"),
    ],
)
@pytest.mark.requirement("D-06")
def test_invalid_utf_8_in_header_keys_is_replaced(raw: bytes, text: str) -> None:
    data = batch(record(headers=[(b"fine", b"1"), (raw, b"2")]) + record(1, headers=[(b"x", raw)]), count=2)
    assert [row[5] for row in through_both(data).rows] == [[("fine", b"1"), (text, b"2")], [("x", raw)]]
