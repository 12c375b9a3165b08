"""Clock and timers of a broker.

A running broker uses Clock and LoopTimers; tests can jump ahead in time (Clock.jump) to expire sessions, transactions
and records. A reset of the broker takes the clock back, so intervals are measured with elapsed_ms, which only grows.
Unit tests use ManualClock, which only advances by advance().
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import Callable
from typing import Protocol

__all__ = ["MAX_MS", "Clock", "LoopTimers", "ManualClock", "ManualTimers", "TimerHandle", "Timers"]

MAX_MS = 253_402_300_799_999
"""The end of the year 9999, in milliseconds since the epoch: the last one that dates can have."""


class TimerHandle(Protocol):
    """A scheduled call."""

    def cancel(self) -> None:
        """Cancel the call; has no effect if it was made already."""


class Clock:
    """The system clock, shifted by jumps."""

    def __init__(self) -> None:
        self._shift_ms = self._jumps_ms = 0

    def now_ms(self) -> int:
        """Return the time in milliseconds since the epoch."""
        return time.time_ns() // 1_000_000 + self._shift_ms

    def elapsed_ms(self) -> int:
        """Return milliseconds since some moment, with all jumps; neither take_back nor the system's clock lowers it."""
        return time.monotonic_ns() // 1_000_000 + self._jumps_ms

    def jump(self, ms: int) -> None:
        """Advance the clock; call LoopTimers.jump as well."""
        self._shift_ms += ms
        self._jumps_ms += ms

    def take_back(self) -> int:
        """Return to the system's time; returns the sum of the jumps since, in milliseconds."""
        shift_ms, self._shift_ms = self._shift_ms, 0
        return shift_ms


class Timers(Protocol):
    """Scheduling of calls."""

    def call_later(self, delay_ms: float, callback: Callable[[], object]) -> TimerHandle:
        """Schedule a call after a delay in milliseconds, on the broker's thread."""

    def jump(self, ms: int) -> None:
        """Make all calls due earlier by `ms`, and make those that are due now, in order."""


class LoopTimerHandle:
    """A call scheduled on an event loop. due: loop time in seconds."""

    __slots__ = ("_handle", "_timers", "callback", "due")

    def __init__(self, timers: LoopTimers, due: float, callback: Callable[[], object]) -> None:
        self._timers, self.due, self.callback = timers, due, callback
        self.schedule()

    def schedule(self) -> None:
        """Schedule the call on the loop."""
        self._handle = self._timers.loop.call_at(self.due, self.fire)

    def reschedule(self) -> None:
        """Schedule the call again after a change of `due`."""
        self._handle.cancel()
        self.schedule()

    def fire(self) -> None:
        """Make the call, once."""
        self.cancel()
        self.callback()

    def cancel(self) -> None:
        """See TimerHandle."""
        self._handle.cancel()
        self._timers.pending.discard(self)


class LoopTimers:
    """Timers of an event loop. pending: the scheduled calls."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.pending: set[LoopTimerHandle] = set()

    def call_later(self, delay_ms: float, callback: Callable[[], object]) -> TimerHandle:
        """See Timers. A callback's exception goes to the loop's exception handler."""
        handle = LoopTimerHandle(self, self.loop.time() + max(0, delay_ms) / 1000, callback)
        self.pending.add(handle)
        return handle

    def jump(self, ms: int) -> None:
        """See Timers."""
        for handle in sorted(self.pending, key=lambda each: each.due):
            if handle not in self.pending:
                continue  # cancelled by an earlier call
            handle.due -= ms / 1000
            if handle.due <= self.loop.time():
                handle.fire()
            else:
                handle.reschedule()


class ManualTimerHandle:
    """A call scheduled on ManualTimers."""

    __slots__ = ("callback", "due_ms")

    def __init__(self, due_ms: float, callback: Callable[[], object]) -> None:
        self.due_ms = due_ms
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        """See TimerHandle."""
        self.callback = None


class ManualTimers:
    """Timers of a ManualClock."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._order = itertools.count()
        self._heap: list[tuple[float, int, ManualTimerHandle]] = []

    def jump(self, ms: int) -> None:
        """Advance the clock."""
        self._clock.advance(ms)

    def call_later(self, delay_ms: float, callback: Callable[[], object]) -> TimerHandle:
        """See Timers."""
        handle = ManualTimerHandle(self._clock.now_ms() + max(0, delay_ms), callback)
        heapq.heappush(self._heap, (handle.due_ms, next(self._order), handle))
        return handle

    @property
    def pending(self) -> int:
        """Number of scheduled calls."""
        return sum(handle.callback is not None for _, _, handle in self._heap)

    def next_due(self, until_ms: float) -> ManualTimerHandle | None:
        """Remove and return the earliest call that is due by a time, None if there is none."""
        while self._heap and self._heap[0][0] <= until_ms:
            handle = heapq.heappop(self._heap)[2]
            if handle.callback is not None:
                return handle
        return None


class ManualClock(Clock):
    """A clock that a test advances; its timers fire as it passes them."""

    def __init__(self, now_ms: int = 1_760_000_000_000) -> None:
        super().__init__()
        self._now_ms = now_ms
        self.timers = ManualTimers(self)

    def now_ms(self) -> int:
        """Return the current time in milliseconds."""
        return self._now_ms

    def elapsed_ms(self) -> int:
        """See Clock."""
        return self._now_ms

    def advance(self, ms: int) -> None:
        """Advance the clock and make the calls that become due, in order; calls may schedule more."""
        end = self._now_ms + ms
        while (handle := self.timers.next_due(end)) is not None:
            self._now_ms = max(self._now_ms, int(handle.due_ms))
            callback, handle.callback = handle.callback, None
            assert callback is not None  # next_due skips cancelled calls
            callback()
        self._now_ms = end
