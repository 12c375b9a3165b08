"""Leader epochs: assignment, truncation, lookup."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwire.log import FileSystem
from kwire.log.files.leader_epochs import LeaderEpochs


def epochs(directory: Path, *entries: tuple[int, int]) -> LeaderEpochs:
    found = LeaderEpochs(FileSystem(), str(directory))
    for entry in entries:
        found.assign(*entry)
    return found


def listed(found: LeaderEpochs) -> list[tuple[int, int]]:
    return [(entry.leader_epoch, entry.start_offset) for entry in found.entries]


@pytest.mark.requirement("F-04", "F-02")
def test_a_new_epoch_is_written_immediately(tmp_path: Path) -> None:
    found = epochs(tmp_path, (0, 0), (0, 5), (2, 10))
    file = tmp_path / "leader-epoch-checkpoint"
    assert file.read_bytes() == b"0\n2\n0 0\n2 10\n"
    written = file.stat().st_mtime_ns, file.stat().st_ino
    found.assign(2, 11)
    assert (file.stat().st_mtime_ns, file.stat().st_ino) == written
    assert listed(LeaderEpochs(FileSystem(), str(tmp_path))) == [(0, 0), (2, 10)]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ((5, 30), [(1, 0), (2, 10), (4, 20), (5, 30)]),
        ((5, 20), [(1, 0), (2, 10), (5, 20)]),
        ((5, 10), [(1, 0), (5, 10)]),
        ((5, 0), [(5, 0)]),
        ((3, 30), [(1, 0), (2, 10), (3, 30)]),
        ((2, 30), [(1, 0), (2, 30)]),
        ((4, 15), [(1, 0), (2, 10), (4, 15)]),
        ((4, 25), [(1, 0), (2, 10), (4, 20)]),
        ((-1, 40), [(1, 0), (2, 10), (4, 20)]),
    ],
)
@pytest.mark.requirement("F-04")
def test_an_entry_removes_conflicting_ones(
    tmp_path: Path, entry: tuple[int, int], expected: list[tuple[int, int]]
) -> None:
    assert listed(epochs(tmp_path, (1, 0), (2, 10), (4, 20), entry)) == expected


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        (0, []),
        (1, [(1, 0)]),
        (10, [(1, 0)]),
        (11, [(1, 0), (2, 10)]),
        (20, [(1, 0), (2, 10)]),
        (21, [(1, 0), (2, 10), (4, 20)]),
    ],
)
@pytest.mark.requirement("F-04")
def test_truncating_at_the_end_removes_later_epochs(
    tmp_path: Path, offset: int, expected: list[tuple[int, int]]
) -> None:
    found = epochs(tmp_path, (1, 0), (2, 10), (4, 20))
    found.truncate_from_end(offset)
    assert listed(found) == expected
    found.flush()
    assert listed(LeaderEpochs(FileSystem(), str(tmp_path))) == expected


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        (0, [(1, 5), (2, 10), (4, 20)]),
        (5, [(1, 5), (2, 10), (4, 20)]),
        (7, [(1, 7), (2, 10), (4, 20)]),
        (10, [(2, 10), (4, 20)]),
        (15, [(2, 15), (4, 20)]),
        (99, [(4, 99)]),
    ],
)
@pytest.mark.requirement("F-04")
def test_truncating_at_the_start_moves_the_current_epoch(
    tmp_path: Path, offset: int, expected: list[tuple[int, int]]
) -> None:
    found = epochs(tmp_path, (1, 5), (2, 10), (4, 20))
    found.truncate_from_start(offset)
    assert listed(found) == expected
    found.flush()
    assert listed(LeaderEpochs(FileSystem(), str(tmp_path))) == expected


def test_an_offset_has_its_epoch(tmp_path: Path) -> None:
    found = epochs(tmp_path, (1, 5), (2, 10))
    assert found.latest == 2
    assert epochs(tmp_path / "none").latest is None


def test_epochs_are_cleared_and_discarded(tmp_path: Path) -> None:
    found = epochs(tmp_path, (1, 5))
    found.clear()
    assert (tmp_path / "leader-epoch-checkpoint").read_bytes() == b"0\n0\n"
    found.discard()
    found.flush()
    assert not list(tmp_path.iterdir())
