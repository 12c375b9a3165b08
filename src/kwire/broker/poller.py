"""Which sockets are ready: one selector for all connections, itself watched by the event loop.

The loop's own add_reader would do, but uvloop's does not call back for a connection that was reset: libuv takes the
error for a bad descriptor, and the connection would stay forever. A selector tells of it as of anything to be read.
"""

from __future__ import annotations

import asyncio
import logging
import selectors
import socket
from typing import Protocol

__all__ = ["Pollable", "Poller"]

log = logging.getLogger("kwire.broker")


class Pollable(Protocol):
    """Who waits for a socket."""

    def readable(self) -> None:
        """There is something to read: bytes, the end, an error."""

    def writable(self) -> None:
        """There is room to write, or an error."""

    def close(self, why: str) -> None:
        """One of the others has raised: nothing more is to be had."""


class Poller:
    """The sockets of one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._selector = selectors.DefaultSelector()
        self._file = self._selector.fileno()
        loop.add_reader(self._file, self._ready)

    def watch(self, sock: socket.socket, owner: Pollable, *, read: bool, write: bool) -> None:
        """Call the owner back when its socket can be read or written; neither forgets the socket."""
        events = (selectors.EVENT_READ if read else 0) | (selectors.EVENT_WRITE if write else 0)
        known = sock.fileno() in self._selector.get_map()
        if not events:
            if known:
                self._selector.unregister(sock)
        elif known:
            self._selector.modify(sock, events, owner)
        else:
            self._selector.register(sock, events, owner)

    def _ready(self) -> None:
        for key, events in self._selector.select(0):
            owner = key.data
            try:
                if events & selectors.EVENT_WRITE:
                    owner.writable()
                if events & selectors.EVENT_READ and key.fd in self._selector.get_map():
                    owner.readable()
            except Exception:
                log.exception("a connection failed")
                owner.close("an error of the broker's own")

    def close(self) -> None:
        """Watch nothing any more."""
        if self._selector.get_map() is not None:
            self._loop.remove_reader(self._file)
            self._selector.close()
