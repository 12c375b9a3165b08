"""The broker's sockets: listen, accept connections within the limits, close idle ones.

Source: kafka.network.SocketServer, ConnectionQuotas: max.connections, max.connections.per.ip, connections.max.idle.ms.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import math
import resource
import socket
import ssl
import struct
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec

from kwire.broker.configs.settings import Settings
from kwire.broker.context import Peer
from kwire.broker.network.connection import ClientConnection, Shared
from kwire.broker.network.listeners import Listener, parse_listeners
from kwire.broker.network.memory import RequestMemory
from kwire.broker.network.poller import Poller
from kwire.broker.network.turns import Turns
from kwire.broker.node import Node
from kwire.broker.security.tls import server_context
from kwire.errors import OptionError

__all__ = ["BoundListeners", "Server", "bind_listeners"]

log = logging.getLogger("kwire.broker")

EVERYWHERE = ("", "0.0.0.0", "::")
BACKLOG = 1024
RESET_ON_CLOSE = struct.pack("ii", 1, 0)
"""SO_LINGER: closing the socket sends a reset."""
SCRATCH_BYTES = 256 * 1024
ACCEPTS_AT_ONCE = 64
ACCEPT_PAUSE_S = 1.0
RESERVED_FRACTION, MIN_RESERVED = 16, 16
"""File descriptors reserved for log files: one in 16 of those that the process may open, and at least 16."""
MIN_IDLE_CHECK_S, MAX_IDLE_CHECK_S = 0.05, 5
STALLED_S = 30
"""Time for which a client may pause inside a large request while others wait for memory. It is the default of Kafka's
request.timeout.ms."""


class BoundListeners(msgspec.Struct, frozen=True, kw_only=True):
    """Sockets bound to the addresses of `listeners`, not listening yet.

    endpoints: advertised (host, port) by listener name. tls: by name, of listeners that use it.
    """

    sockets: list[tuple[socket.socket, Listener]]
    endpoints: dict[str, tuple[str, int]]
    tls: Mapping[str, ssl.SSLContext]

    @property
    def ports(self) -> dict[str, int]:
        """The port of each listener, by name."""
        return {listener.name: sock.getsockname()[1] for sock, listener in self.sockets}

    def close(self) -> None:
        """Close the sockets."""
        for sock, _ in self.sockets:
            sock.close()


def bind_listeners(settings: Settings, ports: Mapping[str, int]) -> BoundListeners:
    """Bind a socket for each listener. Raises OptionError if an address is not available.

    ports: the port of listeners with port 0, by name; any free port for others.
    """
    listeners = parse_listeners(settings, settings.listeners)
    tls = contexts_of(settings, listeners)
    sockets: list[tuple[socket.socket, Listener]] = []
    endpoints: dict[str, tuple[str, int]] = {}
    with contextlib.ExitStack() as undo:
        for each in listeners:
            listener = each if each.port else replace(each, port=ports.get(each.name, 0))
            sock = bind(listener)
            undo.callback(sock.close)
            sockets.append((sock, listener))
            host = listener.host if listener.host not in EVERYWHERE else socket.gethostname()
            endpoints[listener.name] = (host, sock.getsockname()[1])
        if settings.advertised_listeners:
            advertised = parse_listeners(settings, settings.advertised_listeners)
            for each in advertised:
                if each.name not in endpoints:
                    raise OptionError(f"advertised.listeners: {each.name!r} is not one of listeners")
                endpoints[each.name] = (each.host, each.port or endpoints[each.name][1])
        for listener in listeners:
            if listener.host in EVERYWHERE and not settings.advertised_listeners:
                host, port = endpoints[listener.name]
                address = f"{listener.name}://{host}:{port}"
                log.warning("clients are sent to %s; set advertised.listeners if they do not know that name", address)
        undo.pop_all()
    return BoundListeners(sockets=sockets, endpoints=endpoints, tls=tls)


def contexts_of(settings: Settings, listeners: Sequence[Listener]) -> dict[str, ssl.SSLContext]:
    """Return the TLS contexts of listeners by name. Raises OptionError.

    Beside listeners of SSL, ssl.client.auth is not that of SASL_SSL, as in Kafka (KIP-684).
    """
    used = [each for each in listeners if each.is_tls]
    by_login = settings.replace(ssl_client_auth="none") if any(each.protocol == "SSL" for each in used) else settings
    return {each.name: server_context(settings if each.protocol == "SSL" else by_login) for each in used}


def bind(listener: Listener) -> socket.socket:
    """Bind the socket of one listener. Raises OptionError if its address is not available."""
    family = socket.AF_INET6 if ":" in listener.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((listener.host, listener.port))
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        raise OptionError(f"cannot listen on {listener.host}:{listener.port}: {error.strerror or error}") from None
    return sock


class Server:
    """The listeners of a node and their connections."""

    def __init__(self, node: Node, loop: asyncio.AbstractEventLoop, bound: BoundListeners) -> None:
        self.node = node
        self._loop = loop
        self._tls, self._sockets = bound.tls, bound.sockets
        self._numbers = itertools.count()
        self._per_host: Counter[str] = Counter()
        turns = Turns(loop)
        self._poller = Poller(loop, turns)
        self.memory: RequestMemory[ClientConnection] = RequestMemory(node.settings.queued_max_request_bytes, turns.add)
        self._shared = Shared(
            node=node,
            turns=turns,
            poller=self._poller,
            memory=self.memory,
            scratch=bytearray(SCRATCH_BYTES),
        )
        self._idle_check: asyncio.TimerHandle | None = None
        self._accept_again: asyncio.TimerHandle | None = None
        self._paused_at = -math.inf
        self._last_descriptor = last_descriptor()
        self.connections: set[ClientConnection] = set()

    def listen(self) -> None:
        """Start to accept connections."""
        for sock, _ in self._sockets:
            sock.listen(BACKLOG)
        self._start_accepting()
        self._close_idle()

    def _accept(self, listening: socket.socket, listener: Listener) -> None:
        for _ in range(ACCEPTS_AT_ONCE):
            try:
                sock, address = listening.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionAbortedError:  # the client has disconnected
                continue
            except OSError as error:
                self._pause_accepting(error.strerror or str(error))
                return
            descriptor = sock.fileno()
            self._add_connection(sock, address[0], address[1], listener)
            if descriptor >= self._last_descriptor:
                self._pause_accepting("the remaining file descriptors are reserved for logs")
                return

    def _pause_accepting(self, why: str) -> None:
        """Stop accepting until a connection closes, or for ACCEPT_PAUSE_S; log it at most once in that time."""
        now = time.monotonic()
        if now - self._paused_at >= ACCEPT_PAUSE_S:
            self._paused_at = now
            log.warning("connections are not accepted for now (%s), %s are open", why, len(self.connections))
        for sock, _ in self._sockets:
            self._loop.remove_reader(sock.fileno())
        self._accept_again = self._loop.call_later(ACCEPT_PAUSE_S, self._start_accepting)

    def _start_accepting(self) -> None:
        if self._accept_again is not None:
            self._accept_again.cancel()
            self._accept_again = None
        for sock, listener in self._sockets:
            if sock.fileno() >= 0:
                self._loop.add_reader(sock.fileno(), self._accept, sock, listener)

    def _add_connection(self, sock: socket.socket, host: str, port: int, listener: Listener) -> None:
        settings = self.node.settings
        if self.node.faults.refuses_connection(self.node.node_id):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
            sock.close()
            return
        if len(self.connections) >= settings.max_connections:
            log.warning("connection from %s refused: max.connections is %s", host, settings.max_connections)
            sock.close()
            return
        if self._per_host[host] >= settings.max_connections_per_ip:
            limit = settings.max_connections_per_ip
            log.warning("connection from %s refused: max.connections.per.ip is %s", host, limit)
            sock.close()
            return
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            local = sock.getsockname()
            if listener.is_tls:
                sock = self._tls[listener.name].wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        except OSError as error:  # the client has disconnected
            log.debug("connection from %s: %s", host, error)
            sock.close()
            return
        peer = Peer(
            connection_id=f"{local[0]}:{local[1]}-{host}:{port}-{next(self._numbers)}",
            host=host,
            port=port,
            listener=listener.name,
            security_protocol=listener.protocol,
        )
        self._per_host[host] += 1
        self.connections.add(ClientConnection(self._shared, sock, peer, self._remove_connection))

    def _remove_connection(self, connection: ClientConnection) -> None:
        self.connections.discard(connection)
        host = connection.peer.host
        self._per_host[host] -= 1
        if not self._per_host[host]:
            del self._per_host[host]
        if self._accept_again is not None:  # its descriptor is available now
            self._start_accepting()

    def _close_idle(self) -> None:
        limit = self.node.settings.connections_max_idle_ms / 1000
        now = time.monotonic()
        for connection in list(self.connections):
            quiet_s = now - connection.last_active
            if quiet_s > limit and not connection.is_waiting:
                connection.close("idle for longer than connections.max.idle.ms")
            elif quiet_s > STALLED_S and self.memory.is_short and connection.is_receiving:
                connection.close("the client paused inside a request while others waited for its memory")
        self._idle_check = self._loop.call_later(
            max(MIN_IDLE_CHECK_S, min(limit / 4, MAX_IDLE_CHECK_S)), self._close_idle
        )

    def close(self) -> None:
        """Stop listening and close all connections."""
        for timer in (self._idle_check, self._accept_again):
            if timer is not None:
                timer.cancel()
        self._accept_again = None
        for sock, _ in self._sockets:
            if sock.fileno() >= 0:
                self._loop.remove_reader(sock.fileno())
                sock.close()
        for connection in list(self.connections):
            connection.close("broker shutdown", level=logging.DEBUG)
        self._poller.close()


def last_descriptor() -> float:
    """Return the highest descriptor that is not reserved for logs; infinite without a limit."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return math.inf if soft == resource.RLIM_INFINITY else soft - max(MIN_RESERVED, soft // RESERVED_FRACTION)
