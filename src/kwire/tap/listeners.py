"""The tap's listeners: one for the address that clients begin with, and one for each node of the cluster.

A node's listener is opened when a response first names the node, and stays: clients that reconnect find the same node
at the same port, also if its own address has changed. Where the first listener has a chosen port, the others get the
ports after it, skipping those that are in use.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
import ssl
from collections.abc import Callable

from kwire.errors import ConnectionFailed, OptionError
from kwire.tap.addresses import Node

__all__ = ["FIRST", "Listener", "Listeners", "shown"]

log = logging.getLogger("kwire.tap")

Address = tuple[str, int]

EVERYWHERE = ("", "0.0.0.0", "::")
BACKLOG = 1024
MAX_LISTENERS = 2000
"""Far above the nodes of a cluster: a cluster that lies about them cannot take all ports."""
ACCEPTS_AT_ONCE, ACCEPT_PAUSE_S = 64, 1.0
FIRST = Node(-1)
"""Stands for the node that the first listener leads to: Kafka's clients give it this id as well."""


class Listener:
    """A listening socket. targets: the addresses of the node, to be tried in order."""

    def __init__(self, node: Node, sock: socket.socket, targets: tuple[Address, ...]) -> None:
        self.node, self.sock, self.targets = node, sock, targets
        name = sock.getsockname()
        self.host, self.port = str(name[0]), int(name[1])


class Listeners:
    """All listeners, on the thread of an event loop.

    accepted: gets each new connection with its listener. targets: the addresses of the cluster to begin with.
    Raises OptionError if the first address is not available.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        address: Address,
        targets: tuple[Address, ...],
        accepted: Callable[[socket.socket, Listener], None],
        tls: ssl.SSLContext | None,
    ) -> None:
        self._loop, self._accepted, self.tls = loop, accepted, tls
        self.host, port = address
        self._next_port = port + 1 if port else 0
        self._targets = targets
        self._by_node: dict[Node, Listener] = {}
        self._timers: dict[int, asyncio.TimerHandle] = {}
        try:
            self.first = self._open(FIRST, port, targets)
        except OSError as error:
            shown = f"[{self.host}]" if ":" in self.host else self.host
            raise OptionError(f"cannot listen on {shown}:{port}: {error.strerror or error}") from None

    @property
    def all(self) -> list[Listener]:
        """The listeners, the first one first."""
        return [self.first, *(each for each in self._by_node.values() if each is not self.first)]

    @property
    def nodes(self) -> dict[Node, Listener]:
        """The listener of each node that is known."""
        return dict(self._by_node)

    def is_own(self, local: tuple[str, int], remote: tuple[str, int]) -> bool:
        """Return whether a connection leads to one of the listeners. local, remote: its ends."""
        is_here = remote[0] == local[0] or remote[0] == self.first.host
        return is_here and any(
            each.port == remote[1] and (each.host in EVERYWHERE or each.host == remote[0]) for each in self.all
        )

    def _open(self, node: Node, port: int, targets: tuple[Address, ...]) -> Listener:
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # asyncio sets TCP_NODELAY only for this
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((self.host, port))
            sock.listen(BACKLOG)
            sock.setblocking(False)
        except OSError:
            sock.close()
            raise
        listener = Listener(node, sock, targets)
        self._loop.add_reader(sock.fileno(), self._accept, listener)
        return listener

    def place(self, seen_host: str, node: Node, host: str, port: int) -> Address:
        """Return where clients reach a node, whose own address is given.

        seen_host: the address by which a client has reached the tap, for a tap that listens everywhere.
        Raises ConnectionFailed for more nodes than a cluster can have, or if there is no port for one.
        """
        target = (host, port)
        listener = self._by_node.get(node)
        if listener is None:
            if self._targets == (target,) and self.first.node is FIRST and not node.is_controller:
                listener, self.first.node = self.first, node
            else:
                listener = self._open_next(node, target)
            self._by_node[node] = listener
            log.info("node %s, %s:%s, is at port %s", node.node_id, host, port, listener.port)
        elif listener.targets != (target,):
            if listener is self.first:  # its node has moved: what clients begin with stays where it is
                self.first.node = FIRST
                listener = self._by_node[node] = self._open_next(node, target)
            listener.targets = (target,)
        return seen_host if self.host in EVERYWHERE else self.host, listener.port

    def _open_next(self, node: Node, target: Address) -> Listener:
        if len(self._by_node) >= MAX_LISTENERS:
            raise ConnectionFailed(f"the cluster names more than {MAX_LISTENERS} nodes", f"{target[0]}:{target[1]}")
        while True:
            port = self._next_port
            if port:
                self._next_port = port + 1 if port < 65535 else 0
            try:
                return self._open(node, port, (target,))
            except OSError as error:
                if error.errno != errno.EADDRINUSE or not port:
                    what = f"no listener for node {node.node_id}: {error.strerror or error}"
                    raise ConnectionFailed(what, f"{target[0]}:{target[1]}") from None
                log.info("port %s is in use", port)

    def _accept(self, listener: Listener) -> None:
        for _ in range(ACCEPTS_AT_ONCE):
            try:
                sock, _ = listener.sock.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionAbortedError:
                continue
            except OSError as error:
                log.warning("connections are not accepted for now: %s", error.strerror or error)
                number = listener.sock.fileno()
                self._loop.remove_reader(number)
                self._timers[number] = self._loop.call_later(ACCEPT_PAUSE_S, self._accept_again, listener)
                return
            sock.setblocking(False)
            self._accepted(sock, listener)

    def _accept_again(self, listener: Listener) -> None:
        if self._timers.pop(listener.sock.fileno(), None) is not None:
            self._loop.add_reader(listener.sock.fileno(), self._accept, listener)

    def close(self) -> None:
        """Close all listeners."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        for each in self.all:
            if each.sock.fileno() >= 0:
                self._loop.remove_reader(each.sock.fileno())
                with contextlib.suppress(OSError):
                    each.sock.close()


def shown(host: str, port: int) -> str:
    """Return host:port; the name of this machine for a listener on all interfaces."""
    host = socket.gethostname() if host in EVERYWHERE else host
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
