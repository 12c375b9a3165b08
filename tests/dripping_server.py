"""An HTTP server that sends its responses a byte at a time, each well within a timeout of single reads."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

__all__ = ["DrippingServer"]


class DrippingServer:
    """Sends `whole` at once after each request, then `slow` over and over, with byte_s seconds before each byte."""

    def __init__(
        self, whole: bytes, slow: bytes, *, byte_s: float = 0.05, context: ssl.SSLContext | None = None
    ) -> None:
        self._whole, self._slow, self._byte_s, self._context = whole, slow, byte_s, context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._is_closed = threading.Event()
        self.requests = 0

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_closed.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        with contextlib.suppress(OSError), plain:
            client = plain if self._context is None else self._context.wrap_socket(plain, server_side=True)
            with client:
                while b"\r\n\r\n" not in client.recv(1 << 16):
                    pass
                self.requests += 1
                client.sendall(self._whole)
                while not self._is_closed.is_set():
                    for byte in self._slow:
                        time.sleep(self._byte_s)
                        client.sendall(bytes([byte]))
