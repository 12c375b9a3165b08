"""Logs from files of encoded batches: how the runs of a file are read, and how many rows are sorted."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwire.errors import LogError, OptionError
from kwire.log import LogDirectory
from kwire.maintenance import encoded_runs
from kwire.maintenance.encoded_runs import EncodedRun, directory_from_runs
from kwire.maintenance.row_batches import TAKEN
from kwire.records import Compression
from kwire.records.columns.reader import ColumnReader
from tests.log.writing import NOW, batch


def run(data: bytes, low: int, high: int, position: int = 0) -> EncodedRun:
    """Return a run of batches in a file."""
    place = {"position": position, "size_bytes": len(data), "records": high - low + 1}
    return EncodedRun(topic="t", partition=0, low=low, high=high, **place)


def build(file: Path, runs: list[EncodedRun], target: Path, *, keep_offsets: bool, **options: int) -> list[bytes]:
    """Return the values of the log that these runs become."""
    codec = Compression.NONE
    given = {"codec": codec, "segment_bytes": 1 << 20, "now_ms": NOW, **options}
    directory_from_runs([(str(file), runs)], str(target), keep_offsets=keep_offsets, **given)  # type: ignore[arg-type]
    return [bytes(record.value or b"") for record in LogDirectory(target)["t", 0].read()]


@pytest.mark.parametrize("chunk_bytes", [10, 100, 170, 1 << 20])
def test_a_run_is_read_in_chunks_of_whole_batches(
    chunk_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch may be larger than a chunk, and a run ends where the next begins."""
    monkeypatch.setattr(encoded_runs, "CHUNK_BYTES", chunk_bytes)
    one, two, three = batch(b"a" * 9), batch(b"b" * 900, base_offset=1), batch(b"c" * 99)
    (tmp_path / "file").write_bytes(one + two + three)
    runs = [run(one + two, 0, 1), run(three, 0, 0, len(one + two))]
    found = build(tmp_path / "file", runs, tmp_path / "new", keep_offsets=False)
    assert found == [b"a" * 9, b"b" * 900, b"c" * 99]


@pytest.mark.parametrize("chunk_bytes", [10, 1 << 20])
def test_a_file_that_ends_inside_a_run_is_an_error(
    chunk_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoded_runs, "CHUNK_BYTES", chunk_bytes)
    one, two = batch(b"a"), batch(b"b" * 900)
    (tmp_path / "file").write_bytes((one + two)[:-1])
    with pytest.raises(LogError, match=f"byte {len(one)}: expected {len(two)} bytes of batches"):
        build(tmp_path / "file", [run(one + two, 0, 1)], tmp_path / "new", keep_offsets=False)


def test_rows_are_sorted_up_to_a_limit_of_bytes(tmp_path: Path) -> None:
    late, early = (batch(b"a", b"b", base_offset=0), batch(b"c", base_offset=1))
    (tmp_path / "file").write_bytes(late + early)
    runs = [run(late, 0, 1), run(early, 1, 1, len(late))]
    columns = ColumnReader(("offset", *TAKEN))
    size = sum(each.nbytes for data in (late, early) for each in columns.read(data))
    with pytest.raises(OptionError, match=f"sorting needs more than {size - 1} bytes"):
        build(tmp_path / "file", runs, tmp_path / "new", keep_offsets=True, max_sort_bytes=size - 1)
    with pytest.raises(LogError, match="offset 1 of t-0 is a duplicate"):  # found after they are sorted
        build(tmp_path / "file", runs, tmp_path / "new", keep_offsets=True, max_sort_bytes=size)
