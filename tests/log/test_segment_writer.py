"""Segment writers: index entries, lookups, truncation."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from kwire.log import FileSystem, LogConfig
from kwire.log.files.index_writer import InvalidOffset
from kwire.log.writing.segment_writer import SegmentWriter
from tests.log.writing import NOW, batch, numbered

CONFIG = LogConfig(index_interval_bytes=100, segment_index_bytes=800)


def segment(directory: Path, base_offset: int = 0, **options: object) -> SegmentWriter:
    return SegmentWriter(
        FileSystem(),
        str(directory),
        base_offset,
        CONFIG,
        now_ms=NOW,
        is_new=True,
        **options,  # type: ignore[arg-type]
    )


def add(one: SegmentWriter, offset: int, timestamp: int, size_bytes: int = 120) -> None:
    """Append a batch of one record at an offset."""
    data = bytearray(batch(b"x" * (size_bytes - len(batch(b""))), timestamp=timestamp))
    data[:8] = offset.to_bytes(8, "big")
    one.append([data], offset, timestamp, offset)


@pytest.mark.requirement("F-11", "F-20", "F-21")
def test_an_index_entry_precedes_the_append_that_exceeds_the_interval(tmp_path: Path) -> None:
    one = segment(tmp_path)
    times = [NOW + 5, NOW + 9, NOW + 1, NOW + 9, NOW + 20]
    positions = []
    for i, timestamp in enumerate(times):
        positions.append(one.size_bytes)
        add(one, i * 10, timestamp)
        if timestamp == NOW + 9:
            assert one.largest == (NOW + 9, 10)  # the earliest batch with the time, also once another has it
    one.deactivate()
    entries = [(10, positions[1]), (20, positions[2]), (30, positions[3]), (40, positions[4])]
    assert [(offset, one.offset_index.lookup(offset)) for offset, _ in entries] == entries
    assert one.offset_index.count == 4  # none for the first append
    assert one.time_index.count == 2  # NOW + 9 at offset 10 once, NOW + 20 at 40
    assert one.largest == (NOW + 20, 40)
    assert one.first_timestamp == NOW + 5


@pytest.mark.requirement("F-12")
def test_positions_are_found_with_and_without_index_entries(tmp_path: Path) -> None:
    one = segment(tmp_path)
    for i in range(6):
        add(one, i * 10 + 9, NOW + i)  # each batch of one record ends at 9, 19, ...
    for offset in range(60):
        place = one.find_batch(offset)
        assert place is not None
        assert place.last_offset == offset // 10 * 10 + 9
    assert one.find_batch(60) is None
    assert one.read_next_offset() == 60
    (tmp_path / "empty").mkdir()
    assert segment(tmp_path / "empty", 5).read_next_offset() == 5


def test_an_offset_out_of_range_is_rejected_before_the_write(tmp_path: Path) -> None:
    one = segment(tmp_path, 100)
    for offset in (99, 100 + (1 << 31)):
        with pytest.raises(InvalidOffset):
            add(one, offset, NOW)
    assert one.size_bytes == 0


@pytest.mark.requirement("F-16", "F-64")
def test_truncation_finds_the_largest_remaining_timestamp(tmp_path: Path) -> None:
    one = segment(tmp_path)
    for i, timestamp in enumerate([NOW, NOW + 50, NOW + 10, NOW + 99]):
        add(one, i, timestamp)
    assert one.truncate_to(3, NOW) > 0
    assert one.largest == (NOW + 50, 1)
    assert one.truncate_to(99, NOW) == 0
    one.truncate_to(0, NOW + 7)
    assert (one.size_bytes, one.created_ms, one.first_timestamp) == (0, NOW + 7, -1)
    assert one.largest_timestamp == one.log.modified_ms()


@pytest.mark.requirement("F-60")
def test_segments_roll_by_size_time_and_offset(tmp_path: Path) -> None:
    one = segment(tmp_path)
    config = CONFIG.replace(segment_bytes=1000, segment_ms=500)

    def rolls(now_ms: int = NOW, size: int = 100, last: int = 5, timestamp: int = NOW) -> bool:
        return one.should_roll(config, now_ms, size, last, timestamp)

    assert not rolls(now_ms=NOW + 10_000, timestamp=NOW + 10_000)  # an empty one waits
    assert rolls(size=1001)
    add(one, 0, NOW)
    assert not rolls(size=880)
    assert rolls(size=881)
    assert not rolls(timestamp=NOW + 500, now_ms=NOW + 10_000)
    assert rolls(timestamp=NOW + 501)
    assert not rolls(last=(1 << 31) - 1)
    assert rolls(last=1 << 31)


@pytest.mark.requirement("X-35")
def test_all_files_of_a_segment_are_renamed(tmp_path: Path) -> None:
    one = segment(tmp_path, suffix=".cleaned")
    add(one, 0, NOW)
    one.change_suffix(".swap")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"{0:020d}.{kind}.swap" for kind in ("index", "log", "timeindex")
    ]
    one.change_suffix("")
    one.set_modified(NOW)
    one.close()
    assert one.path("log") == str(tmp_path / f"{0:020d}.log")
    assert (tmp_path / f"{0:020d}.log").stat().st_size == 120
    one.remove()
    one.remove()
    assert not list(tmp_path.iterdir())


@pytest.mark.requirement("F-21", "F-14")
def test_closing_writes_the_last_timestamp_and_trims_indexes(tmp_path: Path) -> None:
    one = segment(tmp_path)
    one.append([numbered(0, 5)], 4, NOW + 4, 4)
    one.close()
    assert (tmp_path / f"{0:020d}.timeindex").stat().st_size == 12
    assert (tmp_path / f"{0:020d}.index").stat().st_size == 0


@pytest.mark.requirement("F-11")
@pytest.mark.parametrize(("size_bytes", "entries"), [(99, [2]), (100, [2]), (101, [1, 2])])
def test_an_index_entry_needs_more_bytes_than_the_interval(size_bytes: int, entries: list[int], tmp_path: Path) -> None:
    """Source: LogSegment.append, bytesSinceLastIndexEntry > indexIntervalBytes."""
    one = segment(tmp_path)
    for offset in range(3):
        add(one, offset, NOW + offset, size_bytes)
    one.close()
    index = (tmp_path / f"{0:020d}.index").read_bytes()
    assert [offset for offset, _ in struct.iter_unpack(">ii", index)] == entries


def test_the_last_offset_that_fits_an_index_is_written(tmp_path: Path) -> None:
    one = segment(tmp_path, 100)
    add(one, 100, NOW)
    add(one, 100 + (1 << 31) - 1, NOW)
    assert one.read_next_offset() == 100 + (1 << 31)
