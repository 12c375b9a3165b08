"""The sender and the circumstances of a request: what a handler knows besides the request itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from uuid import UUID

import msgspec

if TYPE_CHECKING:
    from kwire.broker.network.turns import Share
    from kwire.broker.security.sessions import SaslSession
    from kwire.protocol.error_codes import ErrorCode

__all__ = ["ANONYMOUS", "Peer", "RequestContext"]

ANONYMOUS = "User:ANONYMOUS"
"""The principal of an unauthenticated connection."""


class Peer(msgspec.Struct, kw_only=True):
    """The client of a connection, for as long as the connection lasts. Handlers may change it.

    connection_id: Kafka's format, local address-remote address-number. listener: name of the listener.
    principal: Type:Name, ANONYMOUS before authentication. is_token_authenticated: by a delegation token.
    authentication: state of the SASL session. client_software: (name, version) of the ApiVersions request.
    must_close: close the connection after this request and its response. must_close_silently: close it without a
    response. work_share: used by kwire.broker.network.workers. on_close: called when the connection is closed, by name.
    """

    connection_id: str
    host: str
    port: int
    listener: str
    security_protocol: str = "PLAINTEXT"
    principal: str = ANONYMOUS
    is_token_authenticated: bool = False
    authentication: SaslSession | None = None
    client_software: tuple[str, str] = ("unknown", "unknown")
    must_close: bool = False
    must_close_silently: bool = False
    work_share: Share | None = None
    on_close: dict[str, Callable[[], object]] = {}


class RequestContext(msgspec.Struct, kw_only=True):
    """A request's header fields, its sender and its use of resources.

    request_bytes: size of the frame. thread_ns: handling time. throttle_ms: throttle time set by the handler.
    is_time_recorded: whether throttle_ms includes the request quota. fetch_error: the error that faults set for a
    partition of a Fetch or ShareFetch, by topic and index.
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
    fetch_error: Callable[[str | UUID, int], ErrorCode | None] | None = None

    @property
    def principal(self) -> str:
        """The principal of the sender, Type:Name."""
        return self.peer.principal

    @property
    def client_host(self) -> str:
        """The client's address in Kafka's format: /127.0.0.1."""
        return f"/{self.peer.host}"

    @property
    def listener(self) -> str:
        """The name of the listener."""
        return self.peer.listener

    @property
    def connection_id(self) -> str:
        """The id of the connection, unique while the broker runs."""
        return self.peer.connection_id
