"""The offsets of a segment's last batch end below the next segment, for every reader."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwire.errors import CorruptBatch
from kwire.identifiers import MAX_OFFSET
from kwire.log import LogDirectory, PartitionLog
from kwire.log.files.damage import Kind
from kwire.maintenance.verify import verify_logs
from tests.log.test_missing_segments import make
from tests.log.writing import NOW, batch


def reaching(data: Path, last_offset: int, *, base: int = 0) -> Path:
    """Write a log whose segment `base` ends with a batch that reaches to last_offset; the next one starts at 100."""
    make(data)
    path = data / "t-0" / f"{base:020}.log"
    log = LogDirectory(data)["t", 0]
    last = [each for _, each in log.batches() if each.base_offset < base + 100][-1]
    first = last.base_offset
    new = batch(*(b"%d" % offset for offset in range(first, last_offset + 1)), timestamp=NOW, base_offset=first)
    path.write_bytes(path.read_bytes()[: last.position] + new)
    return data


def offsets_of(log: PartitionLog) -> list[int]:
    """Return the offsets of the columnar reader."""
    return [offset for rows in log.read_arrow(skip_missing=True) for offset in rows.column("offset").to_pylist()]


@pytest.mark.parametrize(("last_offset", "is_damaged"), [(98, False), (99, False), (100, True), (101, True)])
def test_the_last_batch_of_a_segment_ends_below_the_next_segment(
    last_offset: int, is_damaged: bool, tmp_path: Path
) -> None:
    directory = LogDirectory(reaching(tmp_path / "data", last_offset))
    log = directory["t", 0]
    damages = [each.cause for each in verify_logs(directory).damages if each.kind is Kind.OFFSETS]
    if not is_damaged:
        expected = [*range(last_offset + 1), *range(100, 300)]
        assert [each.offset for each in log.read(skip_missing=True)] == expected
        assert offsets_of(log) == expected
        assert damages == []
        return
    for read in (lambda: list(log.read()), lambda: offsets_of(log)):
        with pytest.raises(CorruptBatch, match=r"its offsets are not in \[90, 100\)"):
            read()
    assert damages == [f"offsets 90 to {last_offset}: its offsets are not in [90, 100)"]


@pytest.mark.parametrize(("last_offset", "is_damaged"), [(MAX_OFFSET - 1, False), (MAX_OFFSET, True)])
def test_the_last_batch_of_a_log_ends_below_the_largest_offset(
    last_offset: int, is_damaged: bool, tmp_path: Path
) -> None:
    """The offset after it, the log end offset, has to exist too."""
    data = make(tmp_path / "data")
    path = data / "t-0" / f"{200:020}.log"
    path.write_bytes(path.read_bytes() + batch(b"last", timestamp=NOW, base_offset=last_offset))
    log = LogDirectory(data)["t", 0]
    if not is_damaged:
        assert next(log.read(last_offset)).offset == last_offset
        return
    for read in (lambda: list(log.read()), lambda: offsets_of(log)):
        with pytest.raises(CorruptBatch, match="its offsets are not in"):
            read()


@pytest.mark.parametrize(("first", "blamed"), [(9, 1), (10, 0), (11, 0), (19, 0), (20, None)])
def test_overlapping_batches_blame_the_first_unless_the_second_reaches_below_it(
    first: int, blamed: int | None, tmp_path: Path
) -> None:
    """Batches of offsets 0 to 9, 10 to 19, and one from `first` on."""
    data = make(tmp_path / "data")
    path = data / "t-0" / f"{0:020}.log"
    two = [batch(*bytes(10).split(b"\0")[:10], timestamp=NOW, base_offset=base) for base in (0, 10)]
    path.write_bytes(b"".join(two) + batch(b"x", timestamp=NOW, base_offset=first))
    log = LogDirectory(data)["t", 0]
    if blamed is None:
        assert [each.offset for each in log.read(skip_missing=True)][:21] == list(range(21))
        return
    position = len(two[0]) + blamed * len(two[1])
    what = (
        "its offsets are not in [20, 100)" if blamed else f"reach into the next batch, which starts at offset {first}"
    )
    for read in (lambda: list(log.read()), lambda: offsets_of(log)):
        with pytest.raises(CorruptBatch) as raised:
            read()
        assert (raised.value.position, what in str(raised.value)) == (position, True), raised.value
