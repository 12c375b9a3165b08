"""One request with its response, as a capture shows them."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kwire.capture.frame_stream import Frame
from kwire.errors import KwireError, Truncated, UnsupportedVersion
from kwire.messages import registry
from kwire.protocol import hide_secrets, request_codec, response_codec

__all__ = ["Address", "Exchange", "render_address"]

Address = tuple[bytes, int]

API_VERSIONS = 18
UNSUPPORTED_VERSION = 35
NS_PER_MS = 1_000_000


def render_address(address: Address) -> str:
    """`127.0.0.1:9092`, `[::1]:9092`."""
    host = str(ipaddress.ip_address(address[0]))
    return f"[{host}]:{address[1]}" if ":" in host else f"{host}:{address[1]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A request and its response; either may be missing, and None then.

    connection: number of the connection in the capture, from 0 on. client, server: address bytes and port.
    api_key, api_version, correlation_id, client_id: of the request's header; None where it is not known (a response
    without its request has the correlation id only). problem: why something is missing or cannot be read; None when
    all is well. expects_response: false for Produce with acks=0.
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
        """The request's name without `Request`; None for an api key that is not known."""
        if self.api_key is None:
            return None
        try:
            return registry.request(self.api_key).__name__.removesuffix("Request")
        except UnsupportedVersion:
            return None

    @property
    def latency_ns(self) -> int | None:
        """From the last byte of the request to the last byte of the response."""
        if self.request is None or self.response is None:
            return None
        return self.response.time_ns - self.request.time_ns

    def request_message(self) -> Any:
        """The request's body without secrets in it; None without a request.

        Raises DecodeError or UnsupportedVersion where it cannot be decoded.
        """
        return None if self.request is None else self._message(self.request, request_codec)

    def response_message(self) -> Any:
        """The response's body without secrets; None without a response or the request that tells its version.

        Raises DecodeError or UnsupportedVersion where it cannot be decoded.
        """
        return None if self.response is None else self._message(self.response, response_codec)

    def response_version(self) -> int | None:
        """The version of the response: the request's, or 0 where a broker did not know the ApiVersions asked for."""
        if self.api_key == API_VERSIONS and self.response is not None:
            error_code = self.response.data[8:10]  # behind length and correlation id, in every version
            if int.from_bytes(error_code, "big") == UNSUPPORTED_VERSION:
                return 0
        return self.api_version

    def _message(self, frame: Frame, codec_of: Any) -> Any:
        version = self.api_version if codec_of is request_codec else self.response_version()
        if self.api_key is None or version is None:
            return None
        if not frame.is_whole:
            raise Truncated(frame.missing, len(frame.data))
        _, message = codec_of(self.api_key, version).decode(frame.data, lenient=True)
        return hide_secrets(message)

    def to_json(self, *, bodies: bool = True) -> dict[str, Any]:
        """A plain dict: times in ns, bodies in Kafka's own JSON form where they can be decoded, else why not."""
        row: dict[str, Any] = {
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
        self, frame: Frame | None, read: Callable[[], Any], version: int | None, problems: list[str]
    ) -> dict[str, Any] | None:
        """A body in JSON; None where there is none or it cannot be read, which is added to problems then."""
        if frame is None or not frame.is_whole:
            return None
        try:
            message = read()
            return None if message is None else message.to_json(version=version)
        except UnsupportedVersion:
            return None  # the request's header has told it
        except KwireError as error:
            problems.append(str(error))
            return None
