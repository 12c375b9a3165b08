"""A TCP proxy in front of a broker whose responses slow down or stop, as in a network that loses packets."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from types import TracebackType

from tests.tcp_proxy import TcpProxy, shut

__all__ = ["SlowProxy"]

CHUNK_BYTES = 1 << 16
CHECK_S = 0.05


class SlowProxy(TcpProxy):
    """Forwards connections.

    left: bytes of responses to forward, of all connections together, before they stop; None without a limit.
    byte_s: seconds before each byte of a response, 0 for all at once.
    """

    def __init__(self) -> None:
        super().__init__()
        self.left: int | None = None
        self.byte_s = 0.0
        self._lock = threading.Lock()
        self._is_closed = False

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_closed = True
        super().__exit__(kind, error, trace)

    def recover(self) -> None:
        """Forward again, also what open connections were waiting for."""
        self.byte_s, self.left = 0.0, None

    def _forward_connection(self, client: socket.socket, server: socket.socket) -> None:
        for source, sink in ((client, server), (server, client)):
            what = {"is_response": source is server}
            threading.Thread(target=self._forward, args=(source, sink), kwargs=what, daemon=True).start()

    def _forward(self, source: socket.socket, sink: socket.socket, *, is_response: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(CHUNK_BYTES):
                while data and not self._is_closed:
                    n = self._allowed(len(data)) if is_response else len(data)
                    sink.sendall(data[:n])
                    data = data[n:]
        shut(source, sink)

    def _allowed(self, n: int) -> int:
        """Return how many of n bytes may be forwarded now, after waiting for a moment if none."""
        if self.byte_s:
            time.sleep(self.byte_s)
            return 1
        with self._lock:
            if self.left is None:
                return n
            n = min(n, self.left)
            self.left -= n
        if not n:
            time.sleep(CHECK_S)
        return n
