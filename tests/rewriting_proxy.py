"""A TCP proxy in front of a broker that changes responses: what a broken, or a larger, cluster would send."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from kwire.messages import registry
from kwire.messages.base import Message
from kwire.protocol import read_request
from tests.tcp_proxy import TcpProxy, shut

__all__ = ["RewritingProxy"]

API_VERSIONS = 18


class RewritingProxy(TcpProxy):
    """Forwards connections. Metadata and DescribeCluster name the proxy as broker.

    observe: request class name -> function that gets each request. rewrite: response class name -> function that
    changes the response. brokers: further node ids of Metadata and DescribeCluster, with their ports.
    """

    def __init__(self, target: tuple[str, int]) -> None:
        super().__init__(target)
        self.observe: dict[str, Callable[[Any], None]] = {}
        self.rewrite: dict[str, Callable[[Message], None]] = {}
        self.brokers: dict[int, int] = {}

    def _forward_connection(self, client: socket.socket, server: socket.socket) -> None:
        sent: deque[tuple[int, int]] = deque()
        for forward in (self._requests, self._responses):
            threading.Thread(target=forward, args=(client, server, sent), daemon=True).start()

    def _requests(self, client: socket.socket, broker: socket.socket, sent: deque[tuple[int, int]]) -> None:
        with contextlib.suppress(OSError):
            while frame := read_frame(client):
                sent.append(struct.unpack_from(">hh", frame))
                whole = struct.pack(">i", len(frame)) + frame
                observe = self.observe.get(registry.request(sent[-1][0]).__name__)
                if observe is not None:
                    observe(read_request(whole).body)
                broker.sendall(whole)
        shut(client, broker)

    def _responses(self, client: socket.socket, broker: socket.socket, sent: deque[tuple[int, int]]) -> None:
        with contextlib.suppress(OSError):
            while frame := read_frame(broker):
                frame = self._changed(frame, *sent.popleft())
                client.sendall(struct.pack(">i", len(frame)) + frame)
        shut(client, broker)

    def _changed(self, frame: bytes, api_key: int, version: int) -> bytes:
        if api_key == API_VERSIONS:
            return frame
        cls = registry.response(api_key)
        size = 4 + registry.response_header_version(api_key, version)
        body = cls.decode(frame[size:], version=version)
        self._name_proxy(body)
        change = self.rewrite.get(cls.__name__)
        if change is not None:
            change(body)
        return frame[:size] + body.encode(version=version)

    def _name_proxy(self, body: Message) -> None:
        brokers = getattr(body, "brokers", [])
        for each in brokers:
            each.host, each.port = "127.0.0.1", self.port
        for number, port in self.brokers.items() if brokers else ():
            key = "broker_id" if hasattr(brokers[0], "broker_id") else "node_id"
            brokers.append(type(brokers[0])(**{key: number, "host": "127.0.0.1", "port": port}))


def read_frame(source: socket.socket) -> bytes:
    """Read a frame without its length; b"" at the end of the connection."""
    size = read_exactly(source, 4)
    return read_exactly(source, struct.unpack(">i", size)[0]) if size else b""


def read_exactly(source: socket.socket, n: int) -> bytes:
    """Read n bytes; b"" at the end of the connection."""
    data = b""
    while len(data) < n:
        piece = source.recv(n - len(data))
        if not piece:
            return b""
        data += piece
    return data
