"""Real Kafka on restored directories: it serves the records below the cut, and clients continue."""

from __future__ import annotations

import random
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic
from tests.broker.shares.harness import EARLIEST, configure
from tests.broker.wire import RawClient
from tests.interop.test_sink_boots import complaints
from tests.maintenance.restore.busy import QUIET, Load, check_cut, create
from tests.maintenance.restore.test_gaps import make
from tests.maintenance.restore.test_run import drawn_point
from tests.maintenance.test_accepted_configs import source_of_3_9
from tests.waiting import HANG_S
from tools import kafka

from kwire.broker import Cluster
from kwire.cli.main import run
from kwire.client import Client
from kwire.client.client import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from kwire.internal_topics.metadata_versions import RELEASES
from kwire.log import LogDirectory
from kwire.log.topics import replay_groups
from kwire.maintenance.adopt import apply_adoption, plan_adoption
from kwire.maintenance.pull import pull
from kwire.maintenance.restore import AtOffsets, AtTime, RestoreOptions, restore_directory

pytestmark = [pytest.mark.jvm, pytest.mark.slow]

PEER = Path(__file__).parent / "java" / "TransactionLoad.java"
VERSIONS = ["3.9.1", "4.4.0"]
BOOTS = 10
JAVA_PRODUCERS = (3, 4)
SETTINGS: dict[str, str | int] = {
    "offsets.topic.num.partitions": 3,
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.num.partitions": 3,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "log.retention.ms": -1,
    "log.initial.task.delay.ms": 100,
    "log.retention.check.interval.ms": 300,
}
Records = list[tuple[int, bytes | None, bytes | None]]


@contextmanager
def java_load(servers: str, version: str) -> Iterator[None]:
    """Run Java's transactional producers, which end with an open transaction."""
    classes = kafka.compile_java(PEER, version=version)
    command = ["java", "-Xmx128m", "-cp", f"{classes}:{kafka.jars(version)}/*", "TransactionLoad", servers]
    started = [
        subprocess.Popen([*command, str(n)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for n in JAVA_PRODUCERS
    ]
    try:
        yield
        for process in started:
            out, err = process.communicate(b"end", timeout=HANG_S)
            assert process.returncode == 0, err.decode()[-2000:]
            assert int(out) > 20
    finally:
        for process in started:
            process.kill()


@pytest.fixture(scope="module", params=VERSIONS)
def busy(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, Path]:
    """A release, the directory of its broker that was busy, and a copy pulled meanwhile; read only."""
    version, directory = request.param, tmp_path_factory.mktemp("busy")
    with kafka.KafkaBroker(directory, version=version, **SETTINGS) as broker:
        servers = broker.bootstrap_servers
        create(servers)
        with java_load(servers, version), Load(servers, transactional=2) as load:
            load.run_until(150)
            with Client(servers) as client:
                assert pull(client, str(directory / "copy")).is_complete
            load.run_until(300)
    return version, directory / "data", directory / "copy"


def restored_records(directory: Path) -> dict[tuple[str, int], tuple[int, int, Records]]:
    """Return log start, log end, and offsets, keys and values of the committed records of each partition."""
    return {
        key: (
            log.log_start_offset,
            log.log_end_offset,
            [(record.offset, record.key, record.value) for record in log.read(isolation="read_committed")],
        )
        for key, log in LogDirectory(directory).items()
        if not key[0].startswith("__")
    }


def consumed(servers: str, key: tuple[str, int], end: int) -> Records:
    """Read the committed records of a partition with a consumer, up to its log end."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "none", "enable.auto.commit": False, **QUIET})
    found: Records = []
    try:
        consumer.assign([TopicPartition(*key, 0)])
        deadline = time.monotonic() + HANG_S
        while True:
            batch: list[Message] = consumer.consume(500, 0.1)
            for message in batch:
                assert message.error() is None, message.error()
                found.append((message.offset() or 0, message.key(), message.value()))
            (position,) = consumer.position([TopicPartition(*key)])
            if position.offset >= end or (not end):
                return found
            assert time.monotonic() < deadline, (key, position.offset, end)
    finally:
        consumer.close()


def check_served(servers: str, directory: Path) -> None:
    """Check that a cluster has exactly what a directory has, and that a transactional producer continues."""
    expected = restored_records(directory)
    with Client(servers) as client:  # which waits for leaders
        starts = client.list_offsets(dict.fromkeys(expected, EARLIEST_TIMESTAMP))
        ends = client.list_offsets(dict.fromkeys(expected, LATEST_TIMESTAMP))
    for key, (start, end, records) in expected.items():
        assert (starts[key].offset, ends[key].offset) == (start, end), key
        assert consumed(servers, key, end) == records, key
    for name, group in replay_groups(LogDirectory(directory)).groups.items():
        consumer = Consumer({"bootstrap.servers": servers, "group.id": name, **QUIET})
        found = consumer.committed([TopicPartition(*key) for key in group.offsets], timeout=HANG_S)
        assert {(each.topic, each.partition): each.offset for each in found} == {
            key: each.offset for key, each in group.offsets.items()
        }
        consumer.close()
    for n in (0, JAVA_PRODUCERS[0]):
        producer = Producer({"bootstrap.servers": servers, "transactional.id": f"t{n}", **QUIET})
        producer.init_transactions(HANG_S)
        producer.begin_transaction()
        for partition in range(4):
            producer.produce("orders", b"v", b"more", partition)
        producer.commit_transaction(HANG_S)


@pytest.mark.parametrize("number", range(BOOTS))
def test_kafka_serves_exactly_the_records_below_a_cut(
    number: int, busy: tuple[str, Path, Path], tmp_path: Path
) -> None:
    version, data, copy = busy
    source = copy if number % 2 else data
    point = drawn_point(source, random.Random(number))
    target = tmp_path / "data"
    result = restore_directory(str(source), str(target), point, now_ms=time.time_ns() // 1_000_000)
    check_cut(source, target, result)
    expected = tmp_path / "expected"
    restore_directory(str(source), str(expected), point, now_ms=time.time_ns() // 1_000_000)
    with kafka.KafkaBroker(tmp_path, version=version, heap="512m", **SETTINGS) as broker:
        check_served(broker.bootstrap_servers, expected)
    assert complaints(tmp_path) == []


@pytest.mark.gate
@pytest.mark.parametrize("version", VERSIONS)
def test_an_idempotent_producer_continues_on_the_restored_cluster(version: str, tmp_path: Path) -> None:
    """It runs on: the cluster comes back at the same address with what the producer wrote before."""
    first, second = tmp_path / "first", tmp_path / "second"
    with ExitStack() as stack:
        broker = stack.enter_context(kafka.KafkaBroker(first, version=version, heap="512m", **SETTINGS))
        create(broker.bootstrap_servers)
        settings = {"bootstrap.servers": broker.bootstrap_servers, "enable.idempotence": True, **QUIET}
        producer = Producer(settings)
        for n in range(100):
            producer.produce("plain", b"%d" % n, b"k", 0)
            if n % 10 == 9:
                assert producer.flush(HANG_S) == 0
        with Client(broker.bootstrap_servers) as client:
            assert pull(client, str(tmp_path / "copy")).is_complete
    now_ms = time.time_ns() // 1_000_000
    second.mkdir()
    restore_directory(str(tmp_path / "copy"), str(second / "data"), AtTime(time_ms=now_ms), now_ms=now_ms)
    again = kafka.KafkaBroker(second, version=version, heap="512m", **SETTINGS)
    again.settings["listeners"] = str(again.settings["listeners"]).replace(str(again.port), str(broker.port))
    again.settings["advertised.listeners"] = f"PLAINTEXT://127.0.0.1:{broker.port}"
    again.port = broker.port
    with again:
        for n in range(100, 200):
            producer.produce("plain", b"%d" % n, b"k", 0)
        assert producer.flush(HANG_S) == 0
    log = LogDirectory(second / "data")["plain", 0]
    assert [record.value for record in log.read()] == [b"%d" % n for n in range(200)]
    batches = [batch for _, batch in log.batches()]
    assert len({batch.producer_id for batch in batches}) == 1
    assert [batch.base_sequence for batch in batches] == [batch.base_offset for batch in batches]


@contextmanager
def three_nodes(version: str, folder: Path, directories: Path) -> Iterator[list[kafka.KafkaBroker]]:
    """Start three combined nodes on the directories node-1 to node-3. They are killed at the end."""
    controllers = {node: kafka.free_port() for node in (1, 2, 3)}
    voters = ",".join(f"{node}@127.0.0.1:{port}" for node, port in controllers.items())
    with ExitStack() as stack:
        brokers = []
        for node, controller in controllers.items():
            broker = kafka.KafkaBroker(folder / f"kafka-{node}", version=version, heap="320m", **SETTINGS)
            broker.log_dir = directories / f"node-{node}"
            broker.settings |= {
                "node.id": node,
                "log.dirs": str(broker.log_dir),
                "controller.quorum.voters": voters,
                "listeners": f"PLAINTEXT://127.0.0.1:{broker.port},CONTROLLER://127.0.0.1:{controller}",
            }
            brokers.append(broker)
        for broker in brokers:
            started = broker._wait_for
            broker._wait_for = lambda port, process: None  # type: ignore[method-assign]  # a quorum is needed first
            stack.enter_context(broker)
            broker._wait_for = started  # type: ignore[method-assign]
        # the last one could not stop cleanly without a quorum
        stack.callback(lambda: [broker.stop(kill=True) for broker in brokers])
        for broker in brokers:
            assert broker.process is not None
            broker._wait_for(broker.port, broker.process)
        yield brokers


def replicas_of(servers: str) -> dict[tuple[str, int], list[int]]:
    """Return the nodes of each partition's replicas, the preferred leader first."""
    topics = AdminClient({"bootstrap.servers": servers, **QUIET}).list_topics(timeout=HANG_S).topics
    return {(name, each.id): each.replicas for name, topic in topics.items() for each in topic.partitions.values()}


def wait_for_replicas(servers: str) -> None:
    """Wait until all replicas of a cluster are in sync."""
    admin = AdminClient({"bootstrap.servers": servers, **QUIET})
    deadline = time.monotonic() + HANG_S
    while True:
        topics = admin.list_topics(timeout=HANG_S).topics
        partitions = [each for topic in topics.values() for each in topic.partitions.values()]
        if partitions and all(sorted(each.isrs) == sorted(each.replicas) for each in partitions):
            return
        assert time.monotonic() < deadline, [(each.id, each.replicas, each.isrs) for each in partitions]
        time.sleep(0.2)


@pytest.mark.parametrize("version", VERSIONS)
def test_three_nodes_start_with_all_replicas_in_sync(
    version: str, busy: tuple[str, Path, Path], tmp_path: Path
) -> None:
    if version != busy[0]:
        pytest.skip("the other release's logs")
    _, _, copy = busy
    point = drawn_point(copy, random.Random(5))
    target = tmp_path / "restored"
    restore_directory(str(copy), str(target), point, RestoreOptions(nodes=3), now_ms=time.time_ns() // 1_000_000)
    expected = tmp_path / "expected"
    restore_directory(str(copy), str(expected), point, now_ms=time.time_ns() // 1_000_000)
    with three_nodes(version, tmp_path, target) as brokers:
        servers = ",".join(broker.bootstrap_servers for broker in brokers)
        wait_for_replicas(servers)
        assert {len(nodes) for nodes in replicas_of(servers).values()} == {3}
        check_served(servers, expected)


@pytest.mark.parametrize("version", VERSIONS)
def test_kafka_starts_as_the_cluster_that_kwire_was(version: str, tmp_path: Path) -> None:
    data = tmp_path / "cluster" / "data"
    with Cluster(3, data_dir=data, seed=4, **{key.replace(".", "_"): value for key, value in SETTINGS.items()}) as ours:
        ours.create_topic("orders", 6, replication_factor=2)
        ours.create_topic("all", 2)
        servers = ours.bootstrap_servers
        producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, **QUIET})
        for n in range(600):
            producer.produce("orders", b"%d" % n, b"k%d" % n)
            producer.produce("all", b"%d" % n, partition=n % 2)
            if n == 300:
                assert producer.flush(HANG_S) == 0
                ours.move_leader("all", 0)
                ours.stop(2)
                ours.start(2)
        assert producer.flush(HANG_S) == 0
        consumer = Consumer({"bootstrap.servers": servers, "group.id": "g", "auto.offset.reset": "earliest", **QUIET})
        consumer.subscribe(["orders"])
        assert len(consumer.consume(250, HANG_S)) == 250
        consumer.commit(asynchronous=False)
        consumer.close()
        before = replicas_of(servers)
    assert run(["log", "restore", str(data), "-o", str(tmp_path / "nodes"), "--nodes", "3"]) == 0
    with three_nodes(version, tmp_path, tmp_path / "nodes") as brokers:
        servers = ",".join(broker.bootstrap_servers for broker in brokers)
        wait_for_replicas(servers)
        assert replicas_of(servers) == before
        for key, (_, end, records) in restored_records(data).items():
            assert consumed(servers, key, end) == records
        consumer = Consumer({"bootstrap.servers": servers, "group.id": "g", "auto.offset.reset": "earliest", **QUIET})
        consumer.subscribe(["orders"])
        rest: list[Message] = consumer.consume(350, HANG_S)
        assert [each.error() for each in rest] == [None] * 350
        brokers[2].stop(kill=True)  # its partitions get other leaders, which have all records
        producer = Producer({"bootstrap.servers": servers, "acks": "all", **QUIET})
        for n in range(600, 700):
            producer.produce("orders", b"%d" % n, b"k%d" % n)
        assert producer.flush(HANG_S) == 0
        new: list[Message] = consumer.consume(100, HANG_S)
        consumer.close()
    assert sorted(int(each.value() or b"") for each in new) == list(range(600, 700))


@pytest.mark.parametrize("version", VERSIONS)
def test_javas_consumer_reaches_the_end_of_a_log_that_was_cut_in_a_gap(version: str, tmp_path: Path) -> None:
    source = make(tmp_path / "source", (0, 5, 0), (296, 5, 100))
    now_ms = time.time_ns() // 1_000_000
    restore_directory(str(source), str(tmp_path / "data"), AtOffsets(offsets={("t", 0): 150}), now_ms=now_ms)
    classes = kafka.compile_java(PEER.with_name("ReadToEnd.java"), version=version)
    with kafka.KafkaBroker(tmp_path, version=version, heap="512m", **SETTINGS) as broker:
        servers = broker.bootstrap_servers
        out = kafka.java("ReadToEnd", servers, "t", "0", "20", version=version, classes=classes, heap="128m")
        assert out.split("\n")[:2] == ["0 1 2 3 4", "150 150"]
        producer = Producer({"bootstrap.servers": servers, **QUIET})
        producer.produce("t", b"more", partition=0)
        assert producer.flush(HANG_S) == 0
        out = kafka.java("ReadToEnd", servers, "t", "0", "20", version=version, classes=classes, heap="128m")
        assert out.split("\n")[:2] == ["0 1 2 3 4 150", "151 151"]
    assert complaints(tmp_path) == []


@pytest.mark.parametrize("how", ["restored", "adopted"])
def test_kafka_4_starts_on_a_cluster_whose_segments_were_smaller_than_it_accepts(how: str, tmp_path: Path) -> None:
    source = source_of_3_9(tmp_path / "source")
    now_ms, release = time.time_ns() // 1_000_000, RELEASES["4.0"]
    if how == "restored":
        restore_directory(
            str(source), str(tmp_path / "data"), AtTime(time_ms=now_ms), RestoreOptions(release=release), now_ms=now_ms
        )
    else:
        apply_adoption(plan_adoption([str(source)], release=release), now_ms=now_ms)
        source.rename(tmp_path / "data")
    with kafka.KafkaBroker(tmp_path, version="4.4.0", heap="512m", **SETTINGS) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, **QUIET})
        (described,) = admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, "orders")]).values()
        assert described.result(HANG_S)["segment.bytes"].value == "1048576"
        assert len(consumed(broker.bootstrap_servers, ("orders", 0), 10)) == 10
    assert complaints(tmp_path) == []


SHARES: dict[str, str | int] = {
    "group.share.heartbeat.interval.ms": 500,
    "group.share.min.heartbeat.interval.ms": 500,
    "group.share.assignment.interval.ms": 0,
    "group.share.session.timeout.ms": 3000,  # of the member at the cut, which shares partitions until then
    "group.share.min.session.timeout.ms": 3000,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "share.coordinator.state.topic.num.partitions": 3,
    "share.coordinator.snapshot.update.records.per.snapshot": 5,
}


class Acknowledged(NamedTuple):
    """A record that Java's share consumer acknowledged, between two times in ms."""

    topic: str
    partition: int
    offset: int
    value: str
    before_ms: int
    after_ms: int


def acknowledged(servers: str, *topics: str) -> list[Acknowledged]:
    """Let a member of a share group read until there are no more records; return what it acknowledged."""
    classes = kafka.compile_java(PEER.with_name("ShareProgress.java"), version="4.4.0")
    out = kafka.java("ShareProgress", servers, "g", "8000", *topics, version="4.4.0", classes=classes, heap="128m")
    lines = [line.split(" ") for line in out.splitlines()]
    return [Acknowledged(a, int(b), int(c), d, int(e), int(f)) for a, b, c, d, e, f in lines]


def test_javas_share_consumer_continues_after_a_cut(tmp_path: Path) -> None:
    """It gets each record that was not acknowledged at the moment, and none that was; also those written later."""
    with kafka.KafkaBroker(tmp_path / "first", version="4.4.0", heap="512m", **SETTINGS, **SHARES) as broker:
        servers = broker.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": servers, **QUIET})
        created = admin.create_topics([NewTopic("orders", 3, 1), NewTopic("plain", 1, 1)])
        assert [each.result(HANG_S) for each in created.values()] == [None, None]
        with RawClient(broker) as client:
            configure(client, "g", EARLIEST)
        producer = Producer({"bootstrap.servers": servers, **QUIET})

        def write() -> None:
            for n in range(600):
                producer.produce(("orders", "plain")[n % 2], b"%d" % n, partition=(n // 2) % 3 if n % 2 == 0 else 0)
                if n % 5 == 0:
                    producer.flush()
                    time.sleep(0.06)
            producer.flush()

        writer = threading.Thread(target=write)
        writer.start()
        done = acknowledged(servers, "orders", "plain")
        writer.join()
    assert len(done) == 600
    done.sort(key=lambda each: each.after_ms)
    for number, share in enumerate((0.1, 0.4, 0.8)):
        folder = tmp_path / f"cut-{number}"
        folder.mkdir()
        at_ms = done[int(len(done) * share)].after_ms
        result = restore_directory(
            str(tmp_path / "first" / "data"), str(folder / "data"), AtTime(time_ms=at_ms), now_ms=at_ms + 1000
        )
        assert result.warnings == []
        kept = {key: end for key, (_, end, _) in restored_records(folder / "data").items()}
        with kafka.KafkaBroker(folder, version="4.4.0", heap="512m", **SETTINGS, **SHARES) as broker:
            again = Producer({"bootstrap.servers": broker.bootstrap_servers, **QUIET})
            for key in kept:
                for _ in range(20):  # at offsets that were acknowledged after the moment
                    again.produce(key[0], b"new", partition=key[1])
            assert again.flush(HANG_S) == 0
            got = acknowledged(broker.bootstrap_servers, "orders", "plain")
        assert complaints(folder) == []
        places = [(each.topic, each.partition, each.offset) for each in got]
        assert len(set(places)) == len(places)
        old = {place for place in places if place[2] < kept[place[:2]]}
        assert sorted(set(places) - old) == [(*key, end + i) for key, end in sorted(kept.items()) for i in range(20)]
        there = {(*key, offset) for key, end in kept.items() for offset in range(end)}
        earlier = {each[:3] for each in done if each.after_ms <= at_ms}
        possible = {each[:3] for each in done if each.before_ms <= at_ms}
        assert there - possible <= old <= there - earlier
        assert old
