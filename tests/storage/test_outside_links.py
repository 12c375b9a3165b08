"""Log directories from elsewhere: no tool changes what a link in them points to."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kwire.broker import Broker
from kwire.cli.main import run
from kwire.errors import LogError
from kwire.log.log_manager import LogManager
from kwire.storage.directory_lock import DirectoryLock, is_held
from kwire.storage.outside_links import refuse_outside_links
from tests.log.test_missing_segments import make

SECRET = b"not yours"


def serve(data: Path) -> int:
    with Broker(data_dir=data):
        return 0


def command(*words: str) -> Callable[[Path], int]:
    return lambda data: run([part.format(data) for part in words])


TOOLS = {
    "serve": serve,
    "compact": command("log", "compact", "{}", "--all", "--apply"),
    "convert": command("log", "convert", "{}", "--codec", "lz4", "--apply"),
    "repair": command("log", "repair", "{}", "--apply"),
    "index": command("log", "index", "{}", "--apply"),
    "repair of one partition": command("log", "repair", "{}/t-0", "--apply"),
    "adopt": command("log", "adopt", "{}", "--apply"),
}
"""Everything that changes a log directory."""


def link_segment(data: Path, outside: Path) -> Path:
    """A damaged index, so that every tool has something to do."""
    link = data / "t-0" / f"{0:020}.index"
    link.unlink()
    link.symlink_to(outside)
    return link


def link_metadata(data: Path, outside: Path) -> Path:
    link = data / "__cluster_metadata-0"
    link.symlink_to(outside.parent, target_is_directory=True)
    return link


def link_temporary(data: Path, outside: Path) -> Path:
    link = data / "recovery-point-offset-checkpoint.tmp"
    link.symlink_to(outside)
    return link


def link_to_nothing(data: Path, outside: Path) -> Path:
    link = data / "t-0" / "partition.metadata.tmp"
    link.symlink_to(outside.with_name("new"))
    return link


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("make_link", [link_segment, link_metadata, link_temporary, link_to_nothing])
def test_no_tool_changes_what_is_outside(
    make_link: Callable[[Path, Path], Path], tool: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outside = tmp_path / "outside" / "file"
    outside.parent.mkdir()
    outside.write_bytes(SECRET)
    data = make(tmp_path / "data")
    (data / ".kafka_cleanshutdown").unlink(missing_ok=True)
    link = make_link(data, outside)
    try:
        TOOLS[tool](data)
        said = "".join(capsys.readouterr())
    except LogError as error:
        said = str(error)
    if "nothing to" not in said:  # or it has changed nothing at all
        assert f"{link}: a symbolic link to " in said
        assert "KWIRE_FOLLOW_LINKS=1" in said
    assert [(each.name, each.read_bytes()) for each in outside.parent.iterdir()] == [("file", SECRET)]


def test_links_are_followed_if_the_environment_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = make(tmp_path / "data")
    (data / "t-0").rename(tmp_path / "other-disk")
    (data / "t-0").symlink_to(tmp_path / "other-disk")
    for value in ("", "0", "yes"):
        monkeypatch.setenv("KWIRE_FOLLOW_LINKS", value)
        with pytest.raises(LogError, match=r"data/t-0: a symbolic link to .*other-disk"):
            LogManager.open(data, now_ms=0)
    monkeypatch.setenv("KWIRE_FOLLOW_LINKS", "1")
    with LogManager.open(data, now_ms=0) as manager:
        assert manager.logs["t", 0].log_end_offset == 300


def test_links_inside_and_a_link_to_the_directory_itself_are_no_error(tmp_path: Path) -> None:
    data = make(tmp_path / "data")
    (data / "t-1").symlink_to(data / "t-0")
    (data / "again").symlink_to(data)
    (data / "t-0" / "relative").symlink_to("../meta.properties")
    (tmp_path / "link").symlink_to(data)
    refuse_outside_links(str(tmp_path / "link"))
    (data / "beside").symlink_to(tmp_path / "data-2")  # whose name begins like that of the directory
    with pytest.raises(LogError, match="beside: a symbolic link"):
        refuse_outside_links(str(tmp_path / "link"))


def test_a_lock_is_never_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / ".lock").symlink_to(tmp_path / "created")
    for value in ("0", "1"):
        monkeypatch.setenv("KWIRE_FOLLOW_LINKS", value)
        with pytest.raises(LogError, match=r"\.lock: a symbolic link; remove it"):
            DirectoryLock(str(data))
        assert not is_held(str(data))
    assert not (tmp_path / "created").exists()
    (data / ".lock").unlink()
    DirectoryLock(str(data)).release()


def test_a_refused_directory_can_be_locked_afterwards(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    link = tmp_path / "data" / "link"
    link.symlink_to(tmp_path)
    with pytest.raises(LogError, match="a symbolic link"):
        DirectoryLock(str(tmp_path / "data"))
    link.unlink()
    DirectoryLock(str(tmp_path / "data")).release()


def test_many_files_are_looked_at_quickly(tmp_path: Path) -> None:
    for partition in range(200):
        folder = tmp_path / f"t-{partition}"
        folder.mkdir()
        for number in range(50):
            (folder / f"{number:020}.log").touch()
    began = time.perf_counter()
    refuse_outside_links(str(tmp_path))
    assert time.perf_counter() - began < 2.0
