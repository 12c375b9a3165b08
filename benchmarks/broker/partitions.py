"""What do 10,000 partitions cost a broker: to create and fill, in memory, and at the next start?

A hundred topics of a hundred partitions with a record each. `start` is after a clean stop, until clients can connect.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tools.kafka import KafkaBroker

from benchmarks.broker.serving import PEERS, Served, start_kwire, stop
from benchmarks.messages.timing import line

LARGE = True
TOPICS, PARTITIONS, AT_ONCE = 100, 100, 10
TIMEOUT_S = 300
UNITS = {
    "fill": "s",
    "fill_cpu": "s",
    "memory": "MB",
    "metadata": "ms",
    "start": "s",
    "start_cpu": "s",
    "start_memory": "MB",
}


def fill(served: Served) -> dict[str, float]:
    """Create the topics and produce a record to each partition; return figures by name."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    client = {"bootstrap.servers": served.address, "log_level": 0}
    admin = AdminClient({**client, "socket.timeout.ms": TIMEOUT_S * 1000})
    start, before = time.perf_counter(), served.cpu_s()
    topics = [f"topic-{number}" for number in range(TOPICS)]
    for first in range(0, TOPICS, AT_ONCE):
        new = [NewTopic(topic, PARTITIONS, 1) for topic in topics[first : first + AT_ONCE]]
        for created in admin.create_topics(new, request_timeout=TIMEOUT_S, operation_timeout=TIMEOUT_S).values():
            created.result()
    producer = Producer({**client, "acks": 1, "queue.buffering.max.messages": 2 * TOPICS * PARTITIONS})
    for topic in topics:
        for number in range(PARTITIONS):
            producer.produce(topic, b"x" * 100, partition=number)
        producer.poll(0)
    assert producer.flush(TIMEOUT_S) == 0
    figures = {
        "fill": time.perf_counter() - start,
        "fill_cpu": served.cpu_s() - before,
        "memory": served.memory_mb(),
    }
    times = []
    for _ in range(5):
        start = time.perf_counter()
        assert len(admin.list_topics(timeout=TIMEOUT_S).topics) >= TOPICS
        times.append((time.perf_counter() - start) * 1000)
    return {**figures, "metadata": min(times)}


def started(served: Served, seconds: float) -> dict[str, float]:
    """Return the figures of a start."""
    return {"start": seconds, "start_cpu": served.cpu_s(), "start_memory": served.memory_mb()}


def ours(directory: str) -> dict[str, float]:
    """Measure kwire."""
    process, served = start_kwire(directory)
    figures = fill(served)
    stop(process)
    start = time.perf_counter()
    process, served = start_kwire(directory)
    figures |= started(served, time.perf_counter() - start)
    stop(process)
    return figures


def kafkas(directory: str) -> dict[str, float]:
    """Measure Kafka. It is killed at the end, since stopping it takes minutes."""

    def running(process: subprocess.Popen[bytes] | None) -> Served:
        assert process is not None
        return Served(kafka.bootstrap_servers, process.pid)

    kafka = KafkaBroker(Path(directory))
    with kafka:
        figures = fill(running(kafka.process))
    start = time.perf_counter()
    with kafka:
        served = running(kafka.process)
        figures |= started(served, time.perf_counter() - start)
        assert kafka.process is not None
        kafka.process.kill()
    return figures


def main() -> None:
    """Print the figures."""
    found = {}
    brokers: dict[str, Callable[[str], dict[str, float]]] = {"kafka": kafkas, "kwire": ours}
    for name, measure in brokers.items():
        with tempfile.TemporaryDirectory() as directory:
            found[name] = measure(directory)
    for figure, unit in UNITS.items():
        print(line(f"broker.partitions.{figure}", found["kwire"][figure], unit, found["kafka"][figure], PEERS["kafka"]))


if __name__ == "__main__":
    main()
