"""Conversion in place: the log is complete at every step."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from kwire.errors import CorruptBatch, LogError, OptionError
from kwire.log import LogDirectory
from kwire.log.writing.log_manager import LogManager
from kwire.maintenance.convert import LossRefused, TargetFormat, convert_in_place, examine
from kwire.maintenance.verify import verify_directory
from kwire.records import Compression
from tests.log.expected import Row, read_objects
from tests.storage.faults import Stopped, StoppingFileSystem

NOW = 1_770_000_000_000
ZSTD = TargetFormat(codec=Compression.ZSTD)
OLD = TargetFormat(magic=1, codec=Compression.GZIP)
SOME = ("txn-0", "compacted-txn-0", "trimmed-0", "__cluster_metadata-0")


@pytest.fixture
def source(kafka_logs: dict[str, Path]) -> LogDirectory:
    return LogDirectory(kafka_logs["modern"] / "data")


def copy(source: LogDirectory, target: Path, *names: str) -> Path:
    target.mkdir()
    for file in Path(source.url).iterdir():
        if file.is_file() or file.name in names:
            (shutil.copy2 if file.is_file() else shutil.copytree)(file, target / file.name)
    return target


def codecs(path: Path, key: tuple[str, int]) -> set[tuple[int, str]]:
    return {
        (b.magic, b.compression.text) for _, b in LogDirectory(path)[key].batches() if not b.is_control and b.count != 0
    }


def rows(path: Path, key: tuple[str, int], isolation: str = "read_uncommitted") -> list[Row]:
    return read_objects(LogDirectory(path)[key], isolation=isolation)


def test_the_converted_log_reads_the_same(source: LogDirectory, tmp_path: Path) -> None:
    path = copy(source, tmp_path / "data", *SOME)
    keys = [("compacted-txn", 0), ("trimmed", 0), ("txn", 0)]
    reported: list[int] = []
    done = convert_in_place(path, ZSTD, [*keys, ("__cluster_metadata", 0)], now_ms=NOW, progress=reported.append)
    assert [(each.topic, each.partition) for each in done] == keys
    new = LogDirectory(path)
    assert new.is_clean_shutdown
    for key in keys:
        before, after = source[key], new[key]
        assert codecs(path, key) == {(2, "zstd")}
        for isolation in ("read_uncommitted", "read_committed"):
            assert rows(path, key, isolation) == read_objects(before, isolation=isolation)
        assert (after.log_start_offset, after.log_end_offset, after.last_stable_offset) == (
            before.log_start_offset,
            before.log_end_offset,
            before.last_stable_offset,
        )
        assert [s.modified_ms for s in after.segments][: len(before.segments)] == [
            s.modified_ms for s in before.segments
        ]
    assert not [damage for damage in verify_directory(new).damages if "txn-0" in damage.file]
    assert sum(reported) == sum(each.source_bytes for each in done)
    assert not list(path.rglob("*.deleted"))
    assert codecs(path, ("__cluster_metadata", 0)) == {(2, "none")}


def test_below_magic_2_producers_are_dropped_and_the_log_end_kept(source: LogDirectory, tmp_path: Path) -> None:
    path = copy(source, tmp_path / "data", "txn-0")
    with pytest.raises(LossRefused):
        convert_in_place(path, OLD, [("txn", 0)], now_ms=NOW)
    assert rows(path, ("txn", 0)) == read_objects(source["txn", 0])
    (done,) = convert_in_place(path, OLD, [("txn", 0)], accept_loss=True, now_ms=NOW)
    (expected,) = examine(source, OLD, [("txn", 0)])
    assert done.loss == expected.loss
    assert codecs(path, ("txn", 0)) == {(1, "gzip")}
    log = LogDirectory(path)["txn", 0]
    assert (log.log_end_offset, log.last_stable_offset) == (701, 701)
    assert log.leader_epochs == []
    damages = verify_directory(LogDirectory(path)).damages
    (damage,) = [damage for damage in damages if "txn-0" in damage.file and not damage.is_harmless]
    assert "no batch has offsets 700 to 700" in str(damage)  # the marker's; magic 1 has no empty batch for it
    with LogManager.open(path, now_ms=NOW) as manager:
        assert not manager.logs["txn", 0].producers.entries


@pytest.mark.slow
def test_an_interruption_at_any_step_leaves_an_intact_log_and_the_next_run_completes(
    source: LogDirectory, tmp_path: Path
) -> None:
    counting = StoppingFileSystem()
    convert_in_place(copy(source, tmp_path / "counted", "txn-0"), ZSTD, [("txn", 0)], now_ms=NOW, file_system=counting)
    expected = read_objects(source["txn", 0])
    for stop_at in range(3, len(counting.steps), len(counting.steps) // 7):
        path = copy(source, tmp_path / f"data{stop_at}", "txn-0")
        files = StoppingFileSystem(stop_at, torn=True)
        with pytest.raises(Stopped):
            convert_in_place(path, ZSTD, [("txn", 0)], now_ms=NOW, file_system=files)
        assert rows(path, ("txn", 0)) == expected  # as it lies there
        files.lose_unsynced(random.Random(stop_at))
        assert rows(path, ("txn", 0)) == expected  # and after the machine has lost power
        assert not LogDirectory(path).is_clean_shutdown
        with LogManager.open(path, now_ms=NOW):
            pass
        assert rows(path, ("txn", 0)) == expected  # as a broker finds it
        convert_in_place(path, ZSTD, [("txn", 0)], now_ms=NOW)
        assert rows(path, ("txn", 0)) == expected
        assert rows(path, ("txn", 0), "read_committed") == read_objects(source["txn", 0], isolation="read_committed")
        assert codecs(path, ("txn", 0)) == {(2, "zstd")}
        # finishing a swap removes every file of its range that is not part of it, a snapshot too (G-03)
        damages = [damage for damage in verify_directory(LogDirectory(path)).damages if "txn-0" in damage.file]
        assert all(damage.file.endswith(".snapshot") for damage in damages)


def test_already_converted_segments_are_not_rewritten(source: LogDirectory, tmp_path: Path) -> None:
    path = copy(source, tmp_path / "data", "txn-0")
    convert_in_place(path, ZSTD, [("txn", 0)], now_ms=NOW)
    before = {file.name: os.stat(file).st_ino for file in (path / "txn-0").glob("*.log")}
    (done,) = convert_in_place(path, ZSTD, [("txn", 0)], now_ms=NOW)
    assert done.batches == 0
    assert {file.name: os.stat(file).st_ino for file in (path / "txn-0").glob("*.log")} == before


def test_unselected_partitions_stay_byte_for_byte(source: LogDirectory, tmp_path: Path) -> None:
    path = copy(source, tmp_path / "data", *SOME)
    before = {str(file): file.read_bytes() for file in path.rglob("*") if file.is_file()}
    convert_in_place(path, ZSTD, [("txn", 0)], now_ms=NOW)
    own = {"recovery-point-offset-checkpoint", "replication-offset-checkpoint", ".lock"}
    for file in path.rglob("*"):
        if file.is_file() and file.parent.name != "txn-0" and file.name not in own:
            assert file.read_bytes() == before[str(file)], file


def test_the_directory_of_a_running_broker_is_unchanged(source: LogDirectory, tmp_path: Path) -> None:
    path = copy(source, tmp_path / "data", "txn-0")
    with LogManager.open(path, now_ms=NOW), pytest.raises(LogError, match=r"\.lock"):
        convert_in_place(path, ZSTD, [("txn", 0)], now_ms=NOW)
    assert rows(path, ("txn", 0)) == read_objects(source["txn", 0])


def test_only_a_whole_local_directory_is_converted_in_place(source: LogDirectory, tmp_path: Path) -> None:
    path = copy(source, tmp_path / "data", "txn-0")
    with pytest.raises(OptionError, match="a partition directory"):
        convert_in_place(path / "txn-0", ZSTD, [("txn", 0)], now_ms=NOW)
    import fsspec

    fsspec.filesystem("memory").put(str(path), "/in-place", recursive=True)
    with pytest.raises(OptionError, match="not a local directory"):
        convert_in_place("memory://in-place", ZSTD, [("txn", 0)], now_ms=NOW)


def test_damage_stops_the_conversion_and_keeps_the_original(source: LogDirectory, tmp_path: Path) -> None:
    path = copy(source, tmp_path / "data", "txn-0")
    file = path / "txn-0/00000000000000000172.log"
    data = bytearray(file.read_bytes())
    data[5000] ^= 1
    file.write_bytes(data)
    with pytest.raises(CorruptBatch):
        convert_in_place(path, ZSTD, [("txn", 0)], now_ms=NOW)
    assert file.read_bytes() == bytes(data)
