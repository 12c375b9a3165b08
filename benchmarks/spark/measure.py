"""A local session, and the wall and CPU time of what runs in it."""

from __future__ import annotations

import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.broker.serving import Served
from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


def start_session(master: str = "local[2]", **settings: str) -> SparkSession:
    """A session with Spark's default settings and these, quiet."""
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
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
    """Seconds: on the clock; of CPU in Spark's JVM; of CPU in its Python processes; of CPU in a broker."""

    wall: float
    jvm: float
    python: float
    broker: float = 0.0


class Meter:
    """Measures the session's JVM and the Python processes below it, from /proc: CPU time moves little with load."""

    def __init__(self, session: SparkSession) -> None:
        assert session._jvm is not None
        self._jvm = int(session._jvm.java.lang.ProcessHandle.current().pid())

    def run(self, query: Callable[[], object], broker: Served | None = None) -> Cost:
        """Run a query once. broker: the one that it talks to."""
        jvm, python = self._cpu()
        served = 0.0 if broker is None else broker.cpu_s()
        started = time.perf_counter()
        query()
        wall = time.perf_counter() - started
        jvm_after, python_after = self._cpu()
        return Cost(wall, jvm_after - jvm, python_after - python, 0.0 if broker is None else broker.cpu_s() - served)

    def peak_mb(self) -> tuple[float, float]:
        """The most memory that the JVM, and any one process below it, has had at a time."""
        return peak_mb(self._jvm), max((peak_mb(each) for each in below(self._jvm, processes())), default=0.0)

    def _cpu(self) -> tuple[float, float]:
        """CPU seconds so far of the JVM, and of all processes below it, ended ones included."""
        found = processes()
        user, system, ended_user, ended_system = found[self._jvm][1]
        ticks = ended_user + ended_system + sum(sum(found[each][1]) for each in below(self._jvm, found))
        return (user + system) / TICKS_A_SECOND, ticks / TICKS_A_SECOND


def processes() -> dict[int, tuple[int, list[int]]]:
    """All processes: parent, and ticks of CPU as user, system, and of ended children the same."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # ended meanwhile
            found[int(folder.name)] = int(fields[1]), [int(field) for field in fields[11:15]]
    return found


def below(root: int, found: Mapping[int, tuple[int, list[int]]]) -> Iterator[int]:
    """The processes that root has started, and those that they have."""
    children: dict[int, list[int]] = defaultdict(list)
    for process, (parent, _) in found.items():
        children[parent].append(process)
    todo = list(children[root])
    while todo:
        process = todo.pop()
        yield process
        todo += children[process]


def peak_mb(process: int) -> float:
    """The most memory that a process has had, 0 where it has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")), 0.0)


def in_turns(cases: Mapping[str, Callable[[], Cost]], runs: int) -> dict[str, Cost]:
    """Run each case once to warm up and then `runs` times, in turns, so that a change of load meets all of them."""
    costs: dict[str, list[Cost]] = {name: [] for name in cases}
    for run in range(runs + 1):
        for name, case in cases.items():
            cost = case()
            if run:
                costs[name].append(cost)
    return {name: best(found) for name, found in costs.items()}


def best(costs: list[Cost]) -> Cost:
    """The least time on the clock, as what disturbs a run only adds; the median of CPU, as a worker that ends takes its
    CPU time out of the books."""
    return Cost(
        min(cost.wall for cost in costs),
        median(cost.jvm for cost in costs),
        median(cost.python for cost in costs),
        median(cost.broker for cost in costs),
    )


def show(name: str, cost: Cost, records: int, peers: Mapping[str, Cost]) -> None:
    """Lines of one case: rows a second beside its peers, CPU where it was spent."""
    rate = f"{name} {records / cost.wall / 1e6:.3f} M_rows/s"
    for peer, other in peers.items():
        print(f"{rate} {other.wall / cost.wall:.2f} {peer}")
    if not peers:
        print(f"{rate} 1.00 -")
    for part in ("jvm", "python", "broker"):
        if spent := getattr(cost, part):
            print(f"{name}.cpu_{part} {spent / records * 1e9:.0f} ns/row 1.00 -", flush=True)
