"""Boundaries of batches, and implausible headers."""

from __future__ import annotations

import pickle

import pytest
from tests.records.both_paths import through_both, through_columns
from tests.records.building import batch, framed, message

from kwire.errors import CorruptBatch
from kwire.records import ColumnReader, read_batches

THREE = [batch(base_offset=0), message(offset=1), batch(base_offset=2)]


@pytest.mark.requirement("R-01", "R-02", "R-05")
def test_batches_of_different_magics_can_follow_each_other() -> None:
    found = list(read_batches(b"".join(THREE), position=1000))
    assert [(b.magic, b.base_offset, b.position, b.size_bytes, bytes(b.buffer)) for b in found] == [
        (2, 0, 1000, len(THREE[0]), THREE[0]),
        (1, 1, 1000 + len(THREE[0]), len(THREE[1]), THREE[1]),
        (2, 2, 1000 + len(THREE[0]) + len(THREE[1]), len(THREE[2]), THREE[2]),
    ]
    assert list(read_batches(b"")) == []


@pytest.mark.requirement("R-02", "D-01")
@pytest.mark.parametrize("last", [0, 1, 2])
def test_a_truncated_last_batch_is_not_an_error(last: int) -> None:
    whole = b"".join(THREE[:last])
    for cut in range(len(THREE[last])):
        rows, errors = through_both(whole + THREE[last][:cut])
        assert [row[0] for row in rows] == list(range(last))
        assert not errors


@pytest.mark.requirement("R-03", "S31-33")
@pytest.mark.parametrize("magic", [3, 4, 100, 127, 128, 255])
def test_an_unknown_magic_is_an_error(magic: int) -> None:
    bad = bytearray(batch())
    bad[16] = magic
    rows, errors = through_both(THREE[0] + bytes(bad), position=50, file="f.log")
    assert len(rows) == 1
    signed = magic if magic < 128 else magic - 256
    assert errors == [f"f.log: unknown magic {signed}, in the batch at byte {50 + len(THREE[0])}"]


@pytest.mark.requirement("R-03", "R-32")
@pytest.mark.parametrize("size", [-(2**31), -1, 0, 13, 2**31 - 1, 2**31 - 12])
def test_an_invalid_batch_size_is_an_error(size: int) -> None:
    bad = bytearray(batch())
    bad[8:12] = (size & 0xFFFF_FFFF).to_bytes(4, "big")
    assert "size" in through_both(bytes(bad)).errors[0]
    assert "size" in through_both(bytes(bad[:12])).errors[0]  # reported as soon as the size is available


@pytest.mark.requirement("R-02")
def test_a_size_beyond_the_end_is_a_truncated_batch() -> None:
    bad = bytearray(batch())
    bad[8:12] = (2**31 - 13).to_bytes(4, "big")
    assert through_both(bytes(bad)) == ([], [])


@pytest.mark.requirement("R-32")
@pytest.mark.parametrize("size", [14, 48])
def test_a_magic_2_batch_smaller_than_its_header_is_an_error(size: int) -> None:
    bad = bytearray(batch())
    bad[8:12] = size.to_bytes(4, "big")
    assert "leaves no room for the header" in through_both(bytes(bad)).errors[0]


def test_zeros_are_not_batches() -> None:
    rows, errors = through_both(THREE[0] + bytes(100))
    assert (len(rows), len(errors)) == (1, 1)


def test_any_buffer_type_can_be_read() -> None:
    data = b"".join(THREE)
    for kind in (bytes, bytearray, memoryview):
        assert [b.base_offset for b in read_batches(kind(data))] == [0, 1, 2]
        assert len(through_columns(kind(data)).rows) == 3
    import numpy as np

    assert len(list(read_batches(memoryview(np.frombuffer(data, np.int8))))) == 3


def test_reading_headers_does_not_decode_records() -> None:
    garbage = batch(b"\xff" * 20, attributes=4, count=9, base_offset=7, crc=0)
    (found,) = read_batches(garbage)
    assert (found.base_offset, found.last_offset, found.next_offset, found.count) == (7, 15, 16, 9)
    assert not found.is_valid


def test_errors_have_a_position_and_pickle() -> None:
    data = batch(base_offset=5, crc=1)
    (found,) = read_batches(data, position=100, file="00000000000000000005.log")
    with pytest.raises(CorruptBatch) as caught:
        found.check()
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.position, error.file, error.offsets) == (100, "00000000000000000005.log", (5, 5))
    assert str(error) == (
        f"00000000000000000005.log: stored CRC 1, computed {found.computed_crc()}, in the batch at byte 100 (offset 5)"
    )


@pytest.mark.requirement("R-01")
def test_a_reader_reports_its_position() -> None:
    data = b"".join(THREE)
    reader = ColumnReader(("offset",))
    for end in range(len(data) + 1):
        rows = sum(found.num_rows for found in reader.read(data[:end]))
        assert reader.consumed == sum(map(len, THREE[:rows]))
        assert reader.stopped is None
    assert sum(found.num_rows for found in reader.read(memoryview(data)[reader.consumed :])) == 0


def test_a_corrupt_header_ends_a_read() -> None:
    seen: list[CorruptBatch] = []
    reader = ColumnReader(("offset",), on_corrupt=seen.append)
    data = THREE[0] + framed(b"\x05" + bytes(20)) + THREE[2]
    assert sum(found.num_rows for found in reader.read(data)) == 1
    assert (reader.consumed, [reader.stopped]) == (len(THREE[0]), seen)
    assert list(reader.read(THREE[0]))
    assert reader.stopped is None


def test_a_frame_without_anything_after_it_is_checked() -> None:
    """Twelve bytes are an offset and a size, which says that no batch follows."""
    for size, is_damage in ((3, True), (13, True), (14, False), (100, False)):
        frame = bytes(8) + size.to_bytes(4, "big")
        assert list(read_batches(frame[:11])) == []
        if is_damage:
            with pytest.raises(CorruptBatch, match=f"size {size}"):
                list(read_batches(frame))
        else:
            assert list(read_batches(frame)) == []
