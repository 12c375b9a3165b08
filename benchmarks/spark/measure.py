"""A local session, and the wall and CPU time of what runs in it."""

from __future__ import annotations

import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

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
    """Seconds: on the clock; of CPU in the JVM; of CPU in its Python processes."""

    wall: float
    jvm: float
    python: float


class Meter:
    """Measures the session's JVM and the Python processes below it, from /proc: CPU time moves little with load."""

    def __init__(self, session: SparkSession) -> None:
        assert session._jvm is not None
        self._jvm = int(session._jvm.java.lang.ProcessHandle.current().pid())

    def run(self, query: Callable[[], object]) -> Cost:
        """Run a query once."""
        jvm, python = self._cpu()
        started = time.perf_counter()
        query()
        wall = time.perf_counter() - started
        jvm_after, python_after = self._cpu()
        return Cost(wall, jvm_after - jvm, python_after - python)

    def _cpu(self) -> tuple[float, float]:
        """CPU seconds so far of the JVM, and of all processes below it, ended ones included."""
        children: dict[int, list[int]] = defaultdict(list)
        times: dict[int, list[int]] = {}
        for folder in Path("/proc").iterdir():
            if not folder.name.isdigit():
                continue
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # ended meanwhile
            children[int(fields[1])].append(int(folder.name))
            times[int(folder.name)] = [int(field) for field in fields[11:15]]  # utime stime cutime cstime
        user, system, ended_user, ended_system = times[self._jvm]
        below, todo = ended_user + ended_system, children[self._jvm]
        while todo:
            process = todo.pop()
            below += sum(times[process])
            todo += children[process]
        return (user + system) / TICKS_A_SECOND, below / TICKS_A_SECOND


def best(costs: list[Cost]) -> Cost:
    """The least time on the clock, as what disturbs a run only adds; the median of CPU, as a worker that ends takes its
    CPU time out of the books."""
    return Cost(
        min(cost.wall for cost in costs), median(cost.jvm for cost in costs), median(cost.python for cost in costs)
    )
