"""Conversion of log directories: contents, interruptions, rejections."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kwire.errors import CorruptBatch, LogError, OptionError
from kwire.log import LogDirectory
from kwire.log.files.damage import Severity
from kwire.log.writing.log_manager import LogManager
from kwire.maintenance.convert import LossRefused, TargetFormat, convert_directory, examine
from kwire.maintenance.verify import verify_directory
from kwire.records import Compression
from kwire.records.columns.reader import COLUMNS
from kwire.storage.checkpoints import parse_offset_checkpoint
from tests.log.expected import ISOLATIONS, read_objects
from tests.maintenance.verify.damaging import tree
from tests.storage.faults import Stopped, StoppingFileSystem

NOW = 1_770_000_000_000
ZSTD = TargetFormat(codec=Compression.ZSTD)
OLD = TargetFormat(magic=1, codec=Compression.SNAPPY)
SOME = ("txn-0", "compacted-txn-0", "trimmed-0", "empty-0", "__cluster_metadata-0")


@pytest.fixture
def some(kafka_logs: dict[str, Path], tmp_path: Path) -> LogDirectory:
    """A log directory with the partitions in SOME."""
    source, target = kafka_logs["modern"] / "data", tmp_path / "source"
    target.mkdir()
    for file in source.iterdir():
        if file.is_file() or file.name in SOME:
            (shutil.copy2 if file.is_file() else shutil.copytree)(file, target / file.name)
    return LogDirectory(target)


def same_log(old: LogDirectory, new: LogDirectory, key: tuple[str, int]) -> None:
    """Check that clients see no difference."""
    before, after = old[key], new[key]
    assert (after.log_start_offset, after.log_end_offset) == (before.log_start_offset, before.log_end_offset)
    assert after.last_stable_offset == before.last_stable_offset
    assert [s.base_offset for s in after.segments] == [s.base_offset for s in before.segments]
    assert [s.modified_ms for s in after.segments] == [s.modified_ms for s in before.segments]
    assert after.aborted_transactions() == before.aborted_transactions()
    assert after.topic_id == before.topic_id
    assert after.leader_epochs == [e for e in before.leader_epochs if e.start_offset < before.log_end_offset]
    for isolation in ISOLATIONS:
        tables = [log.read_arrow(isolation=isolation, columns=COLUMNS).read_all() for log in (before, after)]
        assert tables[0].equals(tables[1])


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("archive", ["modern", "legacy"])
def test_a_directory_with_another_codec_reads_the_same(
    archive: str, kafka_logs: dict[str, Path], tmp_path: Path
) -> None:
    source = LogDirectory(kafka_logs[archive] / "data")
    target = TargetFormat(magic=2, codec=Compression.ZSTD) if archive == "legacy" else ZSTD
    done = convert_directory(source, str(tmp_path / "new"), target, list(source), whole=True, now_ms=NOW)
    new = LogDirectory(tmp_path / "new")
    assert list(new) == list(source)
    assert new.is_clean_shutdown
    assert new.meta_properties == source.meta_properties
    for each in done:
        key = each.topic, each.partition
        assert not each.loss
        assert each.target_bytes == new[key].size_bytes
        if archive == "modern":
            same_log(source, new, key)
            continue
        names = [name for name in COLUMNS if name != "timestampType"]
        tables = [directory[key].read_arrow(columns=names).read_all() for directory in (source, new)]
        assert tables[0].equals(tables[1])
    ends = {(each.topic, each.partition): each.log_end_offset for each in done}
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        assert parse_offset_checkpoint((tmp_path / "new" / name).read_bytes()) == ends
    if archive == "modern":
        metadata = {path.name: path.read_bytes() for path in (tmp_path / "new/__cluster_metadata-0").iterdir()}
        was = kafka_logs["modern"] / "data/__cluster_metadata-0"
        assert metadata == {path.name: path.read_bytes() for path in was.iterdir()}
    assert not os.path.lexists(tmp_path / "new.part")
    assert not os.path.lexists(tmp_path / "new.part.json")


UNREACHABLE = "no batch has offsets"
"""Below magic 2 no empty batch can take the place of the transaction markers at the end of a log."""


@pytest.mark.slow
def test_the_output_verifies_without_findings(some: LogDirectory, tmp_path: Path) -> None:
    for number, target in enumerate((ZSTD, OLD, TargetFormat(magic=0, codec=Compression.NONE))):
        path = tmp_path / f"new{number}"
        convert_directory(some, str(path), target, list(some), whole=True, accept_loss=True, now_ms=NOW)
        damages = verify_directory(LogDirectory(path)).damages
        found = [str(each) for each in damages if each.severity != Severity.NOTE]
        assert [each for each in found if target.magic == 2 or UNREACHABLE not in each] == []
        with LogManager.open(path, now_ms=NOW) as opened:
            assert opened.was_clean
            for key, log in opened.logs.items():
                assert (log.log_start_offset, log.log_end_offset) == (
                    some[key].log_start_offset,
                    some[key].log_end_offset,
                )


def test_a_dry_run_reports_the_result(some: LogDirectory, tmp_path: Path) -> None:
    reported: list[int] = []
    expected = examine(some, OLD, list(some), progress=reported.append)
    assert sum(reported) == sum(some[each.topic, each.partition].size_bytes for each in expected)
    done = convert_directory(some, str(tmp_path / "new"), OLD, list(some), whole=True, accept_loss=True, now_ms=NOW)
    assert done == expected
    assert [(each.topic, each.partition) for each in done] == [
        ("compacted-txn", 0), ("empty", 0), ("trimmed", 0), ("txn", 0),
    ]  # fmt: skip


def test_the_log_end_is_kept_when_the_last_batches_are_dropped(some: LogDirectory, tmp_path: Path) -> None:
    """The next record must not get an offset that consumers have already committed."""
    convert_directory(some, str(tmp_path / "new"), OLD, [("txn", 0)], whole=False, accept_loss=True, now_ms=NOW)
    before, after = some["txn", 0], LogDirectory(tmp_path / "new")["txn", 0]
    assert (
        (after.log_start_offset, after.log_end_offset) == (before.log_start_offset, before.log_end_offset) == (0, 701)
    )
    assert next(reversed(read_objects(after))).offset < 700
    committed = {(r.offset, r.key, r.value, r.timestamp) for r in read_objects(before, isolation="read_committed")}
    assert committed <= {(r.offset, r.key, r.value, r.timestamp) for r in read_objects(after)}
    assert list(LogDirectory(tmp_path / "new")) == [("txn", 0)]
    assert LogDirectory(tmp_path / "new").meta_properties == {}


def test_losses_are_rejected_before_anything_is_written(some: LogDirectory, tmp_path: Path) -> None:
    with pytest.raises(LossRefused, match=r"loses \d+ records with headers, \d+ control batches"):
        convert_directory(some, str(tmp_path / "new"), OLD, list(some), whole=True, now_ms=NOW)
    assert [path.name for path in tmp_path.iterdir() if path.name != "source"] == []


def test_an_existing_target_is_unchanged(some: LogDirectory, tmp_path: Path) -> None:
    target = tmp_path / "mine"
    target.mkdir()
    (target / "file").write_text("x")
    with pytest.raises(OptionError, match="not an empty directory"):
        convert_directory(some, str(target), ZSTD, list(some), whole=True, now_ms=NOW)
    with pytest.raises(OptionError, match="no such directory"):
        convert_directory(some, str(tmp_path / "a" / "b"), ZSTD, list(some), whole=True, now_ms=NOW)
    (target / "file").unlink()
    convert_directory(some, str(target), ZSTD, list(some), whole=True, now_ms=NOW)
    assert len(LogDirectory(target)) == len(SOME)


@pytest.mark.slow
def test_an_interrupted_run_resumes(some: LogDirectory, tmp_path: Path) -> None:
    convert_directory(some, str(tmp_path / "whole"), ZSTD, list(some), whole=True, now_ms=NOW)
    expected = tree(tmp_path / "whole")
    counting = StoppingFileSystem()
    convert_directory(some, str(tmp_path / "counted"), ZSTD, list(some), whole=True, now_ms=NOW, file_system=counting)
    kept_some = 0
    for stop_at in range(2, len(counting.steps), len(counting.steps) // 5):
        target = tmp_path / f"new{stop_at}"
        files = StoppingFileSystem(stop_at, torn=True)
        with pytest.raises(Stopped):
            convert_directory(some, str(target), ZSTD, list(some), whole=True, now_ms=NOW, file_system=files)
        files.lose_unsynced(random.Random(stop_at))
        if target.exists():  # stopped after the rename: complete
            assert tree(target) == expected
            continue
        state = Path(f"{target}.part.json")
        if state.exists():
            kept_some += 0 < len(json.loads(state.read_text())["partitions"]) < 4
        elif Path(f"{target}.part").exists():
            shutil.rmtree(f"{target}.part")  # a part of which nothing is known is not ours to remove
        convert_directory(some, str(target), ZSTD, list(some), whole=True, now_ms=NOW)
        assert tree(target) == expected, stop_at
        assert not list(tmp_path.glob("*.part*"))
    assert kept_some > 0


def test_the_state_of_another_conversion_is_rejected(some: LogDirectory, tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        convert_directory(
            some, str(tmp_path / "new"), ZSTD, list(some), whole=True, now_ms=NOW, file_system=StoppingFileSystem(300)
        )
    with pytest.raises(OptionError, match=r"new\.part: left by another conversion"):
        convert_directory(some, str(tmp_path / "new"), OLD, list(some), whole=True, accept_loss=True, now_ms=NOW)


def test_a_changed_source_is_converted_again(some: LogDirectory, tmp_path: Path) -> None:
    class UntilTxn(StoppingFileSystem):
        def make_directory(self, path: str) -> None:
            if path.endswith("txn-0") and "compacted" not in path:
                raise Stopped
            super().make_directory(path)

    with pytest.raises(Stopped):
        convert_directory(some, str(tmp_path / "new"), ZSTD, list(some), whole=True, now_ms=NOW, file_system=UntilTxn())
    done = json.loads((tmp_path / "new.part.json").read_text())["partitions"]
    assert list(done) == ["compacted-txn-0", "empty-0", "trimmed-0"]
    (tmp_path / "source/trimmed-0/00000000000000000982.log").unlink()
    again = LogDirectory(tmp_path / "source")
    convert_directory(again, str(tmp_path / "new"), ZSTD, list(again), whole=True, now_ms=NOW)
    assert LogDirectory(tmp_path / "new")["trimmed", 0].log_end_offset == 982


def test_parallel_processes_give_the_same_result(some: LogDirectory, tmp_path: Path) -> None:
    reported: list[int] = []
    convert_directory(some, str(tmp_path / "one"), ZSTD, list(some), whole=True, now_ms=NOW)
    convert_directory(
        some, str(tmp_path / "two"), ZSTD, list(some), whole=True, now_ms=NOW, jobs=2, progress=reported.append
    )
    assert tree(tmp_path / "one") == tree(tmp_path / "two")
    assert sum(reported) == sum(log.size_bytes for key, log in some.items() if key[0] != "__cluster_metadata")


def test_a_full_disk_is_a_log_error_without_an_output_directory(
    some: LogDirectory, tmp_path: Path, limit_file_size: Callable[[], None]
) -> None:
    limit_file_size()
    with pytest.raises(LogError, match=r"new\.part/.*: cannot be (written|resized)"):
        convert_directory(
            some, str(tmp_path / "new"), TargetFormat(codec=Compression.NONE), list(some), whole=True, now_ms=NOW
        )
    assert not (tmp_path / "new").exists()


def test_damage_is_reported_and_no_output_is_created(some: LogDirectory, tmp_path: Path) -> None:
    path = tmp_path / "source/txn-0/00000000000000000172.log"
    data = bytearray(path.read_bytes())
    data[5000] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptBatch, match=r"00000000000000000172\.log"):
        convert_directory(some, str(tmp_path / "new"), ZSTD, list(some), whole=True, now_ms=NOW)
    assert not (tmp_path / "new").exists()
