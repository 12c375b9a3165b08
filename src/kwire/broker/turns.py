"""The order in which connections use the broker's thread, so that no client waits for all the work of another.

A connection that has something to do gets a turn, which its budget ends: TURN_REQUESTS requests or TURN_S seconds. Then
the connections that have used the thread least come first. One request is never interrupted, so a client with little
to ask waits for about one request of the others, however many of them there are and however much they ask for.

The order is start-time fair queueing: the time that a connection has used is its place in the queue. Turns that are
long count for more than they took, in proportion: with equal counts, one client of many short requests would wait for
all of those, however many, that have each used less, a long request at a time. Time is the thread's CPU time: what a
busy machine takes from everybody is nobody's debt.
Source: Goyal, Vin, Cheng: Start-Time Fair Queueing (SIGCOMM 1996).
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

__all__ = ["TURN_REQUESTS", "FairQueue", "Share", "TakesTurns", "Turns"]

log = logging.getLogger("kwire.broker")

TURN_REQUESTS = 16
"""Requests that a connection may have handled in one turn."""
TURN_S = 0.005
"""Seconds after which a turn ends with the request that is being handled."""
SLICE_S = 0.005
"""Seconds of turns after which the event loop looks for sockets and timers that are ready."""
LONG_S = 0.001
"""A turn up to this length counts as it is; three times the length counts nine times."""
CREDIT_S = 0.25
"""How far a quiet connection starts ahead of those that are busy all the time, and a new one behind them."""

Item = TypeVar("Item")


@dataclass(slots=True)
class Share:
    """The use of one resource by one client. start_s: where its next use begins, in seconds of virtual time."""

    start_s: float


class FairQueue(Generic[Item]):
    """Items by the use their owners have made so far, least first; those of equal use in the order they came."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Item]] = []
        self._order = itertools.count()
        self._now_s = 0.0

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[Item]:
        return (item for _, _, item in self._heap)

    def new_share(self) -> Share:
        """The share of a client that has just come."""
        return Share(self._now_s + CREDIT_S)

    def push(self, share: Share, item: Item) -> None:
        """Add an item; charge() its share once it is known what that has taken."""
        share.start_s = max(share.start_s, self._now_s - CREDIT_S)
        heapq.heappush(self._heap, (share.start_s, next(self._order), item))

    def pop(self) -> Item:
        """Remove and return the next item. Raises IndexError when there is none."""
        start_s, _, item = heapq.heappop(self._heap)
        self._now_s = max(self._now_s, start_s)
        return item

    def charge(self, share: Share, used_s: float) -> None:
        """Count what an item has taken."""
        share.start_s += used_s * max(1.0, used_s / LONG_S)
        if not self._heap:  # nobody waits, so the past does not matter any more
            self._now_s = max(self._now_s, share.start_s)


class TakesTurns(Protocol):
    """A connection, as far as its turns go. is_queued belongs to Turns."""

    share: Share
    is_queued: bool

    def turn(self) -> bool:
        """Use the thread, as long as Turns.has_time says; return whether there is more that needs only a turn."""

    def close(self, why: str) -> None:
        """End the connection after an error of the broker's own."""


class Turns:
    """The turns on one event loop. clock: seconds of the thread's own work."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Callable[[], float] = time.thread_time) -> None:
        self._loop, self._clock = loop, clock
        self._queue: FairQueue[TakesTurns] = FairQueue()
        self._is_scheduled = self._is_running = False
        self._turn_ends = 0.0

    def new_share(self) -> Share:
        """The share of a new connection."""
        return self._queue.new_share()

    @property
    def has_time(self) -> bool:
        """Whether the turn that is being taken may go on."""
        return self._clock() < self._turn_ends

    def add(self, owner: TakesTurns) -> None:
        """Queue a connection for a turn; one that is queued stays where it is."""
        self._push(owner)
        self._schedule()

    def start(self, owners: Iterable[TakesTurns]) -> None:
        """Queue connections and take the first turns immediately."""
        for owner in owners:
            self._push(owner)
        self._take()

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
        self._take()

    def _take(self) -> None:
        """Take turns for one slice of time; the rest follows when the event loop has looked around."""
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
                owner.close("an error of the broker's own")
            now = clock()
            queue.charge(owner.share, now - started)
            if has_more:
                self._push(owner)
        self._is_running = False
        if queue:
            self._schedule()
