"""Logs that lost their last records, or every file: checkpoints, snapshots and leader epochs tell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kwire.log import LogDirectory, Severity
from kwire.log.files.damage import Damage, Kind
from kwire.maintenance.repair import repair_into
from tests.log.test_missing_segments import make
from tests.maintenance.verify.damaging import plan_for

END = 300
CHECKPOINTS = "recovery-point-offset-checkpoint", "replication-offset-checkpoint"
LEFT = {
    "no .log file": lambda path: path.suffix != ".log",
    "nothing but partition.metadata": lambda path: path.name == "partition.metadata",
    "nothing": lambda path: False,
}


def claim(data: Path, **offsets: int) -> None:
    """Write the directory's checkpoints: recovery, replication, log_start."""
    for name in ("recovery-point", "replication", "log-start"):
        offset = offsets.get(name.replace("-", "_"))
        entries = "0\n" if offset is None else f"1\nt 0 {offset}\n"
        (data / f"{name}-offset-checkpoint").write_text(f"0\n{entries}")


def lose(data: Path, is_left: Callable[[Path], bool]) -> None:
    for path in (data / "t-0").iterdir():
        if not is_left(path):
            path.unlink()


def real(data: Path) -> list[Damage]:
    return [each for each in LogDirectory(data).verify() if not each.is_harmless]


@pytest.mark.requirement("F-01", "F-02")
@pytest.mark.parametrize("left", LEFT)
@pytest.mark.parametrize("checkpoint", ["recovery_point", "replication"])
def test_a_log_without_files_lost_what_the_checkpoints_have(left: str, checkpoint: str, tmp_path: Path) -> None:
    data = make(tmp_path / "data")
    lose(data, LEFT[left])
    claim(data, **{checkpoint: END})
    (found,) = real(data)
    assert (found.kind, found.severity, found.key) == (Kind.MISSING_RECORDS, Severity.LOSES_RECORDS, ("t", 0))
    assert (found.file, found.offsets) == (str(data / "t-0"), (0, END - 1))
    assert "no .log file" in found.cause
    assert f"checkpoint has {END}" in found.cause


@pytest.mark.parametrize(("offset", "is_lost"), [(199, False), (200, False), (201, True)])
@pytest.mark.parametrize("checkpoint", ["recovery_point", "replication"])
def test_a_log_without_files_starts_at_its_log_start_offset(
    checkpoint: str, offset: int, is_lost: bool, tmp_path: Path
) -> None:
    """Retention had deleted the records below 200: nothing up to there is lost."""
    data = make(tmp_path / "data")
    lose(data, LEFT["nothing"])
    claim(data, log_start=200, **{checkpoint: offset})
    assert [each.offsets for each in real(data)] == [(200, 200)] * is_lost


@pytest.mark.parametrize(("offset", "is_lost"), [(END - 1, False), (END, False), (END + 1, True)])
@pytest.mark.parametrize("checkpoint", ["recovery_point", "replication"])
def test_a_checkpoint_above_the_end_is_found(checkpoint: str, offset: int, is_lost: bool, tmp_path: Path) -> None:
    data = make(tmp_path / "data")
    claim(data, **{checkpoint: offset})
    assert [each.offsets for each in real(data)] == [(END, END)] * is_lost


def test_snapshots_and_leader_epochs_tell_of_lost_records_too(tmp_path: Path) -> None:
    data = make(tmp_path / "data")
    lose(data, LEFT["no .log file"])
    claim(data)
    (data / "t-0" / "leader-epoch-checkpoint").write_text("0\n2\n1 0\n2 250\n")
    found = real(data)
    snapshots = sorted(int(path.stem) for path in (data / "t-0").glob("*.snapshot"))
    assert [each.offsets for each in found] == [(0, max([250, *snapshots]) - 1)]
    assert "leader epoch 2 starts at 250" in found[0].cause


def test_a_new_partition_is_not_damaged(tmp_path: Path) -> None:
    data = make(tmp_path / "data")
    lose(data, LEFT["nothing"])
    claim(data, recovery_point=0, replication=0)
    assert real(data) == []


@pytest.mark.parametrize("left", LEFT)
def test_a_repair_lowers_the_checkpoints_of_a_log_without_files(left: str, tmp_path: Path) -> None:
    data = make(tmp_path / "data")
    lose(data, LEFT[left])
    claim(data, recovery_point=END, replication=END)
    plan = plan_for(data)
    assert plan.left == []
    repair_into(plan, str(tmp_path / "new"))
    assert real(tmp_path / "new") == []
    for name in CHECKPOINTS:
        assert (tmp_path / "new" / name).read_text().split() == ["0", "1", "t", "0", "0"]
