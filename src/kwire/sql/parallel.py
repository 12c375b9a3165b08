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
    """Yield the items of iterators, those of each in their order. The first item is read alone, without a thread.

    A query that needs one item, such as a LIMIT, so reads one. Closing the iterator ends the threads. An error of a
    source is raised after the items that were read before it.
    """
    if threads == 1:
        yield from chain.from_iterable(sources)
        return
    for source in sources:
        first = next(source, None)
        if first is not None:
            yield first
            yield from _Reading(chain([source], sources), threads).items()
            return


class _Reading(Generic[T]):
    """Sources that threads read, each its own, and what they have read."""

    def __init__(self, sources: Iterator[Iterator[T]], threads: int) -> None:
        self._sources, self._choosing = sources, threading.Lock()
        self._read: deque[T] = deque()
        self._changed = threading.Condition()
        self._error: BaseException | None = None
        self._is_closed = False
        self._most = WAITING * threads
        self._running = threads
        self._threads = [
            threading.Thread(target=self._run, name=f"kwire-read-{i}", daemon=True) for i in range(threads)
        ]

    def items(self) -> Iterator[T]:
        """Yield what the threads read, and end them."""
        for thread in self._threads:
            thread.start()
        try:
            while (item := self._next()) is not None:
                yield item
        finally:
            with self._changed:
                self._is_closed = True
                self._changed.notify_all()
            for thread in self._threads:
                thread.join()

    def _next(self) -> T | None:
        with self._changed:
            self._changed.wait_for(lambda: self._read or not self._running or self._error is not None)
            if self._read:
                self._changed.notify_all()
                return self._read.popleft()
        if self._error is not None:
            raise self._error
        return None

    def _run(self) -> None:
        try:
            while (source := self._next_source()) is not None:
                for item in source:
                    if not self._add(item):
                        return
        except BaseException as error:  # raised where the items are taken
            with self._changed:
                self._error = self._error or error
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def _next_source(self) -> Iterator[T] | None:
        with self._choosing:
            return None if self._is_closed or self._error is not None else next(self._sources, None)

    def _add(self, item: T) -> bool:
        """Keep an item until it is taken; return whether to go on."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._read) < self._most or self._is_closed)
            if self._is_closed or self._error is not None:
                return False
            self._read.append(item)
            self._changed.notify_all()
            return True
