"""A proxy before a Kafka cluster: an event loop in a thread of its own, used as a context manager."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar, Unpack

from kwire.broker.broker import KEPT_REQUESTS
from kwire.broker.faults import Faults
from kwire.broker.faults.conditions import Apis, Conditions, Seen, When
from kwire.broker.faults.fault import WAIT_S
from kwire.broker.network.server import RESET_ON_CLOSE
from kwire.broker.patience import Patience
from kwire.broker.request_log import LoggedRequest, RequestLog
from kwire.broker.waiting import wait_for_request
from kwire.errors import KwireError, OptionError
from kwire.tap.connection import TapConnection
from kwire.tap.listeners import Listener, Listeners, shown
from kwire.tap.recording import Recorder
from kwire.tap.responses import KNOWN
from kwire.tap.runner import OnThread
from kwire.tap.settings import client_settings, listener_tls, parse_listen
from kwire.tap.shared import Shared
from kwire.tap.topics import TopicsAt

__all__ = ["Tap", "TapNode"]

log = logging.getLogger("kwire.tap")

FLUSH_S = 1.0
Result = TypeVar("Result")


class TapNode(NamedTuple):
    """A node of the cluster. address: where clients reach it through the tap. target: its own address."""

    node_id: int
    address: str
    target: str


class Tap(OnThread):
    """A proxy before a Kafka cluster, with faults and a request log as a Broker has.

    to: host:port of the cluster, several separated by commas. listen: PORT or HOST:PORT; each node of the cluster gets
    a port of its own. record: a file for what clients send and receive, a capture that kwire and Wireshark read.
    keep_requests: maximum size of the request log `requests`; with 0, messages are decoded only where faults apply.
    listen_configs: TLS of the listeners, by the names of a broker's configs (ssl.*). configs: TLS to the cluster, by
    the names of a client's configs. Clients log in to the cluster themselves.
    Raises OptionError for an invalid setting and an address that is not available.
    """

    NAME = "tap"

    def __init__(
        self,
        to: str,
        listen: str | int = 0,
        *,
        record: str | Path | None = None,
        keep_requests: int = KEPT_REQUESTS,
        listen_configs: Mapping[str, object] | None = None,
        **configs: object,
    ) -> None:
        super().__init__()
        if record is not None and (not isinstance(record, str | os.PathLike) or not str(record)):
            raise OptionError(f"invalid record {record!r}: must be a path, or None for no recording")
        if listen_configs is not None and not isinstance(listen_configs, Mapping):
            raise OptionError(f"invalid listen_configs {listen_configs!r}: must be a mapping, or None for no TLS")
        self.to = to
        self.faults = Faults(KNOWN)
        self.requests = RequestLog(keep_requests)
        self._address = parse_listen(str(listen))
        self._settings = client_settings(to, configs)
        self._tls = listener_tls(listen_configs)
        if self._settings.uses_tls and self._tls is None and self._address[0] not in LOOPBACK:
            log.warning("listens on %s without TLS, while the cluster uses it: set listen_configs", self._address[0])
        self._record = None if record is None else str(record)
        self._recorder: Recorder | None = None
        self._shared: Shared | None = None
        self._connections: set[TapConnection] = set()
        self._count = 0
        self._opening: set[asyncio.Task[None]] = set()

    def __repr__(self) -> str:
        return f"Tap({self.bootstrap_servers} to {self.to})" if self.is_running else f"Tap(stopped, to {self.to})"

    # Use

    @property
    def is_running(self) -> bool:
        """Whether clients can connect."""
        return self._shared is not None

    @property
    def bootstrap_servers(self) -> str:
        """host:port of the first listener."""
        return self.call(lambda shared: shown(shared.listeners.first.host, shared.listeners.first.port))

    @property
    def nodes(self) -> list[TapNode]:
        """The nodes of the cluster that responses have named so far, in the order of their ids."""

        def look(shared: Shared) -> list[TapNode]:
            nodes = shared.listeners.nodes.items()
            return [
                TapNode(node.node_id, shown(each.host, each.port), ",".join(shown(*target) for target in each.targets))
                for node, each in sorted(nodes, key=lambda pair: (pair[0].is_controller, pair[0].node_id))
            ]

        return self.call(look)

    @property
    def problem(self) -> str:
        """Why the recording has ended early, "" if it has not."""
        return "" if self._recorder is None else self._recorder.problem

    def call(self, function: Callable[[Shared], Result]) -> Result:
        """Run a function on the tap's thread, and return its result. Raises OptionError if the tap is not running."""
        loop, shared = self._loop, self._shared
        if loop is None or shared is None:
            raise OptionError("the tap is not running")

        async def run() -> Result:
            return function(shared)

        return asyncio.run_coroutine_threadsafe(run(), loop).result()

    def wait_for(self, api: Apis, *, timeout: float = WAIT_S, **when: Unpack[When]) -> LoggedRequest:
        """Return the first request that meets conditions, once it has a response; see Broker.wait_for."""
        return self.wait_for_with(Patience(timeout), api, **when)

    def wait_for_with(self, patience: Patience, api: Apis, **when: Unpack[When]) -> LoggedRequest:
        """See wait_for."""

        def meets(entry: LoggedRequest, conditions: Conditions) -> bool:
            def look(shared: Shared) -> bool:
                assert entry.request is not None
                topics = TopicsAt(shared.topics, shared.port_of(entry.node_id))
                seen = Seen(entry.api_key, entry.api_version, entry.client_id, entry.request, topics)
                seen.node_id = entry.node_id
                return conditions.hold_for(seen)

            return self.call(look)

        return wait_for_request(self.requests, self.faults, meets, api, when, patience)

    # On the thread

    async def _serve(self, loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
        with contextlib.ExitStack() as cleanup:
            if self._record is not None:
                self._recorder = Recorder(self._record)
                cleanup.callback(self._recorder.close)
            shared = Shared(self._settings, self.faults, self.requests, self._recorder)
            targets = self._settings.bootstrap_servers
            shared.listeners = Listeners(loop, self._address, targets, self._accepted, self._tls)
            cleanup.callback(shared.listeners.close)
            self._shared = shared
            try:
                self._ready.set()
                self._flush(loop, shared)
                await stop.wait()
            finally:
                self._shared = None
                for connection in list(self._connections):
                    connection.close("the tap stops", level=logging.DEBUG)

    def _flush(self, loop: asyncio.AbstractEventLoop, shared: Shared) -> None:
        if shared.recorder is not None:
            shared.recorder.flush()
            loop.call_later(FLUSH_S, self._flush, loop, shared)

    def _accepted(self, sock: socket.socket, listener: Listener) -> None:
        shared, loop = self._shared, self._loop
        if shared is None or loop is None:
            sock.close()
            return
        if self.faults.refuses_connection(listener.node.node_id):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
            sock.close()
            return
        self._count += 1
        connection = TapConnection(shared, listener, self._count, self._connections.discard)
        self._connections.add(connection)
        opening = loop.create_task(self._open(connection, sock, shared))
        self._opening.add(opening)
        opening.add_done_callback(self._opening.discard)

    async def _open(self, connection: TapConnection, sock: socket.socket, shared: Shared) -> None:
        assert self._loop is not None
        try:
            await self._loop.connect_accepted_socket(lambda: connection.client, sock, ssl=shared.listeners.tls)
        except (OSError, KwireError) as error:
            sock.close()
            connection.close(f"client: {error}", level=logging.INFO)


LOOPBACK = ("127.0.0.1", "::1", "localhost")
