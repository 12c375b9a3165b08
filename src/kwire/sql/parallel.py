"""Read several iterators in threads: an iterator over all their items, which reads no further than it is asked to."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from itertools import chain
from typing import Generic, TypeVar

__all__ = ["run_parallel"]

T = TypeVar("T")
WAITING = 2  # items for each thread that have not been taken; more are not read


def run_parallel(sources: Iterator[Iterator[T]], threads: int) -> Iterator[T]:
    """Yield the items of iterators, those of each in their order. threads: that read, the caller's included.

    A query that needs one item, such as a LIMIT, reads one: other threads start with the second. Closing the iterator
    ends them. An error of a source is raised after the items that were read before it.
    """
    if threads == 1:
        yield from chain.from_iterable(sources)
        return
    for source in sources:
        first = next(source, None)
        if first is not None:
            yield first
            yield from _Reading(source, sources, threads - 1).items()
            return


class _Reading(Generic[T]):
    """Sources that threads read, each its own, and what they have read.

    The thread that takes the items reads too where none is waiting: to sleep and to be woken for each costs more than
    the reading.
    """

    def __init__(self, own: Iterator[T], sources: Iterator[Iterator[T]], threads: int) -> None:
        """own: what the caller's thread reads first. threads: the others."""
        self._own: Iterator[T] | None = own
        self._sources, self._choosing = sources, threading.Lock()
        self._read: deque[T] = deque()
        self._lock = threading.Lock()
        # Each wakes those that can go on: a thread that wakes and has nothing to do still takes the interpreter's lock.
        self._added, self._taken = threading.Condition(self._lock), threading.Condition(self._lock)
        self._error: BaseException | None = None
        self._is_closed = False
        self._most = WAITING * threads
        self._running = threads
        self._threads = [
            threading.Thread(target=self._run, name=f"kwire-read-{i}", daemon=True) for i in range(threads)
        ]

    def items(self) -> Iterator[T]:
        """Yield what all threads read, and end them."""
        for thread in self._threads:
            thread.start()
        try:
            while (item := self._next()) is not None:
                yield item
        finally:
            with self._lock:
                self._is_closed = True
                self._taken.notify_all()
            for thread in self._threads:
                thread.join()

    def _next(self) -> T | None:
        with self._lock:
            if self._read:
                return self._take()
        try:
            while self._own is not None:
                if (item := next(self._own, None)) is not None:
                    return item
                self._own = self._next_source()
        except BaseException as error:
            with self._lock:
                self._own, self._error = None, self._error or error
        with self._lock:
            while not self._read and self._running and self._error is None:
                self._added.wait()
            if self._read:
                return self._take()
        if self._error is not None:
            raise self._error
        return None

    def _take(self) -> T:
        self._taken.notify()
        return self._read.popleft()

    def _run(self) -> None:
        try:
            while (source := self._next_source()) is not None:
                for item in source:
                    if not self._add(item):
                        return
        except BaseException as error:  # raised where the items are taken
            with self._lock:
                self._error = self._error or error
        finally:
            with self._lock:
                self._running -= 1
                self._added.notify()

    def _next_source(self) -> Iterator[T] | None:
        with self._choosing:
            return None if self._is_closed or self._error is not None else next(self._sources, None)

    def _add(self, item: T) -> bool:
        """Keep an item until it is taken; return whether to go on."""
        with self._lock:
            while len(self._read) >= self._most and not self._is_closed:
                self._taken.wait()
            if self._is_closed or self._error is not None:
                return False
            self._read.append(item)
            self._added.notify()
            return True
