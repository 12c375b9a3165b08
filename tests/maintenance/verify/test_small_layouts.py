"""Which file belongs where, with batches of single offsets at the limits of each rule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kwire.log import LogDirectory
from kwire.log.files.damage import Kind
from kwire.log.reading.partition_log import PartitionLog
from kwire.maintenance.verify.layout import lay_out
from tests.records.building import batch, record

Offsets = list[tuple[int, int]]


def one(offset: int, last: int) -> bytes:
    return batch(record(), base_offset=offset, last_offset_delta=last - offset)


def laid_out(folder: Path, files: dict[str, Offsets], known: tuple[int, int] = (0, 100)) -> dict[str, Any]:
    """Return the layout of files with these batches. A number is the name of a segment."""
    folder = folder / "t-0"
    folder.mkdir()
    names = {name: f"{int(name):020}.log" if name.isdecimal() else name for name in files}
    for name, offsets in files.items():
        (folder / names[name]).write_bytes(b"".join(one(*each) for each in offsets))
    log = LogDirectory(folder)["t", 0]
    assert isinstance(log, PartitionLog)
    found = lay_out(log, known=known, is_compacted=lambda: False)
    short = {full: name for name, full in names.items()}
    return {
        "segments": [each.base_offset for each in found.segments],
        "misnamed": {base: short[name] for base, name in found.misnamed.items()},
        "adopted": {base: each.name for base, each in found.adopted.items()},
        "empty": [short[each.segment.name_of("log")] for each in found.empty],
        "copies": [(short[each.segment.name_of("log")], short[each.original]) for each in found.copies],
    }


@pytest.mark.parametrize(
    ("offsets", "is_adopted"),
    [
        ([(3, 3), (8, 8)], True),
        ([(2, 2), (8, 8)], False),  # the last offset of the segment before is 2
        ([(3, 3), (9, 9)], False),
    ],
)
def test_a_loose_file_fills_a_gap_without_overlap(offsets: Offsets, is_adopted: bool, tmp_path: Path) -> None:
    files = {"0": [(0, 0), (1, 1), (2, 2)], "9": [(9, 9), (10, 10), (11, 11)], "lost.bak": offsets}
    found = laid_out(tmp_path, files)
    assert found["adopted"] == ({offsets[0][0]: "lost.bak"} if is_adopted else {})


@pytest.mark.parametrize(("end", "is_adopted"), [(3, False), (4, True)])
def test_a_loose_file_at_the_end_has_offsets_of_the_log(end: int, is_adopted: bool, tmp_path: Path) -> None:
    found = laid_out(tmp_path, {"0": [(0, 0), (1, 1), (2, 2)], "lost.bak": [(3, 3)]}, (0, end))
    assert found["adopted"] == ({3: "lost.bak"} if is_adopted else {})


@pytest.mark.parametrize(("start", "is_adopted"), [(0, True), (1, False)])
def test_a_loose_file_at_the_start_has_offsets_of_the_log(start: int, is_adopted: bool, tmp_path: Path) -> None:
    found = laid_out(tmp_path, {"lost.bak": [(0, 0), (1, 1)], "2": [(2, 2), (3, 3)]}, (start, 4))
    assert found["adopted"] == ({0: "lost.bak"} if is_adopted else {})


@pytest.mark.parametrize(("number", "removed"), [(3, True), (8, True), (9, False)])
def test_an_empty_segment_inside_an_adopted_file_is_removed(number: int, removed: bool, tmp_path: Path) -> None:
    files: dict[str, Offsets] = {
        "0": [(0, 0), (1, 1), (2, 2)],
        "lost.bak": [(3, 3), (8, 8)],
        str(number): [],
        "20": [(20, 20), (21, 21)],
    }
    found = laid_out(tmp_path, files)
    assert found["adopted"] == {3: "lost.bak"}
    assert found["empty"] == ([str(number)] if removed else [])


@pytest.mark.parametrize(("offsets", "is_copy"), [([(0, 0), (2, 3)], True), ([(2, 3), (4, 5)], False)])
def test_a_copy_has_at_least_half_of_its_batches_in_the_original(
    offsets: Offsets, is_copy: bool, tmp_path: Path
) -> None:
    found = laid_out(tmp_path, {"0": [(0, 0), (1, 1), (2, 4), (5, 5)], "7": offsets, "20": [(20, 20)]})
    assert found["copies"] == ([("7", "0")] if is_copy else [])


def test_a_segment_of_one_batch_below_its_name_is_renamed(tmp_path: Path) -> None:
    found = laid_out(tmp_path, {"0": [(0, 0), (1, 1)], "5": [(2, 2)], "20": [(20, 20)]})
    assert found["misnamed"] == {2: "5"}
    assert found["segments"] == [0, 2, 20]


def test_a_last_batch_beyond_the_next_segment_has_a_damaged_offset(tmp_path: Path) -> None:
    """The segment ends before it, so a file fits between the two."""
    found = laid_out(tmp_path, {"0": [(0, 0), (1, 1), (50, 50)], "5": [(5, 5), (6, 6)], "lost.bak": [(3, 3), (4, 4)]})
    assert (found["segments"], found["adopted"]) == ([0, 3, 5], {3: "lost.bak"})


@pytest.mark.parametrize(("base", "is_named"), [(2, False), (3, True), (8, True), (9, False)])
def test_an_index_names_the_missing_segment(base: int, is_named: bool, tmp_path: Path) -> None:
    """Offsets 3 to 8 are missing."""
    laid_out(tmp_path, {"0": [(0, 0), (1, 1), (2, 2)], "9": [(9, 9), (10, 10)]})
    (tmp_path / "t-0" / f"{base:020}.index").touch()
    found = LogDirectory(tmp_path / "t-0")["t", 0].verify()
    (missing,) = [each for each in found if each.kind is Kind.MISSING_RECORDS]
    assert (f"{base:020}.log" in missing.cause) is is_named
