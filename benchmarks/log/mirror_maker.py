"""MirrorMaker 2 of real Kafka, with settings for much data: its source connector alone, a task for each partition."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tools.kafka import mirror_maker_jars, need

from benchmarks.processes import Cost
from kwire.client import Client
from kwire.client.client import LATEST_TIMESTAMP
from kwire.errors import KwireError

__all__ = ["Copying", "mirror"]

SETTINGS: dict[str, str | int] = {
    "clusters": "source, target",
    "source->target.enabled": "true",
    "target->source.enabled": "false",
    "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
    "emit.heartbeats.enabled": "false",
    "emit.checkpoints.enabled": "false",
    "sync.topic.acls.enabled": "false",
    "replication.factor": 1,
    "offset-syncs.topic.replication.factor": 1,
    "config.storage.replication.factor": 1,
    "offset.storage.replication.factor": 1,
    "status.storage.replication.factor": 1,
    # fewer and larger requests and batches than the defaults
    "source.consumer.max.poll.records": 5_000,
    "source.consumer.max.partition.fetch.bytes": 10_000_000,
    "source.consumer.receive.buffer.bytes": 1_000_000,
    "target.producer.batch.size": 500_000,
    "target.producer.linger.ms": 20,
    "target.producer.buffer.memory": 128_000_000,
    "target.producer.send.buffer.bytes": 1_000_000,
}
TIMEOUT_S = 180
TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


class Copying(NamedTuple):
    """records: those copied while `cost` was measured."""

    records: int
    cost: Cost


def mirror(
    source: str, target: str, topics: dict[str, Sequence[int]], measured: str, heap: str, folder: Path
) -> Copying:
    """Copy topics between clusters until the target has as many records; return the cost of the second half of one.

    topics: for each, the records of its partitions. The first half of the topic `measured` warms the JVM up.
    """
    settings = SETTINGS | {
        "source.bootstrap.servers": source,
        "target.bootstrap.servers": target,
        "source->target.topics": ",".join(topics),
        "tasks.max": sum(map(len, topics.values())),
    }
    properties = folder / "mm2.properties"
    properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    command = [need("java", "openjdk-17-jdk-headless"), f"-Xmx{heap}", "-cp", f"{mirror_maker_jars()}/*"]
    command += ["org.apache.kafka.connect.mirror.MirrorMaker", str(properties)]
    with (folder / "mm2.log").open("wb") as log, Client(target) as client:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            total = sum(topics[measured])
            half = _await(client, process, {measured: topics[measured]}, total // 2)
            before, started = _cpu_s(process.pid), time.perf_counter()
            _await(client, process, {measured: topics[measured]}, total)
            wall, cpu = time.perf_counter() - started, _cpu_s(process.pid) - before
            peak = _peak_mb(process.pid)
            _await(client, process, topics, sum(map(sum, topics.values())))
        finally:
            process.terminate()
            process.wait()
    return Copying(total - half, Cost(cpu, wall, peak))


def _await(client: Client, process: subprocess.Popen[bytes], topics: dict[str, Sequence[int]], records: int) -> int:
    """Wait until the topics have that many records; return how many they have."""
    deadline = time.monotonic() + TIMEOUT_S
    keys = {(topic, n): LATEST_TIMESTAMP for topic, counts in topics.items() for n in range(len(counts))}
    found = 0
    while time.monotonic() < deadline and process.poll() is None:
        try:
            found = sum(each.offset for each in client.list_offsets(keys).values())
        except KwireError:
            time.sleep(0.5)  # not created yet
        if found >= records:
            return found
        time.sleep(0.05)
    raise RuntimeError(f"MirrorMaker copied {found} of {records} records in {TIMEOUT_S} s")


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def _peak_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1000
