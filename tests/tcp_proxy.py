"""A TCP proxy of a server in a test. Subclasses forward, change, delay or lose the data of its connections."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

__all__ = ["TcpProxy", "shut"]


class TcpProxy:
    """Accepts connections and connects each to `target`, which may be set until the first one."""

    def __init__(self, target: tuple[str, int] = ("", 0)) -> None:
        self.target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self._sockets: list[socket.socket] = []

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shut(self._listener, *self._sockets)
        for each in (self._listener, *self._sockets):
            each.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self.target)
                self._sockets += [client, server]
                self._forward_connection(client, server)

    def _forward_connection(self, client: socket.socket, server: socket.socket) -> None:
        """Start threads that forward the data of a connection."""
        raise NotImplementedError


def shut(*sockets: socket.socket) -> None:
    """End both directions of connections."""
    for each in sockets:
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
