"""Log directories from elsewhere: no tool changes what a link in them points to."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kwire.broker import Broker
from kwire.cli.main import run
from kwire.errors import LogError
from kwire.log import LogDirectory
from kwire.log.files.damage import Severity
from kwire.log.writing.log_manager import LogManager
from kwire.maintenance.verify import verify_logs
from kwire.storage.directory_lock import DirectoryLock, is_held
from kwire.storage.links import linked_twice, refuse_links
from tests.log.test_missing_segments import make
from tests.maintenance.adopt.nodes import ONE_EPOCH, node

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


@pytest.mark.sampled(3)
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


def test_links_to_files_inside_and_a_link_as_the_directory_are_no_error(tmp_path: Path) -> None:
    data = make(tmp_path / "data")
    (data / "t-0" / "again").symlink_to(data / "t-0")
    (data / "t-0" / "relative").symlink_to("../meta.properties")
    (tmp_path / "link").symlink_to(data)
    refuse_links(str(tmp_path / "link"))
    (data / "beside").symlink_to(tmp_path / "data-2")  # whose name begins like that of the directory
    with pytest.raises(LogError, match="beside: a symbolic link"):
        refuse_links(str(tmp_path / "link"))


# ---- two partitions of one directory

READERS = {
    "ls": command("log", "ls", "{}"),
    "dump": command("log", "dump", "{}"),
    "report": command("log", "report", "{}", "-o", "{}.html"),
    "export": command("log", "export", "{}", "-o", "{}.jsonl"),
    "compaction of a copy": command("log", "compact", "{}", "--all", "-o", "{}.new"),
    "conversion to a copy": command("log", "convert", "{}", "--codec", "lz4", "-o", "{}.new"),
    "repair to a copy": command("log", "repair", "{}", "-o", "{}.new"),
    "restore": command("log", "restore", "{}", "-o", "{}.new", "--at", "2100-01-01"),
}
"""What reads a log directory, and may write a new one."""


def files_below(folder: Path) -> dict[str, bytes]:
    return {str(each): each.read_bytes() for each in folder.rglob("*") if each.is_file() and each.name != ".lock"}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("tool", "follow"), [*((each, "0") for each in [*TOOLS, *READERS]), ("serve", "1")])
def test_no_tool_takes_the_directory_of_a_partition_for_two(
    tool: str, follow: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KWIRE_FOLLOW_LINKS", follow)
    data = make(tmp_path / "data")
    (data / f"t-0/{0:020}.index").write_bytes(b"damaged, so that every tool has something to do")
    (data / "t-3").symlink_to("t-0")
    before = files_below(tmp_path)
    try:
        code = {**TOOLS, **READERS}[tool](data)
        said = "".join(capsys.readouterr())
    except LogError as error:
        code, said = 2, str(error)
    assert code in (1, 2)
    assert (
        f"{data}/t-3: a symbolic link to {data}/t-0: two directories with the same files; "
        "remove the link, or copy what it points to"
    ) in said or (tool == "repair of one partition" and f"{data}/t-3" in said)
    assert files_below(tmp_path) == before
    (data / "t-3").unlink()
    assert {**TOOLS, **READERS}[tool](data) in (0, 1)


@pytest.mark.parametrize(
    ("links", "found"),
    [
        ({"t-3": "t-0"}, {"t-3": "t-0"}),
        ({"t-3": "t-4", "t-4": "t-0"}, {"t-3": "t-0", "t-4": "t-0"}),  # a link to a link
        ({"t-3": "."}, {"t-3": ""}),  # the log directory itself
        ({"a-0": "../elsewhere", "t-3": "../elsewhere"}, {"t-3": "a-0"}),  # both are links
        ({"t-3": "../elsewhere", "t-4": "../nowhere"}, {}),
        ({"t-3": "t-0.0123456789abcdef0123456789abcdef-stray"}, {"t-3": "t-0.0123456789abcdef0123456789abcdef-stray"}),
    ],
)
def test_every_link_to_another_directory_is_found(links: dict[str, str], found: dict[str, str], tmp_path: Path) -> None:
    data = make(tmp_path / "data")
    shutil.copytree(data / "t-0", data / "t-0.0123456789abcdef0123456789abcdef-stray")
    (tmp_path / "elsewhere").mkdir()
    for name, target in links.items():
        (data / name).symlink_to(target)
    expected = {f"{data}/{name}": f"{data}/{other}".rstrip("/") for name, other in found.items()}
    assert linked_twice([str(data)]) == expected
    directory = LogDirectory(data, may_share=True)
    assert {f"{data}/{name}": other for name, other in directory.shared.items()} == expected
    damages = [each for each in verify_logs(directory).damages if "two directories" in each.cause]
    assert {each.file: each.severity for each in damages} == dict.fromkeys(expected, Severity.LOSES_RECORDS)
    if found:
        with pytest.raises(LogError, match="two directories with the same files"):
            LogDirectory(data)
    else:
        assert len(LogDirectory(data)) == 2


def test_verify_reports_a_partition_with_the_directory_of_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = make(tmp_path / "data")
    (data / "t-3").symlink_to("t-0")
    assert run(["log", "verify", str(data), "--format", "json"]) == 1
    (row,) = (each for each in json.loads(capsys.readouterr().out) if each["file"] == f"{data}/t-3")
    assert row["cause"] == f"a symbolic link to {data}/t-0: two directories with the same files"
    assert row["hint"] == "remove the link; a partition that has to exist needs a directory of its own"


def test_a_directory_of_another_node_is_not_adopted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = [node(tmp_path / f"n{n}", n, {("orders", 0): ONE_EPOCH}) for n in (1, 2)]
    (nodes[1] / "orders-1").symlink_to(nodes[0] / "orders-0")
    command = ["log", "adopt", *map(str, nodes)]
    before = files_below(tmp_path)
    assert run(command) == 1  # the dry run says it as well
    outside = f"prevents adoption: {nodes[1]}/orders-1: a symbolic link to {nodes[0]}/orders-0, outside of the log"
    assert outside in capsys.readouterr().err
    monkeypatch.setenv("KWIRE_FOLLOW_LINKS", "1")
    assert run([*command, "--apply"]) == 1
    shared = f"prevents adoption: {nodes[1]}/orders-1: a symbolic link to {nodes[0]}/orders-0: two directories"
    assert shared in capsys.readouterr().err
    assert files_below(tmp_path) == before


# ---- the lock


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


@pytest.mark.slow
def test_many_files_are_looked_at_quickly(tmp_path: Path) -> None:
    for partition in range(200):
        folder = tmp_path / f"t-{partition}"
        folder.mkdir()
        for number in range(50):
            (folder / f"{number:020}.log").touch()
    began = time.perf_counter()
    refuse_links(str(tmp_path))
    assert time.perf_counter() - began < 2.0
