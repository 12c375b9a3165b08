"""A client that sends arbitrary bytes in any order."""

from __future__ import annotations

import socket
from types import TracebackType
from typing import Any

from kwire.broker import Broker
from kwire.errors import KwireError
from kwire.messages import SaslAuthenticateRequest, SaslHandshakeRequest
from kwire.messages.base import Message
from kwire.protocol import NEED_DATA, Connection, Role
from tests.waiting import HANG_S

RECEIVE_BYTES = 65536


class Closed(KwireError):
    """The broker closed the connection."""


class RawClient:
    """A connection to a broker. wrap: function that wraps the socket in TLS."""

    def __init__(self, broker: Broker, wrap: Any = None) -> None:
        self.sock = socket.create_connection(("127.0.0.1", broker.port), HANG_S)
        if wrap is not None:
            self.sock = wrap(self.sock)
        self.connection = Connection(Role.CLIENT, client_id="raw")

    def __enter__(self) -> RawClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.sock.close()

    def ask(self, request: Message, version: int) -> Any:
        """Send a request and return the body of the response. Raises Closed."""
        self._send(self.connection.send(request, version=version))
        while (response := self.connection.next_response()) is NEED_DATA:
            self.connection.receive_data(self._receive())
        return response.body

    def bare(self, token: bytes) -> bytes:
        """Send a token without Kafka's headers and return the response. Raises Closed."""
        self._send(len(token).to_bytes(4, "big") + token)
        data = b""
        while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
            data += self._receive()
        return data[4:]

    def _send(self, data: bytes) -> None:
        try:
            self.sock.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            raise Closed("closed by the broker") from None

    def _receive(self) -> bytes:
        try:
            data = self.sock.recv(RECEIVE_BYTES)
        except ConnectionResetError:
            data = b""
        if not data:
            raise Closed("closed by the broker")
        return data

    def log_in(self, user: str, password: str) -> Any:
        """Authenticate with PLAIN and return the SaslAuthenticate response."""
        self.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        return self.ask(SaslAuthenticateRequest(auth_bytes=f"\0{user}\0{password}".encode()), 2)
