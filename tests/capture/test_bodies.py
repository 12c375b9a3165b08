"""Bodies of captured requests and responses: what stands behind the headers, byte for byte."""

from __future__ import annotations

from pathlib import Path

from kwire.capture import read_capture
from kwire.capture.bodies import bodies_of
from kwire.messages import registry

CAPTURE = Path(__file__).parents[1] / "data" / "captures" / "two-interfaces.pcapng"


def test_bodies_are_the_messages_of_the_exchange() -> None:
    seen = set()
    for exchange in read_capture(CAPTURE):
        found = {cls.__name__: (version, body) for cls, version, body in bodies_of(exchange)}
        expected = {}
        for message, version in (
            (exchange.request_message(), exchange.api_version),
            (exchange.response_message(), exchange.response_version()),
        ):
            if message is not None:
                expected[type(message).__name__] = message
                at, body = found[type(message).__name__]
                assert at == version
                assert registry.get(type(message).__name__).decode(body, version=version) == message
        assert found.keys() == expected.keys()
        seen |= found.keys()
    assert {"ApiVersionsRequest", "ApiVersionsResponse", "MetadataResponse"} <= seen
