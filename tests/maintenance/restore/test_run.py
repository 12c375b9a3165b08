"""Restored directories: whole transactions, offsets inside their logs, and errors that leave nothing behind."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Place

from kwire.broker import Broker, Cluster
from kwire.cli.main import run
from kwire.client import Client
from kwire.errors import LogError, OptionError
from kwire.internal_topics.enums import ConfigResource, Operation
from kwire.log import LogDirectory
from kwire.log.topics import replay_cluster, replay_groups
from kwire.maintenance.pull import pull
from kwire.maintenance.restore import AtOffsets, AtTime, RestoreOptions, RestorePoint, RestoreResult, restore_directory
from kwire.storage.file_system import FileSystem
from tests.maintenance.restore.busy import INTERNAL, QUIET, Load, check_cut, create
from tests.storage.faults import Stopped, StoppingFileSystem

NOW_MS = 2_000_000_000_000
CUTS = 12


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a broker that was busy; read only."""
    data = tmp_path_factory.mktemp("busy") / "data"
    with Broker(data_dir=data, transaction_version=0, **INTERNAL) as broker:
        create(broker.bootstrap_servers)
        with Load(broker.bootstrap_servers) as load:
            load.run_until(60)
            with Client(broker.bootstrap_servers) as client:
                assert pull(client, str(data.parent / "copy")).is_complete
            load.run_until(120)
    return data


@pytest.fixture(scope="module")
def copy(source: Path) -> Path:
    """A copy that was pulled meanwhile; read only."""
    return source.parent / "copy"


def times(directory: Path) -> list[int]:
    """Return the largest timestamps of all batches, in order."""
    logs = [log for key, log in LogDirectory(directory).items() if not key[0].startswith("__cluster")]
    return sorted(batch.max_timestamp for log in logs for _, batch in log.batches())


def drawn_point(directory: Path, choose: random.Random) -> RestorePoint:
    """Draw a time, or offsets near one share of each log, or anywhere in them."""
    if choose.random() < 0.5:
        return AtTime(time_ms=choose.choice(times(directory)))
    share = choose.random() if choose.random() < 0.5 else None
    offsets = {}
    for key, log in LogDirectory(directory).items():
        if key[0] == "__cluster_metadata" or choose.random() < 0.2:
            continue
        start, end = log.log_start_offset, log.log_end_offset
        at = choose.randrange(start, end + 1) if share is None else int(end * share) + choose.randrange(-20, 20)
        offsets[key] = min(max(at, start), end)
    return AtOffsets(offsets=offsets)


def cut(source: Path, target: Path, point: RestorePoint, **options: int) -> RestoreResult:
    return restore_directory(str(source), str(target), point, RestoreOptions(**options), now_ms=NOW_MS)


def middle(directory: Path) -> AtTime:
    found = times(directory)
    return AtTime(time_ms=found[len(found) // 2])


@pytest.mark.sampled
@pytest.mark.parametrize("number", range(CUTS))
def test_every_cut_has_whole_transactions_and_offsets_inside_of_the_logs(
    number: int, source: Path, copy: Path, tmp_path: Path
) -> None:
    choose = random.Random(number)
    of = copy if number % 3 == 0 else source
    check_cut(of, tmp_path / "new", cut(of, tmp_path / "new", drawn_point(of, choose)))


def test_a_broker_starts_and_clients_go_on(source: Path, tmp_path: Path) -> None:
    """Consumers continue at their offsets, and an idempotent producer's last batch is still known as a duplicate."""
    target = tmp_path / "new"
    result = cut(source, target, middle(source))
    groups = replay_groups(LogDirectory(target)).groups
    committed = {key: each.offset for key, each in groups["readers"].offsets.items()}
    assert committed
    ends = {(each.topic, each.partition): each.log_end_offset for each in result.partitions}
    with Broker(data_dir=target) as broker:
        servers = broker.bootstrap_servers
        consumer = Consumer({"bootstrap.servers": servers, "group.id": "readers", **QUIET})
        assert {
            (each.topic, each.partition): each.offset for each in consumer.committed([*map(_place, committed)])
        } == (committed)
        for key, end in ends.items():
            assert consumer.get_watermark_offsets(Place(*key), timeout=10)[1] == end, key
        consumer.close()
        producer = Producer({"bootstrap.servers": servers, "transactional.id": "t0", **QUIET})
        producer.init_transactions(10)
        producer.begin_transaction()
        producer.produce("orders", b"more", b"more/1/0", 0)
        producer.commit_transaction(10)
    cluster = replay_cluster(LogDirectory(target))
    ids = {log.topic_id for log in LogDirectory(source).values() if log.topic == "orders"}
    assert {cluster.topics["orders"].topic_id} == ids
    assert cluster.configs_of(ConfigResource.TOPIC, "stamped")["message.timestamp.type"] == "LogAppendTime"


def _place(key: tuple[str, int]) -> Place:
    return Place(*key)


@pytest.mark.slow
def test_replicas_are_spread_over_nodes(copy: Path, tmp_path: Path) -> None:
    target = tmp_path / "new"
    result = cut(copy, target, middle(copy), nodes=4)
    assert sorted(path.name for path in target.iterdir()) == ["node-1", "node-2", "node-3", "node-4"]
    nodes = {number: LogDirectory(target / f"node-{number}") for number in range(1, 5)}
    for each in result.partitions:
        assert len(set(each.nodes)) == 3
        found = [nodes[number][each.topic, each.partition] for number in each.nodes]
        contents = [[bytes(batch.buffer) for _, batch in log.batches()] for log in found]
        assert contents[0] == contents[1] == contents[2]
        assert [log.verify() for log in found] == [[]] * 3
    assert all(directory.meta_properties["node.id"] == str(number) for number, directory in nodes.items())
    assert len({directory.meta_properties["directory.id"] for directory in nodes.values()}) == 4
    assert {directory.meta_properties["cluster.id"] for directory in nodes.values()} == {result.cluster_id}
    clusters = [replay_cluster(directory) for directory in nodes.values()]
    assert all(list(each.snapshot_records()) == list(clusters[0].snapshot_records()) for each in clusters)
    counts = [sum(number in each.nodes for each in result.partitions) for number in nodes]
    assert max(counts) - min(counts) <= 2


def test_offsets_beyond_the_logs_are_moved_and_those_without_a_log_deleted(source: Path, tmp_path: Path) -> None:
    partial = tmp_path / "partial"
    shutil.copytree(source, partial)
    for path in partial.glob("stamped-*"):
        shutil.rmtree(path)
    for path in partial.glob("*-offset-checkpoint"):
        path.unlink()  # with them, their records would be lost
    result = cut(partial, tmp_path / "new", AtOffsets(offsets={("plain", 0): 5, ("plain", 1): 0}))
    moved = {(each.topic, each.partition): each.new_offset for each in result.offsets if each.group == "readers"}
    assert moved == {("plain", 0): 5, ("plain", 1): 0, ("stamped", 0): None, ("stamped", 1): None}
    offsets = replay_groups(LogDirectory(tmp_path / "new")).groups["readers"].offsets
    assert {key: each.offset for key, each in offsets.items() if key[1] < 2} == {("plain", 0): 5, ("plain", 1): 0}


def test_a_copy_is_cut_at_its_high_watermarks(copy: Path, tmp_path: Path) -> None:
    lower = tmp_path / "lower"
    shutil.copytree(copy, lower)
    manifest = json.loads((lower / "kwire-manifest.json").read_text())
    entry = manifest["topics"]["plain"]["partitions"]["0"]
    entry["high_watermark"] -= 7
    (lower / "kwire-manifest.json").write_text(json.dumps(manifest))
    result = cut(lower, tmp_path / "new", AtTime(time_ms=NOW_MS))
    ends = {(each.topic, each.partition): each.log_end_offset for each in result.partitions}
    assert entry["high_watermark"] - 3 < ends["plain", 0] <= entry["high_watermark"]
    assert ends["plain", 1] == manifest["topics"]["plain"]["partitions"]["1"]["high_watermark"]


def test_settings_of_a_copys_manifest_are_kept(copy: Path, tmp_path: Path) -> None:
    changed = tmp_path / "changed"
    shutil.copytree(copy, changed)
    manifest = json.loads((changed / "kwire-manifest.json").read_text())
    acl = {"principal": "User:ada", "permission": "ALLOW", "operation": "READ", "host": "*"}
    manifest["cluster"] |= {
        "acls": [{**acl, "resource_type": "TOPIC", "pattern_type": "PREFIXED", "resource_name": "ord"}],
        "quotas": [{"entity": {"user": "ada", "client-id": None}, "quotas": {"producer_byte_rate": 1000.0}}],
        "users": [{"user": "ada", "mechanism": "SCRAM-SHA-512", "iterations": 4096}],
        "broker_configs": {"": {"log.retention.hours": "24", "ssl.key.password": None}, "1": {"num.io.threads": "3"}},
    }
    manifest["topics"]["plain"]["configs"] = None
    (changed / "kwire-manifest.json").write_text(json.dumps(manifest))
    result = cut(changed, tmp_path / "new", middle(copy))
    cluster = replay_cluster(LogDirectory(tmp_path / "new"))
    (found,) = cluster.acls.values()
    assert (found.principal, found.resource_name, found.operation) == ("User:ada", "ord", Operation.READ)
    assert cluster.quotas == {(("client-id", None), ("user", "ada")): {"producer_byte_rate": 1000.0}}
    assert cluster.configs_of(ConfigResource.BROKER, "") == {"log.retention.hours": "24"}
    assert cluster.configs_of(ConfigResource.BROKER, "1") == {}
    assert cluster.configs_of(ConfigResource.TOPIC, "plain") == {"retention.ms": "-1", "retention.bytes": "-1"}
    assert cluster.features == {name: n for name, n in manifest["cluster"]["features"].items() if n}
    assert any("users need new passwords" in each and "ada" in each for each in result.warnings)
    assert "dynamic configs of single brokers are not restored: 1" in result.warnings
    assert any("configs of topic plain are unknown" in each for each in result.warnings)


def test_a_dynamic_quorum_becomes_static_with_a_warning(kafka_logs: dict[str, Path], tmp_path: Path) -> None:
    source = kafka_logs["modern44"] / "data"
    assert replay_cluster(LogDirectory(source)).kraft_version == 1
    result = restore_directory(str(source), str(tmp_path / "new"), AtTime(time_ms=NOW_MS), now_ms=NOW_MS)
    assert "the quorum was dynamic, and will be static: set controller.quorum.voters on all nodes" in result.warnings
    assert replay_cluster(LogDirectory(tmp_path / "new")).kraft_version == 0


def test_groups_made_from_admin_apis_are_kept_whatever_their_time(copy: Path, tmp_path: Path) -> None:
    changed = tmp_path / "changed"
    shutil.copytree(copy, changed)
    manifest = json.loads((changed / "kwire-manifest.json").read_text())
    manifest["topics"]["__consumer_offsets"]["made_from"] = ["OffsetFetch"]
    (changed / "kwire-manifest.json").write_text(json.dumps(manifest))
    found = times(copy)
    cut(changed, tmp_path / "new", AtTime(time_ms=found[len(found) // 4]))
    restored = LogDirectory(tmp_path / "new")
    before = replay_groups(LogDirectory(copy)).groups["readers"].offsets
    after = replay_groups(restored).groups["readers"].offsets
    assert {key: each.offset for key, each in after.items()} == {
        key: min(each.offset, restored[key].log_end_offset) for key, each in before.items()
    }


def test_archives_of_every_format_are_cut(kafka_logs: dict[str, Path], tmp_path: Path) -> None:
    """Magic 0 to 2, holes of compaction, log start offsets inside of segments, from Kafka itself."""
    for archive in ("modern", "modern44", "legacy"):
        data = kafka_logs[archive] / "data"
        logs = {key: log for key, log in LogDirectory(data).items() if key[0] != "__cluster_metadata"}
        for share in (0.4, 1.0):
            offsets = {
                key: log.log_start_offset + int(share * (log.log_end_offset - log.log_start_offset))
                for key, log in logs.items()
            }
            target = tmp_path / f"{archive}-{share}"
            result = cut(data, target, AtOffsets(offsets=offsets))
            ends = {(each.topic, each.partition): each for each in result.partitions}
            for key, log in logs.items():
                new = LogDirectory(target)[key]
                assert ends[key].cut_offset <= offsets[key]
                assert share < 1 or ends[key].cut_offset == log.log_end_offset
                assert (new.log_start_offset, new.log_end_offset) == (log.log_start_offset, ends[key].log_end_offset)
                ours = [batch for _, batch in new.batches() if batch.last_offset < ends[key].cut_offset]
                stored = [batch for _, batch in log.batches() if batch.last_offset < ends[key].cut_offset]
                if len(ours) > len(stored) and ours[-1].count == 0:  # the cut is in a gap of compaction
                    assert ours.pop().last_offset == ends[key].cut_offset - 1
                assert [batch.last_offset for batch in ours] == [batch.last_offset for batch in stored], key


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[200] ^= 1
    path.write_bytes(data)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7] + b"\1" * 100)


@pytest.mark.parametrize("change", [damage, truncate])
def test_a_damaged_source_is_refused(change: Callable[[Path], None], source: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(source, damaged)
    change(damaged / "plain-0" / f"{0:020}.log")
    with pytest.raises(LogError, match=r"plain-0.*kwire log repair"):
        cut(damaged, tmp_path / "new", AtTime(time_ms=NOW_MS))
    assert [path.name for path in tmp_path.iterdir()] == ["damaged"]


def test_damage_above_the_cut_does_not_matter(source: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(source, damaged)
    last = max((damaged / "plain-0").glob("*.log"))
    last.write_bytes(last.read_bytes() + b"\xff" * 100)
    result = cut(damaged, tmp_path / "new", middle(source))
    assert any("plain-0: damaged above the cut" in each for each in result.warnings)
    check_cut(source, tmp_path / "new", result)


@pytest.mark.slow
def test_a_time_after_all_records_is_reported(source: Path, tmp_path: Path) -> None:
    late = cut(source, tmp_path / "late", AtTime(time_ms=NOW_MS + 1))
    assert "nothing was cut: no record is later than 2033-05-18T03:33:20.001Z" in late.warnings
    assert not any("nothing was cut" in each for each in cut(source, tmp_path / "cut", middle(source)).warnings)


def test_errors_name_what_is_wrong(source: Path, tmp_path: Path) -> None:
    end = LogDirectory(source)["plain", 0].log_end_offset
    for point, said in (
        (AtTime(time_ms=1000), "no record is as old as 1970-01-01T00:00:01.000Z; the oldest record is of 20"),
        (AtOffsets(offsets={("plain", 0): end + 1}, origin="f"), f"f: offset {end + 1} of plain-0 .* 0 to {end}"),
        (AtOffsets(offsets={("plani", 0): 1}, origin="f"), "f: no partition plani-0 in the source; topics: .*plain"),
        (AtOffsets(offsets={("__cluster_metadata", 0): 1}), "no partition __cluster_metadata-0"),
    ):
        with pytest.raises(OptionError, match=said):
            cut(source, tmp_path / "new", point)
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "x").touch()
    with pytest.raises(OptionError, match="not an empty directory"):
        cut(source, tmp_path / "used", middle(source))
    with pytest.raises(OptionError, match="inside of"):
        cut(source, source / "new", middle(source))
    (tmp_path / "left.part").mkdir()
    with pytest.raises(OptionError, match="left by an interrupted run; remove it"):
        cut(source, tmp_path / "left", middle(source))
    with pytest.raises(OptionError, match="0 nodes: expected 1 to 1000"):
        cut(source, tmp_path / "new", middle(source), nodes=0)
    assert not (tmp_path / "new").exists()


class FullDisk(StoppingFileSystem):
    """Fails a step as a full disk does."""

    def step(self, what: str, torn: Callable[[], None] | None = None) -> None:
        try:
            super().step(what, torn)
        except Stopped:
            self.stop_at = None
            raise LogError("No space left on device", what) from None


@pytest.mark.slow
def test_a_run_that_fails_or_stops_at_any_step_leaves_no_target(copy: Path, tmp_path: Path) -> None:
    counted = StoppingFileSystem()
    restore_directory(str(copy), str(tmp_path / "whole"), middle(copy), now_ms=NOW_MS, file_system=counted)
    steps = len(counted.steps)
    for at in random.Random(1).sample(range(steps - 1), 12):
        for files in (FullDisk(at), StoppingFileSystem(at)):
            target = tmp_path / f"at-{at}"
            with pytest.raises((LogError, Stopped)):
                restore_directory(str(copy), str(target), middle(copy), now_ms=NOW_MS, file_system=files)
            assert not target.exists()
            if isinstance(files, FullDisk):
                assert not target.with_name(f"{target.name}.part").exists()
            shutil.rmtree(target.with_name(f"{target.name}.part"), ignore_errors=True)


class SmallDisk(FileSystem):
    def free_bytes(self, path: str) -> int:
        return 1000


def test_space_is_checked_first(copy: Path, tmp_path: Path) -> None:
    with pytest.raises(LogError, match="not enough disk space"):
        restore_directory(str(copy), str(tmp_path / "new"), middle(copy), now_ms=NOW_MS, file_system=SmallDisk())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_command_reports_what_was_cut(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    offsets = tmp_path / "offsets.csv"
    offsets.write_text("plain,0,5\norders,0,9\n")
    arguments = ["log", "restore", str(source), "--at-offsets", str(offsets)]
    assert run([*arguments, "-o", str(tmp_path / "a"), "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["kind"] for row in rows} == {"partition", "transaction", "offset"}
    (plain,) = (row for row in rows if row["kind"] == "partition" and (row["topic"], row["partition"]) == ("plain", 0))
    assert (plain["log_end_offset"], plain["added_records"]) == (5, 0)
    assert any(row["kind"] == "offset" and row["group"] == "readers" and row["new_offset"] == 5 for row in rows)
    assert run([*arguments, "-o", str(tmp_path / "b"), "--kafka-version", "4.0"]) == 0
    printed = capsys.readouterr().out
    assert "transactions ended" in printed
    assert "committed offsets moved" in printed
    assert replay_cluster(LogDirectory(tmp_path / "b")).features["transaction.version"] == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "a log directory; restoring it requires --at, --at-offsets or --nodes"),
        (["--at", "1", "--at-offsets", "x"], "--at and --at-offsets are mutually exclusive"),
        (["--at", "noon"], "--at 'noon': expected milliseconds"),
        (["--at", "1", "--codec", "lz4"], "--codec is for Parquet files"),
        (["--at-offsets", "missing.csv"], "missing.csv: cannot be read"),
        (["--at", "1", "--kafka-version", "9.9"], "unknown Kafka version '9.9'"),
        (["--kafka-version", "4.0"], "--kafka-version requires --at, --at-offsets or --nodes"),
        (["--nodes", "2", "--codec", "lz4"], "--codec is for Parquet files"),
        (["more", "--nodes", "2"], "2 paths: --at, --at-offsets and --nodes take one log directory"),
        (["more", "--at", "1"], "2 paths: --at, --at-offsets and --nodes take one log directory"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    arguments: list[str], said: str, copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["log", "restore", str(copy), *arguments, "-o", str(tmp_path / "new")]) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def replicas(directory: Path) -> dict[tuple[str, int], tuple[int, ...]]:
    topics = replay_cluster(LogDirectory(directory)).topics
    return {
        (name, number): each.replicas for name, topic in topics.items() for number, each in topic.partitions.items()
    }


def test_replicas_stay_on_their_nodes_if_these_exist(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Cluster(3, data_dir=tmp_path / "data") as cluster:
        cluster.create_topic("orders", 2, replication_factor=2)
    before = replicas(tmp_path / "data")
    assert before["orders", 0] == (1, 2)
    assert before["orders", 1] == (2, 3)
    for nodes in ("3", "4", "2"):
        target = tmp_path / nodes
        assert run(["log", "restore", str(tmp_path / "data"), "-o", str(target), "--nodes", nodes]) == 0
        after = replicas(target / "node-1")
        for node in range(1, int(nodes) + 1):
            assert replicas(target / f"node-{node}") == after
            directories = {key for key in LogDirectory(target / f"node-{node}") if key in after}
            assert directories == {key for key, placed in after.items() if node in placed}
        if nodes == "2":
            assert {key: set(placed) for key, placed in after.items()} == {key: {1, 2} for key in before}
        else:
            assert after == before


def test_nodes_are_of_log_directories(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rows.parquet").touch()
    words = ["log", "restore", str(tmp_path / "rows.parquet"), "-o", str(tmp_path / "new"), "--nodes", "2"]
    assert run(words) == 2
    assert "--nodes is for log directories" in capsys.readouterr().err


def test_a_cluster_has_to_be_pulled_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["log", "restore", "kafka://broker:9092", "--at", "1", "-o", str(tmp_path / "new")]) == 2
    assert "copy it with kwire log pull" in capsys.readouterr().err
