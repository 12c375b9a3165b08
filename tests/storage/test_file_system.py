"""Changes of files and names, errors with the file, few file descriptors."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kwire.errors import LogError
from kwire.log import FileSystem
from tests.storage.faults import Stopped, StoppingFileSystem


def test_files_are_appended_read_and_truncated(tmp_path: Path) -> None:
    file = FileSystem().open(str(tmp_path / "f"), create=True)
    assert file.append(b"abc") == 0
    assert file.append([b"de", memoryview(b"fgh"), b""]) == 3
    file.write_at(1, b"BC")
    assert file.pread(0, 100) == b"aBCdefgh"
    room = bytearray(10)
    assert file.readinto(6, memoryview(room)) == 2
    file.truncate(4)
    assert (file.end, file.physical_size()) == (4, 4)
    file.allocate(100)
    assert (file.end, file.physical_size()) == (4, 100)
    assert file.append(b"xyz") == 4
    file.trim()
    assert (tmp_path / "f").read_bytes() == b"aBCdxyz"
    file.rename(str(tmp_path / "g"))
    file.append(b"!")
    file.sync()
    assert (tmp_path / "g").read_bytes() == b"aBCdxyz!"
    file.close()
    with pytest.raises(LogError, match="closed"):
        file.append(b"x")


def test_many_parts_are_appended_in_one_write(tmp_path: Path) -> None:
    file = FileSystem().open(str(tmp_path / "f"), create=True)
    file.append([b"%d," % i for i in range(3000)])
    assert (tmp_path / "f").read_bytes() == b"".join(b"%d," % i for i in range(3000))


def test_few_file_descriptors_serve_many_files(tmp_path: Path) -> None:
    files = FileSystem(max_open_files=8)
    opened = [files.open(str(tmp_path / str(i)), create=True) for i in range(100)]
    before = len(os.listdir("/proc/self/fd"))
    for round_ in range(3):
        for i, file in enumerate(opened):
            file.append(b"%d.%d " % (round_, i))
    assert len(os.listdir("/proc/self/fd")) - before <= 8
    assert opened[42].pread(0, 100) == b"0.42 1.42 2.42 "
    for file in opened:
        file.close()
    assert len(os.listdir("/proc/self/fd")) <= before


def test_as_many_files_stay_open_as_are_allowed(tmp_path: Path) -> None:
    files, before = FileSystem(max_open_files=3), len(os.listdir("/proc/self/fd"))
    opened = [files.open(str(tmp_path / str(i)), create=True) for i in range(5)]
    for count, file in enumerate(opened, 1):
        file.append(b"x")
        assert len(os.listdir("/proc/self/fd")) - before == min(count, 3)
    for file in opened:
        file.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_descriptor_in_use_is_not_closed(tmp_path: Path) -> None:
    files = FileSystem(max_open_files=2)
    first = files.open(str(tmp_path / "first"), create=True)
    first.append(b"kept")
    fd = first.hold()
    for i in range(10):
        files.open(str(tmp_path / str(i)), create=True).append(b"x")
    first.close()
    files.remove(str(tmp_path / "first"))
    assert os.pread(fd, 10, 0) == b"kept"
    first.release()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


@pytest.mark.requirement("F-02")
def test_a_file_is_replaced_atomically(tmp_path: Path) -> None:
    path = str(tmp_path / "checkpoint")
    (tmp_path / "checkpoint.tmp").write_bytes(b"left by a crash, and longer than what follows")
    FileSystem().write_atomically(path, b"one")
    assert (tmp_path / "checkpoint").read_bytes() == b"one"
    stopping = StoppingFileSystem()
    stopping.write_atomically(path, b"two")
    for step in range(len(stopping.steps)):
        with pytest.raises(Stopped):
            StoppingFileSystem(step, torn=True).write_atomically(path, b"three")
        assert (tmp_path / "checkpoint").read_bytes() in (b"two", b"three")
        (tmp_path / "checkpoint").write_bytes(b"two")
    kinds = [step.split()[0] for step in stopping.steps]
    assert kinds[-3:] == ["sync", "rename", "sync"]


def test_errors_contain_the_file(tmp_path: Path) -> None:
    files = FileSystem()
    missing = str(tmp_path / "missing" / "x")
    for action in (
        lambda: files.open(missing),
        lambda: files.open(missing, create=True),
        lambda: files.read_all(missing),
        lambda: files.size(missing),
        lambda: files.list(missing),
        lambda: files.rename(missing, missing + "y"),
        lambda: files.write_atomically(missing, b""),
        lambda: files.copy(missing, missing + "y"),
        lambda: files.set_modified(missing, 5),
        lambda: files.sync_directory(missing),
    ):
        with pytest.raises(LogError) as caught:
            action()
        assert caught.value.file
        assert caught.value.file.startswith(missing)
    files.remove(missing)  # gone already
    files.make_directory(str(tmp_path / "d" / "e"))
    with pytest.raises(LogError, match="not empty"):
        files.remove(str(tmp_path / "d"))
    (tmp_path / "d" / "e" / "f").write_bytes(b"x")
    files.set_modified(str(tmp_path / "d" / "e" / "f"), 1_700_000_000_123)
    files.copy(str(tmp_path / "d" / "e" / "f"), str(tmp_path / "g"))
    assert files.open(str(tmp_path / "g")).modified_ms() == 1_700_000_000_123


def test_a_failed_append_leaves_no_partial_data(tmp_path: Path) -> None:
    file = FileSystem().open(str(tmp_path / "f"), create=True)
    file.append(b"whole")
    fd = file.fileno()
    readonly = os.open(tmp_path / "f", os.O_RDONLY)
    os.dup2(readonly, fd)
    os.close(readonly)
    with pytest.raises(LogError, match="cannot be written at byte 5"):
        file.append(b"more")
    assert file.end == 5
    assert (tmp_path / "f").read_bytes() == b"whole"


@pytest.mark.parametrize(("umask", "own", "kafkas"), [(0o022, 0o600, 0o644), (0o077, 0o600, 0o600)])
def test_created_files_are_private_unless_the_directory_is_not(
    tmp_path: Path, umask: int, own: int, kafkas: int
) -> None:
    def mode(path: Path) -> int:
        return path.stat().st_mode & 0o777

    files = FileSystem()
    kafka = tmp_path / "made by Kafka"
    kafka.mkdir()
    kafka.chmod(0o755)
    before = os.umask(umask)
    try:
        files.make_directory(str(tmp_path / "data" / "t-0"))
        for directory in (tmp_path / "data" / "t-0", kafka):
            files.open(str(directory / "opened"), create=True).close()
            files.write_atomically(str(directory / "written"), b"x")
    finally:
        os.umask(before)
    assert mode(tmp_path / "data" / "t-0") == 0o700
    assert {mode(tmp_path / "data" / "t-0" / name) for name in ("opened", "written")} == {own}
    assert {mode(kafka / name) for name in ("opened", "written")} == {kafkas}
