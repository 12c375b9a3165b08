"""A log directory: created, locked, checkpointed, closed and reopened."""

from __future__ import annotations

import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from kwire.errors import LogError, OptionError
from kwire.log import LogConfig, LogDirectory, LogManager
from kwire.storage.checkpoints import parse_offset_checkpoint, parse_properties
from tests.log.writing import NOW, SMALL, numbered, records_of
from tests.storage.faults import Stopped, StoppingFileSystem
from tests.waiting import HANG_S


def opened(directory: Path, **options: object) -> LogManager:
    options = {"now_ms": NOW, "default_config": SMALL, **options}
    return LogManager.open(directory, **options)  # type: ignore[arg-type]


def offsets(directory: Path, name: str) -> dict[tuple[str, int], int]:
    return parse_offset_checkpoint((directory / f"{name}-offset-checkpoint").read_bytes())


@pytest.mark.requirement("F-01", "G-01", "G-14")
def test_a_directory_is_created_closed_and_reopened(tmp_path: Path) -> None:
    topic_id = uuid.uuid4()
    with opened(tmp_path / "new", node_id=3) as manager:
        log = manager.create("a.b_c-1", 2, now_ms=NOW, topic_id=topic_id)
        log.append(numbered(0, 5), now_ms=NOW)
        manager.create("other", 0, now_ms=NOW)
    data = tmp_path / "new"
    assert (data / ".kafka_cleanshutdown").read_bytes() == b'{"version":0,"brokerEpoch":-1}'
    assert offsets(data, "recovery-point") == {("a.b_c-1", 2): 5, ("other", 0): 0}
    assert offsets(data, "replication") == {("a.b_c-1", 2): 5, ("other", 0): 0}
    assert offsets(data, "log-start") == {}
    properties = parse_properties((data / "meta.properties").read_bytes())
    assert (properties["node.id"], properties["version"]) == ("3", "1")
    assert len(properties["cluster.id"]) == len(properties["directory.id"]) == 22

    with opened(data) as manager:
        assert manager.was_clean
        assert not (data / ".kafka_cleanshutdown").exists()
        assert (manager.node_id, manager.cluster_id) == (3, properties["cluster.id"])
        assert manager.logs["a.b_c-1", 2].topic_id == topic_id
        assert len(records_of(manager.logs["a.b_c-1", 2])) == 5
    assert LogDirectory(data)["a.b_c-1", 2].high_watermark == 5


def test_the_directory_of_another_node_is_rejected(tmp_path: Path) -> None:
    opened(tmp_path, node_id=3, cluster_id="c").close()
    with pytest.raises(LogError, match="belongs to node 3, not to node 4"):
        opened(tmp_path, node_id=4)
    with pytest.raises(LogError, match="belongs to cluster c, not to d"):
        opened(tmp_path, cluster_id="d")
    opened(tmp_path, node_id=3, cluster_id="c").close()
    (tmp_path / "meta.properties").write_bytes(b"version=1\n")
    with pytest.raises(LogError, match=r"node\.id and broker\.id are missing"):
        opened(tmp_path)


@pytest.mark.requirement("G-01", "G-14")
def test_a_failed_open_keeps_the_directory_clean(tmp_path: Path) -> None:
    with opened(tmp_path) as manager:
        manager.create("a", 0, now_ms=NOW).append(numbered(0, 5), now_ms=NOW)
    (tmp_path / "not a partition").mkdir()
    with pytest.raises(LogError, match="not named like a partition"):
        opened(tmp_path)
    (tmp_path / "not a partition").rmdir()
    with opened(tmp_path) as manager:
        assert manager.was_clean
        assert len(records_of(manager.logs["a", 0])) == 5


@pytest.mark.requirement("G-01")
def test_a_crash_while_opening_is_unclean(tmp_path: Path) -> None:
    with opened(tmp_path) as manager:
        manager.create("a", 0, now_ms=NOW)
    with pytest.raises(Stopped):
        opened(tmp_path, file_system=StoppingFileSystem(2))
    manager = opened(tmp_path)
    assert not manager.was_clean
    manager.close()


@pytest.mark.requirement("F-03")
@pytest.mark.parametrize("name", ["recovery-point", "log-start"])
def test_a_corrupt_checkpoint_is_empty(tmp_path: Path, name: str) -> None:
    manager = opened(tmp_path)
    log = manager.create("a", 0, now_ms=NOW)
    log.append(numbered(0, 5), now_ms=NOW)
    log.delete_records(2)
    log.flush()
    manager.write_checkpoints()
    assert offsets(tmp_path, "log-start") == {("a", 0): 2}
    manager.close(clean=False)
    (tmp_path / f"{name}-offset-checkpoint").write_bytes(b"1\nbroken")
    with opened(tmp_path) as manager:
        log = manager.logs["a", 0]
        assert log.log_start_offset == (0 if name == "log-start" else 2)
        assert log.log_end_offset == 5
        assert log.recovery_point == (0 if name == "recovery-point" else 5)


@pytest.mark.requirement("F-01")
def test_only_changed_checkpoints_are_written(tmp_path: Path) -> None:
    files = StoppingFileSystem()
    manager = opened(tmp_path, file_system=files)
    log = manager.create("a", 0, now_ms=NOW)
    manager.write_checkpoints()
    done = len(files.steps)
    manager.write_checkpoints()
    assert len(files.steps) == done
    log.append(numbered(0, 5), now_ms=NOW)
    manager.write_checkpoints()
    assert offsets(tmp_path, "replication") == {("a", 0): 5}
    assert offsets(tmp_path, "recovery-point") == {("a", 0): 0}
    manager.close()


def test_partitions_are_created_once_with_valid_names(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with opened(data) as manager:
        manager.create("a", 0, now_ms=NOW)
        with pytest.raises(OptionError, match="exists"):
            manager.create("a", 0, now_ms=NOW)
        for topic in ("../x", "a/b", "", ".", ".."):
            with pytest.raises(OptionError, match="topic name"):
                manager.create(topic, 0, now_ms=NOW)
        with pytest.raises(OptionError, match="no partition"):
            manager.delete("b", 0, now_ms=NOW)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
    assert [path.name for path in data.iterdir() if path.is_dir()] == ["a-0"]


@pytest.mark.requirement("F-63")
@pytest.mark.parametrize("topic", ["t", "x" * 249])
def test_a_deleted_partition_is_removed_after_a_delay(tmp_path: Path, topic: str) -> None:
    manager = opened(tmp_path)
    manager.create(topic, 0, now_ms=NOW).append(numbered(0, 5), now_ms=NOW)
    manager.delete(topic, 0, now_ms=NOW)
    (marked,) = tmp_path.glob("*-delete")
    assert len(marked.name) <= 255
    again = manager.create(topic, 0, now_ms=NOW)
    assert again.log_end_offset == 0
    manager.apply_retention(NOW + 59_999)
    assert marked.exists()
    manager.apply_retention(NOW + 60_000)
    assert not marked.exists()
    manager.delete(topic, 0, now_ms=NOW)
    manager.close()
    with opened(tmp_path) as manager:
        assert manager.logs == {}
        manager.apply_retention(NOW + 60_000)
    assert not list(tmp_path.glob("*-delete"))


@pytest.mark.parametrize("is_restarted", [False, True], ids=["at once", "after a crash"])
def test_a_partition_does_not_inherit_the_checkpoints_of_a_deleted_one(tmp_path: Path, is_restarted: bool) -> None:
    manager = opened(tmp_path)
    for number in range(3):
        log = manager.create("t", number, now_ms=NOW)
        log.append(numbered(0, 5), now_ms=NOW)
        log.delete_records(3)
    manager.write_checkpoints()
    for number in range(3):
        manager.delete("t", number, now_ms=NOW)
    if is_restarted:
        manager.close(clean=False)
        manager = opened(tmp_path)
    again = manager.create("t", 0, now_ms=NOW)
    assert offsets(tmp_path, "log-start") == offsets(tmp_path, "replication") == {}
    again.append(numbered(0, 2), now_ms=NOW)
    manager.close(clean=False)
    with opened(tmp_path) as manager:
        assert manager.logs["t", 0].log_start_offset == 0
        assert manager.logs["t", 0].log_end_offset == 2


def test_topic_configs_apply_to_their_partitions(tmp_path: Path) -> None:
    small = SMALL.replace(segment_bytes=200)
    with opened(tmp_path, configs={"a": small}) as manager:
        log = manager.create("a", 0, now_ms=NOW)
        assert log.config == small
        manager.set_config("a", LogConfig(retention_ms=5))
        assert log.config.retention_ms == 5
        manager.set_config("a", None)
        assert log.config == SMALL
        assert manager.create("b", 0, now_ms=NOW, config=small).config == small
        assert manager.config_of("b") == small


@pytest.mark.requirement("F-62", "P-07")
def test_retention_and_expiry_apply_to_all_partitions(tmp_path: Path) -> None:
    with opened(tmp_path, default_config=SMALL.replace(retention_ms=1000)) as manager:
        for topic in ("a", "b"):
            log = manager.create(topic, 0, now_ms=NOW)
            for i in range(20):
                log.append(numbered(i * 10, 10, 60), now_ms=NOW)
        assert manager.apply_retention(NOW) == {}
        gone = manager.apply_retention(NOW + 10_000)
        assert set(gone) == {("a", 0), ("b", 0)}
        assert manager.logs["a", 0].log_start_offset == 200
        manager.apply_retention(NOW + 10_000 + 60_000)
    assert not list(tmp_path.glob("*/*.deleted"))


@pytest.mark.requirement("G-11")
def test_due_partitions_are_flushed(tmp_path: Path) -> None:
    with opened(tmp_path, configs={"often": SMALL.replace(flush_ms=1000)}) as manager:
        often, seldom = (manager.create(topic, 0, now_ms=NOW) for topic in ("often", "seldom"))
        for log in (often, seldom):
            for i in range(12):
                log.append(numbered(i * 10, 10, 60), now_ms=NOW)
        manager.flush_due(NOW + 999)
        assert often.recovery_point == seldom.recovery_point == seldom.segments.active.base_offset > 0
        manager.flush_due(NOW + 1000)
        assert (often.recovery_point, seldom.recovery_point) == (120, seldom.segments.active.base_offset)


def test_the_metadata_log_is_unchanged(tmp_path: Path) -> None:
    opened(tmp_path).close()
    own = tmp_path / "__cluster_metadata-0"
    own.mkdir()
    (own / f"{0:020d}.log").write_bytes(b"not looked at")
    (tmp_path / "a-0.0123456789abcdef0123456789abcdef-stray").mkdir()
    (tmp_path / "remote-log-index-cache").mkdir()
    with opened(tmp_path) as manager:
        assert manager.logs == {}
        assert manager.ignored == ["__cluster_metadata-0", "a-0.0123456789abcdef0123456789abcdef-stray"]
    assert (own / f"{0:020d}.log").read_bytes() == b"not looked at"


@pytest.mark.requirement("F-04")
def test_truncation_is_checkpointed_immediately(tmp_path: Path) -> None:
    with opened(tmp_path) as manager:
        log = manager.create("a", 0, now_ms=NOW)
        log.append(numbered(0, 5), now_ms=NOW)
        log.append(numbered(5, 5), now_ms=NOW)
        log.flush()
        manager.write_checkpoints()
        assert manager.truncate_to("a", 0, 5, now_ms=NOW)
        assert offsets(tmp_path, "recovery-point") == {("a", 0): 5}
        manager.cleaner_checkpoints.put(("a", 0), 5)
        assert not manager.truncate_to("a", 0, 5, now_ms=NOW)
        log.append(numbered(5, 5), now_ms=NOW)
        manager.cleaner_checkpoints.put(("a", 0), 10)
        assert manager.truncate_to("a", 0, 5, now_ms=NOW)
        assert manager.cleaner_checkpoints.get(("a", 0)) == 5


@pytest.mark.slow
def test_many_partitions_share_few_file_descriptors(tmp_path: Path) -> None:
    """40 partitions of three files each, more than this process may open."""
    program = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
from kwire.log import LogManager
from tests.log.writing import NOW, SMALL, numbered, records_of
with LogManager.open(sys.argv[1], now_ms=NOW, default_config=SMALL) as manager:
    for i in range(40):
        manager.create("t", i, now_ms=NOW)
    for round in range(8):
        for log in manager.logs.values():
            log.append(numbered(round * 10, 10, 80), now_ms=NOW)
    assert all(len(records_of(log)) == 80 for log in manager.logs.values())
    assert all(len(log.segments) > 1 for log in manager.logs.values())
with LogManager.open(sys.argv[1], now_ms=NOW, default_config=SMALL) as manager:
    assert manager.was_clean and len(manager.logs) == 40
"""
    subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], check=True, cwd=Path(__file__).parents[2], timeout=HANG_S
    )
