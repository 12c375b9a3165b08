"""Who sent a request, how, and when: what a handler knows besides the request itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kwire.broker.turns import Share

__all__ = ["ANONYMOUS", "Peer", "RequestContext"]

ANONYMOUS = "User:ANONYMOUS"
"""The principal of a connection that nobody had to authenticate on."""


@dataclass(slots=True, kw_only=True)
class Peer:
    """The other end of one connection, for as long as it lasts; handlers may write to it.

    connection_id: Kafka's text, local address-remote address-number. listener: name of the listener that took it.
    principal: who it is, once that is known. is_token_authenticated: whether it logged in with a delegation token.
    authentication: what the security handlers keep between two requests.
    client_software: (name, version) as the ApiVersions request gave them. must_close: end the connection after this
    request, and after its answer if it has one. must_close_silently: end it instead of answering. work_share: belongs
    to kwire.broker.workers.
    """

    connection_id: str
    host: str
    port: int
    listener: str
    security_protocol: str = "PLAINTEXT"
    principal: str = ANONYMOUS
    is_token_authenticated: bool = False
    authentication: Any = None
    client_software: tuple[str, str] = ("unknown", "unknown")
    must_close: bool = False
    must_close_silently: bool = False
    work_share: Share | None = None


@dataclass(slots=True, kw_only=True)
class RequestContext:
    """One request's surroundings. request_bytes: size of its frame.

    thread_ns: how long it was handled. throttle_ms: for how long a handler wants the client throttled;
    is_time_recorded: whether that counts the time already.
    """

    peer: Peer
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str
    request_bytes: int
    thread_ns: int = 0
    throttle_ms: int = 0
    is_time_recorded: bool = False

    @property
    def principal(self) -> str:
        """Who sends: Type:Name."""
        return self.peer.principal

    @property
    def client_host(self) -> str:
        """Where from, as Kafka writes it: /127.0.0.1."""
        return f"/{self.peer.host}"

    @property
    def listener(self) -> str:
        """The listener's name."""
        return self.peer.listener

    @property
    def connection_id(self) -> str:
        """The connection's name, unique while the broker runs."""
        return self.peer.connection_id
