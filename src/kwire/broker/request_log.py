"""A log of decoded requests and responses, for tests and for debugging clients.

Secrets (passwords, keys and proofs of them) are masked before an entry is stored.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kwire.broker.responses import Response, SplicedResponse
from kwire.messages import registry
from kwire.messages.base import Message
from kwire.protocol.secrets import hide_secrets

if TYPE_CHECKING:
    from kwire.broker.dispatch import Call

__all__ = ["LoggedRequest", "RequestLog"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRequest:
    """A request with its response.

    time_ms: time of the response, by the broker's clock. api: name of the API, such as `Produce`.
    request: None for ApiVersions in an unknown version. response: None if none was sent; without records sent from
    files.
    """

    time_ms: int
    api: str
    api_key: int
    api_version: int
    client_id: str
    principal: str
    connection_id: str
    request: Message | None
    response: Message | None


class RequestLog:
    """The most recent requests of a broker, oldest first. Thread-safe. limit: maximum number of entries."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._entries: deque[LoggedRequest] = deque(maxlen=limit)
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[LoggedRequest]:
        with self._lock:
            return iter(list(self._entries))

    def __len__(self) -> int:
        return len(self._entries)

    def of(self, api: str) -> list[LoggedRequest]:
        """Return the requests of one API, by its name."""
        return [each for each in self if each.api.lower() == api.lower()]

    def clear(self) -> None:
        """Remove all entries."""
        with self._lock:
            self._entries.clear()

    def add(self, call: Call, response: Response | None, now_ms: int) -> None:
        """Add a request and its response, None if none is sent."""
        context = call.context
        body = response.body if isinstance(response, SplicedResponse) else response
        entry = LoggedRequest(
            time_ms=now_ms,
            api=registry.request(context.api_key).__name__.removesuffix("Request"),
            api_key=context.api_key,
            api_version=context.api_version,
            client_id=context.client_id,
            principal=context.principal,
            connection_id=context.connection_id,
            request=hide_secrets(call.request),
            response=hide_secrets(body),
        )
        with self._lock:
            self._entries.append(entry)
