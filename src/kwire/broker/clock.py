"""Time for everything in the broker: what it is, and what is to happen later.

Tests of one part stand still and move both by hand (ManualClock); a running broker's time flows, and can be made to
jump (Clock.jump), so that a session, a transaction or a record is old at once.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import Callable
from typing import Protocol

__all__ = ["Clock", "LoopTimers", "ManualClock", "ManualTimers", "TimerHandle", "Timers"]


class TimerHandle(Protocol):
    """A call that is due later."""

    def cancel(self) -> None:
        """It will not happen; no matter if it already has."""


class Clock:
    """The machine's clock, and how far tests have moved it."""

    def __init__(self) -> None:
        self._shift_ms = 0

    def now_ms(self) -> int:
        """Milliseconds since 1970."""
        return time.time_ns() // 1_000_000 + self._shift_ms

    def jump(self, ms: int) -> None:
        """It is that much later now; timers have to be told (LoopTimers.jump)."""
        self._shift_ms += ms


class Timers(Protocol):
    """Calls that are due later."""

    def call_later(self, delay_ms: float, callback: Callable[[], object]) -> TimerHandle:
        """Call back after so many milliseconds, on the thread that owns the broker's state."""

    def jump(self, ms: int) -> None:
        """Everything is due that much earlier; what is due by now is called, in order of time."""


class LoopTimerHandle:
    """A call that an event loop will make; `due` in its time, in seconds."""

    __slots__ = ("_handle", "_timers", "callback", "due")

    def __init__(self, timers: LoopTimers, due: float, callback: Callable[[], object]) -> None:
        self._timers, self.due, self.callback = timers, due, callback
        self.schedule()

    def schedule(self) -> None:
        """Ask the loop."""
        self._handle = self._timers.loop.call_at(self.due, self.fire)

    def reschedule(self) -> None:
        """Ask the loop again: `due` is another."""
        self._handle.cancel()
        self.schedule()

    def fire(self) -> None:
        """Call, once."""
        self.cancel()
        self.callback()

    def cancel(self) -> None:
        """See TimerHandle."""
        self._handle.cancel()
        self._timers.pending.discard(self)


class LoopTimers:
    """Timers of an event loop. pending: the calls that are still due."""

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
                continue  # one that was called before has cancelled it
            handle.due -= ms / 1000
            if handle.due <= self.loop.time():
                handle.fire()
            else:
                handle.reschedule()


class ManualTimerHandle:
    """A call that ManualTimers holds."""

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
        """See Timers; the same as moving the clock."""
        self._clock.advance(ms)

    def call_later(self, delay_ms: float, callback: Callable[[], object]) -> TimerHandle:
        """See Timers."""
        handle = ManualTimerHandle(self._clock.now_ms() + max(0, delay_ms), callback)
        heapq.heappush(self._heap, (handle.due_ms, next(self._order), handle))
        return handle

    @property
    def pending(self) -> int:
        """How many calls are still due."""
        return sum(handle.callback is not None for _, _, handle in self._heap)

    def next_due(self, until_ms: float) -> ManualTimerHandle | None:
        """Take the earliest call that is due by then."""
        while self._heap and self._heap[0][0] <= until_ms:
            handle = heapq.heappop(self._heap)[2]
            if handle.callback is not None:
                return handle
        return None


class ManualClock(Clock):
    """A clock that stands until a test moves it; its timers fire as it passes them."""

    def __init__(self, now_ms: int = 1_760_000_000_000) -> None:
        super().__init__()
        self._now_ms = now_ms
        self.timers = ManualTimers(self)

    def now_ms(self) -> int:
        """Where it was moved to."""
        return self._now_ms

    def advance(self, ms: int) -> None:
        """Move on, calling back in order of time; what is called back may ask for more calls."""
        end = self._now_ms + ms
        while (handle := self.timers.next_due(end)) is not None:
            self._now_ms = max(self._now_ms, int(handle.due_ms))
            callback, handle.callback = handle.callback, None
            assert callback is not None  # next_due skips what was cancelled
            callback()
        self._now_ms = end
