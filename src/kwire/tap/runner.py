"""An event loop in a thread of its own, used as a context manager."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from types import TracebackType
from typing import ClassVar, Self

from kwire.broker.broker import refuse_green_threads
from kwire.errors import OptionError

__all__ = ["OnThread"]

log = logging.getLogger("kwire.tap")


class OnThread:
    """What runs on an event loop of its own. Subclasses have _serve, which sets _ready once clients can connect."""

    NAME: ClassVar[str]

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._ready = threading.Event()
        self._problem: BaseException | None = None

    async def _serve(self, loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
        """Run until `stop` is set."""
        raise NotImplementedError

    def start(self) -> None:
        """Start, and wait until clients can connect. Raises OptionError if an address is not available."""
        if self._thread is not None and self._thread.is_alive():
            raise OptionError(f"the {self.NAME} is already running")
        refuse_green_threads()
        self._ready.clear()
        self._problem = None
        self._thread = threading.Thread(target=self._run, name=f"kwire {self.NAME}", daemon=True)
        self._thread.start()
        self._ready.wait()
        self._raise_problem()

    def stop(self) -> None:
        """Close all connections and listeners."""
        if self._thread is None:
            return
        loop, stop = self._loop, self._stop
        if loop is not None and stop is not None:
            with contextlib.suppress(RuntimeError):  # it has ended in the meantime
                loop.call_soon_threadsafe(stop.set)
        self._thread.join()
        self._thread = None
        self._raise_problem()

    def _raise_problem(self) -> None:
        if self._problem is not None:
            problem, self._problem = self._problem, None
            self._thread = None
            raise problem

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            with asyncio.Runner() as runner:
                runner.run(self._start())
        except BaseException as error:
            self._problem = error
            if self._ready.is_set():
                log.exception("the %s has failed", self.NAME)
        finally:
            self._loop = self._stop = None
            self._ready.set()

    async def _start(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        await self._serve(self._loop, self._stop)
        await asyncio.sleep(0)  # transports close their sockets in the next turn of the loop
