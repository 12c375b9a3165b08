"""An embedded Kafka broker: an event loop in a separate thread, used as a context manager.

with Broker() as broker:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar, Unpack

from kwire.broker.apis import served
from kwire.broker.clock import MAX_MS, Clock, LoopTimers
from kwire.broker.compaction import Compaction
from kwire.broker.configs.given import parse_settings, unless_given
from kwire.broker.configs.settings import Settings, render
from kwire.broker.faults import Faults
from kwire.broker.faults.conditions import Apis, Conditions, Seen, When, is_integer
from kwire.broker.faults.fault import WAIT_S
from kwire.broker.housekeeping import Housekeeping
from kwire.broker.injection import NodeTopics
from kwire.broker.network.server import Server, bind_listeners
from kwire.broker.node import Instruments, Node
from kwire.broker.patience import Patience, check_count
from kwire.broker.replication.members import NO_PEERS, Peers
from kwire.broker.request_log import LoggedRequest, RequestLog
from kwire.broker.reset import reset
from kwire.broker.stored_records import records_of
from kwire.broker.temporary_files import TemporaryDirectory
from kwire.broker.waiting import GroupState, group_state, wait_for_request, wait_until_stable
from kwire.broker.warm_up import WarmUp
from kwire.errors import OptionError
from kwire.storage.unsynced_files import UnsyncedFileSystem

if TYPE_CHECKING:
    from kwire.records.format.record import Record

__all__ = ["Broker"]

log = logging.getLogger("kwire.broker")

KEPT_REQUESTS = 1000
HEARTBEAT = {"group_consumer_heartbeat_interval_ms": 100}
TEMPORARY_SETTINGS = {
    "offsets_topic_num_partitions": 1,
    "transaction_state_log_num_partitions": 1,
    "group_consumer_min_heartbeat_interval_ms": 100,
}
"""Defaults of a broker without a data_dir, and HEARTBEAT. Creating Kafka's 50 partitions takes longer than most tests,
and with Kafka's heartbeats members of a KIP-848 group wait five seconds for their share of the partitions."""
LOCALHOST = "127.0.0.1"

Result = TypeVar("Result")


class Broker:
    """A Kafka broker in this process.

    data_dir: a Kafka log directory. The default is a temporary directory, without fsync and with internal topics of one
    partition, removed at the end of the `with` block. host, port: of the listener, 0 for a free port; its protocol is
    the one that the settings ask for. Use `listeners` for several. keep_requests: maximum size of the request log
    `requests`. settings: broker configs by Kafka's names, with underscores for dots; see kwire.broker.configs.settings.
    Raises OptionError for an invalid setting, LogError for a directory that cannot be used.

    is_warm: set once the code that usual requests need is loaded, shortly after the start.
    For tests: faults (fault injection), requests (request log), wait_for, wait_until_stable, create_topic, records,
    advance (time), reset; stop and start for an outage, which keeps the port and the data.
    """

    def __init__(
        self,
        data_dir: str | Path | None = None,
        port: int = 0,
        *,
        host: str = LOCALHOST,
        keep_requests: int = KEPT_REQUESTS,
        **settings: object,
    ) -> None:
        if (port or host != LOCALHOST) and "listeners" in settings:
            raise OptionError("listeners and port or host are mutually exclusive: use one of them")
        if not isinstance(host, str):
            raise OptionError(f"invalid host {host!r}: must be an address or a name")
        if data_dir is not None and (not isinstance(data_dir, str | os.PathLike) or not str(data_dir)):
            raise OptionError(f"invalid data_dir {data_dir!r}: must be a path, or None for a temporary directory")
        if data_dir is not None and "://" in str(data_dir):
            raise OptionError(f"data_dir {str(data_dir)!r}: a broker writes to a local file system, not to a URL")
        if data_dir is None:
            has_heartbeat = any("consumer" in name and "heartbeat" in name for name in settings)
            defaults = {**({} if has_heartbeat else HEARTBEAT), **TEMPORARY_SETTINGS}
            settings = {**unless_given(defaults, settings), **settings}
        self.settings = self._parse(settings, host, port)
        self.faults = Faults(served(self.settings.unstable_api_versions_enable))
        self.requests = RequestLog(keep_requests)
        self.faults.nodes = (self.settings.node_id,)
        self.data_dir = None if data_dir is None else Path(data_dir)
        self._temporary: TemporaryDirectory | None = None
        self._ports: dict[str, int] = {}
        self._clock = Clock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._node: Node | None = None
        self._stop: asyncio.Event | None = None
        self._ready = threading.Event()
        self.is_warm = threading.Event()
        self._problem: BaseException | None = None

    def _parse(self, settings: Mapping[str, object], host: str, port: int) -> Settings:
        return parse_settings(settings, host, port)

    def __repr__(self) -> str:
        node = self._node
        return "Broker(stopped)" if node is None else f"Broker({address(node)})"

    # Use

    @property
    def is_running(self) -> bool:
        """Whether clients can connect."""
        return self._node is not None

    @property
    def node(self) -> Node:
        """The broker's state, to be used in `call` only. Raises OptionError if the broker is not running."""
        if self._node is None:
            raise OptionError("the broker is not running")
        return self._node

    @property
    def bootstrap_servers(self) -> str:
        """host:port of the first listener."""
        return address(self.node)

    @property
    def port(self) -> int:
        """The port of the first listener."""
        return next(iter(self.node.endpoints.values()))[1]

    def call(self, function: Callable[[Node], Result]) -> Result:
        """Run a function on the broker's thread, which owns the node, and return its result.

        Raises OptionError if the broker is not running, or on its own thread, which would wait for itself forever.
        """
        loop, node = self._loop, self.node
        if loop is None:
            raise OptionError("the broker is not running")
        if threading.current_thread() is self._thread:
            raise OptionError(
                "the broker's own thread cannot ask the broker: functions of faults have the request, those of call "
                "the node"
            )

        async def run() -> Result:
            return function(node)

        return asyncio.run_coroutine_threadsafe(run(), loop).result()

    # For tests

    def create_topic(
        self, name: str, partitions: int | None = None, *, replication_factor: int | None = None, **configs: object
    ) -> None:
        """Create a topic. partitions: num.partitions by default. configs: by Kafka's names, underscores for dots.

        replication_factor: default.replication.factor by default.

        Raises BrokerError as Kafka refuses it, such as TOPIC_ALREADY_EXISTS; OptionError for a value of another type.
        """
        self.create_topic_with(configs, name, partitions, replication_factor)

    def create_topic_with(
        self, configs: Mapping[str, object], name: str, partitions: int | None, replication_factor: int | None = None
    ) -> None:
        """Create a topic, as create_topic does, with configs of any names."""
        if not isinstance(name, str):
            raise OptionError(f"invalid topic {name!r}: must be a name")
        for what, number in (("partitions", partitions), ("replication_factor", replication_factor)):
            if number is not None and not is_integer(number):
                raise OptionError(f"invalid {what} {number!r}: must be an integer")
        given = dict[str, str]()
        for key, value in configs.items():
            config = key.replace("_", ".")
            if config in given:
                raise OptionError(f"config {config} is given twice: {given[config]!r} and {value!r}")
            given[config] = render(value)

        def create(node: Node) -> None:
            count = node.settings.num_partitions if partitions is None else partitions
            node.controller.create_topic(name, count, given, replication_factor)

        self.call(create)

    def records(self, topic: str, partition: int | None = None) -> list[Record]:
        """Return the records of a topic, ordered by partition and offset, including records of open transactions.

        partition: of all partitions by default. Raises OptionError for an unknown topic or partition.
        """
        return self.call(lambda node: records_of(node.topics, topic, partition))

    def wait_for(self, api: Apis, *, timeout: float = WAIT_S, **when: Unpack[When]) -> LoggedRequest:
        """Return the first request that meets conditions, once it has a response: of the request log, or to come.

        when: conditions of faults on the request itself. Raises TimeoutError after timeout seconds.
        """
        return self.wait_for_with(Patience(timeout), api, **when)

    def wait_for_with(self, patience: Patience, api: Apis, **when: Unpack[When]) -> LoggedRequest:
        """See wait_for."""

        def meets(entry: LoggedRequest, conditions: Conditions) -> bool:
            def look(node: Node) -> bool:
                assert entry.request is not None
                seen = Seen(entry.api_key, entry.api_version, entry.client_id, entry.request, NodeTopics(node))
                seen.node_id = entry.node_id
                return conditions.hold_for(seen)

            return self.call(look)

        return wait_for_request(self.requests, self.faults, meets, api, when, patience)

    def wait_until_stable(self, group: str, members: int | None = None, *, timeout: float = WAIT_S) -> GroupState:
        """Wait until a group is stable, with a number of members if one is given; returns its state.

        Stable: all members have their share of the partitions (classic groups, and those of KIP-848). Raises
        TimeoutError after timeout seconds.
        """
        return wait_until_stable(self.group_state, group, members, Patience(timeout))

    def group_state(self, group: str) -> GroupState:
        """Return the state and the members of a group; the state of a group that does not exist is "missing"."""
        return self.call(lambda node: group_state(node.groups.store, group))

    def advance(self, ms: int) -> None:
        """Advance the broker's clock, until the next reset. Timers that become due fire in order.

        Raises OptionError for a time after the year 9999.
        """
        check_count("ms", ms)

        def jump(node: Node) -> None:
            left = MAX_MS - node.clock.now_ms()
            if ms > left:
                raise OptionError(f"invalid ms {ms}: the clock ends with the year 9999, in {max(0, left)} ms")
            node.clock.jump(ms)
            node.timers.jump(ms)

        self.call(jump)

    def reset(self) -> None:
        """Remove all topics, groups, transactions, users, dynamic configs and faults, and take the clock back.

        Features and levels of loggers become those of a new broker.
        """
        self.call(reset)

    # Start and stop

    def start(self) -> None:
        """Start the broker and wait until clients can connect. After stop(), it has the same port and data."""
        if self._thread is not None and self._thread.is_alive():
            raise OptionError("the broker is already running")
        refuse_green_threads()
        if is_first := self.data_dir is None and self._temporary is None:
            self._temporary = TemporaryDirectory()
        self._ready.clear()
        self.is_warm.clear()
        self._problem = None
        self._thread = threading.Thread(target=self._run, name="kwire broker", daemon=True)
        self._thread.start()
        self._ready.wait()
        try:
            self._raise_problem()
        except BaseException:
            if is_first:
                self._forget()
            raise

    def stop(self) -> None:
        """Stop cleanly: close connections, flush logs, write checkpoints and Kafka's clean shutdown file.

        start() continues with the same data on the same port. A temporary directory is removed at the end of the `with`
        block, or with this object.
        """
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

    def _forget(self) -> None:
        """Remove the temporary directory; the next start is one of a new broker."""
        self._ports = {}
        self._clock.take_back()
        if self._temporary is not None:
            self._temporary.remove()
            self._temporary = None

    def __enter__(self) -> Broker:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.stop()
        finally:
            self._forget()

    async def __aenter__(self) -> Broker:
        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.__exit__, kind, error, trace)

    # On the thread

    def _run(self) -> None:
        try:
            with asyncio.Runner() as runner:
                runner.run(self._serve())
        except BaseException as error:
            self._problem = error
            if self._node is not None:
                log.exception("the broker has failed")
        finally:
            self._loop = self._node = self._stop = None
            self._ready.set()

    async def _serve(self) -> None:
        loop = self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        with contextlib.ExitStack() as cleanup:
            directory = self.data_dir if self._temporary is None else self._temporary.path
            assert directory is not None  # start() has created the temporary one
            node, listen = self._open(directory, loop, cleanup)
            housekeeping = Housekeeping(node)
            housekeeping.start()
            cleanup.callback(housekeeping.stop)
            compaction = Compaction(node.log_manager, node.configs, node.clock, node.timers)
            compaction.start()
            cleanup.callback(compaction.stop)
            listen()
            self._node = node
            self._ready.set()
            warm_up = WarmUp(loop, self.is_warm)
            cleanup.callback(warm_up.stop)
            await self._stop.wait()

    def _open(
        self, directory: Path, loop: asyncio.AbstractEventLoop, cleanup: contextlib.ExitStack
    ) -> tuple[Node, Callable[[], object]]:
        """Open the node on its directory; returns it with the function that lets clients connect."""
        bound = bind_listeners(self.settings, self._ports)
        cleanup.callback(bound.close)
        self._ports = bound.ports
        node = self._make_node(self.settings, directory, bound.endpoints, loop)
        cleanup.callback(node.close)

        def listen() -> None:
            server = Server(node, loop, bound)
            cleanup.callback(server.close)
            server.listen()

        return node, listen

    def _make_node(
        self,
        settings: Settings,
        directory: Path,
        endpoints: Mapping[str, tuple[str, int]],
        loop: asyncio.AbstractEventLoop,
        peers: Peers = NO_PEERS,
    ) -> Node:
        return Node(
            settings,
            directory,
            endpoints,
            self._clock,
            LoopTimers(loop),
            files=UnsyncedFileSystem() if self.data_dir is None else None,
            instruments=Instruments(self.faults, self.requests),
            peers=peers,
        )


def address(node: Node) -> str:
    """Return host:port of a node's first listener."""
    host, port = next(iter(node.endpoints.values()))
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def refuse_green_threads() -> None:
    """Raise OptionError if gevent has replaced threads: the broker's own thread would stop the program's."""
    monkey = sys.modules.get("gevent.monkey")
    if monkey is not None and (monkey.is_module_patched("threading") or monkey.is_module_patched("_thread")):
        raise OptionError(
            "the broker needs real threads, which gevent has patched; run `kwire serve` as a separate process"
        )
