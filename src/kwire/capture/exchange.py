"""A request with its response in a capture."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass

from kwire.capture.frame_stream import Frame
from kwire.errors import KwireError, Truncated, UnsupportedVersion
from kwire.messages import registry
from kwire.messages.base import Message
from kwire.plan import Codec
from kwire.protocol import hide_secrets, request_codec, response_codec
from kwire.protocol.requests import response_version

__all__ = ["Address", "Exchange", "render_address"]

Address = tuple[bytes, int]

NS_PER_MS = 1_000_000


def render_address(address: Address) -> str:
    """Format an address: `127.0.0.1:9092`, `[::1]:9092`."""
    host = str(ipaddress.ip_address(address[0]))
    return f"[{host}]:{address[1]}" if ":" in host else f"{host}:{address[1]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A request and its response; one of them is None if it is missing.

    connection: index of the connection in the capture. client, server: address bytes and port.
    api_key, api_version, correlation_id, client_id: from the request's header; None if unknown (a response without its
    request has only a correlation id). problem: what is missing or cannot be read; None without problems.
    expects_response: false for Produce with acks=0.
    """

    connection: int
    client: Address
    server: Address
    api_key: int | None = None
    api_version: int | None = None
    correlation_id: int | None = None
    client_id: str | None = None
    request: Frame | None = None
    response: Frame | None = None
    expects_response: bool = True
    problem: str | None = None

    @property
    def api_name(self) -> str | None:
        """Name of the API, such as Fetch; None for an unknown api key."""
        if self.api_key is None:
            return None
        try:
            return registry.request(self.api_key).__name__.removesuffix("Request")
        except UnsupportedVersion:
            return None

    @property
    def latency_ns(self) -> int | None:
        """Nanoseconds from the last byte of the request to the last byte of the response; None without both."""
        if self.request is None or self.response is None:
            return None
        return self.response.time_ns - self.request.time_ns

    def request_message(self) -> Message | None:
        """Decode the request's body, with secrets hidden; None without a request.

        Raises DecodeError, UnsupportedVersion.
        """
        return self._message(self.request, request_codec, self.api_version)

    def response_message(self) -> Message | None:
        """Decode the response's body, with secrets hidden; None without a response, or without its request's version.

        Raises DecodeError, UnsupportedVersion.
        """
        return self._message(self.response, response_codec, self.response_version())

    def response_version(self) -> int | None:
        """Version of the response: the request's, or 0 for an ApiVersions request of an unsupported version."""
        if self.api_key is None or self.api_version is None or self.response is None:
            return self.api_version
        return response_version(self.response.data, self.api_key, self.api_version)

    def _message(
        self, frame: Frame | None, codec_of: Callable[[int, int], Codec], version: int | None
    ) -> Message | None:
        if frame is None or self.api_key is None or version is None:
            return None
        if not frame.is_whole:
            raise Truncated(frame.missing, len(frame.data))
        message: Message = codec_of(self.api_key, version).decode(frame.data, lenient=True)[1]
        return hide_secrets(message)

    def to_json(self, *, bodies: bool = True) -> dict[str, object]:
        """Convert to a plain dict: times in ns, bodies in Kafka's JSON form; `problem` says why they are missing."""
        row: dict[str, object] = {
            "connection": self.connection,
            "client": render_address(self.client),
            "server": render_address(self.server),
            "client_id": self.client_id,
            "api_key": self.api_key,
            "api": self.api_name,
            "api_version": self.api_version,
            "correlation_id": self.correlation_id,
            "request_time_ns": self.request.time_ns if self.request else None,
            "response_time_ns": self.response.time_ns if self.response else None,
            "latency_ms": None if self.latency_ns is None else self.latency_ns / NS_PER_MS,
            "request_bytes": self.request.size_bytes if self.request else None,
            "response_bytes": self.response.size_bytes if self.response else None,
        }
        problems = [self.problem] if self.problem else []
        for side, frame in (("request", self.request), ("response", self.response)):
            if frame is not None and not frame.is_whole:
                problems.append(f"{side}: {frame.missing}")
        if bodies:
            row["request"] = self._json(self.request, self.request_message, self.api_version, problems)
            row["response"] = self._json(self.response, self.response_message, self.response_version(), problems)
        row["problem"] = "; ".join(problems) or None
        return row

    def _json(
        self, frame: Frame | None, read: Callable[[], Message | None], version: int | None, problems: list[str]
    ) -> dict[str, object] | None:
        """Convert a body to JSON; None without one. If it cannot be decoded, the reason is added to problems."""
        if frame is None or not frame.is_whole or version is None:
            return None
        try:
            message = read()
            return None if message is None else message.to_json(version=version)
        except UnsupportedVersion:
            return None  # `problem` has it already
        except KwireError as error:
            problems.append(str(error))
            return None
