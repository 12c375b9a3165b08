"""Responses that may be sent later.

The coordinator knows neither sockets nor an event loop. A handler passes a callable, and the coordinator calls it with
the response: immediately, or when a timer or another member's request makes it possible.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from kwire.messages.join_group_response import JoinGroupResponse
from kwire.messages.sync_group_response import SyncGroupResponse

__all__ = ["JoinCallback", "PendingResponse", "SyncCallback"]

R = TypeVar("R")

JoinCallback = Callable[[JoinGroupResponse], object]
SyncCallback = Callable[[SyncGroupResponse], object]


class PendingResponse(Generic[R]):
    """The response of one request, passed by calling this object. A handler returns it directly, or as a future."""

    def __init__(self) -> None:
        self._response: R | None = None
        self._future: asyncio.Future[R] | None = None

    def __call__(self, response: R) -> None:
        if self._future is None:
            self._response = response
        elif not self._future.done():  # cancelled if the connection has closed
            self._future.set_result(response)

    def response(self) -> R | asyncio.Future[R]:
        """Return the response if it is known, else a future of it. Call this once."""
        if self._response is not None:
            return self._response
        self._future = asyncio.get_running_loop().create_future()
        return self._future
