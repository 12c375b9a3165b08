"""Reading in chunks: chunk boundaries do not affect the result."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from kwire.errors import CorruptBatch
from kwire.log import LogDirectory, PartitionLog, plan_splits, read_split
from kwire.log.files import chunks
from kwire.log.files.chunks import Chunks
from kwire.log.reading import arrow
from kwire.log.reading.chunk_offset_check import TABLE_ROWS, ChunkOffsetCheck
from kwire.records.attributes import TRANSACTIONAL_FLAG
from kwire.records.columns.reader import COLUMNS
from kwire.storage.store import LocalFile
from tests.cli.crafted import segment
from tests.log.expected import read_arrow, read_objects, rows_of
from tests.records.building import batch

Copied = Callable[[str, str], Path]


@pytest.mark.parametrize("chunk_bytes", [12, 17, 61, 1000, 70_000])
@pytest.mark.parametrize(("archive", "topic", "partition"), [("modern", "orders", 1), ("legacy", "mixed-format", 0)])
@pytest.mark.requirement("D-01", "R-02", "R-04")
def test_chunks_of_any_size_give_the_same_batches(
    kafka_logs: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    chunk_bytes: int,
    archive: str,
    topic: str,
    partition: int,
) -> None:
    log = LogDirectory(kafka_logs[archive] / "data")[topic, partition]
    end = min(2000, log.log_end_offset)
    expected = read_objects(log, end_offset=end)
    monkeypatch.setattr(arrow, "CHUNK_BYTES", chunk_bytes)
    monkeypatch.setattr(chunks, "CHUNK_BYTES", chunk_bytes)
    assert read_objects(log, end_offset=end) == expected
    assert read_arrow(log, end_offset=end) == expected
    splits = plan_splits(log, ranges={(topic, partition): (0, end)}, split_bytes=20_000)
    assert [row for split in splits for row in rows_of(read_split(split, COLUMNS))] == expected


def test_an_absurd_length_allocates_nothing(tmp_path: Path) -> None:
    path = tmp_path / "segment"
    path.write_bytes(bytes(8) + (0x7FFF_FF00).to_bytes(4) + bytes(100))
    with LocalFile(str(path)) as file:
        chunks = Chunks(file, 0, 112, chunk_bytes=50, max_batch_bytes=1 << 40, buffer=bytearray())
        chunk = chunks.next_chunk()
        assert chunk is not None
        assert len(chunk) == 50
        assert not chunks.advance(0)
        assert len(chunks.buffer) == 50
        assert chunks.refused is None


def test_a_batch_larger_than_a_chunk_grows_the_buffer_to_its_size(tmp_path: Path) -> None:
    path = tmp_path / "segment"
    path.write_bytes(bytes(8) + (200).to_bytes(4) + bytes(500))
    with LocalFile(str(path)) as file:
        chunks = Chunks(file, 0, 512, chunk_bytes=50, max_batch_bytes=1 << 20, buffer=bytearray())
        assert chunks.next_chunk() is not None
        assert chunks.advance(0)
        chunk = chunks.next_chunk()
        assert chunk is not None
        assert len(chunk) == 212
        assert chunks.advance(212)
        chunk = chunks.next_chunk()
        assert chunk is not None
        assert len(chunk) == 50


def test_a_file_truncated_during_the_read_ends_early(tmp_path: Path) -> None:
    path = tmp_path / "segment"
    path.write_bytes(bytes(1000))
    with LocalFile(str(path)) as file:
        chunks = Chunks(file, 0, 1000, chunk_bytes=400, max_batch_bytes=1 << 20, buffer=bytearray())
        assert chunks.next_chunk() is not None
        chunks.advance(400)
        path.write_bytes(bytes(500))
        chunk = chunks.next_chunk()
        assert chunk is not None
        assert len(chunk) == 100
        chunks.advance(100)
        assert chunks.next_chunk() is None


def emptied(log: PartitionLog) -> tuple[Path, bytes]:
    """Empty the active segment, as if it had just been rolled; return its path and former contents."""
    path = Path(log.segments[-1].url)
    whole = path.read_bytes()
    for kind in (".index", ".timeindex"):
        path.with_suffix(kind).write_bytes(bytes(65520))
    path.write_bytes(b"")
    return path, whole


@pytest.mark.slow
@pytest.mark.requirement("F-14")
def test_every_size_of_a_growing_segment_gives_its_whole_batches(copied: Copied) -> None:
    """The segment grows in arbitrary pieces, or batch by batch in preallocated space."""
    log = LogDirectory(copied("modern", "ids-0"))["ids", 0]
    truth, ends = read_objects(log), {h.position + h.size_bytes: h.last_offset + 1 for h in log.segments[-1].headers()}
    path, whole = emptied(log)
    for cut in sorted({*range(0, len(whole), 29_989), *ends}):
        preallocated = [whole[:cut] + bytes(len(whole) + 5000 - cut)] if cut in ends else []
        for now in [whole[:cut], *preallocated]:
            path.write_bytes(now)
            end = max(
                (offset for position, offset in ends.items() if position <= cut), default=log.segments[-1].base_offset
            )
            expected = [row for row in truth if row.offset < end]
            assert log.log_end_offset == end
            assert read_objects(log) == expected
            assert read_arrow(log) == expected


def test_a_range_ending_inside_a_grown_batch_is_not_damage(kafka_logs: dict[str, Path]) -> None:
    """The file size is read first; by the time of the read a writer may have completed the last batch."""
    log = LogDirectory(kafka_logs["modern"] / "data")["ids", 0]
    closed, active = log.segments[0], log.segments[-1]
    reader = arrow.RangeReader(
        ["offset"],
        topic="ids",
        partition=0,
        offsets=(0, 1 << 60),
        check_crc=True,
        max_decompressed_bytes=1 << 27,
    )
    header = list(active.headers())[5]
    for stop in (header.position, header.position + 1, header.position + 100, header.position + header.size_bytes - 1):
        offsets = [o for batch in reader.read(active, 0, stop) for o in batch.column(0).to_pylist()]
        assert offsets == list(range(active.base_offset, header.stored_offset))
    header = list(closed.headers())[5]
    with pytest.raises(CorruptBatch, match="extends past byte"):
        list(reader.read(closed, 0, header.position + 100))


def test_a_concurrent_reader_gets_whole_batches(copied: Copied) -> None:
    log = LogDirectory(copied("modern", "ids-0"))["ids", 0]
    truth = read_objects(log)
    path, whole = emptied(log)
    done = threading.Event()

    def append() -> None:
        try:
            with path.open("ab", buffering=0) as out:
                for start in range(0, len(whole), 499):
                    out.write(whole[start : start + 499])
                    done.wait(0.001)
        finally:
            done.set()

    writer = threading.Thread(target=append)
    writer.start()
    seen = 0
    try:
        while not done.is_set():
            for rows in (read_objects(log), read_arrow(log)):
                assert rows == truth[: len(rows)]
                assert len(rows) >= seen
                seen = len(rows)
            assert log.log_end_offset >= seen
    finally:
        done.set()
        writer.join()
    path.write_bytes(whole)
    assert read_objects(log) == read_arrow(log) == truth


def test_a_segment_truncated_meanwhile_gives_its_remaining_batches(copied: Copied) -> None:
    """With a memory map this would end the process (SIGBUS)."""
    data = copied("modern", "ids-0")
    log = LogDirectory(data)["ids", 0]
    segment = log.segments[-1]
    truth = read_objects(log)
    records = log.read()
    first = next(records)
    half = list(segment.headers())[10]
    with Path(segment.url).open("r+b") as file:
        file.truncate(half.position + 5)
    rest = list(records)
    assert [first.offset, *(record.offset for record in rest)] == [
        row.offset for row in truth if row.offset < half.stored_offset
    ]


def test_transactions_of_a_chunk_begin_with_its_first_table(tmp_path: Path) -> None:
    """The batches of a large chunk are looked at in several tables."""
    count = TABLE_ROWS + 2
    plain, transactional = batch(), batch(attributes=TRANSACTIONAL_FLAG)
    data = bytearray()
    for offset in range(count):
        of_transaction = offset in (1, TABLE_ROWS)
        data += offset.to_bytes(8, "big") + (transactional if of_transaction else plain)[8:]
    segment(tmp_path / "t-0", bytes(data))
    check = ChunkOffsetCheck()
    check.begin(LogDirectory(tmp_path)["t", 0].segments[0])
    assert check.valid_prefix(memoryview(data), 0, "t-0").size_bytes == len(data)
    assert check.next_offset == count
    assert check.transactional == (1, TABLE_ROWS + 1)
