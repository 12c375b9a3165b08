"""Timers by name: at most one runs under each name, and a new one replaces it.

Source: org.apache.kafka.coordinator.group.runtime.CoordinatorTimer.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from kwire.broker.clock import TimerHandle, Timers

__all__ = ["NamedTimers"]


class NamedTimers:
    """Timers of groups and members. Names are tuples: (purpose, group id, member id)."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._running: dict[Hashable, TimerHandle] = {}

    def start(self, name: Hashable, delay_ms: int, callback: Callable[[], object]) -> None:
        """Call a function after a delay in milliseconds, replacing the timer of this name."""
        self.cancel(name)

        def fire() -> None:
            if self._running.get(name) is handle:
                del self._running[name]
                callback()

        handle = self._timers.call_later(delay_ms, fire)
        self._running[name] = handle

    def start_if_absent(self, name: Hashable, delay_ms: int, callback: Callable[[], object]) -> None:
        """Start a timer unless one of this name is running."""
        if name not in self._running:
            self.start(name, delay_ms, callback)

    def cancel(self, name: Hashable) -> None:
        """Cancel the timer of this name, if one is running."""
        handle = self._running.pop(name, None)
        if handle is not None:
            handle.cancel()

    def cancel_those(self, chosen: Callable[[Hashable], bool]) -> None:
        """Cancel the timers whose name is chosen."""
        for name in [each for each in self._running if chosen(each)]:
            self.cancel(name)

    def cancel_all(self) -> None:
        """Cancel all timers."""
        for handle in self._running.values():
            handle.cancel()
        self._running.clear()

    def __contains__(self, name: Hashable) -> bool:
        return name in self._running
