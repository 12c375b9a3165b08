"""An embedded Kafka broker: an event loop in a separate thread, used as a context manager.

with Broker() as broker:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from kwire.broker.clock import Clock, LoopTimers
from kwire.broker.compaction import Compaction
from kwire.broker.faults import Faults
from kwire.broker.housekeeping import Housekeeping
from kwire.broker.node import Node
from kwire.broker.request_log import RequestLog
from kwire.broker.reset import reset
from kwire.broker.server import Server, bind_listeners
from kwire.broker.settings import Settings
from kwire.broker.temporary_files import TemporaryFiles
from kwire.broker.warm_up import WarmUp
from kwire.errors import OptionError

__all__ = ["Broker"]

log = logging.getLogger("kwire.broker")

TEMPORARY_SETTINGS = {"offsets_topic_num_partitions": 1, "transaction_state_log_num_partitions": 1}
"""Defaults of a broker without a data_dir: creating Kafka's 50 partitions takes longer than most tests."""

Result = TypeVar("Result")


class Broker:
    """A Kafka broker in this process.

    data_dir: a Kafka log directory. The default is a temporary directory, without fsync and with internal topics of one
    partition. port: on 127.0.0.1, 0 for a free port; use `listeners` for other addresses. keep_requests: maximum size
    of the request log `requests`. settings: broker configs by Kafka's names, with underscores for dots; see
    kwire.broker.settings.
    Raises OptionError for an invalid setting, LogError for a directory that cannot be used.

    is_warm: set once the code that usual requests need is loaded, shortly after the start.
    For tests: faults (fault injection), requests (request log), advance (time), reset.
    """

    def __init__(
        self, data_dir: str | Path | None = None, port: int = 0, *, keep_requests: int = 0, **settings: object
    ) -> None:
        if port and "listeners" in settings:
            raise OptionError("port and listeners are mutually exclusive: use one of them")
        settings.setdefault("listeners", f"PLAINTEXT://127.0.0.1:{port}")
        if data_dir is None:
            settings = {**TEMPORARY_SETTINGS, **settings}
        self.faults = Faults()
        self.requests = RequestLog(keep_requests)
        self.settings = Settings.parse(settings)
        self.data_dir = None if data_dir is None else Path(data_dir)
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._node: Node | None = None
        self._stop: asyncio.Event | None = None
        self._ready = threading.Event()
        self.is_warm = threading.Event()
        self._problem: BaseException | None = None

    # Use

    @property
    def node(self) -> Node:
        """The broker's state, to be used in `call` only. Raises OptionError if the broker is not running."""
        if self._node is None:
            raise OptionError("the broker is not running")
        return self._node

    @property
    def bootstrap_servers(self) -> str:
        """host:port of the first listener."""
        host, port = next(iter(self.node.endpoints.values()))
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    @property
    def port(self) -> int:
        """The port of the first listener."""
        return next(iter(self.node.endpoints.values()))[1]

    def call(self, function: Callable[[Node], Result]) -> Result:
        """Run a function on the broker's thread, which owns the node, and return its result."""
        loop, node = self._loop, self.node
        if loop is None:
            raise OptionError("the broker is not running")

        async def run() -> Result:
            return function(node)

        return asyncio.run_coroutine_threadsafe(run(), loop).result()

    # For tests

    def advance(self, ms: int) -> None:
        """Advance the broker's clock, until the next reset. Timers that become due fire in order."""
        if ms < 0:
            raise OptionError(f"invalid ms {ms}: must be 0 or more")

        def jump(node: Node) -> None:
            node.clock.jump(ms)
            node.timers.jump(ms)

        self.call(jump)

    def reset(self) -> None:
        """Remove all topics, groups, transactions, users, dynamic configs and faults, and take the clock back."""
        self.call(reset)

    # Start and stop

    def start(self) -> None:
        """Start the broker and wait until clients can connect."""
        if self._thread is not None:
            raise OptionError("the broker is already running")
        self._ready.clear()
        self.is_warm.clear()
        self._problem = None
        self._thread = threading.Thread(target=self._run, name="kwire broker", daemon=True)
        self._thread.start()
        self._ready.wait()
        self._raise_problem()

    def stop(self) -> None:
        """Stop cleanly: close connections, flush logs, write checkpoints and Kafka's clean shutdown file."""
        if self._thread is None:
            return
        loop, stop = self._loop, self._stop
        if loop is not None and stop is not None:
            loop.call_soon_threadsafe(stop.set)
        self._thread.join()
        self._thread = None
        self._raise_problem()

    def _raise_problem(self) -> None:
        """Raise the exception that ended the thread, if any."""
        if self._problem is not None:
            problem, self._problem = self._problem, None
            self._thread = None
            raise problem

    def __enter__(self) -> Broker:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Broker:
        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.stop)

    # On the thread

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=new_loop) as runner:
                runner.run(self._serve())
        except BaseException as error:
            self._problem = error
        finally:
            self._loop = self._node = self._stop = None
            self._ready.set()

    async def _serve(self) -> None:
        loop = self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        with contextlib.ExitStack() as cleanup:
            directory = self.data_dir
            if directory is None:
                directory = Path(cleanup.enter_context(tempfile.TemporaryDirectory(prefix="kwire-broker-")))
            bound = bind_listeners(self.settings)
            cleanup.callback(bound.close)
            node = Node(
                self.settings,
                directory,
                bound.endpoints,
                Clock(),
                LoopTimers(loop),
                files=TemporaryFiles() if self.data_dir is None else None,
                faults=self.faults,
                requests=self.requests,
            )
            cleanup.callback(node.close)
            housekeeping = Housekeeping(node)
            housekeeping.start()
            cleanup.callback(housekeeping.stop)
            compaction = Compaction(node)
            compaction.start()
            cleanup.callback(compaction.stop)
            server = Server(node, loop, bound)
            cleanup.callback(server.close)
            server.listen()
            self._node = node
            self._ready.set()
            warm_up = WarmUp(loop, self.is_warm)
            cleanup.callback(warm_up.stop)
            await self._stop.wait()


def new_loop() -> asyncio.AbstractEventLoop:
    """Create an event loop, of uvloop if it is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
