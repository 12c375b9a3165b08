"""Memory limit for large requests of all connections: queued.max.request.bytes.

A request takes memory as its bytes arrive and releases it when it has been handled. At the limit, connections that need
more memory wait in order of arrival and are not read from. One connection at a time may exceed the limit, or requests
that are all half received would wait for each other forever. So the maximum is the limit plus one request.
Source: org.apache.kafka.common.memory.SimpleMemoryPool, which may also exceed its limit by one request.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["RequestMemory"]

Owner = TypeVar("Owner")


class RequestMemory(Generic[Owner]):
    """The memory of large requests.

    limit_bytes: -1 for no limit. wake: called with an owner that should try again. used_bytes, peak_bytes: current use
    and its maximum so far.
    """

    def __init__(self, limit_bytes: int, wake: Callable[[Owner], None]) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = self.peak_bytes = 0
        self._wake = wake
        self._held: dict[Owner, int] = {}
        self._waiting: dict[Owner, None] = {}
        self._exceeding: Owner | None = None

    @property
    def is_short(self) -> bool:
        """Whether any connection waits for memory."""
        return bool(self._waiting)

    def holds(self, owner: Owner) -> bool:
        """Return whether a connection holds memory and does not wait for more."""
        return owner in self._held and owner not in self._waiting

    def take(self, owner: Owner, size_bytes: int) -> bool:
        """Take memory; returns False if the owner has to wait. It is woken when it should try again."""
        if not self._may_take(owner, size_bytes):
            self._waiting[owner] = None
            return False
        self._waiting.pop(owner, None)
        self._held[owner] = self._held.get(owner, 0) + size_bytes
        self.used_bytes += size_bytes
        self.peak_bytes = max(self.peak_bytes, self.used_bytes)
        return True

    def _may_take(self, owner: Owner, size_bytes: int) -> bool:
        if self.limit_bytes < 0 or owner is self._exceeding:
            return True
        is_first = next(iter(self._waiting), owner) is owner
        if is_first and self.used_bytes + size_bytes <= self.limit_bytes:
            return True
        if self._exceeding is None:
            self._exceeding = owner
            return True
        return False

    def release(self, owner: Owner) -> None:
        """Release all memory of a connection and wake the waiting ones."""
        size_bytes = self._held.pop(owner, 0)
        was_waiting = owner in self._waiting
        self._waiting.pop(owner, None)
        self.used_bytes -= size_bytes
        if owner is self._exceeding:
            self._exceeding = None
        if size_bytes or was_waiting:
            for each in tuple(self._waiting):
                self._wake(each)
