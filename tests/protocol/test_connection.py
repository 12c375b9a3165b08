"""Connections in both roles, without a socket between them."""

from __future__ import annotations

import random
import socket
from typing import Any

import pytest

from kwire.errors import DecodeError, EncodeError, Malformed, OptionError, Truncated, UnsupportedVersion
from kwire.messages import registry
from kwire.protocol import (
    NEED_DATA,
    TRANSITIONS,
    Connection,
    Event,
    Request,
    Response,
    Role,
    State,
    describe,
    highest_common,
    offered,
    request_codec,
    supported,
)
from kwire.schema import Versions

Metadata: Any = registry.get("MetadataRequest")
MetadataResponse: Any = registry.get("MetadataResponse")
Produce: Any = registry.get("ProduceRequest")
ApiVersionsRequest: Any = registry.get("ApiVersionsRequest")
RequestHeader: Any = registry.get("RequestHeader")


def pair(**broker: Any) -> tuple[Connection, Connection]:
    """Return a client and a broker with negotiated versions."""
    client, server = Connection(Role.CLIENT, client_id="me"), Connection(Role.BROKER, **broker)
    while client.state is not State.READY:
        server.receive_data(client.negotiate())
        client.receive_data(server.send(server.offer_versions(taken(server.next_request()))))
        assert client.next_response()
    return client, server


def taken(found: Any) -> Any:
    assert found is not NEED_DATA
    return found


@pytest.mark.requirement("SDEF-15")
def test_a_request_and_its_response() -> None:
    client, server = pair()
    server.receive_data(client.send(Metadata(topics=None)))
    request = taken(server.next_request())
    assert isinstance(request, Request)
    assert (request.api_key, request.client_id, request.body) == (3, "me", Metadata(topics=None))
    assert request.version == Metadata.VALID_VERSIONS.highest
    assert server.open_requests == (request,)
    client.receive_data(server.send(request.reply(MetadataResponse(controller_id=5))))
    response = taken(client.next_response())
    assert isinstance(response, Response)
    assert response.body.controller_id == 5
    assert response.request.correlation_id == request.correlation_id
    assert server.next_request() is NEED_DATA
    assert client.next_response() is NEED_DATA
    assert not server.open_requests
    assert not client.open_requests


@pytest.mark.requirement("SDEF-08")
@pytest.mark.requirement("W-87")
def test_a_byte_at_a_time_and_many_at_once() -> None:
    client, server = pair()
    stream = b"".join(client.send(Metadata(topics=[])) for _ in range(5))
    seen = []
    for byte in stream:
        server.receive_data(bytes([byte]))
        while request := server.next_request():
            seen.append(request)
    assert [r.correlation_id for r in seen] == list(range(seen[0].correlation_id, seen[0].correlation_id + 5))
    client.receive_data(b"".join(server.send(r.reply(MetadataResponse(controller_id=i))) for i, r in enumerate(seen)))
    assert [taken(client.next_response()).body.controller_id for _ in range(5)] == [0, 1, 2, 3, 4]


def test_a_produce_request_with_acks_0_gets_no_response() -> None:
    client, server = pair()
    server.receive_data(client.send(Produce(acks=0)) + client.send(Produce(acks=1)))
    first, second = taken(server.next_request()), taken(server.next_request())
    assert (first.expects_reply, second.expects_reply) == (False, True)
    assert server.open_requests == (second,)
    with pytest.raises(OptionError, match="not the next one"):
        server.send(first.reply(registry.response(0)()))
    client.receive_data(server.send(second.reply(registry.response(0)())))
    assert taken(client.next_response()).request.body.acks == 1


def test_responses_are_sent_in_the_order_of_requests() -> None:
    client, server = pair()
    server.receive_data(client.send(Metadata()) + client.send(Metadata()))
    first, second = taken(server.next_request()), taken(server.next_request())
    with pytest.raises(OptionError, match="not the next one"):
        server.send(second.reply(MetadataResponse()))
    server.send(first.reply(MetadataResponse()))
    server.send(second.reply(MetadataResponse()))
    with pytest.raises(OptionError):
        server.send(second.reply(MetadataResponse()))


def test_a_response_without_a_request_fails_the_connection() -> None:
    for correlation_id, request in ((99, True), (0, False)):
        client, server = pair()
        server.receive_data(client.send(Metadata()))
        wire = bytearray(server.send(taken(server.next_request()).reply(MetadataResponse())))
        if request:
            wire[4:8] = correlation_id.to_bytes(4, "big")
        else:
            client.receive_data(bytes(wire))
            client.next_response()
        client.receive_data(bytes(wire))
        with pytest.raises(Malformed, match="correlation id"):
            client.next_response()
        assert client.state is State.FAILED
        with pytest.raises(OptionError, match="failed"):
            client.receive_data(b"x")
        with pytest.raises(OptionError, match="failed"):
            client.send(Metadata())


@pytest.mark.requirement("W-85")
def test_a_broker_responds_to_an_unsupported_api_versions_request_in_version_0() -> None:
    server = Connection(Role.BROKER, versions={18: Versions(0, 3), 3: Versions(0, 9)})
    header = RequestHeader(request_api_key=18, request_api_version=4, correlation_id=5, client_id="new")
    body = ApiVersionsRequest(client_software_name="x", client_software_version="1")
    server.receive_data(request_codec(18, 4).encode((header, body)))
    request = taken(server.next_request())
    assert (request.version, request.body, request.client_id) == (4, None, "new")
    wire = server.send(server.offer_versions(request))
    assert wire == bytes.fromhex("00000010 00000005 0023 00000001 0012 0000 0003")


@pytest.mark.requirement("W-85")
def test_a_client_negotiates_again_in_a_version_that_the_broker_supports() -> None:
    client, server = Connection(Role.CLIENT), Connection(Role.BROKER, versions={18: Versions(0, 2), 3: Versions(1, 8)})
    asked = []
    while client.state is not State.READY:
        server.receive_data(client.negotiate())
        request = taken(server.next_request())
        asked.append(request.version)
        client.receive_data(server.send(server.offer_versions(request)))
        response = taken(client.next_response())
    assert asked == [supported()[18].highest, 2]
    assert response.body.error_code == 0
    assert client.version_for(3) == 8
    with pytest.raises(UnsupportedVersion, match="not supported by the other side"):
        client.version_for(1)


@pytest.mark.requirement("W-85")
def test_a_client_negotiates_in_version_0_with_a_broker_before_kip_511() -> None:
    """Its refusal lists no versions."""
    client = Connection(Role.CLIENT)
    first = client.negotiate()
    client.receive_data(bytes.fromhex("0000000a 00000000 0023 00000000"))
    assert taken(client.next_response()).body.error_code == 35
    assert client.state is State.OPEN
    second = client.negotiate()
    assert first[6:8] != second[6:8] == b"\0\0"
    client.receive_data(bytes.fromhex("00000010 00000001 0000 00000001 0003 0000 0001"))
    assert taken(client.next_response()).body.error_code == 0
    assert client.version_for(3) == 1


def test_negotiation_fails_if_version_0_is_refused() -> None:
    client = Connection(Role.CLIENT, versions={18: Versions(0, 0)})
    client.negotiate()
    client.receive_data(bytes.fromhex("0000000a 00000000 0023 00000000"))
    client.next_response()
    with pytest.raises(UnsupportedVersion):
        client.negotiate()


def test_a_client_may_send_an_explicit_version() -> None:
    client, server = Connection(Role.CLIENT), Connection(Role.BROKER)
    with pytest.raises(OptionError, match="connection is open: cannot send a message"):
        client.send(Metadata())
    server.receive_data(client.send(Metadata(), version=4))
    request = taken(server.next_request())
    assert request.version == 4
    client.receive_data(server.send(request.reply(MetadataResponse(controller_id=3))))
    assert taken(client.next_response()).body.controller_id == 3
    with pytest.raises(UnsupportedVersion):
        client.send(Metadata(), version=99)


@pytest.mark.requirement("W-84")
def test_unsupported_requests_fail_the_connection() -> None:
    for api_key, version in ((3, 12), (1, 4), (30_000, 0), (-5, 0)):
        server = Connection(Role.BROKER, versions={18: Versions(0, 3), 3: Versions(0, 9)})
        server.receive_data(
            (10).to_bytes(4, "big") + api_key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big") + bytes(6)
        )
        with pytest.raises(UnsupportedVersion, match=str(api_key)):
            server.next_request()
        assert server.state is State.FAILED


@pytest.mark.requirement("W-84")
def test_a_null_client_id_is_empty() -> None:
    client, server = Connection(Role.CLIENT, client_id=None), Connection(Role.BROKER)
    server.receive_data(client.negotiate())
    assert taken(server.next_request()).client_id == ""


def test_frames_above_the_limit_fail_the_connection() -> None:
    server = Connection(Role.BROKER, max_frame_bytes=100)
    server.receive_data((101).to_bytes(4, "big"))
    with pytest.raises(Malformed, match="at most 100"):
        server.next_request()
    assert server.state is State.FAILED


def test_a_connection_receives_from_a_socket() -> None:
    client, server = pair()
    here, there = socket.socketpair()
    with here, there:
        here.sendall(client.send(Metadata(topics=None)))
        assert server.receive(there.recv_into) > 0
        response = server.send(taken(server.next_request()).reply(MetadataResponse(controller_id=5)))
        there.sendall(response)
        assert client.receive(here.recv_into) == len(response)
        assert taken(client.next_response()).body.controller_id == 5
        there.close()
        assert client.receive(here.recv_into) == 0


def test_the_end_of_the_stream() -> None:
    client, server = pair()
    wire = client.send(Metadata())
    server.receive_data(wire)
    assert server.next_request()
    server.receive_data(b"")
    assert server.state is State.CLOSED
    assert server.next_request() is NEED_DATA
    with pytest.raises(OptionError, match="closed"):
        server.receive_data(wire)
    _, server = pair()
    server.receive_data(wire[:-1])
    with pytest.raises(Truncated, match=f"{len(wire) - 1} bytes"):
        server.receive_data(b"")
    server.close()
    assert server.state is State.CLOSED


def test_a_message_that_does_not_fit_its_version_does_not_change_the_connection() -> None:
    client, server = pair()
    before = client.open_requests
    with pytest.raises(EncodeError) as caught:
        client.send(Metadata(topics=[Metadata.MetadataRequestTopic(name=5)]))
    assert caught.value.path[-3:] == ("topics", 0, "name")
    assert client.open_requests == before
    server.receive_data(client.send(Metadata()))
    request = taken(server.next_request())
    with pytest.raises(EncodeError):
        server.send(request.reply(MetadataResponse(controller_id="x")))
    client.receive_data(server.send(request.reply(MetadataResponse())))
    assert client.next_response()


def test_each_role_has_its_own_methods() -> None:
    client, server = pair()
    for wrong in (client.next_request, server.next_response, server.negotiate):
        with pytest.raises(OptionError, match="only a"):
            wrong()
    with pytest.raises(OptionError, match="only a client"):
        server.send(Metadata())
    with pytest.raises(OptionError, match="only a broker"):
        client.send(Response(request=client.open_requests, body=None, size_bytes=0))  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="is not a request"):
        client.send(registry.get("RequestHeader")())
    with pytest.raises(OptionError, match="is not a request"):
        client.send(MetadataResponse())


def test_every_state_and_event_is_in_the_table_or_an_error() -> None:
    assert {state for state, _ in TRANSITIONS} == set(State)
    assert {event for _, event in TRANSITIONS} == set(Event)
    assert all(TRANSITIONS[state, Event.CLOSE] is State.CLOSED for state in State)
    assert {state for (state, event) in TRANSITIONS if event is Event.SEND} == {State.READY}


def test_records_are_views_of_the_frame_with_views() -> None:
    client, server = pair(views=True)
    data = Produce.PartitionProduceData(index=0, records=b"r" * 5000)
    server.receive_data(
        client.send(Produce(acks=-1, topic_data=[Produce.TopicProduceData(name="t", partition_data=[data])]), version=9)
    )
    records = taken(server.next_request()).body.topic_data[0].partition_data[0].records
    assert type(records) is memoryview
    assert records == b"r" * 5000


@pytest.mark.parametrize("seed", range(200))
def test_mutated_streams_return_messages_or_raise_kwire_errors(seed: int) -> None:
    draw = random.Random(seed)
    client, server = pair()
    stream = bytearray(
        client.send(Metadata(topics=[Metadata.MetadataRequestTopic(name="t")])) + client.send(Metadata())
    )
    for _ in range(draw.randrange(1, 4)):
        stream[draw.randrange(len(stream))] = draw.choice((0, 1, 3, 18, 127, 128, 255))
    try:
        server.receive_data(stream)
        while server.next_request():
            pass
    except (DecodeError, UnsupportedVersion):
        assert server.state is State.FAILED


def test_an_api_whose_name_has_changed_has_the_versions_of_the_new_one() -> None:
    """ElectLeaders was ElectPreferredLeaders, which has version 0 only."""
    assert str(supported()[43]) == "0-2"
    assert str(supported("2.2.2")[43]) == "0"


def test_supported_versions_survive_an_api_versions_response() -> None:
    ours = supported()
    assert offered(describe(ours).api_keys) == ours
    assert supported("3.9.1")[3].highest <= ours[3].highest
    assert offered(describe(ours, 35).api_keys) == {18: ours[18]}
    key = registry.get("ApiVersionsResponse")().ApiVersion
    assert offered([key(api_key=1, min_version=0, max_version=-1)]) == {}


def test_the_highest_common_version() -> None:
    assert highest_common(3, Versions(0, 9), Versions(4, 12)) == 9
    for ours, theirs in ((Versions(0, 3), Versions(4, 9)), (None, Versions(0, 1)), (Versions(0, 1), None)):
        with pytest.raises(UnsupportedVersion, match="api key 3"):
            highest_common(3, ours, theirs)
