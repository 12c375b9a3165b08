"""Truncated, changed and mutated record sets: both paths give the same rows or kwire errors."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import golden
from tests.fuzz import records as fuzz
from tests.records.both_paths import through_both
from tests.records.building import batch, message, record, with_right_checksums

SMALL = {
    golden.case_name(line): golden.unpack(line["b64"]) or b""
    for line in golden.record_sets()
    if line["case"] in ("one", "headers", "control-commit", "v1-wrapper-relative", "v0-wrapper-absolute-inner")
}
SMALL = {name: data for name, data in SMALL.items() if len(data) < 400}


@pytest.mark.sampled(2)
@pytest.mark.requirement("R-02", "R-32")
@pytest.mark.parametrize("data", SMALL.values(), ids=SMALL.keys())
def test_any_truncation_returns_the_whole_batches(data: bytes) -> None:
    whole = through_both(data)
    for cut in range(len(data)):
        assert through_both(data + data[:cut]) == whole


@pytest.mark.sampled(2)
@pytest.mark.requirement("D-05", "R-32")
@pytest.mark.parametrize("data", SMALL.values(), ids=SMALL.keys())
def test_any_changed_byte_is_detected_or_outside_the_checksum(data: bytes) -> None:
    whole = through_both(data)
    magic = data[16]
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 0x55
        found = through_both(bytes(changed))
        if place >= 21 or (magic < 2 and place >= 12):
            assert found.rows == []
            assert len(found.errors) == 1
        elif place < 8 and not found.errors:
            assert [row[3:5] for row in found.rows] == [row[3:5] for row in whole.rows]  # only the offset has moved


@pytest.mark.sampled(2)
@pytest.mark.requirement("R-32", "R-25")
@pytest.mark.parametrize("data", SMALL.values(), ids=SMALL.keys())
def test_changed_bytes_with_a_valid_checksum_read_alike(data: bytes) -> None:
    for place in range(len(data)):
        for change in (0x01, 0x80, 0xFF):
            changed = bytearray(data)
            changed[place] ^= change
            through_both(with_right_checksums(bytes(changed)), max_decompressed_bytes=1 << 16)


@pytest.mark.slow
def test_mutated_record_sets_read_alike_in_objects_and_columns() -> None:
    assert fuzz.run(4000, seed=20) == 4000


@given(st.lists(st.tuples(st.binary(max_size=60), st.sampled_from([-1, 0, 1, 2, 3, 2**31 - 1])), max_size=4))
@settings(deadline=None)
def test_random_bytes_as_records_read_alike(payloads: list[tuple[bytes, int]]) -> None:
    data = b"".join(batch(payload, count=count, base_offset=10 * i) for i, (payload, count) in enumerate(payloads))
    through_both(data)


@given(st.binary(max_size=200), st.integers(0, 7), st.sampled_from([0, 1, 2]))
@settings(deadline=None)
def test_random_bytes_as_a_payload_read_alike(payload: bytes, codec: int, magic: int) -> None:
    if magic == 2:
        data = batch(payload, attributes=codec, count=2)
    else:
        data = message(magic, attributes=codec, key=None, value=payload)
    through_both(data + batch(), max_decompressed_bytes=1 << 16)


@given(st.binary(max_size=300))
@settings(deadline=None)
def test_random_bytes_read_alike(data: bytes) -> None:
    through_both(data)


optional = st.none() | st.binary(max_size=40)


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(
            optional,
            optional,
            st.lists(st.tuples(st.text(max_size=6).map(str.encode), optional), max_size=3),
            st.integers(-(2**63), 2**63 - 1),
            st.integers(-(2**31), 2**31 - 1),
        ),
        max_size=8,
    )
)
@settings(deadline=None)
def test_random_records_round_trip(
    rows: list[tuple[bytes | None, bytes | None, list[tuple[bytes, bytes | None]], int, int]],
) -> None:
    payload = b"".join(record(offset, time, key, value, headers) for key, value, headers, time, offset in rows)
    found = through_both(batch(payload, count=len(rows), base_timestamp=0))
    assert not found.errors
    assert [(row[0], *row[3:]) for row in found.rows] == [
        (offset, key, value, [(name.decode(), data) for name, data in headers])
        for key, value, headers, _, offset in rows
    ]
