"""A log is reopened after a failed write: the torn tail is truncated, and appends continue."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from kwire.errors import LogError
from kwire.log import FileSystem, LogManager
from kwire.records import BatchBuilder
from kwire.storage.file_system import OpenFile

NOW = 1_760_000_000_000
Data = bytes | bytearray | memoryview


class FullFile(OpenFile):
    """A log file that stores half of an append when the disk is full."""

    is_full = False

    def append(self, data: Data | Sequence[Data]) -> int:
        if not FullFile.is_full or not self.url.endswith(".log"):
            return super().append(data)
        whole = bytes(data) if isinstance(data, bytes | bytearray | memoryview) else b"".join(map(bytes, data))
        os.pwrite(self.fileno(), whole[: len(whole) // 2], self.end)
        raise LogError("no space left on device", self.url)


class FullFileSystem(FileSystem):
    open_file_class = FullFile


def batch(value: bytes) -> bytes:
    builder = BatchBuilder()
    builder.append(None, value, timestamp=NOW)
    return builder.build()


@pytest.mark.requirement("G-07", "G-08")
def test_appends_continue_after_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manager = LogManager.open(str(tmp_path), file_system=FullFileSystem(), now_ms=NOW)
    log = manager.create("t", 0, now_ms=NOW)
    log.append(batch(b"one"), now_ms=NOW)
    size = log.size_bytes
    with monkeypatch.context() as patch:
        patch.setattr(FullFile, "is_full", True)
        with pytest.raises(LogError, match="no space left"):
            log.append(batch(b"lost"), now_ms=NOW)
    assert log.has_failed
    with pytest.raises(LogError, match="reopen the log"):
        log.append(batch(b"too early"), now_ms=NOW)
    assert log.fetch(0, 1 << 20).size_bytes == size  # it can still be read
    log = manager.reopen("t", 0, now_ms=NOW)
    assert manager.logs["t", 0] is log
    assert not log.has_failed
    assert log.size_bytes == size
    assert log.append(batch(b"two"), now_ms=NOW).first_offset == 1
    manager.close()
    with LogManager.open(str(tmp_path), now_ms=NOW) as again:
        assert again.was_clean
        assert again.logs["t", 0].log_end_offset == 2


def test_a_partition_that_could_not_be_created_can_be_created_later(tmp_path: Path) -> None:
    with LogManager.open(str(tmp_path), now_ms=NOW) as manager:
        (tmp_path / "t-0").mkdir()  # as far as a full disk let it come
        log = manager.reopen("t", 0, now_ms=NOW)
        assert log.append(batch(b"one"), now_ms=NOW).first_offset == 0
