"""A local Spark session, and wall and CPU time of its queries."""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.broker.serving import Served
from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
SAMPLE_S = 0.2

Identity = tuple[int, int]
"""A process id, which may be used again, and when the process started."""


def start_session(master: str = "local[2]", **settings: str) -> SparkSession:
    """Start a session with these configs and little logging."""
    import kwire.spark  # noqa: F401  (chooses the Python of Spark's processes)

    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return (
        SparkSession.builder.master(master)
        .appName("kwire benchmarks")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "4g")
        .config("spark.log.level", "ERROR")
        .config(map=settings)
        .getOrCreate()
    )


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of wall time, and of CPU time in Spark's JVM, its Python processes and a broker."""

    wall: float
    jvm: float
    python: float
    broker: float = 0.0


class Meter:
    """Measures the session's JVM and its Python processes through /proc: CPU time depends little on load."""

    def __init__(self, session: SparkSession) -> None:
        assert session._jvm is not None
        self._jvm = int(session._jvm.java.lang.ProcessHandle.current().pid())

    def run(self, query: Callable[[], object], broker: Served | None = None) -> Cost:
        """Run a query once. broker: the process id of its broker."""
        served = 0.0 if broker is None else broker.cpu_s()
        with CpuOfChildren(self._jvm) as python:
            before, started = cpu_s(self._jvm), time.perf_counter()
            query()
            wall, jvm = time.perf_counter() - started, cpu_s(self._jvm) - before
        return Cost(wall, jvm, python.seconds, 0.0 if broker is None else broker.cpu_s() - served)

    def pin(self, brokers: Iterable[Served], cores: int) -> None:
        """Run the JVM, its Python processes and these brokers on the first `cores` cores of the machine."""
        allowed = range(cores)
        found = processes()
        for served in brokers:
            for process in (served.pid, *below(served.pid, found)):
                set_cores(process, allowed)
        for process in (self._jvm, *below(self._jvm, found)):
            set_cores(process, allowed)

    def peak_mb(self) -> tuple[float, float]:
        """Return the peak memory of the JVM and of its largest child process."""
        return peak_mb(self._jvm), max((peak_mb(each) for each in below(self._jvm, processes())), default=0.0)


class CpuOfChildren:
    """Measures the CPU seconds of the descendants of a process while a block runs, also of those that end in it.

    The system adds the CPU time of a process that ends to its parent's, but Spark's daemon ignores SIGCHLD, and then
    that time is lost: Spark ends workers that are idle for a minute. Processes are therefore looked at SAMPLE_S apart,
    and one that ends counts as it was seen last.
    """

    def __init__(self, root: int) -> None:
        self._root = root
        self._before: dict[Identity, int] = {}
        self._last: dict[Identity, int] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.seconds = 0.0

    def __enter__(self) -> CpuOfChildren:
        self._before = self._ticks()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()
        self._last |= self._ticks()
        self.seconds = sum(ticks - self._before.get(each, 0) for each, ticks in self._last.items()) / TICKS_A_SECOND

    def _watch(self) -> None:
        while not self._stopped.wait(SAMPLE_S):
            self._last |= self._ticks()

    def _ticks(self) -> dict[Identity, int]:
        found = processes()
        return {(each, found[each].started): found[each].ticks for each in below(self._root, found)}


def set_cores(process: int, cores: Iterable[int]) -> None:
    """Allow a process and all its threads these cores only; threads and processes that they start have the same."""
    for thread in os.listdir(f"/proc/{process}/task"):
        with suppress(ProcessLookupError):  # it has ended
            os.sched_setaffinity(int(thread), cores)


class Process(NamedTuple):
    """A process: its parent, its CPU ticks in user and system mode, and when it started, in ticks."""

    parent: int
    ticks: int
    started: int


def processes() -> dict[int, Process]:
    """Return all processes."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # has ended
            found[int(folder.name)] = Process(int(fields[1]), int(fields[11]) + int(fields[12]), int(fields[19]))
    return found


def cpu_s(process: int) -> float:
    """Return the CPU seconds of a process so far."""
    return processes()[process].ticks / TICKS_A_SECOND


def below(root: int, found: Mapping[int, Process]) -> Iterator[int]:
    """Return the descendants of the process root."""
    children: dict[int, list[int]] = defaultdict(list)
    for number, process in found.items():
        children[process.parent].append(number)
    todo = list(children[root])
    while todo:
        number = todo.pop()
        yield number
        todo += children[number]


def peak_mb(process: int) -> float:
    """Return the peak memory of a process, 0 if it has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")), 0.0)


def in_turns(cases: Mapping[str, Callable[[], Cost]], runs: int) -> dict[str, Cost]:
    """Run each case once to warm up and then `runs` times, in turns, so that load affects all cases."""
    costs: dict[str, list[Cost]] = {name: [] for name in cases}
    for run in range(runs + 1):
        for name, case in cases.items():
            cost = case()
            if run:
                costs[name].append(cost)
    return {name: best(found) for name, found in costs.items()}


def best(costs: list[Cost]) -> Cost:
    """Minimum wall time, as disturbances only add to it; median CPU time."""
    return Cost(
        min(cost.wall for cost in costs),
        median(cost.jvm for cost in costs),
        median(cost.python for cost in costs),
        median(cost.broker for cost in costs),
    )


def show(name: str, cost: Cost, records: int, peers: Mapping[str, Cost]) -> None:
    """Print a case: rows per second compared to its peers, and CPU time per process."""
    rate = f"{name} {records / cost.wall / 1e6:.3f} M_rows/s"
    for peer, other in peers.items():
        print(f"{rate} {other.wall / cost.wall:.2f} {peer}")
    if not peers:
        print(f"{rate} 1.00 -")
    for part in ("jvm", "python", "broker"):
        if spent := getattr(cost, part):
            print(f"{name}.cpu_{part} {spent / records * 1e9:.0f} ns/row 1.00 -", flush=True)
