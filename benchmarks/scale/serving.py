"""How do the broker's memory and CPU time grow with connections, groups and partitions?"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from kwire.client import Client
from kwire.client.group_offsets import commit_offsets
from kwire.messages import CreateTopicsRequest, CreateTopicsResponse

SCALE = True
SIZES = (1, 10, 100, 1_000)
SERVER = """
import sys
from kwire.broker import Broker
with Broker() as broker:
    print(broker.bootstrap_servers, flush=True)
    sys.stdin.read()
"""
TICKS = os.sysconf("SC_CLK_TCK")


class Served:
    """A broker in another process."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self._pid, self.address = process.pid, address

    def cpu_s(self) -> float:
        """Return the CPU time so far."""
        fields = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def memory_mb(self) -> float:
        """Return the memory in use."""
        lines = Path(f"/proc/{self._pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1000


@contextmanager
def served() -> Iterator[Served]:
    """Start a broker that has handled its first requests."""
    command = [sys.executable, "-c", SERVER]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        broker = Served(process, process.stdout.readline().strip())
        with Client(broker.address) as client:
            create(client, "bench", 1)
            commit_offsets(client, "first", {("bench", 0): 0})
        yield broker
    finally:
        process.communicate("")


def create(client: Client, topic: str, partitions: int) -> None:
    """Create a topic."""
    new = CreateTopicsRequest.CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)
    client.request(CreateTopicsRequest(topics=[new], timeout_ms=60_000), CreateTopicsResponse)


def show(name: str, size: int, work: Callable[[Served], None]) -> None:
    """Print what some work costs a fresh broker."""
    with served() as broker:
        cpu, memory = broker.cpu_s(), broker.memory_mb()
        work(broker)
        used, grown = broker.cpu_s() - cpu, broker.memory_mb() - memory
        print(f"scale.{name}.{size} {used:.3f} s-of-CPU - {used / size * 1e6:.3g}us-each", flush=True)
        print(f"scale.{name}.{size}.memory {grown:.1f} MB - {grown / size * 1e3:.3g}KB-each", flush=True)


def connect(kept: list[Client], broker: Served, count: int) -> None:
    """Open connections that negotiate versions and stay idle. kept: receives their clients."""
    for _ in range(count):
        client = Client(broker.address)
        client.connection()
        kept.append(client)


def commit(broker: Served, count: int) -> None:
    """Commit an offset in each of `count` groups."""
    with Client(broker.address) as client:
        for n in range(count):
            commit_offsets(client, f"group-{n}", {("bench", 0): n})


def create_partitions(broker: Served, count: int) -> None:
    """Create a topic with `count` partitions."""
    with Client(broker.address, **{"request.timeout.ms": 120_000}) as client:
        create(client, "many", count)


def main() -> None:
    """Print the figures."""
    for size in SIZES:
        kept: list[Client] = []
        show("connections", size, partial(connect, kept, count=size))
        for client in kept:
            client.close()
    for size in SIZES:
        show("groups", size, partial(commit, count=size))
    for size in SIZES:
        show("partitions-created", size, partial(create_partitions, count=size))


if __name__ == "__main__":
    main()
