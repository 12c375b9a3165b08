"""A log of decoded requests and responses, for tests and for debugging clients.

Secrets (passwords, keys and proofs of them) are masked before an entry is stored.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from kwire.broker.faults import parse_api
from kwire.broker.patience import Patience, check_count
from kwire.broker.responses import Response, SplicedResponse
from kwire.errors import OptionError
from kwire.messages import registry
from kwire.messages.base import Message
from kwire.protocol.error_codes import ErrorCode
from kwire.protocol.secrets import hide_secrets

if TYPE_CHECKING:
    from kwire.broker.context import RequestContext

__all__ = ["LoggedRequest", "RequestLog"]

MAX_BYTES = 64 << 20
"""Maximum size of the kept requests."""


class LoggedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request with its response.

    time_ms: time of the response, by the broker's clock. node_id: of the node that got it. api: name of the API, such
    as `Produce`.
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
    node_id: int
    request: Message | None
    response: Message | None

    @property
    def errors(self) -> list[str]:
        """Kafka's names of the errors in the response, each once, in its order."""
        return list(dict.fromkeys(map(error_name, error_codes(self.response))))

    def __str__(self) -> str:
        """Return the time (UTC), the API, the client and the errors, in a line."""
        time = datetime.fromtimestamp(self.time_ms / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]
        outcome = "no response" if self.response is None else ", ".join(self.errors) or "ok"
        return f"{time} {self.api} v{self.api_version} from {self.client_id or 'a client without an id'}: {outcome}"


def error_codes(part: object) -> Iterator[int]:
    """Yield the error codes other than 0 in a message."""
    if isinstance(part, list):
        for each in part:
            yield from error_codes(each)
    elif isinstance(part, msgspec.Struct):
        for name in part.__struct_fields__:
            value = getattr(part, name)
            if not name.endswith("error_code"):
                yield from error_codes(value)
            elif value:
                yield value


def error_name(code: int) -> str:
    """Return Kafka's name of an error code, or its number."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"


class RequestLog:
    """The most recent requests of a broker, oldest first. Thread-safe.

    limit: maximum number of entries; with 0, reading it raises OptionError, as an empty log could be taken for an idle
    broker. Large requests leave earlier: all kept ones have at most MAX_BYTES, except that the newest is always kept.
    """

    def __init__(self, limit: int) -> None:
        check_count("keep_requests", limit)
        self.limit = limit
        self._entries: deque[tuple[int, LoggedRequest]] = deque()
        self._bytes = self._count = 0
        self._changed = threading.Condition()

    def __iter__(self) -> Iterator[LoggedRequest]:
        return iter(self._kept())

    def __len__(self) -> int:
        return len(self._kept())

    def _kept(self) -> list[LoggedRequest]:
        if not self.limit:
            raise OptionError("the broker keeps no requests: set keep_requests to 1 or more")
        with self._changed:
            return [entry for _, entry in self._entries]

    def of(self, api: str) -> list[LoggedRequest]:
        """Return the requests of one API, by its name, or of all ("*"). Raises OptionError for an unknown name."""
        api_key = parse_api(api)
        return [each for each in self if api_key in (None, each.api_key)]

    def wait_for(self, is_wanted: Callable[[LoggedRequest], bool], patience: Patience) -> LoggedRequest | None:
        """Return the first entry that is wanted, of those that are kept or are added until the timeout.

        None if there is none in time. Raises OptionError with limit 0.
        """
        with self._changed:
            fresh, count = self._kept(), self._count
        while True:
            found = next(filter(is_wanted, fresh), None)
            if found is not None:
                return found
            with self._changed:
                while self._count == count:
                    if not patience.wait(self._changed):
                        return None
                fresh = [entry for _, entry in self._entries][count - self._count :]
                count = self._count

    def clear(self) -> None:
        """Remove all entries."""
        with self._changed:
            self._entries.clear()
            self._bytes = 0

    def add(
        self,
        context: RequestContext,
        request: Message | None,
        response: Response | None,
        now_ms: int,
        node_id: int,
    ) -> None:
        """Add a request and its response, None if none is sent. request: None for an unknown version."""
        body = response.body if isinstance(response, SplicedResponse) else response
        entry = LoggedRequest(
            time_ms=now_ms,
            api=registry.request(context.api_key).__name__.removesuffix("Request"),
            api_key=context.api_key,
            api_version=context.api_version,
            client_id=context.client_id,
            principal=context.principal,
            connection_id=context.connection_id,
            node_id=node_id,
            request=hide_secrets(request),
            response=hide_secrets(body),
        )
        with self._changed:
            self._entries.append((context.request_bytes, entry))
            self._bytes += context.request_bytes
            self._count += 1
            self._changed.notify_all()
            while len(self._entries) > self.limit or (self._bytes > MAX_BYTES and len(self._entries) > 1):
                self._bytes -= self._entries.popleft()[0]
