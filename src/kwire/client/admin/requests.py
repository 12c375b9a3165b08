"""Shared parts of admin requests: to any or every broker, and what the account may not see."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from kwire.client.client import Client
from kwire.errors import BrokerError, ConnectionFailed, UnsupportedVersion
from kwire.messages.base import Message
from kwire.protocol.error_codes import ErrorCode

__all__ = ["NOT_ALLOWED", "AdminRequests"]

R = TypeVar("R", bound=Message)
ONE_BROKER_MS = 2000
"""How long requests to a certain broker are repeated: one that is dead must not hold up what others tell."""

NOT_ALLOWED = frozenset(
    {
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    }
)


@dataclass(slots=True)
class AdminRequests:
    """The requests that a result was made from.

    apis: their names in order. unseen: what is missing -> the reason. passing: what of unseen may be seen later,
    because the reason may pass, such as a broker that does not respond. heard: brokers that responded to every().
    """

    apis: list[str] = field(default_factory=list)
    unseen: dict[str, str] = field(default_factory=dict)
    passing: set[str] = field(default_factory=set)
    heard: set[int] = field(default_factory=set)

    def one(
        self,
        client: Client,
        request: Message,
        response: type[R],
        *,
        node_id: int | None = None,
        version: int | None = None,
    ) -> R:
        """Send a request to a broker, by default any, and return its response. Raises BrokerError, ConnectionFailed."""
        self.used(request)
        limit_ms = None if node_id is None else ONE_BROKER_MS
        return client.request(request, response, node_id=node_id, version=version, limit_ms=limit_ms)

    def every(self, client: Client, what: str, ask: Callable[[int], None]) -> None:
        """Call ask(node id) for every broker; note `what` of those that do not respond. Raises BrokerError."""
        for node_id in sorted(client.metadata([]).brokers):
            try:
                ask(node_id)
            except ConnectionFailed as error:
                if not client.is_retriable(error):
                    raise
                self.without(f"{what} of broker {node_id}", error)
            else:
                self.heard.add(node_id)

    def without(self, what: str, error: BrokerError | ConnectionFailed | UnsupportedVersion | ErrorCode) -> None:
        """Note what is missing because of an error."""
        if isinstance(error, UnsupportedVersion):
            self.unseen[what] = "not supported by the broker"
        elif isinstance(error, ConnectionFailed):
            self.unseen[what] = str(error)
            self.passing.add(what)
        else:
            code = ErrorCode(error.code if isinstance(error, BrokerError) else error)
            self.unseen[what] = code.name
            if code.retriable:
                self.passing.add(what)

    def used(self, request: Message) -> None:
        """Note a request."""
        name = type(request).__name__.removesuffix("Request")
        if name not in self.apis:
            self.apis.append(name)
