"""A local Spark session, and wall and CPU time of its queries."""

from __future__ import annotations

import os
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
        jvm, python = self._cpu()
        served = 0.0 if broker is None else broker.cpu_s()
        started = time.perf_counter()
        query()
        wall = time.perf_counter() - started
        jvm_after, python_after = self._cpu()
        return Cost(wall, jvm_after - jvm, python_after - python, 0.0 if broker is None else broker.cpu_s() - served)

    def peak_mb(self) -> tuple[float, float]:
        """Return the peak memory of the JVM and of its largest child process."""
        return peak_mb(self._jvm), max((peak_mb(each) for each in below(self._jvm, processes())), default=0.0)

    def _cpu(self) -> tuple[float, float]:
        """Return CPU seconds so far of the JVM and of its child processes, ended ones included."""
        found = processes()
        user, system, ended_user, ended_system = found[self._jvm][1]
        ticks = ended_user + ended_system + sum(sum(found[each][1]) for each in below(self._jvm, found))
        return (user + system) / TICKS_A_SECOND, ticks / TICKS_A_SECOND


def processes() -> dict[int, tuple[int, list[int]]]:
    """Return all processes: parent, and CPU ticks in user and system mode, also of ended children."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # has ended
            found[int(folder.name)] = int(fields[1]), [int(field) for field in fields[11:15]]
    return found


def below(root: int, found: Mapping[int, tuple[int, list[int]]]) -> Iterator[int]:
    """Return the descendants of the process root."""
    children: dict[int, list[int]] = defaultdict(list)
    for process, (parent, _) in found.items():
        children[parent].append(process)
    todo = list(children[root])
    while todo:
        process = todo.pop()
        yield process
        todo += children[process]


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
    """Minimum wall time, as disturbances only add to it; median CPU time, as a worker that ends takes its
    CPU time out of the account."""
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
