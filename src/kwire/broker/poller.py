"""Which sockets are ready: one selector for all connections, itself watched by the event loop.

The loop's own add_reader would do, but uvloop's does not call back for a connection that was reset: libuv takes the
error for a bad descriptor, and the connection would stay forever. A selector tells of it as of anything to be read.
"""

from __future__ import annotations

import asyncio
import selectors
import socket
from typing import Protocol

from kwire.broker.turns import TakesTurns, Turns

__all__ = ["Pollable", "Poller"]


class Pollable(TakesTurns, Protocol):
    """The owner of a socket."""

    def ready(self, *, read: bool, write: bool) -> None:
        """Remember for the next turn that there is something to read (bytes, the end, an error) or room to write."""


class Poller:
    """The sockets of one event loop; their owners get a turn when they are ready."""

    def __init__(self, loop: asyncio.AbstractEventLoop, turns: Turns) -> None:
        self._loop, self._turns = loop, turns
        self._selector = selectors.DefaultSelector()
        self._file = self._selector.fileno()
        loop.add_reader(self._file, self._ready)

    def watch(self, sock: socket.socket, owner: Pollable, *, read: bool, write: bool) -> None:
        """Give the owner a turn when its socket can be read or written; neither forgets the socket."""
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
        owners: list[Pollable] = []
        for key, events in self._selector.select(0):
            owner: Pollable = key.data
            owner.ready(read=bool(events & selectors.EVENT_READ), write=bool(events & selectors.EVENT_WRITE))
            owners.append(owner)
        self._turns.start(owners)

    def close(self) -> None:
        """Watch nothing any more."""
        if self._selector.get_map() is not None:
            self._loop.remove_reader(self._file)
            self._selector.close()
