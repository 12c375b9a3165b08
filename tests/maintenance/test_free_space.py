"""Long writes check the free space first: a full disk is rejected before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kwire.errors import LogError
from kwire.log import LogDirectory
from kwire.maintenance.compaction import OfflineSettings, compact, copy_logs
from kwire.maintenance.convert import TargetFormat, convert_directory, convert_in_place
from kwire.maintenance.export import export_logs
from kwire.maintenance.from_parquet import restore_from_parquet
from kwire.maintenance.repair import repair_in_place, repair_into
from kwire.maintenance.repair_mode import Mode
from kwire.maintenance.repair_plan import make_plan
from kwire.maintenance.verify import verify_directory
from kwire.records import Compression
from kwire.storage.file_system import FileSystem
from kwire.storage.free_space import need_space
from tests.maintenance.verify.damaging import flip, tree

Copied = Callable[[str, str], Path]
NOW_MS = 1_790_000_000_000


@pytest.fixture
def source(copied: Copied, tmp_path: Path) -> Path:
    """A directory with one damaged log, and that log as Parquet."""
    data = copied("modern", "orders-0")
    export_logs(list(LogDirectory(data).values()), str(tmp_path / "parquet"))
    flip(data / "orders-0" / f"{844:020d}.log", 500, 1)
    return data


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch, source: Path) -> None:
    """A disk with 1,000 bytes of free space."""
    monkeypatch.setattr(FileSystem, "free_bytes", lambda self, path: 1000)


def repair(data: Path, target: Path | None) -> None:
    directory = LogDirectory(data)
    plan = make_plan(directory, verify_directory(directory), Mode.SALVAGE)
    repair_in_place(plan) if target is None else repair_into(plan, str(target))


WRITES: dict[str, Callable[[Path, Path], object]] = {
    "repair": lambda data, out: repair(data, out),
    "repair in place": lambda data, out: repair(data, None),
    "convert": lambda data, out: convert_directory(
        LogDirectory(data), str(out), TargetFormat(codec=Compression.ZSTD), [("orders", 0)], whole=False, now_ms=NOW_MS
    ),
    "convert in place": lambda data, out: convert_in_place(
        data, TargetFormat(codec=Compression.NONE), [("orders", 0)], now_ms=NOW_MS
    ),
    "compact": lambda data, out: list(compact(str(data), lambda *key: True, OfflineSettings.parse({}), NOW_MS)),
    "compact a copy": lambda data, out: copy_logs(str(data), str(out), lambda *key: True),
    "export": lambda data, out: export_logs(list(LogDirectory(data).values()), str(out)),
    "restore": lambda data, out: restore_from_parquet([str(data.parent / "parquet")], str(out), now_ms=NOW_MS),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.usefixtures("full_disk")
def test_a_disk_without_space_is_rejected_before_anything_is_written(write: str, source: Path, tmp_path: Path) -> None:
    before = tree(tmp_path)
    with pytest.raises(LogError, match=r"not enough disk space: at least .* required, 1000 bytes available"):
        WRITES[write](source, tmp_path / "out")
    after = tree(tmp_path)
    after.pop("data/.lock", None)
    assert after == before
    assert not [path.name for path in tmp_path.iterdir() if path.name.endswith(".part")]


def test_free_space_is_checked_for_a_missing_target(tmp_path: Path) -> None:
    need_space(FileSystem(), str(tmp_path / "a" / "b" / "c"), 1)
    with pytest.raises(LogError, match=r"EiB|TiB") as caught:
        need_space(FileSystem(), str(tmp_path / "a" / "b"), 1 << 60)
    assert caught.value.file == str(tmp_path)
