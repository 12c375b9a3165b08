"""The cost of a process: CPU time, wall time and peak memory."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

__all__ = ["Cost", "costs_of", "grow"]


class Cost(NamedTuple):
    """The cost of a process, children included."""

    cpu_s: float
    wall_s: float
    peak_mb: float


def costs_of(*command: str, output: Path | None = None) -> Cost:
    """Run a program and wait for it. Raises RuntimeError if it fails."""
    started = time.perf_counter()
    with open(output or os.devnull, "wb") as sink:
        process = subprocess.Popen(command, stdout=sink)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command[0]} failed with {process.returncode}")
    return Cost(usage.ru_utime + usage.ru_stime, time.perf_counter() - started, usage.ru_maxrss / 1000)


def grow(
    name: str, unit: str, sizes: Sequence[int], program: str, prepare: Callable[[int], str], *, start: str
) -> None:
    """Run a Python program for each size; print CPU seconds, peak MB and, without the start of Python, CPU per unit.

    program: gets prepare(size), called before each run, as its argument. start: the program's imports, whose cost is
    subtracted. The peak is at least the memory of the process that calls this, which the system counts before exec.
    """
    least = min(costs_of(sys.executable, "-c", start) for _ in range(3))
    for size in sizes:
        cost = min(costs_of(sys.executable, "-c", program, prepare(size)) for _ in range(2))
        each = max(cost.cpu_s - least.cpu_s, 0) / size
        print(f"scale.{name}.{size}-{unit} {cost.cpu_s:.3f} s-of-CPU - {each * 1e6:.3g}us-each", flush=True)
        print(f"scale.{name}.{size}-{unit}.peak {cost.peak_mb:.0f} MB - {least.peak_mb:.0f}MB-at-start", flush=True)
