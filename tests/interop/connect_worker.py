"""A distributed worker of Kafka Connect as a process, what its cluster writes, and what it keeps in internal topics."""

from __future__ import annotations

import json
import signal
import subprocess
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from tests.waiting import HANG_S, until
from tools import kafka

RELEASE = "4.3.0"
"""The newest whose connectors for files are on Maven Central."""
TOPICS = {"connect-configs": 1, "connect-offsets": 3, "connect-status": 1}
"""Internal topics of the workers, with the number of partitions."""
WORKER: dict[str, object] = {
    "group.id": "connect",
    "config.storage.topic": "connect-configs",
    "config.storage.replication.factor": -1,
    "offset.storage.topic": "connect-offsets",
    "offset.storage.replication.factor": -1,
    "offset.storage.partitions": TOPICS["connect-offsets"],
    "offset.storage.segment.ms": 1000,  # the cleaner leaves an active segment alone
    "offset.storage.min.cleanable.dirty.ratio": 0.01,
    "status.storage.topic": "connect-status",
    "status.storage.replication.factor": -1,
    "status.storage.partitions": TOPICS["connect-status"],
    "exactly.once.source.support": "enabled",
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    "session.timeout.ms": 6000,
    "heartbeat.interval.ms": 1000,
    "consumer.session.timeout.ms": 6000,  # sinks of a worker that was killed are replaced by then
    "consumer.heartbeat.interval.ms": 1000,
    "scheduled.rebalance.max.delay.ms": 0,
    "offset.flush.interval.ms": 500,
    "plugin.discovery": "only_scan",
}


class Worker:
    """A running worker. log: its output. id: its name in the status of connectors."""

    def __init__(self, servers: str, folder: Path, name: str) -> None:
        port = kafka.free_port()
        self.id, self.url, self.log = f"127.0.0.1:{port}", f"http://127.0.0.1:{port}", folder / f"{name}.log"
        settings = {**WORKER, "bootstrap.servers": servers, "listeners": self.url}
        properties = folder / f"{name}.properties"
        properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        java = [kafka.need("java", "openjdk-17-jdk-headless"), *kafka.SHORT_LIVED, "-Xmx300m"]
        program = ["-cp", f"{kafka.connect_jars(RELEASE)}/*", "org.apache.kafka.connect.cli.ConnectDistributed"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen([*java, *program, str(properties)], stdout=log, stderr=log)

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Return what the worker's REST API responds; None while it does not, as in a rebalance."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return json.loads(response.read() or b"{}")
        except (URLError, TimeoutError, ConnectionError):
            self.check_runs()
            return None

    def check_runs(self) -> None:
        """Check that the process has not ended."""
        assert self.process.poll() is None, self.log.read_text()[-2000:]

    def insist(self, method: str, path: str, body: object = None) -> Any:
        """Ask until the worker responds."""
        responses: list[Any] = []

        def answered() -> bool:
            responses.append(self.ask(method, path, body))
            return responses[-1] is not None

        until(answered, f"{method} {path}")
        return responses[-1]

    def create(self, name: str, connector: str, **config: object) -> None:
        """Create a connector or change its config."""
        given = {key.replace("_", "."): str(value) for key, value in config.items()}
        self.insist("PUT", f"/connectors/{name}/config", {"connector.class": connector, **given})

    def shares(self, tasks: dict[str, int]) -> dict[str, tuple[int, int]] | None:
        """Return how many connectors and tasks each worker runs; None until all are running. tasks: by connector."""
        connectors: Counter[str] = Counter()
        parts: Counter[str] = Counter()
        for name, count in tasks.items():
            status = self.ask("GET", f"/connectors/{name}/status")
            if status is None or len(status["tasks"]) != count:
                return None
            if {each["state"] for each in (status["connector"], *status["tasks"])} != {"RUNNING"}:
                return None
            connectors[status["connector"]["worker_id"]] += 1
            parts.update(each["worker_id"] for each in status["tasks"])
        return {each: (connectors[each], parts[each]) for each in connectors | parts}

    def pause(self) -> None:
        """Let the process stand still, as in a long collection of garbage."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it continue."""
        self.process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Let it end."""
        self.process.terminate()
        self.process.wait(HANG_S)

    def kill(self) -> None:
        """Kill it."""
        self.process.kill()
        self.process.wait()


@contextmanager
def workers(servers: str, folder: Path) -> Iterator[Callable[[str], Worker]]:
    """Return a function that starts a worker with a name. All are killed at the end."""
    started: list[Worker] = []

    def start(name: str) -> Worker:
        started.append(Worker(servers, folder, name))
        return started[-1]

    try:
        yield start
    finally:
        for each in started:
            each.kill()


class Committed:
    """A consumer of the committed records of a topic. values: so far."""

    def __init__(self, servers: str, topic: str, partitions: int) -> None:
        settings = {"group.id": "test", "auto.offset.reset": "earliest", "isolation.level": "read_committed"}
        self.consumer = Consumer({"bootstrap.servers": servers, "log_level": 0, **settings})
        self.consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
        self.values: list[str] = []

    def has(self, count: int) -> Callable[[], bool]:
        """Return a function that reads and says whether there are this many values."""

        def read() -> bool:
            for message in self.consumer.consume(1000, 0.1):
                value = message.value()
                if message.error() is None and isinstance(value, bytes):
                    self.values.append(value.decode())
            return len(self.values) >= count

        return read


def read_all(servers: str, topic: str) -> list[tuple[str, Any]]:
    """Return keys and parsed values of the committed records that an internal topic has."""
    settings = {"group.id": "reader", "enable.partition.eof": True, "log_level": 0}
    consumer = Consumer({"bootstrap.servers": servers, **settings})
    consumer.assign([TopicPartition(topic, index, 0) for index in range(TOPICS[topic])])
    records: list[tuple[str, Any]] = []
    ends: set[int | None] = set()
    while len(ends) < TOPICS[topic]:
        for message in consumer.consume(1000, 1):
            key, value = message.key(), message.value()
            if message.error() is not None:
                ends.add(message.partition())
            else:
                assert isinstance(key, bytes)
                records.append((key.decode(), None if value is None else json.loads(value)))
    consumer.close()
    return records


def cleanup_policies(servers: str) -> dict[str, str]:
    """Return the cleanup policies of the internal topics."""
    admin = AdminClient({"bootstrap.servers": servers})
    asked = admin.describe_configs([ConfigResource(ResourceType.TOPIC, each) for each in TOPICS])
    return {resource.name: future.result(60)["cleanup.policy"].value for resource, future in asked.items()}
