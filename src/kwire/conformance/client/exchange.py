"""A request of the program under test, with the response that it got."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kwire.conformance.report import Evidence
from kwire.messages import registry

if TYPE_CHECKING:
    from kwire.protocol.requests import Request

__all__ = ["Exchange"]


@dataclass(slots=True, kw_only=True)
class Exchange:
    """A request and its response.

    node, connection: where it arrived; connections are numbered as they are opened. at, answered_at: monotonic seconds.
    request: None if the bytes cannot be read; problem says why. response: as it was sent; None without one.
    shut_at: when the connection was closed in place of a response.
    """

    node: int
    connection: int
    frame: bytes
    at: float
    api_key: int = -1
    version: int = -1
    request: Request | None = None
    problem: str = ""
    response: Any = None
    response_frame: bytes = b""
    response_version: int = -1
    answered_at: float | None = None
    shut_at: float | None = None

    @property
    def api(self) -> str:
        """The name of the API; its key if nobody knows it."""
        return self.name(self.api_key)

    @staticmethod
    def name(api_key: int) -> str:
        """Return the name of an API; its key if nobody knows it."""
        try:
            return registry.request(api_key).__name__.removesuffix("Request")
        except Exception:
            return f"API {api_key}"

    @property
    def body(self) -> Any:
        """The body of the request."""
        return None if self.request is None else self.request.body

    def evidence(self) -> list[Evidence]:
        """Return the bytes of both."""
        known = self.request is not None and self.request.body is not None
        label = f"request on connection {self.connection} to node {self.node}"
        message, version = (f"{self.api}Request", self.version) if known else (None, None)
        found = [Evidence(label=label, data=self.frame, message=message, version=version)]
        if self.response_frame:
            name = f"{self.api}Response"
            sent = Evidence(label="response", data=self.response_frame, message=name, version=self.response_version)
            found.append(sent)
        return found
