"""The bodies of a capture's requests and responses, without their headers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kwire.capture.exchange import Exchange
from kwire.errors import KwireError
from kwire.messages import registry

__all__ = ["Body", "bodies_of"]

LENGTH_BYTES = 4

Body = tuple[type[Any], int, bytes]
"""(message class, version, its bytes)"""


def bodies_of(exchange: Exchange) -> Iterator[Body]:
    """The request and the response of an exchange, as far as they were captured whole and their version is known."""
    if exchange.api_key is None or exchange.api_version is None:
        return
    version = exchange.response_version()
    sides = (
        (exchange.request, registry.request, exchange.api_version, "RequestHeader", registry.request_header_version),
        (exchange.response, registry.response, version, "ResponseHeader", registry.response_header_version),
    )
    for frame, find, version, header, header_version in sides:
        if frame is None or not frame.is_whole or version is None:
            continue
        try:
            cls = find(exchange.api_key)
            if version not in cls.VALID_VERSIONS:
                continue
            of_header = header_version(exchange.api_key, version)
            _, start = registry.get(header).decode_from(frame.data, LENGTH_BYTES, version=of_header)
        except KwireError:
            continue  # a header that cannot be read, or an api that nobody knows
        yield cls, version, frame.data[start:]
