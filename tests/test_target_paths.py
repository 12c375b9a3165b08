"""Untrusted names stay inside the target folder."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from kwire.errors import UnsafePath
from kwire.target_paths import path_inside


@pytest.mark.parametrize("name", ["a", "a.json", "message/FetchRequest.html", "..a", "a..", "orders-0/.deleted", "a b"])
def test_a_relative_name_maps_below_the_folder(name: str, tmp_path: Path) -> None:
    assert path_inside(tmp_path, name) == f"{tmp_path}/{name}"
    assert path_inside("out", name) == f"out/{name}"


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../a", "a/../../b", "a/..", "/etc/passwd", "a//b", "a/", "a\0b", "./a"]
)
def test_any_other_name_is_rejected(name: str, tmp_path: Path) -> None:
    with pytest.raises(UnsafePath, match=str(tmp_path)) as caught:
        path_inside(tmp_path, name)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_links_outside_the_folder_are_rejected_and_others_followed(tmp_path: Path) -> None:
    folder, outside = tmp_path / "folder", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    os.symlink(outside, folder / "away")
    os.symlink(outside / "new.json", folder / "a.json")
    os.symlink(folder, folder / "here")
    for name in ("away/a.json", "a.json", "away"):
        with pytest.raises(UnsafePath, match="symbolic link"):
            path_inside(folder, name)
    assert path_inside(folder, "here/b.json") == f"{folder}/here/b.json"
    os.symlink(folder, tmp_path / "link")
    assert path_inside(tmp_path / "link", "b.json") == f"{tmp_path}/link/b.json"  # what the user asked for
