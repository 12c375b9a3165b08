"""Brokers in separate processes, kwire's, real Kafka and kfake, with their CPU time and memory."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.kafka import ROOT, KafkaBroker, need

TICKS = os.sysconf("SC_CLK_TCK")


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


def start_kwire(directory: str) -> tuple[subprocess.Popen[str], Served]:
    """Start `kwire serve` on a directory; end it with stop()."""
    process = subprocess.Popen(
        [sys.executable, "-m", "kwire.cli", "serve", "--port", "0", "--data-dir", directory],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    address = process.stdout.readline().strip().removeprefix("BROKERS=")
    return process, Served(address, process.pid, Path(directory))


def stop(process: subprocess.Popen[str]) -> None:
    """End a process and wait for it."""
    with process:
        process.terminate()


@contextlib.contextmanager
def kwire_broker() -> Iterator[Served]:
    """Run kwire's broker on a directory that is kept."""
    with tempfile.TemporaryDirectory() as directory:
        process, served = start_kwire(directory)
        try:
            yield served
        finally:
            stop(process)


@contextlib.contextmanager
def kfake_broker() -> Iterator[Served]:
    """Run kfake, the fake broker of franz-go, which keeps records in memory unless it is given a directory."""
    program = ROOT / "build" / "kfake"
    if not program.exists():
        go = shutil.which("go") or shutil.which("/usr/local/go/bin/go") or need("go", "golang-go")
        subprocess.run([go, "build", "-o", str(program), "."], cwd=Path(__file__).parent / "kfake", check=True)
    process = subprocess.Popen([str(program), "1"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield Served(process.stdout.readline().strip(), process.pid)
    finally:
        stop(process)


@contextlib.contextmanager
def real_kafka() -> Iterator[Served]:
    """Run Kafka 3.9.1."""
    with tempfile.TemporaryDirectory() as directory, KafkaBroker(Path(directory)) as kafka:
        assert kafka.process is not None
        yield Served(kafka.bootstrap_servers, kafka.process.pid, kafka.log_dir)


BROKERS = {"kafka": real_kafka, "kwire": kwire_broker}
"""The peer runs first, since kwire's figures are printed with the ratio to it."""
PEERS = {"kfake": "kfake", "kafka": "Kafka-3.9.1"}
"""Names of the peers in the printed lines."""
