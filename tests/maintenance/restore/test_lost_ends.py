"""Sources that lost the end of a log: an error, unless the cut is below."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kwire.cli.main import run
from kwire.errors import LogError, OptionError
from kwire.log import LogDirectory
from kwire.maintenance.repair import repair_into
from kwire.maintenance.restore import AtOffsets, AtTime, RestorePoint, restore_directory
from tests.log.test_missing_segments import make
from tests.log.writing import NOW
from tests.maintenance.verify.damaging import plan_for
from tests.maintenance.verify.test_lost_ends import END, claim

ALL = AtTime(time_ms=NOW + END)
KEY = "t", 0


def no_log(log: Path) -> int:
    for path in log.glob("*.log"):
        path.unlink()
    return 0


def no_files(log: Path) -> int:
    for path in log.iterdir():
        path.unlink()
    return 0


def last_segment_empty(log: Path) -> int:
    (log / f"{200:020}.log").write_bytes(b"")
    return 200


def last_segment_gone(log: Path) -> int:
    for path in log.glob(f"{200:020}.*"):
        path.unlink()
    return 200


def last_batch_gone(log: Path) -> int:
    path = log / f"{200:020}.log"
    last = [each for _, each in LogDirectory(log.parent)[KEY].batches()][-1]
    path.write_bytes(path.read_bytes()[: last.position])
    return last.base_offset


LOSSES = [no_log, no_files, last_segment_empty, last_segment_gone, last_batch_gone]


def cut(source: Path, target: Path, point: RestorePoint) -> int:
    """Return the end of the restored log."""
    (found,) = restore_directory(str(source), str(target), point, now_ms=NOW).partitions
    assert LogDirectory(target)[KEY].log_end_offset == found.log_end_offset
    return found.log_end_offset


@pytest.mark.parametrize("lose", LOSSES)
@pytest.mark.parametrize("checkpoint", ["recovery_point", "replication"])
@pytest.mark.parametrize("point", [ALL, AtOffsets(offsets={KEY: END})])
def test_a_lost_end_is_refused(
    lose: Callable[[Path], int], checkpoint: str, point: RestorePoint, tmp_path: Path
) -> None:
    source = make(tmp_path / "source")
    end = lose(source / "t-0")
    claim(source, **{checkpoint: END})
    with pytest.raises(
        LogError, match=rf"t-0: the log ends at offset {end}, but .*checkpoint has {END}.*kwire log rep"
    ):
        cut(source, tmp_path / "new", point)
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


@pytest.mark.parametrize("checkpoint", ["recovery_point", "replication"])
@pytest.mark.parametrize(("offset", "is_lost"), [(END - 1, False), (END, False), (END + 1, True)])
def test_a_checkpoint_may_be_at_the_end_but_not_above(
    checkpoint: str, offset: int, is_lost: bool, tmp_path: Path
) -> None:
    source = make(tmp_path / "source")
    claim(source, **{checkpoint: offset})
    if not is_lost:
        assert cut(source, tmp_path / "new", ALL) == END
        return
    with pytest.raises(LogError, match=f"ends at offset {END}, but .*checkpoint has {offset}"):
        cut(source, tmp_path / "new", ALL)


@pytest.mark.parametrize("offset", [100, 199, 200, 201])
def test_a_loss_above_the_cut_does_not_matter(offset: int, tmp_path: Path) -> None:
    """The log still has what is wanted: all records below 200."""
    source = make(tmp_path / "source")
    last_segment_gone(source / "t-0")
    claim(source, recovery_point=END, replication=END)
    point = AtOffsets(offsets={KEY: offset})
    if offset > 200:
        with pytest.raises(LogError, match="ends at offset 200"):
            cut(source, tmp_path / "new", point)
        return
    assert cut(source, tmp_path / "new", point) == min(offset, 190 if offset == 199 else offset)


def test_a_time_before_the_loss_is_restored(tmp_path: Path) -> None:
    source = make(tmp_path / "source")
    last_segment_gone(source / "t-0")
    claim(source, recovery_point=END, replication=END)
    assert cut(source, tmp_path / "new", AtTime(time_ms=NOW + 150)) == 150
    with pytest.raises(LogError, match="ends at offset 200"):  # offset 200 may be of this time
        cut(source, tmp_path / "other", AtTime(time_ms=NOW + 199))


def test_an_offset_that_no_file_knows_is_wrong_usage(tmp_path: Path) -> None:
    source = make(tmp_path / "source")
    claim(source, recovery_point=END, replication=END)
    with pytest.raises(OptionError, match=f"offset {END + 1} of t-0 is not in the source"):
        cut(source, tmp_path / "new", AtOffsets(offsets={KEY: END + 1}))


@pytest.mark.parametrize("lose", LOSSES[2:])
def test_a_repaired_source_is_restored(lose: Callable[[Path], int], tmp_path: Path) -> None:
    source = make(tmp_path / "source")
    end = lose(source / "t-0")
    claim(source, recovery_point=END, replication=END)
    repair_into(plan_for(source), str(tmp_path / "repaired"))
    assert cut(tmp_path / "repaired", tmp_path / "new", ALL) == end


def test_the_command_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = make(tmp_path / "source")
    no_log(source / "t-0")
    claim(source, replication=END)
    arguments = ["log", "restore", str(source), "-o", str(tmp_path / "new"), "--at", "2033-01-01T00:00:00Z"]
    assert run(arguments) == 1
    assert f"the log ends at offset 0, but the high watermark checkpoint has {END}" in capsys.readouterr().err
