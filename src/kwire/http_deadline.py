"""HTTP responses that arrive as a whole before the timeout of their connection, or fail.

A timeout of Python's sockets is one of each read: a server that sends a byte a second, in headers or body, keeps a
client for as long as it likes.
"""

from __future__ import annotations

import io
import socket
import time
from http.client import HTTPResponse
from typing import Any, cast

__all__ = ["WholeResponse"]


class WholeResponse(HTTPResponse):
    """A response whose headers and body share the timeout that its socket has when the headers are awaited.

    For `response_class` of http.client's connections and of their subclasses. Raises TimeoutError.
    """

    def __init__(self, sock: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        endless, self.fp = self.fp, cast(Any, io.BufferedReader(_TimedReader(sock)))
        endless.close()  # after the other one was made: a socket that was closed ends with its last reader


class _TimedReader(io.RawIOBase):
    def __init__(self, sock: socket.socket) -> None:
        timeout = sock.gettimeout()
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._socket = sock
        self._raw = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self._deadline is not None:
            left = self._deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError("timed out")
            self._socket.settimeout(left)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()
