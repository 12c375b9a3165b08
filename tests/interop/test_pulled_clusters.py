"""Copies of a cluster of three Kafka brokers whose leaders move, one of them without all records."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.interop.test_pulled_copies import batches
from tests.waiting import HANG_S
from tools import kafka

from kwire.client import Client
from kwire.client.fetcher import FetchedBatches, Fetcher, Position
from kwire.errors import BrokerError, ConnectionFailed
from kwire.log import LogDirectory
from kwire.maintenance.pull import PullOptions, PullResult, pull
from kwire.maintenance.verify import verify_directory
from kwire.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
)

pytestmark = [pytest.mark.jvm, pytest.mark.slow]

MOVES = 50
LIMIT_S = 5
PREFERRED = 0


class Cluster:
    """Three brokers; the first one is the controller as well. settings: of all brokers, with {} for the node's id."""

    def __init__(self, folder: Path, stack: ExitStack, version: str, settings: Mapping[str, str]) -> None:
        self._folder, self._stack, self._version, self._settings = folder, stack, version, settings
        self._controller = kafka.free_port()
        self.brokers = {n: self._broker(n) for n in (1, 2, 3)}

    def _broker(self, node_id: int) -> kafka.KafkaBroker:
        folder = self._folder / f"node-{node_id}"
        settings: dict[str, str | int] = {
            "node.id": node_id,
            "controller.quorum.voters": f"1@127.0.0.1:{self._controller}",
            "offsets.topic.replication.factor": 1,
            "replica.lag.time.max.ms": 1000,
            "broker.session.timeout.ms": 3000,
            "auto.leader.rebalance.enable": "false",
            **{name: value.format(node_id) for name, value in self._settings.items()},
        }
        broker = kafka.KafkaBroker(folder, version=self._version, heap="256m", **settings)
        plain = f"PLAINTEXT://127.0.0.1:{broker.port}"
        if node_id == 1:
            broker.settings["listeners"] = f"{plain},CONTROLLER://127.0.0.1:{self._controller}"
        else:
            broker.settings |= {"process.roles": "broker", "listeners": plain}
        return self._stack.enter_context(broker)

    @property
    def servers(self) -> str:
        return self.brokers[1].bootstrap_servers


@contextmanager
def running(folder: Path, version: str = "3.9.1", **settings: str) -> Iterator[Cluster]:
    """settings: of all brokers, as in Cluster, with underscores for dots."""
    with ExitStack() as stack:
        yield Cluster(folder, stack, version, {name.replace("_", "."): value for name, value in settings.items()})


def create(cluster: Cluster, name: str, replicas: list[list[int]], **configs: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.servers})
    config = {key.replace("_", "."): value for key, value in configs.items()}
    until(lambda: len(admin.list_topics(timeout=5).brokers) == 3)
    for created in admin.create_topics(
        [NewTopic(name, len(replicas), replica_assignment=replicas, config=config)]
    ).values():
        created.result()


def until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + HANG_S
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def move_leader(client: Client, topic: str, partition: int, replicas: list[int]) -> None:
    """Make the first of the replicas the preferred leader, and elect it."""
    reassign = AlterPartitionReassignmentsRequest.ReassignablePartition(partition_index=partition, replicas=replicas)
    topics = [AlterPartitionReassignmentsRequest.ReassignableTopic(name=topic, partitions=[reassign])]
    controller = client.metadata([]).controller_id
    client.request(
        AlterPartitionReassignmentsRequest(topics=topics, timeout_ms=10_000),
        AlterPartitionReassignmentsResponse,
        node_id=controller,
    )
    chosen = [ElectLeadersRequest.TopicPartitions(topic=topic, partitions=[partition])]
    client.request(
        ElectLeadersRequest(election_type=PREFERRED, topic_partitions=chosen, timeout_ms=10_000),
        ElectLeadersResponse,
        node_id=controller,
    )


def test_a_copy_follows_leaders_that_move(tmp_path: Path) -> None:
    with running(tmp_path) as cluster:
        create(cluster, "orders", [[1, 2, 3]] * 3, segment_bytes="1048576")
        stop, epochs = threading.Event(), set[int]()

        def produce() -> None:
            producer = Producer({"bootstrap.servers": cluster.servers, "linger.ms": 5, "enable.idempotence": True})
            i = 0
            while not stop.is_set():
                producer.produce("orders", b"value %d" % i * 10, key=b"%d" % i)
                producer.poll(0.001 if i % 50 else 0.01)
                i += 1
            producer.flush()

        def move() -> None:
            rng = random.Random(3)
            with Client(cluster.servers) as client:
                for _ in range(MOVES):
                    move_leader(client, "orders", rng.randrange(3), rng.sample([1, 2, 3], 3))
                    epochs.update(
                        p.leader_epoch for p in client.metadata(["orders"]).topics["orders"].partitions.values()
                    )
                    time.sleep(0.3)
            stop.set()

        threads = [threading.Thread(target=each) for each in (produce, move)]
        for thread in threads:
            thread.start()
        with Client(cluster.servers) as client:
            result = pull(client, str(tmp_path / "copy"), PullOptions(follow=True, groups=False), stop=stop.is_set)
            for thread in threads:
                thread.join()
            assert not result.failures
            assert max(epochs) > 5
            assert pull(client, str(tmp_path / "copy"), PullOptions(groups=False)).is_complete
            leaders = {n: p.leader for n, p in client.metadata(["orders"]).topics["orders"].partitions.items()}
    copied = batches(tmp_path / "copy")
    assert sum(map(len, copied.values())) > 100
    for partition, leader in leaders.items():
        stored = batches(tmp_path / f"node-{leader}" / "data")
        assert copied["orders", partition] == stored["orders", partition]
    assert [each for each in verify_directory(LogDirectory(tmp_path / "copy")).damages if not each.is_harmless] == []


def test_a_copy_loses_what_an_unclean_election_loses(tmp_path: Path) -> None:
    """Records that only the old leader has are copied; the new leader writes others at their offsets."""
    with running(tmp_path) as cluster:
        create(cluster, "orders", [[2, 3]], unclean_leader_election_enable="true", min_insync_replicas="1")
        write(cluster.servers, b"both", 100, acks="all")
        cluster.brokers[3].stop()
        with Client(cluster.servers) as client:
            until(lambda: write(cluster.servers, b"only the old leader", 10) > 150)
            copy = str(tmp_path / "copy")
            until(lambda: pull(client, copy, PullOptions(groups=False)).copied["orders", 0].log_end_offset > 150)
            before = LogDirectory(copy)["orders", 0].log_end_offset
        cluster.brokers[2].stop(kill=True)
        cluster.brokers[3].__enter__()
        write(cluster.servers, b"the new leader", 10)
        with Client(cluster.servers) as client:
            until(lambda: leader_of(client) == 3)
            result = pull(client, copy, PullOptions(groups=False))
        assert result.is_complete
        (event,) = result.events
        assert (event.kind, event.first_offset, event.end_offset) == ("truncated", 100, before)
    assert batches(tmp_path / "copy")["orders", 0] == batches(tmp_path / "node-3" / "data")["orders", 0]
    values = [bytes(record.value or b"") for record in LogDirectory(copy)["orders", 0].read()]
    assert values == [b"both"] * 100 + [b"the new leader"] * 10


def leader_of(client: Client) -> int | None:
    try:
        return client.metadata(["orders"]).topics["orders"].partitions[0].leader
    except (BrokerError, ConnectionFailed):
        return None


def write(servers: str, value: bytes, n: int, acks: str = "1", *, topic: str = "orders", partition: int = 0) -> int:
    """Write n records and return the offset after the last one."""
    producer, ends = Producer({"bootstrap.servers": servers, "acks": acks}), [0]
    for _ in range(n):
        producer.produce(topic, value, partition=partition, on_delivery=lambda _, m: ends.append((m.offset() or 0) + 1))
    assert producer.flush(HANG_S) == 0
    return max(ends)


def test_a_copy_goes_on_while_a_broker_is_dead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Partitions with another leader are copied on; those without one when their broker is back."""
    monkeypatch.setattr("kwire.maintenance.pull.run.METADATA_S", 0.5)  # metadata has a dead broker for a few seconds
    copy, stop = str(tmp_path / "copy"), threading.Event()
    with running(tmp_path) as cluster, ThreadPoolExecutor() as pool:
        create(cluster, "orders", [[1, 2], [2, 3], [3, 1]], min_insync_replicas="1")
        create(cluster, "alone", [[3]])
        write(cluster.servers, b"before", 10)
        write(cluster.servers, b"before", 10, topic="alone")

        def follow() -> PullResult:
            with Client(cluster.servers, **{"default.api.timeout.ms": LIMIT_S * 1000}) as client:
                return pull(client, copy, PullOptions(follow=True), stop=stop.is_set)

        def copied(topic: str, partition: int) -> int:
            assert not following.done(), following.result()
            log = LogDirectory(copy).get((topic, partition))
            return 0 if log is None else log.log_end_offset

        following = pool.submit(follow)
        try:
            until(lambda: (Path(copy) / "orders-2").exists() and copied("alone", 0) == 10)
            cluster.brokers[3].stop(kill=True)
            died = time.monotonic()
            while time.monotonic() < died + 5 * LIMIT_S:
                ends = {n: write(cluster.servers, b"meanwhile", 10, partition=n) for n in range(3)}
                until(lambda ends=ends: all(copied("orders", n) == end for n, end in ends.items()))
            cluster.brokers[3].__enter__()
            end = write(cluster.servers, b"after", 10, topic="alone")
            until(lambda: copied("alone", 0) == end)
        finally:
            stop.set()
        result = following.result()
    assert result.is_complete
    assert not result.failures
    assert not result.events
    assert result.manifest.hidden == []


def test_a_stalled_broker_is_given_up_while_others_respond(tmp_path: Path) -> None:
    with running(tmp_path) as cluster:
        create(cluster, "orders", [[2, 1], [3, 1]])
        producer = Producer({"bootstrap.servers": cluster.servers, "linger.ms": 0})

        def write(partition: int) -> None:
            producer.produce("orders", b"value", partition=partition)
            producer.flush()

        write(0)
        write(1)
        settings = {"request.timeout.ms": 2000, "socket.connection.setup.timeout.ms": 2000}
        stalled = cluster.brokers[3].process
        assert stalled is not None
        with Client(cluster.servers, **settings) as client, Fetcher(client) as fetcher:
            ends = {0: 0, 1: 0}

            def poll() -> None:
                for result in fetcher.poll():
                    assert isinstance(result, FetchedBatches)
                    ends[result.key[1]] = result.after.offset

            def is_read_from_the_next_leader() -> bool:
                write(0)  # the other broker always has a response
                poll()
                return ends[1] == 2

            for n in (0, 1):
                fetcher.add(("orders", n), Position(0))
            while ends != {0: 1, 1: 1}:
                poll()
            stalled.send_signal(signal.SIGSTOP)
            try:
                until(lambda: client.metadata(["orders"]).topics["orders"].partitions[1].leader == 1)
                write(1)
                until(is_read_from_the_next_leader)
            finally:
                stalled.send_signal(signal.SIGCONT)
        assert ends[0] > 1
