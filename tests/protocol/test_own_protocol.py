"""Frames, headers and connections of a protocol with definitions of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kwire.errors import DecodeError, OptionError, UnsupportedVersion
from kwire.messages import ApiVersionsRequest, ApiVersionsResponse, ProduceRequest, registry
from kwire.messages.base import Message
from kwire.protocol import (
    NEED_DATA,
    Connection,
    Role,
    State,
    read_metadata_record,
    read_request,
    read_response,
    supported,
    write_metadata_record,
    write_request,
    write_response,
)
from kwire.schema import Versions

DEFINITIONS = Path(__file__).parents[2] / "definitions" / "kafka-4.4.0"


def definition(kind: str, name: str, api_key: int, *fields: tuple[str, str], valid: str = "0-2") -> dict[str, Any]:
    return {
        "apiKey": api_key,
        "type": kind,
        "name": name,
        "validVersions": valid,
        "flexibleVersions": "1+",
        "fields": [{"name": each, "type": type, "versions": "0+"} for each, type in fields],
    }


@pytest.fixture
def shop(tmp_path: Path) -> registry.Registry:
    """A protocol whose keys are those of other APIs of Kafka."""
    for each in (
        definition("request", "PlaceOrderRequest", 0, ("Item", "string"), ("Acks", "int16")),
        definition("response", "PlaceOrderResponse", 0, ("OrderId", "int64")),
        definition("request", "CountRequest", 9000, valid="0-4"),
        definition("response", "CountResponse", 9000, ("Count", "int32"), valid="0-4"),
        definition("metadata", "PriceRecord", 2, ("Price", "int64"), valid="0"),
    ):
        (tmp_path / f"{each['name']}.json").write_text(json.dumps(each))
    return registry.load(str(tmp_path))


@pytest.mark.parametrize("version", range(3))
def test_requests_and_responses_have_headers_and_frames(shop: registry.Registry, version: int) -> None:
    order, placed = shop.get("PlaceOrderRequest"), shop.get("PlaceOrderResponse")
    body: Any = order(item="tea", acks=0)  # type: ignore[call-arg]
    frame, request = write_request(body, version, correlation_id=7, client_id="till", kafka=shop)
    client_id = b"\0\x04till" + b"\0" * (version > 0)
    head = b"\0\0" + version.to_bytes(2, "big") + b"\0\0\0\x07" + client_id
    assert frame == (len(frame) - 4).to_bytes(4, "big") + head + body.encode(version=version)
    received = read_request(frame, kafka=shop)
    assert (received.body, received.client_id, received.expects_reply) == (body, "till", True)  # it is not Produce
    assert type(received.body) is order
    reply: Any = placed(order_id=2**40)  # type: ignore[call-arg]
    back = write_response(reply, api_key=0, version=version, correlation_id=7, kafka=shop)
    assert back[8 + (version > 0) :] == reply.encode(version=version)
    assert read_response(back, request, kafka=shop).body == reply
    assert registry.request_header_version(0, version, shop) == 1 + (version > 0)
    assert registry.response_header_version(9000, version, kafka=shop) == (version > 0)


def test_requests_that_the_protocol_lacks_are_refused(shop: registry.Registry) -> None:
    frame, _ = write_request(registry.request(3)(), 9, correlation_id=0)
    with pytest.raises(UnsupportedVersion, match="no request with key 3"):
        read_request(frame, kafka=shop)
    count: Any = shop.get("CountRequest")()
    with pytest.raises(UnsupportedVersion, match="CountRequest: no version 5; versions are 0-4"):
        write_request(count, 5, correlation_id=0, kafka=shop)
    with pytest.raises(UnsupportedVersion):
        write_request(count, 1, correlation_id=0)  # Kafka has no such API
    with pytest.raises(OptionError, match="unknown message 'Count'"):
        registry.get("Count", shop)


def test_a_client_and_a_server_converse(shop: registry.Registry) -> None:
    """Versions are negotiated by Kafka's ApiVersions, which the protocol does not define."""
    assert supported(shop) == {0: Versions(0, 2), 18: ApiVersionsRequest.VALID_VERSIONS, 9000: Versions(0, 4)}
    older = {**supported(shop), 9000: Versions(0, 3)}
    server, client = Connection(Role.BROKER, kafka=shop, versions=older), Connection(Role.CLIENT, kafka=shop)

    def exchange(sent: bytes) -> Any:
        server.receive_data(sent)
        request = server.next_request()
        assert request is not NEED_DATA
        seen.append((request.api_key, request.version))
        replies: dict[int, Message] = {
            0: shop.get("PlaceOrderResponse")(order_id=9),  # type: ignore[call-arg]
            9000: shop.get("CountResponse")(count=3),  # type: ignore[call-arg]
        }
        is_negotiation = request.api_key == 18
        client.receive_data(
            server.send(server.offer_versions(request) if is_negotiation else request.reply(replies[request.api_key]))
        )
        response = client.next_response()
        assert response is not NEED_DATA
        return response.body

    seen: list[tuple[int, int]] = []
    assert type(exchange(client.negotiate())) is ApiVersionsResponse
    assert client.state is State.READY
    assert exchange(client.send(shop.get("PlaceOrderRequest")(item="tea"))).order_id == 9  # type: ignore[call-arg]
    assert exchange(client.send(shop.get("CountRequest")())).count == 3
    assert exchange(client.send(shop.get("CountRequest")(), version=0)).count == 3
    assert seen == [(18, ApiVersionsRequest.VALID_VERSIONS.highest), (0, 2), (9000, 3), (9000, 0)]


def test_a_protocol_may_have_other_messages_with_the_keys_of_kafkas(tmp_path: Path) -> None:
    """Its request 18 is not ApiVersions, so a response that begins with 35 is not a refused version."""
    for each in (
        definition("request", "PingRequest", 18, valid="1-2"),
        definition("response", "PingResponse", 18, ("Code", "int16"), valid="1-2"),
    ):
        (tmp_path / f"{each['name']}.json").write_text(json.dumps(each))
    ping = registry.load(str(tmp_path))
    frame, request = write_request(ping.get("PingRequest")(), 1, correlation_id=0, kafka=ping)
    reply: Any = ping.get("PingResponse")(code=35)  # type: ignore[call-arg]
    back = write_response(reply, api_key=18, version=1, correlation_id=0, kafka=ping)
    assert read_response(back, request, kafka=ping).body == reply
    with pytest.raises(UnsupportedVersion, match="api key 18 version 0 is not supported"):
        read_request(frame[:6] + b"\0\0" + frame[8:], kafka=ping)
    assert supported(ping) == {18: Versions(1, 2)}


def test_the_definitions_of_a_release_are_read_as_that_release(tmp_path: Path) -> None:
    kafka = registry.load(str(DEFINITIONS))
    for acks in (0, 1):
        frame, _ = write_request(ProduceRequest(acks=acks), 9, correlation_id=0)
        read = read_request(frame, kafka=kafka)
        assert type(read.body) is kafka.get("ProduceRequest")
        assert read.expects_reply is bool(acks)
        assert write_request(read.body, 9, correlation_id=0, kafka=kafka)[0] == frame
    assert type(registry.decode("ProduceRequest", ProduceRequest().encode(version=9), 9, kafka=kafka)) is type(
        read.body
    )


def test_records_and_bodies_are_those_of_the_protocol(shop: registry.Registry) -> None:
    price: Any = shop.get("PriceRecord")(price=5)  # type: ignore[call-arg]
    assert read_metadata_record(write_metadata_record(price, 0), kafka=shop) == (price, 0)
    assert registry.decode("PriceRecord", price.encode(version=0), 0, kafka=shop) == price
    with pytest.raises(DecodeError, match=r"price: int64 of 8 bytes, 1 left, at byte 0$"):
        registry.decode("PriceRecord", b"\0", 0, kafka=shop)
    assert registry.names(shop) == [
        *("CountRequest", "CountResponse", "PlaceOrderRequest", "PlaceOrderResponse", "PriceRecord"),
    ]
