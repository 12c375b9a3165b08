"""Real Kafka starts on adopted directories: topic ids, records, groups and transactions are those before."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests import golden
from tests.broker.test_takeover import consume, own_settings, produce
from tests.interop.booted_logs import MODERN44, PEER, as_printed, booted, by_place
from tests.interop.test_broker_takeover import read, transact
from tests.interop.test_pulled_clusters import Cluster, create, running, until
from tests.log.expected import consumed
from tests.waiting import HANG_S
from tools import kafka
from tools.kafka import KafkaBroker

from kwire.cli.main import run
from kwire.log import LogDirectory
from kwire.log.topics import replay_cluster
from kwire.maintenance.cluster_metadata import METADATA_DIRECTORY

pytestmark = [pytest.mark.jvm, pytest.mark.slow]

QUIET = {"log_level": 0}
FIRST, SECOND = [f"a{n:03}" for n in range(300)], [f"b{n:03}" for n in range(200)]
CONTROLLER_ID = 100


def topic_ids(*directories: Path) -> dict[str, set[object]]:
    found: dict[str, set[object]] = {}
    for directory in directories:
        for (topic, _), log in LogDirectory(directory).items():
            if topic != "__cluster_metadata":
                found.setdefault(topic, set()).add(log.topic_id)
    return found


def strays(*directories: Path) -> list[str]:
    return [each.name for directory in directories for each in directory.iterdir() if each.name.endswith("-stray")]


def fill(servers: str) -> None:
    """Create topics; write plain, idempotent and transactional records; commit offsets of a group."""
    admin = AdminClient({"bootstrap.servers": servers, **QUIET})
    topics = [NewTopic("orders", 3, 1, config={"retention.ms": "99999999"}), NewTopic("paid", 1, 1)]
    for made in admin.create_topics(topics).values():
        made.result(HANG_S)
    produce(servers, "orders", FIRST)
    assert consume(servers, "readers", ["orders"], len(FIRST)) == FIRST
    transact(servers, "payments", "paid", "commit", "abort", "commit")


def check_continues(servers: str) -> None:
    """Check that groups, producers and transactional ids go on where they were."""
    produce(servers, "orders", SECOND)
    assert consume(servers, "readers", ["orders"], len(SECOND)) == SECOND
    assert consume(servers, "others", ["orders"], len(FIRST + SECOND)) == FIRST + SECOND
    transact(servers, "payments", "paid", "commit")
    assert read(servers, "paid", 3) == ["payments commit"] * 3


@pytest.mark.parametrize(
    ("version", "metadata"),
    [
        ("3.7.2", "gone"),
        ("3.7.2", "kept"),
        pytest.param("3.9.1", "gone", marks=pytest.mark.gate),
        ("3.9.1", "kept"),
        ("4.4.0", "gone"),
        ("4.4.0", "kept"),
    ],
)
def test_kafka_continues_on_the_directory_of_a_node(version: str, metadata: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    with KafkaBroker(tmp_path, version=version, heap="512m") as broker:
        fill(broker.bootstrap_servers)
    before = topic_ids(data)
    if metadata == "gone":
        shutil.rmtree(data / METADATA_DIRECTORY)
        (data / "bootstrap.checkpoint").unlink(missing_ok=True)
    arguments = ["--kafka-version", version] if metadata == "gone" else []
    assert run(["log", "adopt", str(data), "--apply", *arguments]) == 0
    for start in range(2):
        with KafkaBroker(tmp_path, version=version, heap="512m") as broker:
            admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, **QUIET})
            configs = own_settings(admin, "orders")
            assert configs["retention.ms"] == ("-1" if metadata == "gone" else "99999999")
            if start == 0:
                check_continues(broker.bootstrap_servers)
            else:
                assert consume(broker.bootstrap_servers, "third", ["orders"], 500) == FIRST + SECOND
    assert topic_ids(data) == before
    assert strays(data) == []
    assert "ERROR" not in (tmp_path / "server.log").read_text(errors="replace")


@pytest.mark.parametrize("version", ["3.9.1", "4.4.0"])
def test_without_a_version_old_and_new_kafka_continue_on_a_directory(version: str, tmp_path: Path) -> None:
    with KafkaBroker(tmp_path, version="3.9.1", heap="512m") as broker:
        fill(broker.bootstrap_servers)
    shutil.rmtree(tmp_path / "data" / METADATA_DIRECTORY)
    assert run(["log", "adopt", str(tmp_path / "data"), "--apply"]) == 0
    with KafkaBroker(tmp_path, version=version, heap="512m") as broker:
        check_continues(broker.bootstrap_servers)
    assert strays(tmp_path / "data") == []


def test_features_of_a_newer_kafka_are_repaired_by_adopting_again(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with KafkaBroker(tmp_path, version="3.9.1", heap="512m") as broker:
        fill(broker.bootstrap_servers)
    shutil.rmtree(data / METADATA_DIRECTORY)
    assert run(["log", "adopt", str(data), "--apply", "--kafka-version", "4.4"]) == 0
    with pytest.raises(RuntimeError, match="Kafka did not start"), KafkaBroker(tmp_path, version="3.9.1", heap="512m"):
        pass
    assert run(["log", "adopt", str(data), "--apply", "--kafka-version", "3.9"]) == 0
    with KafkaBroker(tmp_path, version="3.9.1", heap="512m") as broker:
        check_continues(broker.bootstrap_servers)
    assert strays(data) == []


def test_strays_of_a_cluster_that_was_started_without_metadata_are_adopted(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with KafkaBroker(tmp_path, version="3.9.1", heap="512m") as broker:
        fill(broker.bootstrap_servers)
    before = topic_ids(data)
    shutil.rmtree(data / METADATA_DIRECTORY)
    with KafkaBroker(tmp_path, version="3.9.1", heap="512m"):
        until(lambda: len(strays(data)) == 10)
    assert topic_ids(data) == {}
    assert run(["log", "adopt", str(data), "--strays", "--apply"]) == 1  # the old metadata does not have them
    with KafkaBroker(tmp_path, version="3.9.1", heap="512m") as broker:
        check_continues(broker.bootstrap_servers)
    assert topic_ids(data) == before
    assert strays(data) == []


@pytest.mark.parametrize("version", ["3.9.1", "4.4.0"])
def test_no_acknowledged_record_of_a_killed_cluster_is_lost(version: str, tmp_path: Path) -> None:
    """One broker misses half of the records; all are killed, and their metadata is gone."""
    data = {n: tmp_path / f"node-{n}" / "data" for n in (1, 2, 3)}
    with running(tmp_path, version) as cluster:
        create(cluster, "orders", [[3, 1, 2], [1, 2, 3], [2, 3, 1]])
        produce(cluster.servers, "orders", FIRST)
        assert consume(cluster.servers, "readers", ["orders"], len(FIRST)) == FIRST
        cluster.brokers[3].stop(kill=True)
        produce(cluster.servers, "orders", SECOND)
        for broker in cluster.brokers.values():
            broker.stop(kill=True)
    before = topic_ids(*data.values())
    for each in data.values():
        shutil.rmtree(each / METADATA_DIRECTORY)
    assert run(["log", "adopt", *map(str, data.values()), "--apply", "--kafka-version", version]) == 0
    written = replay_cluster(LogDirectory(data[1])).topics["orders"].partitions
    assert all(set(each.isr) <= {1, 2} and set(each.replicas) == {1, 2, 3} for each in written.values())
    with running(tmp_path, version) as cluster:
        assert consume(cluster.servers, "readers", ["orders"], len(SECOND)) == SECOND
        assert consume(cluster.servers, "others", ["orders"], len(FIRST + SECOND)) == FIRST + SECOND
        until(lambda: in_sync(cluster) == {(0, 1, 2, 3), (1, 1, 2, 3), (2, 1, 2, 3)})
    ends = [
        {key: log.log_end_offset for key, log in LogDirectory(each).items() if key[0] == "orders"}
        for each in data.values()
    ]
    assert ends[0] == ends[1] == ends[2]
    assert topic_ids(*data.values()) == before
    assert strays(*data.values()) == []


def in_sync(cluster: Cluster) -> set[tuple[int, ...]]:
    """Return each partition with its ISR."""
    admin = AdminClient({"bootstrap.servers": cluster.servers, **QUIET})
    partitions = admin.list_topics("orders", timeout=HANG_S).topics["orders"].partitions
    return {(number, *sorted(each.isrs)) for number, each in partitions.items()}


def test_a_dynamic_quorum_keeps_its_voters(tmp_path: Path) -> None:
    source = golden.extract("modern44", tmp_path / "logs")
    data = shutil.copytree(source / "data", tmp_path / "kafka" / "data")
    before = [as_printed(consumed(source / "expected", "events44", 0, "read_uncommitted")[0])]
    assert run(["log", "adopt", str(data), "--apply"]) == 0
    for _ in range(2):
        with booted(tmp_path / "kafka", version="4.4.0", controller=MODERN44) as reader:
            assert [by_place(reader("read_uncommitted", "events44"))["events44", 0]] == before
    assert strays(data) == []


@contextmanager
def with_separate_controller(folder: Path) -> Iterator[str]:
    """Run node 1 as a broker, and node 100 as its controller."""
    controller = KafkaBroker(folder / "controller", heap="256m")
    address = f"127.0.0.1:{controller.port}"
    voters: dict[str, str | int] = {"controller.quorum.voters": f"{CONTROLLER_ID}@{address}"}
    controller.settings |= {
        **voters,
        "process.roles": "controller",
        "node.id": CONTROLLER_ID,
        "listeners": f"CONTROLLER://{address}",
    }
    del controller.settings["advertised.listeners"]
    broker = KafkaBroker(folder, heap="512m")
    broker.settings |= {**voters, "process.roles": "broker", "listeners": f"PLAINTEXT://127.0.0.1:{broker.port}"}
    with ExitStack() as stack:
        stack.enter_context(controller)
        stack.enter_context(broker)
        yield broker.bootstrap_servers


def test_lost_controllers_are_replaced(tmp_path: Path) -> None:
    with with_separate_controller(tmp_path) as servers:
        fill(servers)
    shutil.rmtree(tmp_path / "controller")
    (tmp_path / "controller").mkdir()
    data, controller = tmp_path / "data", tmp_path / "controller" / "data"
    before = topic_ids(data)
    # the broker has a copy of the metadata
    assert run(["log", "adopt", str(data), "--controller-dir", f"{CONTROLLER_ID}={controller}", "--apply"]) == 0
    with with_separate_controller(tmp_path) as servers:
        assert own_settings(AdminClient({"bootstrap.servers": servers, **QUIET}), "orders") == {
            "retention.ms": "99999999"
        }
        check_continues(servers)
    assert topic_ids(data) == before
    assert strays(data) == []


def test_a_directory_of_zookeeper_times_starts_in_kraft_mode(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with KafkaBroker(tmp_path, version="2.8.2", heap="512m") as broker:
        fill(broker.bootstrap_servers)
    for each in data.glob("*/partition.metadata"):
        each.unlink()  # as before 2.8
    assert run(["log", "adopt", str(data), "--apply", "--kafka-version", "3.9"]) == 0
    with KafkaBroker(tmp_path, version="3.9.1", heap="512m") as broker:
        check_continues(broker.bootstrap_servers)
    assert strays(data) == []
    assert all(len(ids) == 1 and None not in ids for ids in topic_ids(data).values())


@pytest.mark.parametrize("version", ["3.9.1", "4.4.0"])
def test_tiered_storage_alone_becomes_a_cluster(version: str, tmp_path: Path) -> None:
    golden.extract_tiered(tmp_path)
    source, data = f"tiered+{tmp_path}/plain", tmp_path / "data"
    expected = {
        key: [(each.offset, each.timestamp) for each in log.read()] for key, log in LogDirectory(source).items()
    }
    run(["log", "repair", source, "-o", str(data)])
    assert run(["log", "adopt", str(data), "--apply", "--kafka-version", version]) == 1  # a transaction is open
    classes = kafka.compile_java(PEER)
    with KafkaBroker(tmp_path, version=version, heap="512m") as broker:
        arguments = ("LogPeer", broker.bootstrap_servers, "read", "read_uncommitted", "txn", "trimmed")
        found = by_place(kafka.java(*arguments, classes=classes).splitlines())
    assert {key: [row[:2] for row in rows] for key, rows in found.items()} == expected
    assert strays(data) == []
