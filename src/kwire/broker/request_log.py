"""What clients asked and what they were told, decoded, for tests and for people who look for a client's mistake.

Nothing secret is in it: passwords, keys and their proofs are hidden before an entry is kept.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kwire.broker.answers import SplicedResponse
from kwire.messages import registry
from kwire.protocol.secrets import hide_secrets

if TYPE_CHECKING:
    from kwire.broker.dispatch import Call

__all__ = ["LoggedRequest", "RequestLog"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRequest:
    """One request with its response.

    time_ms: when it was answered, by the broker's clock. api: name without `Request`. response: None where none was
    sent; records that were sent from files are not in it. request: None for an ApiVersions of an unknown version.
    """

    time_ms: int
    api: str
    api_key: int
    api_version: int
    client_id: str
    principal: str
    connection_id: str
    request: Any
    response: Any


class RequestLog:
    """The newest requests of a broker, oldest first; any thread may read. limit: how many are kept, 0 for none."""

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
        """The requests of one API, by its name."""
        return [each for each in self if each.api.lower() == api.lower()]

    def clear(self) -> None:
        """Forget them."""
        with self._lock:
            self._entries.clear()

    def add(self, call: Call, body: Any, now_ms: int) -> None:
        """Keep one; body None where nothing is answered."""
        context = call.context
        sent = body.body if isinstance(body, SplicedResponse) else body
        entry = LoggedRequest(
            time_ms=now_ms,
            api=registry.request(context.api_key).__name__.removesuffix("Request"),
            api_key=context.api_key,
            api_version=context.api_version,
            client_id=context.client_id,
            principal=context.principal,
            connection_id=context.connection_id,
            request=hide_secrets(call.request),
            response=hide_secrets(sent),
        )
        with self._lock:
            self._entries.append(entry)
