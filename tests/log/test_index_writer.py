"""Index writers: entries, limits, lookups, truncation, sizes."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.errors import LogError
from kwire.log import FileSystem
from kwire.log.files.index_writer import InvalidOffset, OffsetIndexWriter, TimeIndexWriter, TransactionIndexWriter
from kwire.log.files.transaction_index import TransactionIndexEntry

BASE = 100


def offset_index(path: Path, max_bytes: int = 80) -> OffsetIndexWriter:
    index = OffsetIndexWriter(FileSystem().open(str(path), create=True), BASE, max_bytes)
    index.allocate()
    return index


def time_index(path: Path, max_bytes: int = 80) -> TimeIndexWriter:
    index = TimeIndexWriter(FileSystem().open(str(path), create=True), BASE, max_bytes)
    index.allocate()
    return index


@pytest.mark.requirement("F-10", "F-14")
def test_an_offset_index_is_longer_than_its_entries_until_it_is_trimmed(tmp_path: Path) -> None:
    path = tmp_path / "i"
    index = offset_index(path, 83)
    index.append(105, 0)
    index.append(109, 700)
    assert path.read_bytes() == struct.pack(">iiii", 5, 0, 9, 700) + bytes(64)
    index.trim()
    assert path.read_bytes() == struct.pack(">iiii", 5, 0, 9, 700)
    assert index.is_full  # until it is active again
    index.allocate()
    assert path.stat().st_size == 80
    index.append(110, 900)
    assert index.lookup(110) == index.last_position == 900


@pytest.mark.requirement("F-12")
@given(st.lists(st.integers(0, 300), unique=True, max_size=10).map(sorted), st.integers(50, 450))
def test_a_lookup_finds_the_largest_entry_at_or_below(
    tmp_path_factory: pytest.TempPathFactory, offsets: list[int], asked: int
) -> None:
    path = tmp_path_factory.mktemp("index") / "i"
    index = offset_index(path)
    for offset in offsets:
        index.append(BASE + offset, offset * 10)
    expected = max((offset * 10 for offset in offsets if BASE + offset <= asked), default=0)
    assert index.lookup(asked) == expected
    index.unload()
    assert index.lookup(asked) == expected
    index.trim()
    assert OffsetIndexWriter(FileSystem().open(str(path)), BASE, 80).lookup(asked) == expected
    behind = min((BASE + offset for offset in offsets if offset * 10 >= asked), default=None)
    assert index.offset_after(asked) == behind


@pytest.mark.requirement("F-13")
def test_offsets_increase_and_are_relative_int32(tmp_path: Path) -> None:
    index = offset_index(tmp_path / "i", 24)
    index.append(105, 1)
    for offset in (105, 104, 99, BASE + (1 << 31)):
        with pytest.raises(InvalidOffset):
            index.append(offset, 2)
    index.append(BASE + (1 << 31) - 1, 2)
    assert index.lookup(1 << 60) == 2
    index.truncate_to(BASE + 6)
    index.append(106, 3)
    index.append(107, 4)
    assert index.is_full
    with pytest.raises(LogError, match="full with 3 entries"):
        index.append(108, 5)


@pytest.mark.requirement("F-16")
def test_truncating_removes_entries_at_and_above_the_offset(tmp_path: Path) -> None:
    index = offset_index(tmp_path / "i")
    times = time_index(tmp_path / "t")
    for i in range(5):
        index.append(BASE + i * 10, i)
        times.append(1000 + i, BASE + i * 10)
    index.truncate_to(BASE + 20)
    times.truncate_to(BASE + 20)
    assert (index.count, index.last_position) == (2, 1)
    assert (times.count, times.last_timestamp, times.last_offset) == (2, 1001, BASE + 10)
    times.append(1002, BASE + 11)
    index.append(BASE + 11, 7)
    index.trim()
    times.trim()
    assert (tmp_path / "i").read_bytes() == struct.pack(">6i", 0, 0, 10, 1, 11, 7)
    assert (tmp_path / "t").read_bytes() == struct.pack(">qiqiqi", 1000, 0, 1001, 10, 1002, 11)


@pytest.mark.requirement("F-20", "F-21")
def test_timestamps_increase_and_one_slot_is_reserved_for_the_roll(tmp_path: Path) -> None:
    times = time_index(tmp_path / "t", 40)
    times.append(-1, BASE)
    assert times.count == 0
    times.append(1000, 105)
    times.append(1000, 106)  # not later: no entry
    assert (times.count, times.last_offset) == (1, 105)
    for timestamp, offset in ((999, 107), (1001, 104)):
        with pytest.raises(InvalidOffset):
            times.append(timestamp, offset)
    times.append(1001, 107)
    assert times.is_full
    with pytest.raises(LogError, match="full with 2 entries"):
        times.append(1002, 108)
    times.append(1002, 108, may_take_last_slot=True)
    assert times.count == 3
    assert (tmp_path / "t").stat().st_size == 36


@pytest.mark.requirement("F-22")
def test_a_lookup_by_timestamp_finds_the_largest_entry_at_or_below(tmp_path: Path) -> None:
    times = time_index(tmp_path / "t")
    for timestamp, offset in ((1000, 105), (2000, 110), (3000, 120)):
        times.append(timestamp, offset)
    for _ in range(2):
        found = [times.lookup(timestamp) for timestamp in (999, 1000, 1999, 2000, 2001, 9999)]
        assert found == [BASE, 105, 105, 110, 110, 120]
        times.unload()


@pytest.mark.requirement("F-30", "F-31", "F-33")
def test_the_transaction_index_has_the_bytes_of_the_specification(tmp_path: Path) -> None:
    path = tmp_path / "x"
    index = TransactionIndexWriter(FileSystem(), str(path), 10)
    assert index.file is None
    index.reset()
    assert not path.exists()
    index.append(TransactionIndexEntry(9, 10, 14, 15))
    assert path.read_bytes() == bytes.fromhex(
        "0000 0000000000000009 000000000000000a 000000000000000e 000000000000000f"
    )
    with pytest.raises(InvalidOffset):
        index.append(TransactionIndexEntry(9, 12, 14, 15))
    index.append(TransactionIndexEntry(8, 12, 20, 15))
    index.append(TransactionIndexEntry(7, 18, 30, 31))
    again = TransactionIndexWriter(FileSystem(), str(path), 10)
    assert [entry.last_offset for entry in again.entries] == [14, 20, 30]
    assert again.is_sane
    again.truncate_to(20)
    assert path.stat().st_size == 34
    assert not TransactionIndexWriter(FileSystem(), str(path), 15).is_sane
    path.write_bytes(b"\x01" + path.read_bytes()[1:])
    broken = TransactionIndexWriter(FileSystem(), str(path), 10)
    assert not broken.is_sane
    with pytest.raises(LogError, match="version 1, expected 0"):
        _ = broken.entries
