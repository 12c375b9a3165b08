"""Requests that change many partitions, handled in slices between which the broker serves other clients.

Their handlers are generators that yield after each partition. The first slice runs immediately, so most requests have
their response without a delay. The rest runs as a task of the broker, to the end even if the client disconnects, as in
Kafka.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Generator
from typing import TypeVar

__all__ = ["LongRequests", "complete"]

SLICE_S = 0.005
"""Seconds after which other clients are served."""

Result = TypeVar("Result")
Steps = Generator[None, None, Result]


def complete(steps: Steps[Result]) -> Result:
    """Run all steps and return their result."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: Result = done.value
            return result


class LongRequests:
    """The long requests of a broker."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[object]] = set()

    def run(self, steps: Steps[Result]) -> Result | Awaitable[Result]:
        """Run steps; returns their result, or an awaitable of it if they take longer than a slice."""
        try:
            run_slice(steps)
        except StopIteration as done:
            result: Result = done.value
            return result
        task = asyncio.get_running_loop().create_task(finish(steps))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return asyncio.shield(task)

    def stop(self) -> None:
        """Stop after the current step; what is missing is made at the next start."""
        for task in self._tasks:
            task.cancel()


def run_slice(steps: Steps[Result]) -> None:
    """Run steps until the slice is over. Raises StopIteration with their result."""
    end = time.monotonic() + SLICE_S
    next(steps)
    while time.monotonic() < end:
        next(steps)


async def finish(steps: Steps[Result]) -> Result:
    """Run the remaining steps, a slice for each iteration of the event loop."""
    while True:
        await asyncio.sleep(0)
        try:
            run_slice(steps)
        except StopIteration as done:  # cannot leave a coroutine
            result: Result = done.value
            return result
