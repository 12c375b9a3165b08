"""Spring for Apache Kafka on our broker and on a real Kafka 4.4.0: listeners, error handlers with dead letter topics,
retry topics, transactions and share consumers see the same; transactions stay exact while leaders move and nodes stop.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import HANG_S, until
from tools import kafka

from kwire.broker import Broker, Cluster

pytestmark = [pytest.mark.jvm, pytest.mark.slow]

SPRING, RELEASE = "4.1.2", "4.4.0"
SHARES: dict[str, str | int] = {
    "group.share.heartbeat.interval.ms": 500,
    "group.share.min.heartbeat.interval.ms": 500,
    "group.share.assignment.interval.ms": 0,
}
KAFKA: dict[str, str | int] = {
    **SHARES,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
}
OURS: dict[str, Any] = {name.replace(".", "_"): value for name, value in SHARES.items()}
NUMBERS = 300


def lines_of(servers: str, disturb: Callable[[], object] = lambda: None) -> list[str]:
    """Return what SpringListeners prints. disturb: called while transactions are under way."""
    jars = kafka.spring_jars(SPRING)
    classes = kafka.compile_java(Path(__file__).parent / "java" / "SpringListeners.java", folder=jars)
    java = [kafka.need("java", "openjdk-17-jdk-headless"), *kafka.SHORT_LIVED, "-Xmx256m"]
    program = ["-cp", f"{classes}:{jars}/*", "SpringListeners", servers, str(NUMBERS)]
    lines = []
    with subprocess.Popen([*java, *program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line.rstrip())
            if line.startswith("numbers"):
                disturb()
        assert process.wait(HANG_S) == 0, lines
    return lines


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    with kafka.KafkaBroker(tmp_path_factory.mktemp("kafka"), version=RELEASE, heap="384m", **KAFKA) as real:  # type: ignore[arg-type]
        return lines_of(real.bootstrap_servers)


def test_a_broker_is_as_kafka(expected: list[str]) -> None:
    assert expected[-1] == f"squares: {NUMBERS} once: true"
    assert len(expected) > 25
    with Broker(**OURS) as broker:
        assert lines_of(broker.bootstrap_servers) == expected


def test_transactions_are_exact_while_a_cluster_changes(expected: list[str]) -> None:
    with Cluster(nodes=3, keep_requests=100_000, **OURS) as cluster:

        def wait() -> None:
            count = len(cluster.requests.of("EndTxn"))
            until(lambda: len(cluster.requests.of("EndTxn")) >= count + 10)

        def disturb() -> None:
            for partition in range(3):
                wait()
                cluster.move_leader("numbers", partition)
                cluster.move_leader("squares", partition)
            cluster.move_coordinator("numbers")
            for node in (1, 2, 3):
                cluster.stop(node)
                wait()
                cluster.start(node)

        assert lines_of(cluster.bootstrap_servers, disturb) == expected
