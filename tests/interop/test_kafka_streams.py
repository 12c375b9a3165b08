"""Kafka Streams 4.4 on our broker: exactly once with the classic protocol, through a crash and lost state."""

from __future__ import annotations

import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from tests.waiting import HANG_S, until
from tools import kafka

from kwire.broker import Broker

pytestmark = [pytest.mark.jvm, pytest.mark.slow]

RELEASE = "4.4.0"
KEYS = 10


class Streams:
    """A running StreamsCount. state: its state directory."""

    def __init__(self, broker: Broker, state: Path, protocol: str = "classic", halt_at: int = 0) -> None:
        jars = kafka.streams_jars(RELEASE)
        classes = kafka.compile_java(Path(__file__).parent / "java" / "StreamsCount.java", folder=jars)
        java = [kafka.need("java", "openjdk-17-jdk-headless"), *kafka.SHORT_LIVED, "-Xmx256m"]
        program = ["-cp", f"{classes}:{jars}/*", "StreamsCount"]
        arguments = [broker.bootstrap_servers, str(state), protocol, str(halt_at)]
        self.process = subprocess.Popen(
            [*java, *program, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def close(self) -> list[str]:
        """Let it end; returns what it printed."""
        output, _ = self.process.communicate(timeout=HANG_S)
        assert self.process.returncode == 0
        return output.splitlines()


@contextmanager
def running(broker: Broker, state: Path) -> Iterator[Streams]:
    """Run Kafka Streams; kill it if the block fails."""
    streams = Streams(broker, state)
    try:
        yield streams
    finally:
        streams.process.kill()
        streams.process.wait()


def produce(broker: Broker, numbers: range) -> None:
    """Produce a record for each number, with one of KEYS keys."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    for number in numbers:
        producer.produce("lines", b"line", key=f"key {number % KEYS}")
    assert producer.flush(HANG_S) == 0


class Counted:
    """A consumer of committed counts. counts: by key, in order."""

    def __init__(self, broker: Broker) -> None:
        settings = {"group.id": "test", "auto.offset.reset": "earliest", "isolation.level": "read_committed"}
        self.consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0, **settings})
        self.consumer.subscribe(["counted"])
        self.counts: dict[bytes, list[int]] = defaultdict(list)

    def total(self) -> int:
        """Read what has come; returns the number of counts so far."""
        for message in self.consumer.consume(1000, 0.2):
            assert message.error() is None
            key, value = message.key(), message.value()
            assert isinstance(key, bytes)
            assert isinstance(value, bytes)
            self.counts[key].append(int.from_bytes(value, "big"))
        return sum(map(len, self.counts.values()))


def test_counts_are_exact_through_a_crash_and_lost_state(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with Broker(tmp_path / "data") as broker:
        for topic in ("lines", "counted"):
            broker.create_topic(topic, 3)
        produce(broker, range(3000))
        counted = Counted(broker)
        crashed = Streams(broker, state, halt_at=1500)
        assert crashed.process.wait(HANG_S) == 3
        crashed.process.communicate()
        with running(broker, state) as streams:
            until(lambda: counted.total() >= 3000)
            streams.close()
        used = {entry.api for entry in broker.requests}
        counted.consumer.close()
        broker.stop()
        broker.start()
        shutil.rmtree(state)
        produce(broker, range(3000, 4000))
        again = Counted(broker)
        again.counts = counted.counts
        with running(broker, state) as streams:
            until(lambda: again.total() >= 4000)
            printed = streams.close()
        again.consumer.close()
    assert again.counts == {f"key {key}".encode(): list(range(1, 401)) for key in range(KEYS)}
    restored = [int(line.split()[2]) for line in printed if line.startswith("restored")]
    assert len(restored) == 3  # one store for each partition
    assert sum(restored) >= 3000
    assert {"JoinGroup", "SyncGroup", "TxnOffsetCommit", "EndTxn"} <= used
    assert not any("Heartbeat" in api and api != "Heartbeat" for api in used)


def test_the_streams_protocol_is_refused(tmp_path: Path) -> None:
    with Broker() as broker:
        for topic in ("lines", "counted"):
            broker.create_topic(topic, 3)
        streams = Streams(broker, tmp_path, protocol="streams")
        broker.wait_for("StreamsGroupHeartbeat", timeout=HANG_S)
        printed = streams.close()
    assert any("does not support the STREAMS group protocol" in line for line in printed)
