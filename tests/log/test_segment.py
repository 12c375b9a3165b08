"""Finding positions in a segment: indexes are only hints."""

from __future__ import annotations

import struct
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from kwire.log import LogDirectory, Segment
from kwire.storage.header_walk import HeaderWalk
from tests.log.expected import read_arrow, read_objects
from tests.log.writing import NOW, batch, open_log, with_times

Copied = Callable[[str, str], Path]
CASES = [
    ("modern", "ids", 0),
    ("modern", "orders.recompressed", 0),
    ("modern", "compacted", 0),
    ("legacy", "v1", 1),
    ("legacy", "compacted-v1", 2),
]


def truth(segment: Segment, offset: int) -> int:
    """Find a position by a scan from the start of the file."""
    with segment.open() as file:
        walk = HeaderWalk(file)
        for header in walk:
            if header.last_offset >= offset:
                return header.position
        return walk.position


@pytest.mark.parametrize(("archive", "topic", "partition"), CASES)
@pytest.mark.requirement("F-10", "F-11", "F-12")
def test_lookups_agree_with_a_sequential_scan(
    kafka_logs: dict[str, Path], archive: str, topic: str, partition: int
) -> None:
    for segment in LogDirectory(kafka_logs[archive] / "data")[topic, partition].segments:
        end = segment.end().next_offset
        with segment.open() as file:
            for offset in range(segment.base_offset, end + 2, 7):
                assert segment.position_of(file, offset) == truth(segment, offset)
                assert segment.start_for(file, offset) <= truth(segment, offset)


@pytest.mark.requirement("F-10", "F-12")
def test_the_index_avoids_a_sequential_scan(kafka_logs: dict[str, Path]) -> None:
    segment = LogDirectory(kafka_logs["modern"] / "data")["orders", 0].segments[0]
    with segment.open() as file:
        last = segment.end().next_offset - 1
        assert segment.start_for(file, last) > file.size() * 0.9


def entries(*pairs: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">ii", offset, position) for offset, position in pairs)


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize(("archive", "topic", "partition"), CASES)
@pytest.mark.requirement("F-13", "F-14", "F-15", "G-05")
def test_missing_and_wrong_indexes_do_not_change_lookups(
    copied: Copied, archive: str, topic: str, partition: int
) -> None:
    data = copied(archive, f"{topic}-{partition}")
    log = LogDirectory(data)[topic, partition]
    rows, end = read_objects(log), log.log_end_offset
    starts = sorted({0, end // 5, end // 3, end // 2, end * 2 // 3, end - 2})
    honest = {path: path.read_bytes() for path in (data / f"{topic}-{partition}").glob("*.index")}
    size = max(len(index) for index in honest.values())
    assert size >= 16
    lies: list[Callable[[bytes], bytes | None]] = [
        lambda index: None,
        lambda index: b"",
        lambda index: index + b"\0\1\2",
        lambda index: index + bytes(4096),
        lambda index: index[::-1],
        lambda index: index[8:] + index[:8],
        lambda index: entries((9000, 99999), (40, 500), (10, 100)) + index,
        lambda index: entries((10, 100), (20, 2**31 - 1), (30, 7)),
        lambda index: b"\xff" * 80,
        lambda index: b"".join(entries((o, p + 1)) for o, p in struct.iter_unpack(">ii", index)),
        lambda index: b"".join(entries((max(0, o - 200), p)) for o, p in struct.iter_unpack(">ii", index)),
        lambda index: b"".join(entries((i + 1, p)) for i, (_, p) in enumerate(struct.iter_unpack(">ii", index))),
    ]
    for with_field in lies:
        for path, index in honest.items():
            reported = with_field(index)
            path.unlink(missing_ok=True)
            if reported is not None:
                path.write_bytes(reported)
        log = LogDirectory(data)[topic, partition]
        assert log.log_end_offset == end
        for start in starts:
            expected = [row for row in rows if row.offset >= start]
            assert read_objects(log, start_offset=start) == expected
            assert read_arrow(log, start_offset=start) == expected
        middle = [row for row in rows if starts[1] <= row.offset < starts[3]]
        assert read_arrow(log, start_offset=starts[1], end_offset=starts[3]) == middle


@pytest.mark.requirement("R-02", "R-38", "F-14")
def test_the_log_end_follows_the_last_whole_batch(copied: Copied) -> None:
    """The file is truncated at every byte of the last batches."""
    data = copied("modern", "ids-0")
    log = LogDirectory(data)["ids", 0]
    segment = log.segments[-1]
    path, whole = Path(segment.url), Path(segment.url).read_bytes()
    ends = {0: segment.base_offset}
    ends |= {header.position + header.size_bytes: header.last_offset + 1 for header in segment.headers()}
    boundary = sorted(ends)[-3]
    cuts = [
        *range(boundary, min(boundary + 80, len(whole))),
        *range(len(whole) - 80, len(whole) + 1),
        0,
        1,
        11,
        12,
        16,
        17,
        60,
        61,
    ]
    for cut in cuts:
        path.write_bytes(whole[:cut])
        expected = max(offset for position, offset in ends.items() if position <= cut)
        for suffix in (b"", bytes(1), bytes(17), bytes(3 << 20)) if cut in ends else (b"",):
            path.write_bytes(whole[:cut] + suffix)
            log = LogDirectory(data)["ids", 0]
            assert (log.log_end_offset, log.damage) == (expected, None), (cut, len(suffix))
    path.write_bytes(whole + b"\0" * 40 + b"\1")
    log = LogDirectory(data)["ids", 0]
    assert log.log_end_offset == ends[len(whole)]
    assert log.damage is not None
    assert log.damage.position == len(whole)


@pytest.mark.parametrize(("archive", "topic"), [("modern", "ids"), ("legacy", "v1")])
@pytest.mark.requirement("F-12")
def test_what_is_below_an_offset_ends_at_a_batch(copied: Copied, archive: str, topic: str) -> None:
    """The offsets of these logs have no gaps, so the answer is exact in a search without an index."""
    partition = 1 if topic == "v1" else 0
    data = copied(archive, f"{topic}-{partition}")
    for index in (data / f"{topic}-{partition}").glob("*.index"):
        index.unlink()
    log = LogDirectory(data)[topic, partition]
    ends = [(batch.file, batch.position, batch.next_offset) for _, batch in log.batches()]
    segment = log.segments[-1]
    starts = {base: at for (_, _, base), (name, at, _) in pairwise(ends) if name == segment.url}
    assert len(starts) > 3
    with segment.open() as file:
        for base, position in starts.items():
            if base > segment.base_offset:
                assert segment.end_position(file, base) == position
                assert segment.end_position(file, base - 1) <= position < segment.end_position(file, base + 1)
        assert segment.end_position(file, log.log_end_offset) == file.size()
        assert segment.cut(file, file.size(), file.size()) is None


@pytest.mark.parametrize("first", [-1, 0, 1])
@pytest.mark.requirement("F-64")
def test_a_segment_with_an_empty_time_index_has_the_timestamps_of_its_batches(first: int, tmp_path: Path) -> None:
    """Only if the first batch has none, the others are not looked at. Timestamps begin with 0."""
    data = with_times(tmp_path / "data", [first, 5, 3])
    log = open_log(data)
    log.roll(NOW)
    log.append(batch(b"of the active segment"), now_ms=NOW)
    log.close()
    closed = data / "t-0" / f"{0:020}"
    closed.with_suffix(".timeindex").write_bytes(b"")
    segment = LogDirectory(data)["t", 0].segments[0]
    with segment.open() as file:
        assert segment.largest_timestamp(file) == (5 if first >= 0 else -1)
