"""What adoption writes: kwire's broker continues on it; a kill at any step leaves the old or the new metadata."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from kwire.broker import Broker
from kwire.errors import LogError, OptionError
from kwire.identifiers import render_uuid
from kwire.internal_topics.cluster_state import ClusterState
from kwire.internal_topics.cluster_values import Partition
from kwire.internal_topics.enums import ConfigResource as Resource
from kwire.internal_topics.metadata_versions import RELEASES
from kwire.log import LogDirectory
from kwire.log.topics import replay_cluster
from kwire.log.topics.stored_metadata import apply_records, read_metadata
from kwire.maintenance.adopt import NewController, apply_adoption, plan_adoption
from kwire.maintenance.cluster_metadata import METADATA_DIRECTORY
from kwire.storage.directory_lock import DirectoryLock
from kwire.storage.file_system import FileSystem
from kwire.storage.meta_properties import MetaProperties
from tests.broker.test_takeover import QUIET, consume, own_settings, produce
from tests.maintenance.adopt.nodes import CLUSTER_ID, NOW_MS, ONE_EPOCH, ORDERS, node
from tests.maintenance.adopt.test_plan import three, write_old_metadata
from tests.storage.faults import Stopped, StoppingFileSystem
from tests.waiting import HANG_S

KAFKA_39 = RELEASES["3.9"]


def adopt(*paths: str, files: FileSystem | None = None, **settings: Any) -> list[str]:
    """Plan and write."""
    return apply_adoption(plan_adoption(paths, release=KAFKA_39, **settings), now_ms=NOW_MS, files=files)


def tree(path: Path) -> dict[str, bytes]:
    """Return all files below a directory."""
    return {str(each.relative_to(path)): each.read_bytes() for each in sorted(path.rglob("*")) if each.is_file()}


@pytest.mark.parametrize("metadata", ["gone", "kept"])
def test_a_broker_continues_where_the_cluster_was(metadata: str, tmp_path: Path) -> None:
    data, first, second = tmp_path / "data", [f"a{n:03}" for n in range(80)], [f"b{n:03}" for n in range(20)]
    with Broker(data_dir=data) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, **QUIET})
        for made in admin.create_topics([NewTopic("orders", 3, 1, config={"retention.ms": "77"})]).values():
            made.result(HANG_S)
        change = ConfigResource("broker", "1")
        change.add_incremental_config(
            ConfigEntry("log.cleaner.threads", "2", incremental_operation=AlterConfigOpType.SET)
        )
        for changed in admin.incremental_alter_configs([change]).values():
            changed.result(HANG_S)
        produce(broker.bootstrap_servers, "orders", first)
        assert consume(broker.bootstrap_servers, "readers", ["orders"], 80) == first
    before = {key: log.topic_id for key, log in LogDirectory(data).items() if key[0] == "orders"}
    if metadata == "gone":
        shutil.rmtree(data / METADATA_DIRECTORY)
    copies = adopt(str(data))
    kept = {} if metadata == "gone" else {"log.cleaner.threads": "2"}
    assert replay_cluster(LogDirectory(data)).configs_of(Resource.BROKER, "1") == kept
    assert copies == ([] if metadata == "gone" else [f"{data}.metadata-1"])
    with Broker(data_dir=data) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, **QUIET})
        expected = {"retention.ms": "-1", "retention.bytes": "-1"} if metadata == "gone" else {"retention.ms": "77"}
        assert own_settings(admin, "orders") == expected
        produce(broker.bootstrap_servers, "orders", second)
        assert consume(broker.bootstrap_servers, "readers", ["orders"], 20) == second
        assert consume(broker.bootstrap_servers, "others", ["orders"], 100) == sorted(first + second)
    assert {key: log.topic_id for key, log in LogDirectory(data).items() if key[0] == "orders"} == before


def test_every_node_gets_the_same_metadata(tmp_path: Path) -> None:
    paths = three(tmp_path, [(0, 9)], [(0, 10)], [(0, 10)])
    adopt(*paths, controllers=[NewController(path=f"{tmp_path}/controller", node_id=100)])
    clusters = [replay_cluster(LogDirectory(path)) for path in [*paths, f"{tmp_path}/controller"]]
    assert all(each.topics == clusters[0].topics for each in clusters)
    assert clusters[0].topics["orders"].partitions[0].isr == (2, 3)
    assert not clusters[0].brokers
    ids = MetaProperties.parse(Path(tmp_path, "controller", "meta.properties").read_bytes())
    assert (ids.node_id, ids.cluster_id) == (100, CLUSTER_ID)


def test_missing_ids_are_written(tmp_path: Path) -> None:
    """A directory of ZooKeeper times: version 0, no topic ids."""
    path = node(tmp_path / "n", 7, {("orders", 0): ONE_EPOCH}, topic_id=None)
    (path / "meta.properties").write_text(f"version=0\nbroker.id=7\ncluster.id={CLUSTER_ID}\n")
    adopt(str(path))
    ids = MetaProperties.parse((path / "meta.properties").read_bytes())
    assert b"version=1" in (path / "meta.properties").read_bytes()
    assert (ids.node_id, ids.cluster_id) == (7, CLUSTER_ID)
    cluster = replay_cluster(LogDirectory(path))
    (directory_id,) = cluster.topics["orders"].partitions[0].directories
    assert ids.directory_id == render_uuid(directory_id)
    assert LogDirectory(path)["orders", 0].topic_id == cluster.topics["orders"].topic_id


def test_a_dry_run_and_refused_plans_write_nothing(tmp_path: Path) -> None:
    path = node(tmp_path / "n1", 1, {("orders", 0): ONE_EPOCH}, topic_id=None)
    other = node(tmp_path / "n2", 2, {("orders", 0): ONE_EPOCH})
    third = node(tmp_path / "n3", 3, {("orders", 0): ONE_EPOCH}, topic_id=UUID(int=5))
    before = tree(tmp_path)
    plan_adoption([str(path)])
    plan = plan_adoption([str(path), str(other), str(third)])
    assert plan.problems
    with pytest.raises(OptionError, match="cannot be adopted: orders: several topic ids"):
        apply_adoption(plan, now_ms=NOW_MS)
    assert tree(tmp_path) == before
    lock = DirectoryLock(str(other))
    plan = plan_adoption([str(path)])
    held = DirectoryLock(str(path))
    with pytest.raises(LogError, match="already open in this process"):
        apply_adoption(plan, now_ms=NOW_MS)
    held.release()
    lock.release()
    after = tree(tmp_path)
    assert {name: data for name, data in after.items() if not name.endswith(".lock")} == {
        name: data for name, data in before.items() if not name.endswith(".lock")
    }


def test_adopting_twice_changes_no_topic(tmp_path: Path) -> None:
    paths = three(tmp_path, [(0, 9)], [(0, 10)])
    adopt(*paths)
    first = replay_cluster(LogDirectory(paths[0]))
    adopt(*paths)
    again = replay_cluster(LogDirectory(paths[0]))
    assert again.end_offset > first.end_offset
    assert again.configs == first.configs
    assert {name: topic.topic_id for name, topic in again.topics.items()} == {"orders": ORDERS}
    assert [each.isr for each in again.topics["orders"].partitions.values()] == [(2,)]


def test_strays_get_their_names_back(tmp_path: Path) -> None:
    path = node(tmp_path / "n", 1, {("orders", 0): ONE_EPOCH, ("orders", 1): ONE_EPOCH, ("new", 0): ONE_EPOCH})
    mark = "0123456789abcdef0123456789abcdef-stray"
    (path / "orders-1").rename(path / f"orders-1.{mark}")
    shutil.copytree(path / "new-0", path / f"new-0.{mark}")
    (path / f"{'x' * 214}-0.{mark}").mkdir()  # a name that Kafka has cut
    plan = plan_adoption([str(path)], strays=True)
    assert [each.log_end_offset for each in plan.topics["orders"].partitions[1].replicas] == [10]
    assert any("its partition has another directory: move one of the two away" in note for note in plan.notes)
    assert len(plan.notes) == 2
    apply_adoption(plan, now_ms=NOW_MS)
    assert sorted(each.name for each in path.glob("orders-*")) == ["orders-0", "orders-1"]
    with Broker(data_dir=path) as broker:
        assert broker.call(lambda node: node.log_manager.logs["orders", 1].log_end_offset) == 10


def stored(path: Path) -> tuple[int, ClusterState]:
    """Return the metadata that a starting broker would read, and the offset of its snapshot, 0 without one."""
    found, cluster = read_metadata(path / METADATA_DIRECTORY), ClusterState()
    apply_records(found, cluster)
    return found.snapshot_offset, cluster


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("has_metadata", [False, True])
def test_a_kill_at_any_step_leaves_the_old_or_the_new_metadata(has_metadata: bool, tmp_path: Path) -> None:
    source = three(tmp_path / "source", [(0, 3)])[0]
    if has_metadata:
        write_old_metadata(source, {0: Partition(partition=0, replicas=(1,), isr=(1,), leader_epoch=3)})
        (Path(source) / METADATA_DIRECTORY / f"{901:020d}.log").write_bytes(b"")
    (Path(source) / "orders-0" / "partition.metadata").unlink()
    old = stored(Path(source))

    def attempt(folder: Path, files: StoppingFileSystem) -> Path:
        path = folder / "n1"
        shutil.copytree(source, path)
        adopt(str(path), files=files)
        return path

    counting = StoppingFileSystem()
    complete = stored(attempt(tmp_path / "all", counting))
    assert complete[0] > old[0]
    for step in range(len(counting.steps)):
        folder = tmp_path / str(step)
        files = StoppingFileSystem(step, torn=True)
        with pytest.raises(Stopped):
            attempt(folder, files)
        files.lose_unsynced(random.Random(step))
        offset, cluster = stored(folder / "n1")
        assert offset in (old[0], complete[0])
        assert cluster.topics.keys() == (old if offset == old[0] else complete)[1].topics.keys()
        if step % 4 == 0 and cluster.topics:
            check_start(folder / "n1")
        adopt(str(folder / "n1"))
        if step % 4 == 0:
            check_start(folder / "n1")
        assert [each.name for each in (folder / "n1").iterdir() if each.name.endswith("-delete")] == []
        shutil.rmtree(folder)


def check_start(data: Path) -> None:
    """Check that the broker starts and has the topic and its records."""
    with Broker(data_dir=data) as broker:
        assert broker.call(lambda node: {topic.name for topic in node.topics}) == {"orders"}
        assert broker.call(lambda node: node.log_manager.logs["orders", 0].log_end_offset) == 3
