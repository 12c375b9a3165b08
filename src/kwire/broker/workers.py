"""Threads for what takes long and needs nothing of the broker's state: records decompressed, checked, compressed.

At most THREADS jobs run at a time, so that what they need together is bounded: each holds one batch or one fetch,
decompressed. A connection has at most one job, because it has at most one request. The jobs of connections that have
used the threads least come first, as with turns (kwire.broker.turns).
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from kwire.broker.context import Peer
from kwire.broker.turns import FairQueue, Share

__all__ = ["THREADS", "Workers"]

THREADS = 2

Result = TypeVar("Result")


class Job(NamedTuple):
    """Work, and who waits for it."""

    share: Share
    work: Callable[[], Any]
    future: asyncio.Future[Any]


class Workers:
    """The threads of one broker; all methods are for the thread of its event loop."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(THREADS, thread_name_prefix="kwire broker worker")
        self._queue: FairQueue[Job] = FairQueue()
        self._running = 0

    @property
    def waiting(self) -> list[asyncio.Future[Any]]:
        """What was asked for and has not begun."""
        return [job.future for job in self._queue if not job.future.done()]

    def run(self, peer: Peer, work: Callable[[], Result]) -> asyncio.Future[Result]:
        """Do work for a client in one of the threads. A future that is cancelled before that is not begun."""
        if peer.work_share is None:
            peer.work_share = self._queue.new_share()
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._queue.push(peer.work_share, Job(peer.work_share, work, future))
        self._start()
        return future

    def _start(self) -> None:
        while self._queue and self._running < THREADS:
            job = self._queue.pop()
            if not job.future.done():
                self._running += 1
                self._executor.submit(self._work, job)

    def _work(self, job: Job) -> None:
        """In a thread."""
        started = time.thread_time()
        result, error = None, None
        try:
            result = job.work()
        except BaseException as raised:
            error = raised
        used_s = time.thread_time() - started
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
            job.future.get_loop().call_soon_threadsafe(self._done, job, result, error, used_s)

    def _done(self, job: Job, result: Any, error: BaseException | None, used_s: float) -> None:
        self._running -= 1
        self._queue.charge(job.share, used_s)
        if not job.future.done():
            if error is not None:
                job.future.set_exception(error)
            else:
                job.future.set_result(result)
        self._start()

    def close(self) -> None:
        """Begin nothing any more; what is being done ends by itself."""
        self._executor.shutdown(wait=False, cancel_futures=True)
