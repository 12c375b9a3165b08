"""A minimal client: sends any request in any version."""

from __future__ import annotations

import socket
from typing import Any

from kwire.broker import Broker
from kwire.messages.base import Message
from kwire.protocol import NEED_DATA, Connection, Role, State
from tests.waiting import HANG_S

__all__ = ["RawClient", "connect"]


def connect(broker: Broker, node: int = 1) -> socket.socket:
    """Connect to the broker. node: of a cluster, by its place."""
    host, _, port = broker.bootstrap_servers.split(",")[node - 1].rpartition(":")
    return socket.create_connection((host, int(port)), timeout=HANG_S)


class RawClient:
    """A connection that sends requests without negotiation."""

    def __init__(self, broker: Broker, client_id: str = "raw", node: int = 1) -> None:
        self.sock = connect(broker, node)
        self.protocol = Connection(Role.CLIENT, client_id=client_id)
        self.protocol.state = State.READY

    def __enter__(self) -> RawClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def send(self, request: Message, version: int) -> None:
        """Send without waiting."""
        self.sock.sendall(self.protocol.send(request, version=version))

    def receive(self) -> Any:
        """Return the body of the next response."""
        while (response := self.protocol.next_response()) is NEED_DATA:
            data = self.sock.recv(1 << 20)
            assert data, "the broker closed the connection"
            self.protocol.receive_data(data)
        return response.body

    def ask(self, request: Message, version: int) -> Any:
        """Send a request and return the response."""
        self.send(request, version)
        return self.receive()

    def is_closed(self, wait_s: float = HANG_S) -> bool:
        """Return whether the broker closes the connection within wait_s seconds."""
        self.sock.settimeout(wait_s)
        try:
            return self.sock.recv(1) == b""
        except ConnectionResetError:
            return True
        except (BlockingIOError, TimeoutError):
            return False
        finally:
            self.sock.settimeout(HANG_S)
