"""What is computed from old log directories: topics, replicas, in-sync replicas, epochs; what is refused."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from uuid import UUID

import pytest

from kwire.errors import OptionError
from kwire.identifiers import render_uuid
from kwire.internal_topics.cluster_values import Partition, Topic
from kwire.internal_topics.metadata_versions import RELEASES, MetadataRelease
from kwire.internal_topics.topic_records import new_cluster
from kwire.log import LogDirectory
from kwire.log.topics import replay_cluster
from kwire.maintenance.adopt import Adoption, NewController, apply_adoption, plan_adoption
from kwire.maintenance.adopt.remains import read_remains
from kwire.maintenance.cluster_metadata import METADATA_DIRECTORY, write_metadata_log
from kwire.maintenance.pull import Manifest
from kwire.maintenance.pull.manifest import ClusterEntry, TopicEntry
from kwire.messages import ClientQuotaRecord
from kwire.storage.checkpoints import render_offset_checkpoint
from kwire.storage.file_system import FileSystem
from tests.maintenance.adopt.nodes import CLUSTER_ID, NOW_MS, ONE_EPOCH, ORDERS, Epochs, node
from tests.maintenance.verify.damaging import flip
from tests.records.building import batch
from tests.storage.test_directory_lock import HOLD


def three(tmp_path: Path, *logs: Epochs, **settings: bool) -> list[str]:
    """Return the directories of nodes 1, 2, 3 with these logs of orders-0."""
    return [
        str(node(tmp_path / f"n{node_id}", node_id, {("orders", 0): epochs}, **settings))
        for node_id, epochs in enumerate(logs, 1)
    ]


def only(plan: Adoption) -> Partition:
    """Return orders-0 of the cluster that would be written."""
    return plan.cluster.topics["orders"].partitions[0]


def write_old_metadata(directory: str, partitions: dict[int, Partition]) -> None:
    """Write a metadata log of Kafka 3.9 that knows the topic orders, a config and a quota."""
    quota = ClientQuotaRecord(
        entity=[ClientQuotaRecord.EntityData(entity_type="user", entity_name="ada")],
        key="request_percentage",
        value=5.0,
    )
    write_metadata_log(
        FileSystem(),
        f"{directory}/{METADATA_DIRECTORY}",
        new_cluster(
            [Topic(name="orders", topic_id=ORDERS, partitions=partitions)],
            RELEASES["3.9"],
            configs={"orders": {"retention.ms": "86400000"}},
            next_producer_id=5000,
            others=[(quota, 0)],
        ),
        now_ms=NOW_MS,
        end_offset=900,
        leader_epoch=40,
    )


# ---- which replica leads


@pytest.mark.parametrize(
    ("logs", "isr", "epoch"),
    [
        ([[(0, 10)], [(0, 10)], [(0, 10)]], (1, 2, 3), 0),
        ([[(0, 10)], [(0, 12)], [(0, 11)]], (2,), 0),  # only the longest has all acknowledged records
        ([[(0, 20)], [(0, 5), (3, 6)], [(0, 5), (3, 6)]], (2, 3), 3),  # records of a later leader beat longer logs
        ([[(0, 5), (2, 9)], [(0, 5), (3, 1)], [(0, 5), (3, 2)]], (3,), 3),
        ([[], [], []], (1, 2, 3), 0),
        ([[], [(0, 1)], []], (2,), 0),
    ],
)
def test_the_isr_has_the_replicas_with_every_acknowledged_record(
    logs: list[Epochs], isr: tuple[int, ...], epoch: int, tmp_path: Path
) -> None:
    plan = plan_adoption(three(tmp_path, *logs), release=RELEASES["3.9"])
    assert plan.problems == plan.notes == []
    found = only(plan)
    assert (sorted(found.replicas), found.isr, found.leader_epoch) == ([1, 2, 3], isr, epoch)
    ids = {each.node_id: each.directory_id for each in plan.directories}
    assert list(found.directories) == [ids[replica] for replica in found.replicas]


def test_a_log_that_kafka_would_truncate_does_not_lead(tmp_path: Path) -> None:
    """After an unclean shutdown Kafka cuts at the first damaged batch; a clean one is not checked."""
    paths = three(tmp_path, [(0, 10)], [(0, 8)], clean=False)
    segment = LogDirectory(paths[0])["orders", 0].segments[0]
    seventh = list(segment.headers())[6]
    flip(Path(segment.url), seventh.position + seventh.size_bytes - 1, 3)
    found = only(plan_adoption(paths))
    assert found.isr == (2,)
    ends = {each.node_id: each.log_end_offset for each in plan_adoption(paths).topics["orders"].partitions[0].replicas}
    assert ends == {1: 6, 2: 8}


def test_a_leader_epoch_without_records_is_kept(tmp_path: Path) -> None:
    (path,) = three(tmp_path, [(4, 10)])
    checkpoint = Path(path, "orders-0", "leader-epoch-checkpoint")
    assert checkpoint.read_text() == "0\n1\n4 0\n"
    checkpoint.write_text("0\n2\n4 0\n9 10\n")
    assert only(plan_adoption([path])).leader_epoch == 9
    checkpoint.write_text("damaged")
    assert only(plan_adoption([path])).leader_epoch == 4  # that of the batches


def test_leaders_are_spread_over_the_nodes(tmp_path: Path) -> None:
    paths = [str(node(tmp_path / f"n{n}", n, {("orders", i): ONE_EPOCH for i in range(6)})) for n in (1, 2, 3)]
    partitions = plan_adoption(paths).cluster.topics["orders"].partitions
    assert [partitions[index].replicas[0] for index in range(6)] == [1, 2, 3, 1, 2, 3]


def test_producer_ids_continue_above_all_known(tmp_path: Path) -> None:
    path = node(tmp_path / "n", 1, {("orders", 0): ONE_EPOCH}, producer_id=7421, clean=False)
    assert plan_adoption([str(path)]).cluster.next_producer_id == 1_008_000
    clean = node(tmp_path / "clean", 1, {("orders", 0): ONE_EPOCH}, producer_id=7421)
    assert plan_adoption([str(clean)]).cluster.next_producer_id == 1_008_000


# ---- what is missing


def test_missing_partition_numbers_are_reported_and_filled(tmp_path: Path) -> None:
    path = node(tmp_path / "n", 1, {("orders", 0): ONE_EPOCH, ("orders", 3): ONE_EPOCH})
    plan = plan_adoption([str(path)])
    partitions = plan.topics["orders"].partitions
    assert sorted(partitions) == [0, 1, 2, 3]
    assert partitions[1].notes == partitions[2].notes == ["no log found; it will be empty"]
    assert not plan.is_complete


def test_directories_without_topic_ids_get_new_ones(tmp_path: Path) -> None:
    paths = [str(node(tmp_path / f"n{n}", n, {("orders", 0): ONE_EPOCH}, topic_id=None)) for n in (1, 2)]
    plan = plan_adoption(paths)
    assert plan.topics["orders"].has_new_id
    assert plan.is_complete


def test_an_unreadable_topic_id_is_taken_from_another_replica(tmp_path: Path) -> None:
    paths = three(tmp_path, [(0, 1)], [(0, 1)])
    Path(paths[0], "orders-0", "partition.metadata").write_bytes(b"\0\0")
    plan = plan_adoption(paths)
    assert plan.topics["orders"].topic_id == ORDERS
    assert plan.is_complete
    (note,) = (each for each in plan.assumptions if "partition.metadata" in each)
    assert note.startswith(f"{paths[0]}/orders-0/partition.metadata: ")
    alone = plan_adoption(paths[:1])
    (problem,) = alone.problems
    assert "the topic's id is unknown: remove the file, and a new id is assigned" in problem


def test_configs_keep_records_unless_they_are_known(tmp_path: Path) -> None:
    names = ("plain", "compacted", "copied", "__consumer_offsets", "__transaction_state")
    path = node(tmp_path / "n", 1, {(name, 0): ONE_EPOCH for name in names}, topic_id=None)
    (path / "cleaner-offset-checkpoint").write_bytes(render_offset_checkpoint({("compacted", 0): 5}))
    copied = {"copied": TopicEntry(id=None, configs={"retention.ms": "5"}, partitions={})}
    manifest = Manifest(cluster_id=None, bootstrap_servers=[], began_ms=0, written_ms=0, complete=True, topics=copied)
    (path / "kwire-manifest.json").write_bytes(manifest.render())
    plan = plan_adoption([str(path)])
    configs = {name: topic.configs for name, topic in plan.topics.items()}
    assert configs["plain"] == {"retention.ms": "-1", "retention.bytes": "-1"}
    assert configs["compacted"] == {"cleanup.policy": "compact"}
    assert configs["copied"] == {"retention.ms": "5"}
    assert configs["__consumer_offsets"]["cleanup.policy"] == "compact"
    assert configs["__transaction_state"]["min.insync.replicas"] == "1"
    assert any("unknown configs of 4 topics" in each for each in plan.assumptions)


def test_features_without_old_metadata_are_those_that_every_release_starts_with(tmp_path: Path) -> None:
    one = str(node(tmp_path / "n1", 1, {("orders", 0): ONE_EPOCH}))
    plan = plan_adoption([one, str(node(tmp_path / "n2", 2, {("orders", 1): ONE_EPOCH}))])
    assert plan.release is RELEASES["3.3"]
    assert plan.cluster.features == {"metadata.version": 7}
    assert any("it gets the features of Kafka 3.3" in each and "--kafka-version" in each for each in plan.assumptions)
    jbod = plan_adoption([one, str(node(tmp_path / "second-disk", 1, {("orders", 1): ONE_EPOCH}))])
    assert jbod.release is RELEASES["3.7"]  # the first that knows which disk has a replica
    given = plan_adoption([one], release=RELEASES["4.4"])
    assert given.release is RELEASES["4.4"]
    assert not any("--kafka-version" in each for each in given.assumptions)


def test_features_of_a_copy_are_those_in_its_manifest(tmp_path: Path) -> None:
    path = node(tmp_path / "n", 1, {("orders", 0): ONE_EPOCH})
    features = {"metadata.version": 25, "group.version": 1, "kraft.version": 1, "share.version": 0}
    cluster = ClusterEntry(described_ms=0, users=None, acls=None, quotas=None, broker_configs=None, features=features)
    manifest = Manifest(
        cluster_id=None, bootstrap_servers=[], began_ms=0, written_ms=0, complete=True, topics={}, cluster=cluster
    )
    (path / "kwire-manifest.json").write_bytes(manifest.render())
    plan = plan_adoption([str(path)])
    assert (plan.release.name, plan.release.features) == ("4.0", {"metadata.version": 25, "group.version": 1})
    assert not any("--kafka-version" in each for each in plan.assumptions)
    assert plan_adoption([str(path)], release=RELEASES["3.9"]).release is RELEASES["3.9"]


# ---- old metadata


def test_old_metadata_gives_configs_quotas_and_replicas(tmp_path: Path) -> None:
    paths = three(tmp_path, [(0, 10)], [(0, 10)])
    write_old_metadata(paths[1], {0: Partition(partition=0, replicas=(2, 3, 1), isr=(2, 1), leader_epoch=8)})
    plan = plan_adoption(paths)
    assert plan.is_complete
    found = only(plan)
    assert (found.replicas, found.isr, found.leader_epoch) == ((2, 3, 1), (2, 1), 8)
    assert plan.topics["orders"].configs == {"retention.ms": "86400000"}
    assert plan.cluster.quotas == {(("user", "ada"),): {"request_percentage": 5.0}}
    assert plan.cluster.next_producer_id == 1_005_000
    assert plan.release.features == {"metadata.version": 21}
    assert (plan.end_offset, plan.leader_epoch) == (901, 41)
    assert plan_adoption(paths, release=RELEASES["4.0"]).release.features["metadata.version"] == 25
    assert plan_adoption(paths, release=RELEASES["3.6"]).release.features == {"metadata.version": 14}


def test_a_dynamic_quorum_keeps_the_voters_that_are_given(kafka_logs: dict[str, Path], tmp_path: Path) -> None:
    data = shutil.copytree(kafka_logs["modern44"] / "data", tmp_path / "data")
    old = replay_cluster(LogDirectory(data))
    assert old.kraft_version == 1
    plan = plan_adoption([str(data)])
    assert plan.voters == list(old.voters.values())
    (node_id,) = old.voters
    (data / "meta.properties").write_text(f"version=1\nnode.id={node_id + 1}\n")
    other = plan_adoption([str(data)])
    assert other.voters == []
    assert any("it will be static, so set controller.quorum.voters" in each for each in other.assumptions)
    anew = plan_adoption([str(data)], controllers=[NewController(path=f"{tmp_path}/c", node_id=node_id)])
    assert [each.directory_id for each in anew.voters] == [anew.controllers[0].directory_id]
    assert anew.voters[0].endpoints == old.voters[node_id].endpoints
    apply_adoption(anew, now_ms=NOW_MS)
    written = replay_cluster(LogDirectory(f"{tmp_path}/c"))
    assert list(written.voters.values()) == anew.voters
    assert written.kraft_version == 1


def test_eligible_leader_replicas_are_disabled(kafka_logs: dict[str, Path]) -> None:
    """With them, a controller without the registrations of its brokers removes each one from the ISR as it starts."""
    data = kafka_logs["modern44"] / "data"
    name = "eligible.leader.replicas.version"
    features = replay_cluster(LogDirectory(data)).features
    assert features[name] == 1
    plan = plan_adoption([str(data)])
    assert plan.cluster.features == {feature: level for feature, level in features.items() if feature != name}
    assert any(f"upgrade --feature {name}=1" in each for each in plan.assumptions)
    with_elr = MetadataRelease(name="4.4", level=33, other_features=features)
    assert name not in new_cluster([], with_elr).features


def test_lost_in_sync_replicas_are_reported(tmp_path: Path) -> None:
    paths = three(tmp_path, [(0, 10)], [(0, 9)])
    write_old_metadata(paths[0], {0: Partition(partition=0, replicas=(1, 2, 3), isr=(3,), leader_epoch=8)})
    plan = plan_adoption(paths)
    assert plan.topics["orders"].partitions[0].notes == [
        "its in-sync replicas were on nodes 3, which have no log here: records may be missing"
    ]
    assert only(plan).isr == (1,)


def test_partitions_of_absent_nodes_stay_offline_until_they_start(tmp_path: Path) -> None:
    paths = three(tmp_path, [(0, 10)], [(0, 10)])
    elsewhere = UUID(int=99)
    partitions = {
        0: Partition(partition=0, replicas=(1, 2), isr=(1, 2)),
        1: Partition(partition=1, replicas=(3, 2), isr=(3, 2), directories=(elsewhere, UUID(int=7))),
        2: Partition(partition=2, replicas=(1, 2), isr=(1, 2)),
    }
    write_old_metadata(paths[0], partitions)
    found = plan_adoption(paths).topics["orders"].partitions
    assert found[1].notes == ["no log found; offline until one of nodes 3 starts"]
    assert (found[1].partition.replicas, found[1].partition.isr) == ((3, 2), (3,))
    assert found[1].partition.directories == (elsewhere, UUID(int=0))
    assert found[2].notes == ["no log found; it will be empty"]
    assert found[2].partition.isr == (1, 2)


def test_a_replica_that_was_moved_away_is_not_used(tmp_path: Path) -> None:
    paths = three(tmp_path, [(0, 5)], [(0, 5), (6, 5)])
    write_old_metadata(paths[0], {0: Partition(partition=0, replicas=(2,), isr=(2,), leader_epoch=6)})
    plan = plan_adoption(paths)
    assert only(plan).replicas == (2,)
    assert plan.topics["orders"].partitions[0].notes == [
        "the log on node 1 is not one of its replicas, and is not used"
    ]


def test_metadata_older_than_the_logs_does_not_take_replicas_away(tmp_path: Path) -> None:
    paths = three(tmp_path, [(0, 5), (9, 1)], [(0, 5), (9, 1)])
    write_old_metadata(paths[0], {0: Partition(partition=0, replicas=(1,), isr=(1,), leader_epoch=2)})
    found = only(plan_adoption(paths))
    assert (found.replicas, found.isr, found.leader_epoch) == ((1, 2), (1, 2), 9)


def test_damaged_metadata_is_used_as_far_as_it_reads(tmp_path: Path) -> None:
    (path,) = three(tmp_path, [(0, 5)])
    write_old_metadata(path, {0: Partition(partition=0, replicas=(1,), isr=(1,), leader_epoch=2)})
    (snapshot,) = Path(path, METADATA_DIRECTORY).glob("*.checkpoint")
    data = snapshot.read_bytes()
    flip(snapshot, len(data) // 2, 3)
    Path(path, METADATA_DIRECTORY, "quorum-state").write_bytes(b"{")
    plan = plan_adoption([path])
    assert plan.remains is None
    for said in (
        "metadata log begins at offset 900, and no snapshot covers the records before it",
        "invalid quorum state",
        "cannot use 1 record,",
        "not used: metadata.version is missing",
    ):
        assert any(said in note for note in plan.notes), said
    assert only(plan).isr == (1,)
    assert (plan.end_offset, plan.leader_epoch) == (901, 41)  # above what was there
    assert plan.release is RELEASES["3.3"]
    snapshot.write_bytes(data[:-10])  # without its footer
    plan = plan_adoption([path])
    assert plan.topics["orders"].configs == {"retention.ms": "86400000"}
    assert plan.release.name == "3.9"
    assert not plan.is_complete


# ---- what is refused


def test_directories_of_different_clusters_are_refused(tmp_path: Path) -> None:
    one = node(tmp_path / "n1", 1, {("orders", 0): ONE_EPOCH})
    two = node(tmp_path / "n2", 2, {("orders", 0): ONE_EPOCH}, cluster_id="b3dpcmUtdGVzdC1jbHVzdA")
    with pytest.raises(OptionError, match=rf"directories of different clusters: {CLUSTER_ID} \(.*n1\), b3dpc"):
        plan_adoption([str(one), str(two)])


def test_a_node_has_a_partition_once(tmp_path: Path) -> None:
    paths = [str(node(tmp_path / name, 1, {("orders", 0): ONE_EPOCH})) for name in ("a", "b")]
    (problem,) = plan_adoption(paths).problems
    assert problem.startswith(f"{paths[1]}/orders-0: node 1 has this partition in {paths[0]} too")
    jbod = [str(node(tmp_path / f"j{index}", 1, {("orders", index): ONE_EPOCH})) for index in range(2)]
    assert plan_adoption(jbod).is_complete
    with pytest.raises(OptionError, match="the same directory as"):
        plan_adoption([jbod[0], jbod[0] + "/"])


def test_two_ids_of_a_topic_are_refused_unless_the_metadata_knows(tmp_path: Path) -> None:
    one = str(node(tmp_path / "n1", 1, {("orders", 0): ONE_EPOCH}))
    two = str(node(tmp_path / "n2", 2, {("orders", 0): [(0, 99)]}, topic_id=UUID(int=5)))
    (problem,) = plan_adoption([one, two]).problems
    assert f"orders: several topic ids: {render_uuid(ORDERS)} in {one}/orders-0" in problem
    write_old_metadata(one, {0: Partition(partition=0, replicas=(1,), isr=(1,))})
    plan = plan_adoption([one, two])
    assert plan.problems == []
    assert (plan.topics["orders"].topic_id, only(plan).isr) == (ORDERS, (1,))
    assert plan.topics["orders"].notes == [f"{two}/orders-0: not used: its topic id is not that of the old metadata"]


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    (path,) = three(tmp_path, [(0, 5)])
    with subprocess.Popen([sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        assert plan_adoption([path]).problems == [f"{path}: in use by a process, such as a Kafka broker; stop it first"]
        holder.kill()


def test_foreign_directories_and_strays_are_reported(tmp_path: Path) -> None:
    (path,) = three(tmp_path, [(0, 5)])
    for name in ("lost+found", "payments-0.0123456789abcdef0123456789abcdef-stray", "gone-0.77-delete"):
        Path(path, name).mkdir()
    notes = plan_adoption([path]).notes
    assert len(notes) == 2
    assert any("lost+found: not named like a partition; Kafka does not start until it is moved out" in n for n in notes)
    assert any(
        "payments-0.0123456789abcdef0123456789abcdef-stray: set aside by Kafka, not adopted; --strays" in n
        for n in notes
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "node.id and broker.id are missing"),
        (b"node.id=x\n", "node.id and broker.id are missing or not numbers"),
        (b"node.id=1\ndirectory.id=short\n", "'short' is not an id of 22 base64 characters"),
    ],
)
def test_damaged_meta_properties_are_refused(content: bytes, said: str, tmp_path: Path) -> None:
    (path,) = three(tmp_path, [(0, 5)])
    Path(path, "meta.properties").write_bytes(content)
    with pytest.raises(OptionError, match=said):
        plan_adoption([path])


def test_meta_properties_may_be_missing_in_an_only_directory(tmp_path: Path) -> None:
    paths = three(tmp_path, [(0, 5)], [(0, 5)])
    Path(paths[0], "meta.properties").unlink()
    assert only(plan_adoption(paths[:1])).replicas == (1,)
    with pytest.raises(OptionError, match=r"meta\.properties: missing; write the line node\.id=N into it"):
        plan_adoption(paths)


def test_paths_that_are_not_log_directories_are_refused(tmp_path: Path) -> None:
    (path,) = three(tmp_path, [(0, 5)])
    (tmp_path / "empty").mkdir()
    for wrong, said in (
        (f"{tmp_path}/nothing", "no such directory"),
        (f"{path}/meta.properties", "not a local directory"),
        ("s3://bucket/data", "not a local directory"),
        (f"{path}/orders-0", "a partition's directory; name the log directory"),
        (f"{tmp_path}/empty", "no Kafka logs"),
    ):
        with pytest.raises(OptionError, match=said):
            plan_adoption([wrong])


def test_new_controllers_need_their_own_ids_and_empty_directories(tmp_path: Path) -> None:
    (path,) = three(tmp_path, [(0, 5)])
    with pytest.raises(OptionError, match="node 1 has another directory"):
        plan_adoption([path], controllers=[NewController(path=f"{tmp_path}/c", node_id=1)])
    with pytest.raises(OptionError, match="not an empty directory"):
        plan_adoption([path], controllers=[NewController(path=path, node_id=100)])


def test_a_damaged_metadata_log_ends_after_its_last_whole_batch(tmp_path: Path) -> None:
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    whole = [batch(base_offset=0), batch(base_offset=7, leader_epoch=3)]
    (folder / f"{0:020}.log").write_bytes(b"".join(whole) + b"\xff" * 100)
    remains = read_remains(LogDirectory(tmp_path)["__cluster_metadata", 0])
    assert "damaged" in remains.notes[0]
    assert (remains.end_offset, remains.leader_epoch) == (8, 3)
