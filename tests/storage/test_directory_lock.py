"""The directory lock. tests/interop/test_written_logs.py proves that Kafka uses the same lock."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kwire.errors import LogError
from kwire.storage.directory_lock import DirectoryLock

HOLD = """
import sys
from kwire.storage.directory_lock import DirectoryLock
lock = DirectoryLock(sys.argv[1])
print("locked", flush=True)
sys.stdin.read()
"""


def test_a_second_process_is_rejected_until_the_first_ends(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        with pytest.raises(LogError, match=r"locked by another process.*`kwire log pull`; stop it") as caught:
            DirectoryLock(str(tmp_path))
        assert caught.value.file == str(tmp_path / ".lock")
        holder.kill()
    DirectoryLock(str(tmp_path)).release()


def test_a_second_lock_in_the_same_process_is_rejected(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    first = DirectoryLock(str(data))
    (tmp_path / "link").symlink_to(data, target_is_directory=True)
    for path in (data, tmp_path / "link"):
        with pytest.raises(LogError, match="already open in this process"):
            DirectoryLock(str(path))
    first.release()
    first.release()
    DirectoryLock(str(data)).release()


def test_a_directory_that_cannot_be_locked_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="cannot be created"):
        DirectoryLock(str(tmp_path / "missing"))
