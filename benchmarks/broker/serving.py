"""Brokers in separate processes, kwire's and real Kafka, with their CPU time and memory."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.kafka import KafkaBroker

TICKS = os.sysconf("SC_CLK_TCK")
PROGRAM = """
import sys
from kwire.broker import Broker
with Broker(sys.argv[1]) as broker:
    print(broker.bootstrap_servers, flush=True)
    sys.stdin.read()
"""


@dataclass(frozen=True, slots=True)
class Served:
    """A running broker. address: host:port; pid: of its process; log_dir: its log directory, if it is kept."""

    address: str
    pid: int
    log_dir: Path | None = None

    def cpu_s(self) -> float:
        """Return the CPU seconds of a process so far, user and system."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def memory_mb(self) -> float:
        """Return the resident memory of a process in MB."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        return 0.0


@contextlib.contextmanager
def kwire_broker() -> Iterator[Served]:
    """Run kwire's broker on a directory that is kept."""
    with tempfile.TemporaryDirectory() as directory:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, directory], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield Served(process.stdout.readline().strip(), process.pid, Path(directory))
        finally:
            process.stdin.close()
            process.wait(timeout=60)


@contextlib.contextmanager
def real_kafka() -> Iterator[Served]:
    """Run Kafka 3.9.1."""
    with tempfile.TemporaryDirectory() as directory, KafkaBroker(Path(directory)) as kafka:
        assert kafka.process is not None
        yield Served(kafka.bootstrap_servers, kafka.process.pid, kafka.log_dir)


BROKERS = {"kafka": real_kafka, "kwire": kwire_broker}
"""The peer runs first, since kwire's figures are printed with the ratio to it."""
