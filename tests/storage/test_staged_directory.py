"""A staged directory gets its name when it is complete."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kwire.errors import OptionError
from kwire.storage.file_system import FileSystem
from kwire.storage.staged_directory import StagedDirectory, check_empty, check_target, check_writable


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


def test_a_target_that_cannot_be_written_is_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OptionError, match=f"file/a/b: cannot be created: {tmp_path}/file is not a directory"):
        check_empty(f"{tmp_path}/file/a/b")
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    (tmp_path).chmod(0o755)
    user = os.geteuid()
    if user == 0:  # who may write everywhere
        os.seteuid(65534)
    try:
        for check in (check_empty, check_target, check_writable):
            with pytest.raises(OptionError, match="cannot be written: no permission to write in"):
                check(str(closed / "new"))
    finally:
        os.seteuid(user)
