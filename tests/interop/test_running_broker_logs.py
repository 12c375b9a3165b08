"""`verify`, `report` and `export` of a running Kafka that rolls, deletes and compacts: no false findings."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tools import kafka

from kwire.log import LogDirectory

pytestmark = [pytest.mark.jvm, pytest.mark.slow]

RUNS = 8  # of each command
TOPICS = {
    "rolling": {"retention.bytes": "60000"},
    "compacted": {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"},
    "both": {"cleanup.policy": "compact,delete", "retention.bytes": "90000", "min.cleanable.dirty.ratio": "0.01"},
}
SETTINGS: dict[str, str | int] = {
    "log.retention.check.interval.ms": 100,
    "log.segment.delete.delay.ms": 50,
    "log.cleaner.backoff.ms": 50,
    "log.initial.task.delay.ms": 500,
}


@contextmanager
def load(server: str) -> Iterator[None]:
    """Produce to all topics until the end of the block."""
    stop = threading.Event()

    def produce() -> None:
        producer = Producer({"bootstrap.servers": server, "linger.ms": 5})
        i = 0
        while not stop.is_set():
            for topic in TOPICS:
                producer.produce(topic, key=str(i % 500).encode(), value=b"v" * (i % 300), partition=i % 2)
            producer.poll(0)
            i += 1
            if i % 1000 == 0:
                producer.flush()
        producer.flush()

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def kwire(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kwire.cli", "log", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("version", ["3.9.1", "4.4.0"])
def test_commands_find_no_damage_next_to_a_running_broker(version: str, tmp_path: Path) -> None:
    with kafka.KafkaBroker(tmp_path / "kafka", version=version, **SETTINGS) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        small = {"segment.bytes": "1048576", "segment.ms": "200", "file.delete.delay.ms": "50"}
        new = [NewTopic(name, 2, 1, config={**small, **config}) for name, config in TOPICS.items()]
        for created in admin.create_topics(new).values():
            created.result()
        data = str(broker.log_dir)
        problems: list[str] = []
        with load(broker.bootstrap_servers):
            for run in range(RUNS):
                for command in (
                    ("verify", data),
                    ("report", data, "-o", str(tmp_path / f"{run}.html")),
                    ("export", data, "-o", str(tmp_path / f"export-{run}"), "--topic", "rolling", "--topic", "both"),
                ):
                    done = kwire(*command)
                    if done.returncode:
                        problems.append(
                            f"run {run}: {' '.join(command)}: {done.returncode}\n{done.stdout}{done.stderr}"
                        )
        assert problems == []
        deleted = LogDirectory(data)["rolling", 0].log_start_offset
    assert deleted > 1000, "the broker has deleted next to nothing: the runs prove nothing"
