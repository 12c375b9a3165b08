"""Load what the first requests of producers and consumers need, while the broker waits for them.

A handler is imported, and a message's definition parsed, at first use, so that a broker starts quickly. That takes 2 to
15 ms for each API, which the first clients would wait for. So a broker that has started loads the usual ones itself,
in small steps: between two of them the event loop handles requests.
"""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable, Iterator

from kwire.broker.apis import SERVED, handler
from kwire.protocol.requests import request_codec, response_codec

__all__ = ["WarmUp"]

APIS = (18, 3, 0, 2, 1, 22, 10, 11, 14, 12, 9, 8, 13, 24, 25, 28, 26)
"""In order of use: ApiVersions, Metadata, Produce, ListOffsets, Fetch, InitProducerId; groups; transactions."""


def steps() -> Iterator[Callable[[], object]]:
    """Yield the steps in order. None takes longer than a few milliseconds."""
    for key in APIS:
        version = SERVED[key].highest
        yield functools.partial(handler, key)
        yield functools.partial(request_codec, key, version)
        yield functools.partial(response_codec, key, version)


class WarmUp:
    """The steps on an event loop. done: set after the last one."""

    def __init__(self, loop: asyncio.AbstractEventLoop, done: threading.Event) -> None:
        self._loop, self._done = loop, done
        self._steps = steps()
        self._next = loop.call_soon(self._run)

    def _run(self) -> None:
        step = next(self._steps, None)
        if step is None:
            self._done.set()
            return
        self._next = self._loop.call_soon(self._run)
        step()

    def stop(self) -> None:
        """Skip the remaining steps."""
        self._next.cancel()
        self._done.set()
