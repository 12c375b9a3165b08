"""Bodies of captured requests and responses, without their headers."""

from __future__ import annotations

from collections.abc import Iterator

from kwire.capture.exchange import Exchange
from kwire.errors import KwireError
from kwire.messages import RequestHeader, ResponseHeader, registry
from kwire.messages.base import Message
from kwire.protocol.frames import LENGTH_BYTES

__all__ = ["Body", "bodies_of"]

Body = tuple[type[Message], int, bytes]
"""(message class, version, encoded body)"""


def bodies_of(exchange: Exchange) -> Iterator[Body]:
    """Yield the bodies of the request and response that were captured completely and whose version is known."""
    if exchange.api_key is None or exchange.api_version is None:
        return
    version = exchange.response_version()
    sides = (
        (exchange.request, registry.request, exchange.api_version, RequestHeader, registry.request_header_version),
        (exchange.response, registry.response, version, ResponseHeader, registry.response_header_version),
    )
    for frame, find, version, header, header_version in sides:
        if frame is None or not frame.is_whole or version is None:
            continue
        try:
            cls = find(exchange.api_key)
            if version not in cls.VALID_VERSIONS:
                continue
            _, start = header.decode_from(frame.data, LENGTH_BYTES, version=header_version(exchange.api_key, version))
        except KwireError:
            continue  # malformed header, or unknown API
        yield cls, version, frame.data[start:]
