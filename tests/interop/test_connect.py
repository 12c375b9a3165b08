"""Kafka Connect 4.3 in distributed mode on three nodes of ours and of a real Kafka 4.4.0.

Two workers share connectors for files, crash, stand still and restart, while leaders and coordinators move and nodes
stop. Each line of the source is committed once, and internal topics have the same content.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.interop.connect_worker import TOPICS, Committed, Worker, cleanup_policies, read_all, workers
from tests.interop.real_cluster import RealCluster
from tests.waiting import until

from kwire.broker import Broker, Cluster

pytestmark = [pytest.mark.jvm, pytest.mark.slow, pytest.mark.timeout(3600)]

SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
MIRROR = "org.apache.kafka.connect.mirror.MirrorSourceConnector"
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
TASKS = {"source": 1, "sink": 2}
LINE_BYTES = 600
"""More than half of the source's buffer: the lines left in it after a full batch wait until the file grows."""
BATCH = 5
"""Lines in a transaction."""
SETTINGS: dict[str, str | int] = {"num.partitions": 3, "log.cleaner.backoff.ms": 1000}


class Files:
    """The file that the source reads, the one that the sinks write, and what was committed between them."""

    def __init__(self, servers: str, folder: Path) -> None:
        self.source, self.sink = folder / "source.txt", folder / "sink.txt"
        self.count = 0
        self.committed = Committed(servers, "lines", 3)

    def expected(self, first: int = 0) -> list[str]:
        """Return the lines from a number on."""
        return [f"line {number} ".ljust(LINE_BYTES - 1, ".") for number in range(first, self.count)]

    def write(self, count: int) -> None:
        """Append lines to the source, and wait until the first of them are committed."""
        first = self.count
        self.count += count
        with self.source.open("a") as file:
            file.writelines(f"{line}\n" for line in self.expected(first))
        until(self.committed.has(first + 2 * BATCH), f"lines after {first}")

    def arrive(self) -> None:
        """Wait until all lines are committed and written by the sinks."""
        until(self.committed.has(self.count), f"{self.count} lines")
        until(lambda: set(self.copied()) >= set(self.expected()), f"{self.count} lines of the sink")

    def go_on(self) -> None:
        """Wait until five more transactions are committed, or all lines."""
        self.committed.has(0)()
        until(self.committed.has(min(len(self.committed.values) + 5 * BATCH, self.count)), "lines go on")

    def copied(self) -> list[str]:
        """Return the lines that the sinks have written."""
        return self.sink.read_text().splitlines()


def copy_files(cluster: Cluster | RealCluster, folder: Path) -> dict[str, Any]:
    """Let workers copy a file by a topic to another file while a cluster changes; returns what both clusters show."""
    servers = cluster.bootstrap_servers
    files = Files(servers, folder)

    def disturbed(*numbers: int) -> None:
        for number in numbers:
            files.write(100)
            change(cluster, number, files)

    with workers(servers, folder) as start:
        first = start("first")
        first.create("source", SOURCE, file=files.source, topic="lines", batch_size=BATCH, tasks_max=1)
        first.create("sink", SINK, file=files.sink, topics="lines", tasks_max=2, errors_tolerance="none")
        until(lambda: first.shares(TASKS) == {first.id: (2, 3)})
        disturbed(0, 1)
        files.arrive()

        second = start("second")
        until(lambda: is_balanced(first, second))
        lost, left = (first, second) if runs_source(first) else (second, first)
        files.write(100)
        lost.kill()
        until(lambda: left.shares(TASKS) == {left.id: (2, 3)})
        disturbed(2, 3)
        files.arrive()

        third = start("third")
        until(lambda: is_balanced(left, third))
        zombie, alive = (left, third) if runs_source(left) else (third, left)
        files.write(100)
        zombie.pause()
        until(lambda: alive.shares(TASKS) == {alive.id: (2, 3)})
        disturbed(4, 5)
        zombie.resume()
        until(lambda: is_balanced(alive, zombie))
        files.write(100)
        files.arrive()
        assert sorted(files.committed.values) == sorted(files.expected())
        zombie.stop()
        alive.stop()

        until(
            lambda: len(read_all(servers, "connect-offsets")) < files.count // BATCH // 2,
            "connect-offsets is compacted",
        )
        last = start("last")
        until(lambda: last.shares(TASKS) == {last.id: (2, 3)})
        files.write(50)
        files.arrive()
        said = rewind(last, files)
        assert Counter(files.committed.values) == Counter(files.expected() + files.expected(files.count - 100))
        said.append(last.insist("POST", "/connectors/source/restart?includeTasks=true"))
        until(lambda: last.shares(TASKS) == {last.id: (2, 3)})
        files.write(50)
        files.arrive()
        files.committed.consumer.close()
        contents = {topic: dict(read_all(servers, topic)) for topic in TOPICS}
    facts = {"responses": said, "policies": cleanup_policies(servers), **contents}
    return normal(json.loads(json.dumps(facts).replace(str(folder), "FOLDER")))


def is_balanced(one: Worker, other: Worker) -> bool:
    """Return whether each of two workers runs a connector, and one or two tasks."""
    other.check_runs()
    shares = one.shares(TASKS) or {}
    return shares in ({one.id: (1, 1), other.id: (1, 2)}, {one.id: (1, 2), other.id: (1, 1)})


def runs_source(worker: Worker) -> bool:
    """Return whether a worker runs the task of the source."""
    return worker.insist("GET", "/connectors/source/status")["tasks"][0]["worker_id"] == worker.id


def rewind(worker: Worker, files: Files) -> list[Any]:
    """Let the source read the last 100 lines again, and the sinks the topic; returns the responses."""
    for name in TASKS:
        worker.insist("PUT", f"/connectors/{name}/stop")
    for name in TASKS:
        until(lambda name=name: not worker.insist("GET", f"/connectors/{name}/status")["tasks"])  # type: ignore[misc]
    files.sink.unlink()
    found = worker.insist("GET", "/connectors/source/offsets")
    [offset] = found["offsets"]
    position = offset["offset"]["position"] - 100 * LINE_BYTES
    earlier = {"offsets": [{"partition": offset["partition"], "offset": {"position": position}}]}
    said = [found, worker.insist("PATCH", "/connectors/source/offsets", earlier)]
    sinks = worker.insist("GET", "/connectors/sink/offsets")["offsets"]
    said += [len(sinks), worker.insist("DELETE", "/connectors/sink/offsets")]
    for name in TASKS:
        worker.insist("PUT", f"/connectors/{name}/resume")
    until(files.committed.has(files.count + 100))
    files.arrive()
    return said


def normal(value: Any) -> Any:
    """Return a JSON value without what differs from run to run."""
    if isinstance(value, list):
        return [normal(each) for each in value]
    if not isinstance(value, dict):
        return value
    passing = {"session-key", "worker_id", "generation", "discoverTimestamp", "task"}
    return {key: normal(each) for key, each in sorted(value.items()) if key not in passing and each is not None}


def change(cluster: Cluster | RealCluster, number: int, files: Files) -> None:
    """Do one of six changes to a cluster while lines are on their way."""
    if number == 0:
        for topic, count in {"lines": 3, **TOPICS}.items():
            for partition in range(count):
                cluster.move_leader(topic, partition)
    elif number == 2:
        for name in ("connect", "connect-sink", "connect-source-0", "connect-cluster-connect"):
            cluster.move_coordinator(name)
    elif number == 4 and isinstance(cluster, Cluster):  # a real one can take minutes to go on after a crash
        cluster.crash(1)
        cluster.start(1)
    else:
        node = (number + 1) // 2
        cluster.stop(node)
        files.go_on()
        cluster.start(node)


@contextlib.contextmanager
def real(folder: Path) -> Iterator[RealCluster]:
    """Run three nodes of Kafka."""
    with contextlib.ExitStack() as cleanup:
        yield RealCluster(folder, cleanup, "4.4.0", **SETTINGS)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("connect")
    with real(folder / "kafka") as cluster:
        return copy_files(cluster, folder)


def test_files_are_copied_as_on_kafka_while_a_cluster_changes(tmp_path: Path, expected: dict[str, Any]) -> None:
    assert set(expected["policies"].values()) == {"compact"}
    assert expected["connect-offsets"] == {
        '["source",{"filename":"FOLDER/source.txt"}]': {"position": 1000 * LINE_BYTES}
    }
    assert expected["connect-configs"]["tasks-fencing-source"] == {"task-count": 1}
    assert len(expected["connect-configs"]) > 10
    assert [each["state"] for each in expected["connect-status"].values() if "state" in each] == ["RUNNING"] * 5
    ours: dict[str, Any] = {name.replace(".", "_"): value for name, value in SETTINGS.items()}
    with Cluster(nodes=3, **ours) as cluster:
        assert copy_files(cluster, tmp_path) == expected


def test_a_topic_is_mirrored_exactly_once_to_a_cluster(tmp_path: Path) -> None:
    """Committed records only, through a crash of the worker and a config whose tasks fence those before."""
    with Cluster(nodes=3, keep_requests=100_000) as target:
        check_mirrored(target, tmp_path)
        users = {
            (each.request.transactional_id, each.client_id)
            for each in target.requests.of("InitProducerId")
            if each.request.transactional_id.startswith("connect-mirror-")
        }
    assert Counter(name for name, _ in users) == {"connect-mirror-0": 2, "connect-mirror-1": 2}  # the task, the fencing


def test_a_topic_is_mirrored_exactly_once_to_kafka(tmp_path: Path) -> None:
    with real(tmp_path / "kafka") as target:
        check_mirrored(target, tmp_path)


def check_mirrored(target: Cluster | RealCluster, folder: Path) -> None:
    """Mirror 750 transactions, of which every fifth is aborted, and check what the cluster has then."""
    with Broker() as origin:
        origin.create_topic("orders", 2)
        with workers(target.bootstrap_servers, folder) as start:
            committed = mirror(origin, target, start)
    fencing = dict(read_all(target.bootstrap_servers, "connect-configs"))["tasks-fencing-mirror"]
    assert sorted(committed) == sorted(f"order {number}" for number in range(750) if number % 5)
    assert fencing == {"task-count": 2}


def mirror(origin: Broker, target: Cluster | RealCluster, start: Callable[[str], Worker]) -> list[str]:
    """Copy transactions from a broker to a cluster, and return the committed values there."""
    producer = Producer({"bootstrap.servers": origin.bootstrap_servers, "transactional.id": "p", "log_level": 0})
    producer.init_transactions()

    def produce(numbers: range) -> None:
        for number in numbers:
            producer.begin_transaction()
            producer.produce("orders", b"order %d" % number, partition=number % 2)
            if number % 5:
                producer.commit_transaction()
            else:
                producer.flush()
                producer.abort_transaction()

    def configure(worker: Worker, max_poll_records: int) -> None:
        config = {
            "source.cluster.alias": "a",
            "target.cluster.alias": "b",
            "source.cluster.bootstrap.servers": origin.bootstrap_servers,
            "target.cluster.bootstrap.servers": target.bootstrap_servers,
            "topics": "orders",
            "tasks.max": 2,
            "source.consumer.isolation.level": "read_committed",
            "source.consumer.max.poll.records": max_poll_records,
            "replication.factor": 3,
            "offset-syncs.topic.replication.factor": 1,
            "exactly.once.support": "required",
            "key.converter": BYTES,
            "value.converter": BYTES,
        }
        worker.create("mirror", MIRROR, **config)

    produce(range(250))
    first = start("first")
    configure(first, 10)
    until(lambda: first.shares({"mirror": 2}) == {first.id: (1, 2)})
    committed = Committed(target.bootstrap_servers, "a.orders", 2)
    until(committed.has(50))
    first.kill()
    produce(range(250, 500))
    second = start("second")
    until(committed.has(300))
    configure(second, 20)
    target.move_leader("a.orders", 0)
    target.move_coordinator("connect-mirror-0")
    target.move_coordinator("connect-mirror-1")
    produce(range(500, 750))
    until(committed.has(600))
    until(lambda: second.shares({"mirror": 2}) == {second.id: (1, 2)})
    second.stop()
    committed.has(601)()
    committed.consumer.close()
    return committed.values
