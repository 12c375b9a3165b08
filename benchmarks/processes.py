"""The cost of a process: CPU time, wall time and peak memory."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

__all__ = ["Cost", "costs_of", "grow"]

WATCH_S = 0.005


class Cost(NamedTuple):
    """The cost of a process, children included. peak_mb: the sum of their peaks, of Linux's /proc."""

    cpu_s: float
    wall_s: float
    peak_mb: float


def costs_of(*command: str, output: Path | None = None) -> Cost:
    """Run a program and wait for it. Raises RuntimeError if it fails."""
    started = time.perf_counter()
    with open(output or os.devnull, "wb") as sink:
        process = subprocess.Popen(command, stdout=sink)
        peaks: dict[int, int] = {}
        watching = threading.Thread(target=_watch, args=(process.pid, peaks))
        watching.start()
        _, status, usage = os.wait4(process.pid, 0)
        watching.join()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command[0]} failed with {process.returncode}")
    return Cost(usage.ru_utime + usage.ru_stime, time.perf_counter() - started, sum(peaks.values()) / 1000)


def _watch(pid: int, peaks: dict[int, int]) -> None:
    """Note the peaks of a process and its children, in kB, until it ends.

    The ru_maxrss of a child is at least that of its parent before exec.
    """
    while "VmHWM" in (status := _status(pid)):
        peaks[pid] = _kilobytes(status["VmHWM"])
        for each in _children(pid):
            if "VmHWM" in (of_child := _status(each)):
                peaks[each] = _kilobytes(of_child["VmHWM"])
        time.sleep(WATCH_S)


def _kilobytes(text: str) -> int:
    return int(text.split()[0])


def _status(pid: int) -> dict[str, str]:
    """Return what /proc says of a process; without memory once it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return {}
    return {name: value for name, _, value in (line.partition(":") for line in lines)}


def _children(pid: int) -> list[int]:
    """Return the process ids below a process."""
    try:
        texts = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    except (FileNotFoundError, ProcessLookupError):
        return []
    own = [int(each) for text in texts for each in text.split()]
    return own + [each for child in own for each in _children(child)]


def grow(
    name: str, unit: str, sizes: Sequence[int], program: str, prepare: Callable[[int], str], *, start: str
) -> None:
    """Run a Python program for each size; print CPU seconds, peak MB and, without the start of Python, CPU per unit.

    program: gets prepare(size), called before each run, as its argument. start: the program's imports, whose cost is
    subtracted.
    """
    least = min(costs_of(sys.executable, "-c", start) for _ in range(3))
    for size in sizes:
        cost = min(costs_of(sys.executable, "-c", program, prepare(size)) for _ in range(2))
        each = max(cost.cpu_s - least.cpu_s, 0) / size
        print(f"scale.{name}.{size}-{unit} {cost.cpu_s:.3f} s-of-CPU - {each * 1e6:.3g}us-each", flush=True)
        print(f"scale.{name}.{size}-{unit}.peak {cost.peak_mb:.0f} MB - {least.peak_mb:.0f}MB-at-start", flush=True)
