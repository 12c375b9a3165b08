"""Fair scheduling of connections on the broker's thread, so that no client waits for all the work of another.

A connection with something to do gets a turn, which ends after TURN_REQUESTS requests or TURN_S seconds. Connections
that have used the thread least go first. A request is never interrupted, so a client with few requests waits for about
one request of the others, regardless of their number and load.

The algorithm is start-time fair queueing: the virtual time that a connection has used is its position in the queue.
Long turns count for more than they took. Otherwise, a client with many short requests would wait for one long request
of each client that has used less so far, however many there are. Time is the thread's CPU time, so that connections are
not charged for other load on the machine.
Source: Goyal, Vin, Cheng: Start-Time Fair Queueing (SIGCOMM 1996).
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, Protocol, TypeVar

import msgspec

__all__ = ["TURN_REQUESTS", "FairQueue", "Share", "TakesTurns", "Turns"]

log = logging.getLogger("kwire.broker")

TURN_REQUESTS = 16
"""Maximum number of requests handled in a turn."""
TURN_S = 0.005
"""Seconds after which a turn ends, once the current request is handled."""
SLICE_S = 0.005
"""Seconds of turns after which the event loop checks sockets and timers."""
LONG_S = 0.001
"""Turns up to this length cost their length; the cost of longer ones grows with the square of the length."""
CREDIT_S = 0.25
"""Virtual time by which an idle connection goes ahead of connections that are always busy, and a new one after them."""

Item = TypeVar("Item")


class Share(msgspec.Struct):
    """A client's share of a resource. start_s: start of its next use in seconds of virtual time."""

    start_s: float


class FairQueue(Generic[Item]):
    """A queue of items ordered by the virtual time of their shares; items of equal time in order of arrival."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Item]] = []
        self._order = itertools.count()
        self._now_s = 0.0

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[Item]:
        return (item for _, _, item in self._heap)

    def new_share(self) -> Share:
        """Make the share of a new client."""
        return Share(self._now_s + CREDIT_S)

    def push(self, share: Share, item: Item) -> None:
        """Add an item. Call `charge` with its share when its cost is known."""
        share.start_s = max(share.start_s, self._now_s - CREDIT_S)
        heapq.heappush(self._heap, (share.start_s, next(self._order), item))

    def pop(self) -> Item:
        """Remove and return the next item. Raises IndexError if the queue is empty."""
        start_s, _, item = heapq.heappop(self._heap)
        self._now_s = max(self._now_s, start_s)
        return item

    def charge(self, share: Share, used_s: float) -> None:
        """Add the cost of an item to a share."""
        share.start_s += used_s * max(1.0, used_s / LONG_S)
        if not self._heap:  # nothing waits, so past use no longer matters
            self._now_s = max(self._now_s, share.start_s)


class TakesTurns(Protocol):
    """A connection, as `Turns` sees it. is_queued is set by `Turns`."""

    share: Share
    is_queued: bool

    def turn(self) -> bool:
        """Work while `Turns.has_time`; return whether there is more work that only needs another turn."""

    def close(self, why: str) -> None:
        """Close the connection after an internal error of the broker."""


class Turns:
    """The turns of connections on an event loop. clock: CPU time of the thread in seconds."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Callable[[], float] = time.thread_time) -> None:
        self._loop, self._clock = loop, clock
        self._queue: FairQueue[TakesTurns] = FairQueue()
        self._is_scheduled = self._is_running = False
        self._turn_ends = 0.0

    def new_share(self) -> Share:
        """Make the share of a new connection."""
        return self._queue.new_share()

    @property
    def has_time(self) -> bool:
        """Whether the current turn may continue."""
        return self._clock() < self._turn_ends

    def add(self, owner: TakesTurns) -> None:
        """Queue a connection for a turn, unless it is already queued."""
        self._push(owner)
        self._schedule()

    def start(self, owners: Iterable[TakesTurns]) -> None:
        """Queue connections and run turns immediately."""
        for owner in owners:
            self._push(owner)
        self._run()

    def _push(self, owner: TakesTurns) -> None:
        if not owner.is_queued:
            owner.is_queued = True
            self._queue.push(owner.share, owner)

    def _schedule(self) -> None:
        if not self._is_scheduled and not self._is_running:
            self._is_scheduled = True
            self._loop.call_soon(self._scheduled)

    def _scheduled(self) -> None:
        self._is_scheduled = False
        self._run()

    def _run(self) -> None:
        """Run turns for SLICE_S; continue after the event loop has checked sockets and timers."""
        clock, queue = self._clock, self._queue
        self._is_running = True
        now = clock()
        slice_ends = now + SLICE_S
        while queue and now < slice_ends:
            owner = queue.pop()
            owner.is_queued = False
            started = now
            self._turn_ends = started + TURN_S
            has_more = False
            try:
                has_more = owner.turn()
            except Exception:
                log.exception("a connection failed")
                owner.close("internal error of the broker")
            now = clock()
            queue.charge(owner.share, now - started)
            if has_more:
                self._push(owner)
        self._is_running = False
        if queue:
            self._schedule()
