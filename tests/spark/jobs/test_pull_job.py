"""jobs.pull: the copy of kwire log pull, made by tasks."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.maintenance.pull.test_pull import batches, create, delete, write
from tests.maintenance.pull.test_store_target import stored_batches
from tests.object_store import ObjectStore
from tests.spark.jobs.test_jobs import items_of_jobs as items_of_jobs
from tests.storage.faults import Stopped

from kwire.broker import Broker
from kwire.client import Client
from kwire.errors import JobFailed, LogError, OptionError
from kwire.log import LogDirectory
from kwire.maintenance.pull import pull
from kwire.maintenance.pull.manifest import manifest_damages
from kwire.maintenance.pull.store_target import StoreTarget
from kwire.maintenance.verify import verify_directory
from kwire.spark import jobs
from kwire.spark.jobs import runner
from kwire.spark.jobs.runner import Item, Outcome
from kwire.storage.writable_store import open_writable_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(data_dir=tmp_path / "source") as started:
        yield started


@pytest.fixture
def client(broker: Broker) -> Iterator[Client]:
    with Client(broker.bootstrap_servers) as opened:
        yield opened


@pytest.fixture(autouse=True)
def _staging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def fill(broker: Broker, client: Client) -> None:
    create(broker, "orders", 3)
    create(broker, "empty")
    for partition in range(2):
        write(client, "orders", 20, partition)


def source_of(broker: Broker) -> str:
    return f"kafka://{broker.bootstrap_servers}"


@pytest.mark.slow
def test_a_job_and_the_command_continue_each_others_copies(
    broker: Broker, client: Client, tmp_path: Path, spark: SparkSession, items_of_jobs: list[list[str]]
) -> None:
    fill(broker, client)
    target = tmp_path / "copy"
    result = jobs.pull(spark, source_of(broker), str(target), groups=False)
    assert result.is_complete
    assert sorted(items_of_jobs[0]) == ["empty-0", "orders-0", "orders-1", "orders-2"]
    assert stored_batches(str(target)) == batches(tmp_path / "source")
    assert (
        result.total("size_bytes")
        == result.total("copied_bytes")
        == 2 * (target / "orders-0").glob("*.log").__next__().stat().st_size
    )
    assert [path.name for path in target.glob("kwire-pull*")] == []
    write(client, "orders", 5)
    with Client(broker.bootstrap_servers) as other:
        assert pull(other, str(target)).copied_bytes < 2000  # in a log directory, as if a broker had been killed
    write(client, "orders", 5, partition=2)
    again = jobs.pull(spark, source_of(broker), str(target), groups=False)
    assert items_of_jobs[-1] == ["orders-2"]
    assert again.resumed == 3
    assert stored_batches(str(target)) == batches(tmp_path / "source")
    assert [each for each in verify_directory(LogDirectory(target)).damages if not each.is_harmless] == []
    assert manifest_damages(str(target), set(LogDirectory(target))) == []


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The names of the items of each job, whose tasks run in this process, where a test has changed a limit."""
    ran: list[list[str]] = []

    def on_spark(session: Any, items: Sequence[Item], work: Any, journal: Any) -> dict[str, Outcome]:
        ran.append([item.name for item in items])
        sent = pickle.loads(pickle.dumps((tuple(items), work, journal)))
        return {
            items[number].name: Outcome(item=items[number], row=row and json.loads(row), problem=problem)
            for number, row, problem in runner.do_task(range(len(items)), *sent)
        }

    monkeypatch.setattr(runner, "on_spark", on_spark)
    return ran


@pytest.mark.slow
def test_a_job_that_was_killed_continues_without_reading_what_its_tasks_have_copied(
    broker: Broker,
    client: Client,
    tmp_path: Path,
    spark: SparkSession,
    in_process: list[list[str]],
    object_store: ObjectStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kwire.maintenance.pull.store_target.SEGMENT_BYTES", 100_000)
    object_store.fs.mkdir("copies")
    fill(broker, client)
    write(client, "orders", 3000)
    target, options = "s3://copies/one", object_store.options
    adopt = StoreTarget.adopt

    def killed(self: StoreTarget, *rest: Any) -> None:
        raise Stopped

    monkeypatch.setattr(StoreTarget, "adopt", killed)
    with pytest.raises(Stopped):
        jobs.pull(spark, source_of(broker), target, groups=False, storage=options)
    monkeypatch.setattr(StoreTarget, "adopt", adopt)
    names = {entry.name for entry in open_writable_store(target, options).list("")}
    assert {"kwire-pull-orders-0.json", "kwire-pull-orders-1.json"} <= names
    object_store.requests.clear()
    write(client, "orders", 1)
    result = jobs.pull(spark, source_of(broker), target, groups=False, storage=options)
    assert result.is_complete
    assert in_process[-1] == ["orders-0"]
    read = [each for each in object_store.requests if each.startswith("GET") and each.endswith(".log")]
    assert len(read) == 1  # the open segment
    assert stored_batches(target, **options) == batches(tmp_path / "source")
    names = {entry.name for entry in open_writable_store(target, options).list("")}
    assert [name for name in names if name.startswith("kwire-pull")] == []


def test_what_happens_to_topics_is_as_in_the_command(
    broker: Broker, client: Client, tmp_path: Path, spark: SparkSession, items_of_jobs: list[list[str]]
) -> None:
    fill(broker, client)
    target = str(tmp_path / "copy")
    jobs.pull(spark, source_of(broker), target, groups=False)
    delete(broker, "orders")
    create(broker, "orders", 3)
    write(client, "orders", 1)
    result = jobs.pull(spark, f"{source_of(broker)}/orders", target)
    assert [(each.kind, each.topic, each.end_offset) for each in result.events if each.end_offset] == [
        ("recreated", "orders", 200),
        ("recreated", "orders", 200),
    ]
    assert set(result.manifest.topics) == {"orders", "empty"}
    assert stored_batches(target) == batches(tmp_path / "source")


def test_a_partition_that_fails_does_not_stop_the_others(
    broker: Broker, client: Client, tmp_path: Path, spark: SparkSession, items_of_jobs: list[list[str]]
) -> None:
    fill(broker, client)
    broker.faults.corrupt("Fetch", times=1)
    with pytest.raises(JobFailed, match="pull: 1 of 4 failed: orders-") as failed:
        jobs.pull(spark, source_of(broker), str(tmp_path / "copy"), groups=False)
    result = failed.value.result
    assert isinstance(result, jobs.Pulled)
    assert not result.manifest.complete
    assert sum(row["problem"] is None for row in result.rows) == 3
    assert jobs.pull(spark, source_of(broker), str(tmp_path / "copy"), groups=False).is_complete
    assert stored_batches(str(tmp_path / "copy")) == batches(tmp_path / "source")


def test_wrong_arguments_and_targets_are_named(
    broker: Broker, client: Client, tmp_path: Path, spark: SparkSession, items_of_jobs: list[list[str]]
) -> None:
    fill(broker, client)
    with pytest.raises(OptionError, match="topics: expected a list of names and patterns, got the string 'orders'"):
        jobs.pull(spark, source_of(broker), str(tmp_path / "copy"), topics="orders")
    with pytest.raises(OptionError, match="expected the URL of a cluster, or of a topic"):
        jobs.pull(spark, f"{source_of(broker)}/orders-0", str(tmp_path / "copy"))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").touch()
    with pytest.raises(OptionError, match="not empty, and not a copy"):
        jobs.pull(spark, source_of(broker), str(tmp_path / "full"))
    (tmp_path / "file").touch()
    with pytest.raises(LogError, match="file/copy: cannot be created"):
        jobs.pull(spark, source_of(broker), str(tmp_path / "file" / "copy"))
    assert items_of_jobs == []
