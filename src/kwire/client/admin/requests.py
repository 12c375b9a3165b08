"""Shared parts of admin requests: to any or every broker, and what the account may not see."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from kwire.client.client import Client
from kwire.errors import BrokerError, UnsupportedVersion
from kwire.messages.base import Message
from kwire.protocol.error_codes import ErrorCode

__all__ = ["NOT_ALLOWED", "AdminRequests"]

R = TypeVar("R", bound=Message)

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
    """The requests that a result was made from. apis: their names in order. unseen: what is missing -> the reason."""

    apis: list[str] = field(default_factory=list)
    unseen: dict[str, str] = field(default_factory=dict)

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
        self._used(request)
        return client.request(request, response, node_id=node_id, version=version)

    def every(self, client: Client, request: Message, response: type[R]) -> Iterator[tuple[int, R]]:
        """Send a request to every broker; yield (node id, response). Raises BrokerError, ConnectionFailed."""
        for node_id in sorted(client.metadata([]).brokers):
            yield node_id, self.one(client, request, response, node_id=node_id)

    def without(self, what: str, error: BrokerError | UnsupportedVersion | ErrorCode) -> None:
        """Note what is missing because of an error."""
        if isinstance(error, UnsupportedVersion):
            self.unseen[what] = "not supported by the broker"
        else:
            self.unseen[what] = ErrorCode(error.code if isinstance(error, BrokerError) else error).name

    def _used(self, request: Message) -> None:
        name = type(request).__name__.removesuffix("Request")
        if name not in self.apis:
            self.apis.append(name)
