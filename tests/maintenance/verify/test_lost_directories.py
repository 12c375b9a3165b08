"""Partitions that checkpoints name and that have no directory any more: their records are lost."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from kwire.cli.main import run
from kwire.errors import LogError
from kwire.identifiers import TopicPartition
from kwire.log import LogDirectory
from kwire.log.files.damage import Damage, Kind, Severity
from kwire.log.files.file_names import marked_as
from kwire.log.writing.log_config import LogConfig
from kwire.log.writing.log_manager import LogManager
from kwire.maintenance.pull.manifest import MANIFEST
from kwire.maintenance.repair import repair_in_place, repair_into
from kwire.maintenance.restore import AtOffsets, AtTime, RestorePoint, restore_directory
from kwire.maintenance.verify import verify_logs
from kwire.storage.checkpoints import parse_offset_checkpoint, render_offset_checkpoint
from tests.log.test_missing_segments import make
from tests.log.writing import NOW
from tests.maintenance.verify.damaging import plan_for

END = 300
CHECKPOINTS = ("recovery-point", "replication", "log-start")
WORDS = {"recovery-point": "recovery point", "replication": "high watermark", "log-start": "log start offset"}
MARK = "0123456789abcdef0123456789abcdef"


def claim(data: Path, offsets: Mapping[str, Mapping[TopicPartition, int]]) -> None:
    """Write the checkpoints of these names; the others are empty."""
    for name in CHECKPOINTS:
        (data / f"{name}-offset-checkpoint").write_bytes(render_offset_checkpoint(offsets.get(name, {})))


def two(data: Path, *, is_clean: bool = True) -> Path:
    """Write t-0 and t-1."""
    make(data)
    shutil.copytree(data / "t-0", data / "t-1")
    if not is_clean:
        (data / ".kafka_cleanshutdown").unlink()
    return data


def lost(data: Path) -> list[Damage]:
    return [each for each in verify_logs(LogDirectory(data)).damages if each.kind is Kind.MISSING_RECORDS]


@pytest.mark.sampled
@pytest.mark.requirement("F-01", "F-02")
@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
@pytest.mark.parametrize(("offset", "severity"), [(0, Severity.NOTE), (1, Severity.LOSES_RECORDS)])
def test_a_directory_that_a_checkpoint_names_is_missed(
    checkpoint: str, offset: int, severity: Severity, is_clean: bool, tmp_path: Path
) -> None:
    data = two(tmp_path / "data", is_clean=is_clean)
    claim(data, {checkpoint: {("t", 0): END if checkpoint != "log-start" else 0, ("t", 1): offset}})
    assert lost(data) == []
    shutil.rmtree(data / "t-1")
    (found,) = lost(data)
    assert found.severity is severity
    assert found.cause == f"no directory for partitions {'with' if offset else 'without'} records: t-1"
    assert run(["log", "verify", str(data)]) == (1 if offset else 0)  # also if one partition is left


@pytest.mark.parametrize("mark", ["delete", "stray", "future"])
def test_a_marked_directory_is_not_lost(mark: str, tmp_path: Path) -> None:
    """The checkpoints may still name a topic that was deleted a moment ago."""
    data = two(tmp_path / "data")
    claim(data, {name: {("t", 1): 5} for name in CHECKPOINTS})
    (data / "t-1").rename(data / f"t-1.{MARK}-{mark}")
    assert lost(data) == []
    restore_directory(str(data), str(tmp_path / "new"), AtTime(time_ms=NOW + END), now_ms=NOW)
    (data / f"t-1.{MARK}-{mark}").rename(data / f"t-2.{MARK}-{mark}")
    assert [each.severity for each in lost(data)] == [Severity.LOSES_RECORDS]


def test_a_marked_name_is_of_one_partition() -> None:
    assert marked_as(f"a-b-1.{MARK}-delete", "a-b", 1)
    assert not marked_as(f"a-b-1.{MARK}-delete", "a", 1)
    assert not marked_as(f"a-b-1.{MARK}-delete", "a-b", 11)
    assert not marked_as("a-b-1", "a-b", 1)
    topic = "t" * 249
    suffix = f"-12.{MARK}-delete"
    cut = topic[: 255 - len(suffix)] + suffix
    assert marked_as(cut, topic, 12)
    assert not marked_as(cut, topic, 2)
    assert not marked_as(cut[1:], topic, 12)  # shorter names are not cut


# ---- restore


@pytest.mark.sampled
@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
@pytest.mark.parametrize("point", [AtTime(time_ms=NOW + 150), AtOffsets(offsets={("t", 0): 100})])
@pytest.mark.parametrize("offset", [0, 1])
def test_a_source_without_a_directory_is_refused(
    checkpoint: str, point: RestorePoint, offset: int, tmp_path: Path
) -> None:
    data = two(tmp_path / "data")
    claim(data, {checkpoint: {("t", 1): offset}})
    shutil.rmtree(data / "t-1")
    if not offset:
        restore_directory(str(data), str(tmp_path / "new"), point, now_ms=NOW)
        return
    expected = f"data: t-1: no such directory, but the {WORDS[checkpoint]} checkpoint has 1: records are lost; restore"
    with pytest.raises(LogError, match=expected):
        restore_directory(str(data), str(tmp_path / "new"), point, now_ms=NOW)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_of_several_checkpoints_the_highest_is_named(tmp_path: Path) -> None:
    data = two(tmp_path / "data")
    claim(data, {"recovery-point": {("t", 1): 7}, "replication": {("t", 1): 9}, "log-start": {("t", 1): 8}})
    shutil.rmtree(data / "t-1")
    with pytest.raises(LogError, match="the high watermark checkpoint has 9"):
        restore_directory(str(data), str(tmp_path / "new"), AtTime(time_ms=NOW + END), now_ms=NOW)


@pytest.mark.parametrize("in_place", [True, False])
def test_repair_accepts_the_loss(in_place: bool, tmp_path: Path) -> None:
    data = two(tmp_path / "data")
    claim(data, {name: {("t", 0): 0, ("t", 1): 5} for name in CHECKPOINTS})
    shutil.rmtree(data / "t-1")
    plan = plan_for(data)
    assert plan.left == []
    if in_place:
        repair_in_place(plan)
    else:
        repair_into(plan, str(tmp_path / "repaired"))
    repaired = data if in_place else tmp_path / "repaired"
    for name in CHECKPOINTS:
        assert (repaired / f"{name}-offset-checkpoint").read_bytes() == render_offset_checkpoint({("t", 0): 0})
    assert lost(repaired) == []
    assert plan_for(repaired).is_empty
    restore_directory(str(repaired), str(tmp_path / "new"), AtTime(time_ms=NOW + END), now_ms=NOW)


def test_a_copy_has_the_partitions_of_its_manifest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = two(tmp_path / "data")
    claim(data, {})
    segment = {"base_offset": 0, "size_bytes": 1, "sha256": "0"}
    entry = {"log_start_offset": 0, "log_end_offset": END, "high_watermark": END, "segments": [segment]}
    empty = {"log_start_offset": 0, "log_end_offset": 0, "high_watermark": 0, "segments": []}
    topic = {"id": None, "configs": {}, "partitions": {"0": entry | {"segments": []}, "1": entry, "2": empty}}
    manifest = {"cluster_id": "c", "bootstrap_servers": [], "began_ms": 0, "written_ms": 0, "complete": True}
    (data / MANIFEST).write_text(json.dumps(manifest | {"topics": {"t": topic}}))
    shutil.rmtree(data / "t-1")
    with pytest.raises(LogError, match="t-1: no such directory, but the manifest has its segments; pull it again"):
        restore_directory(str(data), str(tmp_path / "new"), AtTime(time_ms=NOW + END), now_ms=NOW)
    assert run(["log", "verify", str(data)]) == 1
    assert f"t-1/{0:020}.log" in capsys.readouterr().out


# ---- who writes checkpoints


def test_a_deleted_partition_leaves_the_checkpoints_before_its_directory_goes(tmp_path: Path) -> None:
    """A crash at any time after a deletion leaves no partition that counts as lost."""
    data = two(tmp_path / "data")
    manager = LogManager.open(data, now_ms=NOW, default_config=LogConfig(file_delete_delay_ms=1000))
    manager.write_checkpoints()
    manager.delete("t", 1, now_ms=NOW)
    for now in (NOW, NOW + 999, NOW + 1000):
        manager.apply_retention(now)
        assert bool(list(data.glob("t-1.*-delete"))) == (now < NOW + 1000)
        assert lost(data) == []
    manager.close(clean=False)


def test_directories_of_an_earlier_run_are_removed_after_the_checkpoints(tmp_path: Path) -> None:
    data = two(tmp_path / "data")
    claim(data, {"recovery-point": {("t", 0): END, ("t", 1): END}})
    (data / "t-1").rename(data / f"t-1.{MARK}-delete")
    manager = LogManager.open(data, now_ms=NOW, default_config=LogConfig(file_delete_delay_ms=0))
    manager.apply_retention(NOW)
    assert not list(data.glob("t-1*"))
    manager.close(clean=False)
    assert lost(data) == []


@pytest.mark.sampled
@pytest.mark.parametrize("command", ["compact", "repair", "index", "convert"])
@pytest.mark.parametrize("is_damaged", [True, False])
def test_the_copy_of_a_partition_has_checkpoints_of_that_one(command: str, is_damaged: bool, tmp_path: Path) -> None:
    data = two(tmp_path / "data")
    end = END + 5 * is_damaged  # a checkpoint that repair lowers
    claim(data, {"recovery-point": {("t", 0): end, ("t", 1): 5}, "replication": {("t", 0): end, ("t", 1): 5}})
    target = tmp_path / "new"
    options = ["--codec", "lz4"] if command == "convert" else []
    assert run(["log", command, str(data), "--topic", "t", "--partition", "0", "-o", str(target), *options]) in (0, 1)
    assert [each.name for each in target.glob("t-*")] == ["t-0"]
    for name in ("recovery-point", "replication"):
        assert set(parse_offset_checkpoint((target / f"{name}-offset-checkpoint").read_bytes())) == {("t", 0)}
    assert [each for each in lost(target) if "no directory" in each.cause] == []
