"""Copies beside their source: equal, damaged, and what compaction and retention do to the source meanwhile."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import kwire as kwire_package
from kwire.broker import Broker
from kwire.client import Client
from kwire.client.cluster_logs import ClusterLogs
from kwire.log import LogDirectory
from kwire.log.writing.log_manager import LogManager
from kwire.maintenance.comparison import compare
from kwire.maintenance.pull import pull
from kwire.storage.checkpoints import render_offset_checkpoint
from tests.broker.still import StillBroker
from tests.log.writing import batch
from tests.maintenance.pull.test_pull import create, delete, delete_records, write

NOW_MS = 1_700_000_000_000
Found = list[tuple[str, tuple[int, int] | None]]


def differences(copy: Path, source: str | Path, topic: str | None = None, **options: bool) -> Found:
    opened = kwire_package.open(str(source))
    logs = [log for key, log in LogDirectory(copy).items() if topic in (None, key[0]) and key[0][:2] != "__"]
    compacted = options.get("is_compacted", True)
    return [(each.cause, each.offsets) for each in compare(logs, opened, is_compacted=lambda name: compacted)]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(data_dir=tmp_path / "source") as started:
        yield started


@pytest.fixture
def url(broker: Broker, tmp_path: Path) -> str:
    """The URL of a cluster with 20 batches of 10 records in `orders`, which is copied to `copy`."""
    create(broker, "orders")
    with Client(broker.bootstrap_servers) as client:
        write(client, "orders", 20)
        pull(client, str(tmp_path / "copy"))
    return f"kafka://{broker.bootstrap_servers}"


@pytest.mark.sampled
@pytest.mark.parametrize("archive", ["modern", "legacy"])
def test_copies_of_every_format_are_equal(archive: str, kafka_logs: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(kafka_logs[archive] / "data", tmp_path / "data")
    with StillBroker(data_dir=tmp_path / "data") as started:
        assert differences(kafka_logs[archive] / "data", f"kafka://{started.bootstrap_servers}") == []
    assert differences(kafka_logs[archive] / "data", tmp_path / "data") == []


def starts(folder: Path) -> list[int]:
    """Return the positions of the batches."""
    return [batch.position for _, batch in LogDirectory(folder)["orders", 0].batches()]


def segment(folder: Path) -> Path:
    return folder / "orders-0" / f"{0:020}.log"


@pytest.mark.parametrize(
    ("position", "what"), [(12, "leader epoch"), (100, "that of the copy is damaged"), (45, "that of the copy is")]
)
def test_a_changed_byte_is_found_at_its_offsets(url: str, tmp_path: Path, position: int, what: str) -> None:
    data = bytearray(segment(tmp_path / "copy").read_bytes())
    data[starts(tmp_path / "copy")[7] + position] ^= 1
    segment(tmp_path / "copy").write_bytes(data)
    ((cause, offsets),) = differences(tmp_path / "copy", url)
    assert what in cause
    assert offsets == (70, 79)


def test_many_differences_are_listed_up_to_a_limit(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kwire.maintenance.comparison.FINDINGS", 2)
    data = bytearray(segment(tmp_path / "copy").read_bytes())
    for start in starts(tmp_path / "copy")[::2]:
        data[start + 100] ^= 1
    segment(tmp_path / "copy").write_bytes(data)
    found = differences(tmp_path / "copy", url)
    assert [offsets for _, offsets in found] == [(0, 9), (20, 29), (40, 49)]
    assert found[-1][0] == "more differences follow, which are not listed"


def test_batches_that_one_side_lacks_are_found(url: str, tmp_path: Path) -> None:
    data = segment(tmp_path / "copy").read_bytes()
    at = starts(tmp_path / "copy")
    shutil.copytree(tmp_path / "copy", tmp_path / "other")
    segment(tmp_path / "copy").write_bytes(data[: at[3]] + data[at[5] :])
    assert differences(tmp_path / "copy", url) == [("missing in the copy", (30, 49))]
    lacking = differences(tmp_path / "other", tmp_path / "copy", is_compacted=False)
    assert lacking == [("missing in the source", (30, 49))]


def test_damage_that_ends_the_comparison_is_a_finding(url: str, tmp_path: Path) -> None:
    data = bytearray(segment(tmp_path / "copy").read_bytes())
    data[8:12] = b"\0\0\0\1"  # no batch is this small
    segment(tmp_path / "copy").write_bytes(data)
    found = differences(tmp_path / "copy", url)
    assert "not compared to its end: " in found[-1][0]


def test_records_that_only_the_copy_has_are_found(url: str, tmp_path: Path) -> None:
    shutil.copytree(tmp_path / "copy", tmp_path / "shorter")
    with LogManager.open(tmp_path / "shorter", now_ms=NOW_MS) as manager:
        manager.truncate_to("orders", 0, 150, now_ms=NOW_MS)
    assert differences(tmp_path / "copy", tmp_path / "shorter") == [("the source ends at offset 150", (150, 199))]


def test_retention_and_new_records_of_the_source_are_no_difference(url: str, broker: Broker, tmp_path: Path) -> None:
    delete_records(broker, "orders", 35)
    with Client(broker.bootstrap_servers) as client:
        write(client, "orders", 3)
    assert differences(tmp_path / "copy", url) == []


def test_retention_during_the_comparison_is_no_difference(url: str, broker: Broker, tmp_path: Path) -> None:
    logs = [log for key, log in LogDirectory(tmp_path / "copy").items() if key[0] == "orders"]
    with ClusterLogs(url, max_partition_fetch_bytes=300) as source:
        overtaken = False

        def advance(n: int) -> None:
            nonlocal overtaken
            if not overtaken:
                overtaken = True
                delete_records(broker, "orders", 150)

        assert list(compare(logs, source, is_compacted=lambda topic: False, advance=advance)) == []
        assert overtaken
        assert any("retention deleted offsets" in each.reason for each in source.ignored)


def test_another_topic_of_the_same_name_and_a_missing_one_are_found(url: str, broker: Broker, tmp_path: Path) -> None:
    delete(broker, "orders")
    ((cause, _),) = differences(tmp_path / "copy", url)
    assert "the topic was deleted, or the account may not see it" in cause
    create(broker, "orders")
    ((cause, _),) = differences(tmp_path / "copy", url)
    assert "deleted and created again: its id is " in cause


def test_a_copy_without_offsets_is_not_compared_with_a_batch_around_its_end(tmp_path: Path) -> None:
    """Both logs end below or begin above all records of the other."""
    source, copy = tmp_path / "source" / "orders-0", tmp_path / "copy" / "orders-0"
    for folder in (source, copy):
        folder.mkdir(parents=True)
    (source / f"{5:020}.log").write_bytes(batch(*[b"x"] * 10, base_offset=5))
    (copy / f"{10:020}.log").touch()
    assert differences(tmp_path / "copy", tmp_path / "source") == []


@pytest.mark.parametrize(("start", "found"), [(9, [(0, 9)]), (10, [])])
def test_a_batch_is_compared_that_ends_at_the_log_start_offset(
    start: int, found: list[tuple[int, int]], tmp_path: Path
) -> None:
    for name, value in (("source", b"x"), ("copy", b"y")):
        folder = tmp_path / name / "orders-0"
        folder.mkdir(parents=True)
        data = batch(*[value] * 10) + batch(b"z", base_offset=10)
        (folder / f"{0:020}.log").write_bytes(data)
        (folder.parent / "log-start-offset-checkpoint").write_bytes(render_offset_checkpoint({("orders", 0): start}))
    assert [offsets for _, offsets in differences(tmp_path / "copy", tmp_path / "source")] == found
