"""Readiness of sockets: a selector for all connections, which the event loop watches.

The loop calls once for all sockets that are ready, and their owners take turns. Its own add_reader calls for each.
"""

from __future__ import annotations

import asyncio
import selectors
import socket
from typing import Protocol

from kwire.broker.network.turns import TakesTurns, Turns

__all__ = ["Pollable", "Poller"]


class Pollable(TakesTurns, Protocol):
    """The owner of a socket."""

    def ready(self, *, read: bool, write: bool) -> None:
        """Remember for the next turn that the socket is readable (bytes, end of stream or error) or writable."""


class Poller:
    """Gives the owners of sockets a turn when their sockets are ready."""

    def __init__(self, loop: asyncio.AbstractEventLoop, turns: Turns) -> None:
        self._loop, self._turns = loop, turns
        self._selector = selectors.DefaultSelector()
        self._file = self._selector.fileno()
        loop.add_reader(self._file, self._ready)

    def watch(self, sock: socket.socket, owner: Pollable, *, read: bool, write: bool) -> None:
        """Give the owner a turn when its socket is readable or writable; with neither, stop watching it."""
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
        """Stop watching all sockets."""
        if self._selector.get_map() is not None:
            self._loop.remove_reader(self._file)
            self._selector.close()
