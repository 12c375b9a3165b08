"""Conversations of real clients with real brokers, frame by frame and through both ends of a connection."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from tests import golden

from kwire import plan
from kwire.messages import registry
from kwire.protocol import NEED_DATA, Connection, Request, Role, State, request_codec, response_codec

SETS = ("k391", "k282")


def lines(path: Path) -> list[Any]:
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


@pytest.fixture(scope="module", params=SETS)
def conversation(request: pytest.FixtureRequest, kafka_logs: dict[str, Path]) -> list[tuple[Any, Any, bytes]]:
    """Return (line of the frame, Kafka's decoded message, bytes) in the order of the capture."""
    folder = next(kafka_logs["wire"].rglob(f"{request.param}.frames.jsonl.gz")).parent
    frames, decoded = (lines(folder / f"{request.param}.{kind}.jsonl.gz") for kind in ("frames", "decoded"))
    return [(f, d, golden.unpack(f["b64"]) or b"") for f, d in zip(frames, decoded, strict=True)]


def without_records(value: Any) -> Any:
    """Return JSON as Kafka's printer does, with sizes instead of records."""
    if isinstance(value, dict):
        return {k: without_records(v) for k, v in value.items() if k != "records" and not k.endswith("SizeInBytes")}
    return [without_records(v) for v in value] if isinstance(value, list) else value


@pytest.mark.sampled
@pytest.mark.requirement("W-80", "W-81", "W-82", "W-84", "W-85", "W-87")
@pytest.mark.parametrize("kernels", [False, True])
def test_every_frame_is_read_as_kafka_does_and_written_as_it_was(
    conversation: list[tuple[Any, Any, bytes]], kernels: bool
) -> None:
    for line, decoded, wire in conversation:
        api_key, version = decoded["apiKey"], decoded["apiVersion"]
        to_server = line["dir"] == "c2s"
        body_version = version
        if not to_server and api_key == 18 and decoded["body"]["errorCode"] == 35:
            body_version = 0
        cls = (registry.request if to_server else registry.response)(api_key, "3.9.1")  # the release that decoded them
        header_cls = registry.get("RequestHeader" if to_server else "ResponseHeader")
        header_version = cls.SPEC.header_version(body_version)
        codec = plan.frame_codec(
            header_cls.SPEC, header_version, header_cls, cls.SPEC, body_version, cls, kernels=kernels
        )
        header, body = codec.decode(wire)
        assert header.correlation_id == decoded["correlationId"]
        assert header_version == decoded["headerVersion"]
        ours, theirs = without_records(body.to_json(version=body_version)), without_records(decoded["body"])
        assert {k: v for k, v in theirs.items() if k in ours} == ours
        assert codec.encode((header, body)) == wire
        assert codec.decode(wire, views=True) == (header, body)


def test_both_ends_of_a_connection_follow_real_conversations(conversation: list[tuple[Any, Any, bytes]]) -> None:
    """Requests are received by a broker's connection, responses by a client's with the same open requests."""
    by_connection: dict[int, list[tuple[Any, Any, bytes]]] = defaultdict(list)
    for item in conversation:
        by_connection[item[0]["conn"]].append(item)
    for items in by_connection.values():
        server, client = Connection(Role.BROKER), Connection(Role.CLIENT)
        client.state = State.READY
        for line, decoded, wire in items:
            if line["dir"] == "c2s":
                for piece in (wire[:7], wire[7:]):
                    server.receive_data(piece)
                request = server.next_request()
                assert isinstance(request, Request)
                assert (request.api_key, request.version) == (decoded["apiKey"], decoded["apiVersion"])
                assert request.client_id == (decoded["clientId"] or "")
                if request.expects_reply:
                    client._open.append(request)
            else:
                client.receive_data(wire)
                response = client.next_response()
                assert response is not NEED_DATA
                answered = next(r for r in server.open_requests if r.correlation_id == decoded["correlationId"])
                refused = decoded["apiKey"] == 18 and decoded["body"]["errorCode"] == 35
                header: Any = registry.get("ResponseHeader")(correlation_id=decoded["correlationId"])
                codec = response_codec(answered.api_key, 0 if refused else answered.version)
                assert codec.encode((header, response.body)) == wire
                if not refused:  # kwire supports the version that the real broker refused
                    assert server.send(answered.reply(response.body)) == wire
                else:
                    server._open.remove(answered)
        assert request_codec(18, 0)
