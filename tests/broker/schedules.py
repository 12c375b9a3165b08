"""Random schedules on a cluster, each from its seed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from kwire.broker import Cluster

__all__ = ["run_schedules"]


class Schedule(Protocol):
    """Acts on a cluster, and checks of it."""

    def run(self) -> None:
        """Do and check all."""


def run_schedules(schedule: Callable[[Cluster, int], Schedule], cluster: Cluster, seeds: Iterable[int]) -> None:
    """Run the schedule of each seed on a cluster, which is reset after each; an error names its seed."""
    for seed in seeds:
        try:
            schedule(cluster, seed).run()
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        finally:
            cluster.reset()
