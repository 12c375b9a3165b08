"""A staged directory gets its name when it is complete."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwire.errors import OptionError
from kwire.storage.file_system import FileSystem
from kwire.storage.staged_directory import StagedDirectory, check_target


def test_a_published_directory_has_its_name_and_replaces_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    staged = StagedDirectory(FileSystem(), str(tmp_path / "new"))
    staged.create()
    (Path(staged.part) / "file").write_bytes(b"x")
    assert staged.exists
    staged.publish()
    assert not staged.exists
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["file"]


def test_a_discarded_directory_leaves_nothing(tmp_path: Path) -> None:
    staged = StagedDirectory(FileSystem(), str(tmp_path / "new"))
    staged.create()
    (Path(staged.part) / "inside").mkdir()
    (Path(staged.part) / "inside/file").write_bytes(b"x")
    staged.discard()
    assert list(tmp_path.iterdir()) == []


def test_an_existing_target_or_one_without_a_parent_is_rejected(tmp_path: Path) -> None:
    check_target(str(tmp_path / "new"))
    (tmp_path / "used").mkdir()
    (tmp_path / "used/file").touch()
    with pytest.raises(OptionError, match="not an empty directory"):
        check_target(str(tmp_path / "used"))
    with pytest.raises(OptionError, match="no such directory"):
        check_target(str(tmp_path / "missing/new"))
