"""Worker threads for long work that needs no state of the broker: decompress, check and compress records.

At most THREADS jobs run at a time, which bounds their memory: each holds one decompressed batch or fetch. A connection
has at most one job, because it has at most one request. As with turns (kwire.broker.network.turns), the jobs of
connections that have used the threads least go first.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from kwire.broker.context import Peer
from kwire.broker.network.turns import FairQueue, Share

__all__ = ["THREADS", "Workers"]

THREADS = 2

Result = TypeVar("Result")


class Job(NamedTuple):
    """Queued work and the future of its result."""

    share: Share
    work: Callable[[], object]
    future: asyncio.Future[Any]


class Workers:
    """The worker threads of a broker. Methods may be called on the thread of its event loop only."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(THREADS, thread_name_prefix="kwire broker worker")
        self._queue: FairQueue[Job] = FairQueue()
        self._running = 0

    @property
    def waiting(self) -> list[asyncio.Future[Any]]:
        """Futures of the jobs that have not started."""
        return [job.future for job in self._queue if not job.future.done()]

    def run(self, peer: Peer, work: Callable[[], Result]) -> asyncio.Future[Result]:
        """Run work for a client on a worker thread. Work whose future is cancelled before it starts is not run."""
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
        """Run a job; called on a worker thread."""
        started = time.thread_time()
        result, error = None, None
        try:
            result = job.work()
        except BaseException as raised:
            error = raised
        used_s = time.thread_time() - started
        with contextlib.suppress(RuntimeError):  # the loop is closed
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
        """Start no more jobs; running jobs end by themselves."""
        self._executor.shutdown(wait=False, cancel_futures=True)
