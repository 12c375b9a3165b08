"""CPU time per call, measured in turns: on a shared machine, only figures of the same run can be compared."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping


def cpu_us(jobs: Mapping[str, Callable[[], object]], rounds: int = 15, slice_ms: float = 4.0) -> dict[str, float]:
    """Return the minimum CPU microseconds per call of each job, over rounds in which all jobs run."""
    loops = {}
    for name, job in jobs.items():
        job()
        started = time.thread_time()
        for _ in range(3):
            job()
        loops[name] = max(1, int(slice_ms / 1000 / max((time.thread_time() - started) / 3, 1e-7)))
    best = dict.fromkeys(jobs, float("inf"))
    for _ in range(rounds):
        for name, job in jobs.items():
            gc.collect(0)
            n = loops[name]
            started = time.thread_time()
            for _ in range(n):
                job()
            best[name] = min(best[name], (time.thread_time() - started) / n * 1e6)
    return best


def line(name: str, value: float, unit: str, peer_value: float | None = None, peer: str = "-") -> str:
    """Return a line of `./dev bench`: name value unit ratio peer; the ratio is kwire's figure by the peer's."""
    ratio = "-" if peer_value is None else f"{value / peer_value:.3g}"
    return f"{name} {value:.3g} {unit} {ratio} {peer}"
