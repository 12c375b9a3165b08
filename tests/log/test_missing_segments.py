"""A segment that is missing between two others is an error, the gaps of compaction are not."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from kwire.cli.main import run
from kwire.errors import LogError, MissingOffsets
from kwire.log import LogDirectory, plan_splits, read_split
from kwire.maintenance.new_directory import NewDirectory
from kwire.storage.file_system import FileSystem
from tests.cli import crafted
from tests.log.writing import NOW, batch

SEGMENTS = 0, 100, 200


def make(directory: Path, *, topic: str = "t", skipped: tuple[int, ...] = (), magic: int = 2) -> Path:
    """Write a log of three segments with batches of ten records. skipped: base offsets of batches left out."""
    new = NewDirectory(FileSystem(), str(directory), now_ms=NOW, segment_bytes=1 << 20)
    new.create()
    log = new.open((topic, 0), 0)
    for segment in SEGMENTS:
        log.begin_segment(segment)
        for base in range(segment, segment + 100, 10):
            if base not in skipped:
                values = (b"%d" % offset for offset in range(base, base + 10))
                log.append(batch(*values, timestamp=NOW + base, base_offset=base, magic=magic))
    new.finish((topic, 0), 300)
    new.publish()
    return directory


def lose(directory: Path, base: int = 100) -> Path:
    """Remove the files of a segment."""
    found = list(directory.glob(f"*/{base:020}.*"))
    assert found
    for path in found:
        path.unlink()
    return directory


def offsets_of_read(directory: Path, start: int, end: int | None, *, skip_missing: bool, into: list[int]) -> None:
    (log,) = LogDirectory(directory).values()
    into += (record.offset for record in log.read(start, end, skip_missing=skip_missing))


def offsets_of_arrow(directory: Path, start: int, end: int | None, *, skip_missing: bool, into: list[int]) -> None:
    (log,) = LogDirectory(directory).values()
    for rows in log.read_arrow(start, end, skip_missing=skip_missing):
        into += rows.column("offset").to_pylist()


READERS = [offsets_of_read, offsets_of_arrow]
Read = Callable[..., None]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    ("start", "end", "missing"),
    [
        (0, None, "offsets 100 to 199"),
        (0, 100, None),
        (0, 101, "offset 100"),
        (99, 300, "offsets 100 to 199"),
        (100, 150, "offsets 100 to 149"),
        (120, 130, "offsets 120 to 129"),
        (199, 210, "offset 199"),
        (200, None, None),
        (205, 207, None),
    ],
)
def test_offsets_of_a_missing_segment_are_an_error_if_they_are_wanted(
    read: Read, start: int, end: int | None, missing: str | None, tmp_path: Path
) -> None:
    directory, found = lose(make(tmp_path / "data")), list[int]()
    wanted = [offset for offset in [*range(100), *range(200, 300)] if start <= offset < (end or 300)]
    if missing is None:
        read(directory, start, end, skip_missing=False, into=found)
        assert found == wanted
        return
    with pytest.raises(MissingOffsets, match=rf"{0:020}\.log: {missing} are in no segment.*read on from offset 200"):
        read(directory, start, end, skip_missing=False, into=[])
    read(directory, start, end, skip_missing=True, into=found)
    assert found == wanted


@pytest.mark.parametrize("read", READERS)
def test_with_skip_missing_each_hole_is_one_warning(
    read: Read, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory, found = lose(make(tmp_path / "data")), list[int]()
    with caplog.at_level(logging.WARNING):
        read(directory, 0, None, skip_missing=True, into=found)
    assert len(found) == 200
    (said,) = caplog.messages
    assert "offsets 100 to 199 are in no segment" in said


@pytest.mark.parametrize("read", READERS)
def test_a_segment_that_lost_its_content_is_missing_too(read: Read, tmp_path: Path) -> None:
    directory = make(tmp_path / "data")
    (directory / "t-0" / f"{100:020}.log").write_bytes(b"")
    with pytest.raises(MissingOffsets, match="offsets 100 to 199"):
        read(directory, 0, None, skip_missing=False, into=[])


@pytest.mark.parametrize("read", READERS)
def test_the_last_batch_of_a_segment_may_be_missing(read: Read, tmp_path: Path) -> None:
    directory = make(tmp_path / "data")
    path = directory / "t-0" / f"{100:020}.log"
    last = next(each for _, each in LogDirectory(directory)["t", 0].batches(190))
    path.write_bytes(path.read_bytes()[: last.position])
    with pytest.raises(MissingOffsets, match=rf"{100:020}\.log: offsets 190 to 199"):
        read(directory, 0, None, skip_missing=False, into=[])


def compacted_by_checkpoint(path: Path) -> Path:
    lose(make(path))
    (path / "cleaner-offset-checkpoint").write_text("0\n1\nt 0 300\n")
    return path


def hole_before(path: Path) -> Path:
    return lose(make(path, skipped=(50,)))


def hole_after(path: Path) -> Path:
    return lose(make(path, skipped=(240,)))


def groups(path: Path) -> Path:
    return lose(make(path, topic="__consumer_offsets"))


def old_format(path: Path) -> Path:
    return lose(make(path, magic=1))


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("made", [compacted_by_checkpoint, hole_before, hole_after, groups, old_format])
def test_gaps_of_compaction_are_no_error(read: Read, made: Callable[[Path], Path], tmp_path: Path) -> None:
    found: list[int] = []
    read(made(tmp_path / "data"), 0, None, skip_missing=False, into=found)
    assert 190 <= len(found) <= 200


def test_the_checkpoint_of_another_partition_explains_nothing(tmp_path: Path) -> None:
    directory = compacted_by_checkpoint(tmp_path / "data")
    (directory / "cleaner-offset-checkpoint").write_text("0\n1\nt 1 300\n")
    with pytest.raises(MissingOffsets):
        list(LogDirectory(directory)["t", 0].read())


def test_what_retention_deletes_is_no_error(tmp_path: Path) -> None:
    directory = lose(make(tmp_path / "data"), 0)
    assert [record.offset for record in LogDirectory(directory)["t", 0].read()] == [*range(100, 300)]


@pytest.mark.parametrize("split_bytes", [300, 1 << 20])
@pytest.mark.parametrize("is_emptied", [False, True])
def test_splits_yield_their_rows_and_then_the_error(split_bytes: int, is_emptied: bool, tmp_path: Path) -> None:
    directory = make(tmp_path / "data")
    if is_emptied:
        (directory / "t-0" / f"{100:020}.log").write_bytes(b"")
    else:
        lose(directory)
    found, errors = list[int](), list[LogError]()
    for split in plan_splits(LogDirectory(directory), split_bytes=split_bytes):
        try:
            for rows in read_split(split, ["offset"]):
                found += rows.column("offset").to_pylist()
        except MissingOffsets as error:
            errors.append(error)
    assert found == [*range(100), *range(200, 300)]
    assert [error.what.split(" are ")[0] for error in errors] == ["offsets 100 to 199"]


def test_skipped_damage_at_the_end_of_a_segment_is_not_reported_twice(tmp_path: Path) -> None:
    directory = make(tmp_path / "data")
    path = directory / "t-0" / f"{100:020}.log"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    rows = [
        rows
        for split in plan_splits(LogDirectory(directory))
        for rows in read_split(split, ["offset", "_corrupt"], mode="PERMISSIVE")
    ]
    table = pa.Table.from_batches(rows)
    assert table.num_rows == 291
    assert table.column("_corrupt").null_count == 290


def test_the_commands_fail_or_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = lose(make(tmp_path / "data"))
    command = ["log", "export", str(directory), "-o", str(tmp_path / "out")]
    assert run(command) == 1
    assert "offsets 100 to 199 are in no segment" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert run([*command, "--skip-missing"]) == 0
    assert "200" in capsys.readouterr().out


@pytest.mark.parametrize(("second", "is_lost"), [(1, True), (5, False)])
def test_what_is_before_an_empty_segment_says_whether_the_log_was_compacted(
    second: int, is_lost: bool, tmp_path: Path
) -> None:
    stored = [batch(b"v", timestamp=NOW, base_offset=offset) for offset in (0, *range(second, 10), 20)]
    crafted.segment(tmp_path / "t-0", *stored[:-1])
    crafted.segment(tmp_path / "t-0", base_offset=10)
    crafted.segment(tmp_path / "t-0", stored[-1], base_offset=20)
    log = LogDirectory(tmp_path)["t", 0]
    if is_lost:
        with pytest.raises(MissingOffsets, match="offsets 10 to 19 are in no segment"):
            list(log.read())
    else:
        assert [each.offset for each in log.read()] == [0, 5, 6, 7, 8, 9, 20]
