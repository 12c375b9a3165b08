"""The scripted cluster in front of one broker."""

from __future__ import annotations

import pytest

from kwire.conformance.client.exchange import Exchange
from kwire.conformance.client.placement import Placement
from kwire.messages import ApiVersionsRequest, RequestHeader
from kwire.protocol.requests import read_request, request_codec

API_VERSIONS, VERSION = 18, 5


@pytest.mark.parametrize(("expected", "forwarded"), [(2, 1), (1, 0), (3, 0), (-1, -1)])
def test_the_broker_is_named_where_a_client_names_the_node_that_it_expects(expected: int, forwarded: int) -> None:
    """MOVE-001 failed with Kafka's client 4.4: node 2 got REBOOTSTRAP_REQUIRED from the broker, which is node 1."""
    header = RequestHeader(request_api_key=API_VERSIONS, request_api_version=VERSION, client_id="c")
    body = ApiVersionsRequest(
        client_software_name="a",
        client_software_version="1",
        cluster_id=None if expected < 0 else "id",
        node_id=expected,
    )
    frame = bytes(request_codec(API_VERSIONS, VERSION).encode((header, body)))
    exchange = Exchange(
        node=2, connection=1, frame=frame, at=0, api_key=API_VERSIONS, version=VERSION, request=read_request(frame)
    )
    assert read_request(Placement(3).forwarded(exchange)).body.node_id == forwarded
    assert exchange.body.node_id == expected
