"""The meter of the benchmarks counts the CPU time of processes that end, also where the system does not."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("pyspark")

from benchmarks.spark.measure import TICKS_A_SECOND, CpuOfChildren, below, processes
from tests.waiting import until

DAEMON = """
import os, signal, sys, time

signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # as in Spark's daemon
if os.fork() == 0:
    for seconds in iter(sys.stdin.readline, "end\\n"):
        while time.process_time() < float(seconds):
            pass
        print("done", flush=True)
    os._exit(0)
while True:
    time.sleep(1)
"""


def test_a_worker_that_ends_counts_with_what_it_used_in_the_block() -> None:
    command = [sys.executable, "-c", DAEMON]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as daemon:
        try:
            busy, idle = measure(daemon)
        finally:
            daemon.kill()
    assert 0.4 < busy < 0.6
    assert idle == 0


def measure(daemon: subprocess.Popen[str]) -> tuple[float, float]:
    """Return the CPU seconds of a block in which the worker uses half a second and ends, and of one after it."""

    def tell(line: str) -> None:
        assert daemon.stdin is not None
        print(line, file=daemon.stdin, flush=True)

    def burn(until_s: float) -> None:
        assert daemon.stdout is not None
        tell(str(until_s))
        assert daemon.stdout.readline() == "done\n"

    burn(1.0)
    with CpuOfChildren(daemon.pid) as busy:
        burn(1.5)
        until(lambda: sum(busy._last.values()) >= 1.5 * TICKS_A_SECOND - 1)
        tell("end")
        until(lambda: not list(below(daemon.pid, processes())))
    with CpuOfChildren(daemon.pid) as idle:
        pass
    return busy.seconds, idle.seconds
