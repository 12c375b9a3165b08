"""Other data on a broker's port: SASL tokens, TLS, other protocols, unknown APIs."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from kwire.capture import Exchange, read_capture
from kwire.capture.packets import SYN
from kwire.messages import registry
from kwire.messages.fetch_response import FetchableTopicResponse, PartitionData
from kwire.messages.produce_request import PartitionProduceData, TopicProduceData
from kwire.protocol import request_codec, response_codec

CLIENT, BROKER = 40000, 9092
ACK = 0x10
LARGEST_PAYLOAD = 60_000  # of a packet; its size has 16 bits


class Pcap:
    """Return a raw-IP capture of a connection."""

    def __init__(self, path: Path) -> None:
        self.path, self.time = path, 0
        self.sequence = {CLIENT: 100, BROKER: 500}
        self.data = bytearray(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101))
        self.packet(CLIENT, b"", SYN)
        self.packet(BROKER, b"", SYN | ACK)

    def packet(self, source: int, payload: bytes, flags: int = ACK) -> None:
        if len(payload) > LARGEST_PAYLOAD:
            for start in range(0, len(payload), LARGEST_PAYLOAD):
                self.packet(source, payload[start : start + LARGEST_PAYLOAD], flags)
            return
        target = BROKER if source == CLIENT else CLIENT
        acknowledged = self.sequence[target] if flags & ACK else 0
        tcp = struct.pack(">HHIIBBHHH", source, target, self.sequence[source], acknowledged, 0x50, flags, 1000, 0, 0)
        addresses = bytes([10, 0, 0, 1, 10, 0, 0, 2]) if source == CLIENT else bytes([10, 0, 0, 2, 10, 0, 0, 1])
        size = 40 + len(payload)
        ip = struct.pack(">BBHHHBBH", 0x45, 0, size, 0, 0, 64, 6, 0) + addresses + tcp + payload
        self.time += 1
        self.data += struct.pack("<IIII", self.time, 0, size, size) + ip
        self.sequence[source] += len(payload) + bool(flags & SYN)

    def exchanges(self, **options: Any) -> list[Exchange]:
        self.path.write_bytes(self.data)
        return list(read_capture(self.path, **options))


def request(name: str, version: int, correlation_id: int, **fields: Any) -> bytes:
    cls: Any = registry.get(f"{name}Request")
    header = registry.get("RequestHeader")(
        request_api_key=cls.API_KEY, request_api_version=version, correlation_id=correlation_id, client_id="app"
    )
    return request_codec(cls.API_KEY, version).encode((header, cls(**fields)))


def response(name: str, version: int, correlation_id: int, **fields: Any) -> bytes:
    cls: Any = registry.get(f"{name}Response")
    header = registry.get("ResponseHeader")(correlation_id=correlation_id)
    return response_codec(cls.API_KEY, version).encode((header, cls(**fields)))


def test_passwords_are_not_shown(tmp_path: Path) -> None:
    pcap = Pcap(tmp_path / "a.pcap")
    pcap.packet(CLIENT, request("SaslHandshake", 1, 1, mechanism="PLAIN"))
    pcap.packet(BROKER, response("SaslHandshake", 1, 1, mechanisms=["PLAIN"]))
    pcap.packet(CLIENT, request("SaslAuthenticate", 2, 2, auth_bytes=b"\0alice\0wonderland"))
    pcap.packet(BROKER, response("SaslAuthenticate", 2, 2))
    rows = [each.to_json() for each in pcap.exchanges()]
    assert [row["api"] for row in rows] == ["SaslHandshake", "SaslAuthenticate"]
    assert "d29uZGVybGFuZA" not in str(rows)  # wonderland in base64, at this alignment or another
    assert rows[1]["request"] == {"authBytes": "W2hpZGRlbl0="}  # [hidden]


def test_tokens_after_the_first_handshake_have_no_header_and_are_hidden(tmp_path: Path) -> None:
    pcap = Pcap(tmp_path / "a.pcap")
    pcap.packet(CLIENT, request("SaslHandshake", 0, 1, mechanism="PLAIN"))
    pcap.packet(BROKER, response("SaslHandshake", 0, 1, mechanisms=["PLAIN"]))
    token = b"\0alice\0wonderland"
    pcap.packet(CLIENT, len(token).to_bytes(4, "big") + token)
    pcap.packet(BROKER, b"\0\0\0\0")
    pcap.packet(CLIENT, request("Metadata", 1, 2))
    pcap.packet(BROKER, response("Metadata", 1, 2))
    exchanges = pcap.exchanges()
    assert [each.api_name for each in exchanges if each.api_name] == ["SaslHandshake", "Metadata"]
    assert all(each.response for each in exchanges if each.api_name)
    assert b"wonderland" not in repr(exchanges).encode()


def test_an_unknown_api_or_version_is_an_exchange_with_its_bytes(tmp_path: Path) -> None:
    pcap = Pcap(tmp_path / "a.pcap")
    pcap.packet(CLIENT, request("Metadata", 1, 1))
    future = struct.pack(">ihhih", 30, 999, 3, 2, 3) + b"app" + bytes(17)
    pcap.packet(CLIENT, future)
    pcap.packet(BROKER, response("Metadata", 1, 1))
    pcap.packet(BROKER, struct.pack(">ii", 10, 2) + bytes(6))
    known, unknown = (each.to_json() for each in pcap.exchanges())
    assert known["problem"] is None
    assert (unknown["api_key"], unknown["api"], unknown["api_version"]) == (999, None, 3)
    assert unknown["problem"] == "unknown api key 999 version 3"
    assert (unknown["request_bytes"], unknown["response_bytes"]) == (34, 14)
    assert unknown["request"] is None


def test_a_produce_with_acks_0_is_not_a_problem(tmp_path: Path) -> None:
    pcap = Pcap(tmp_path / "a.pcap")
    pcap.packet(CLIENT, request("Produce", 7, 1, acks=0, timeout_ms=1))
    pcap.packet(CLIENT, request("Metadata", 1, 2))
    pcap.packet(BROKER, response("Metadata", 1, 2))
    first, second = pcap.exchanges()
    assert (first.api_name, first.response, first.problem, first.expects_response) == ("Produce", None, None, False)
    assert second.response is not None


def test_other_protocols_are_ignored(tmp_path: Path) -> None:
    for greeting in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc" + bytes(500), b"SSH-2.0-x\r\n"):
        pcap = Pcap(tmp_path / "a.pcap")
        pcap.packet(CLIENT, greeting)
        pcap.packet(BROKER, greeting)
        assert pcap.exchanges() == []


def test_reused_ports_are_a_new_connection(tmp_path: Path) -> None:
    pcap = Pcap(tmp_path / "a.pcap")
    pcap.packet(CLIENT, request("Metadata", 1, 1))
    pcap.packet(BROKER, response("Metadata", 1, 1))
    pcap.sequence = {CLIENT: 70_000, BROKER: 90_000}
    pcap.packet(CLIENT, b"", SYN)
    pcap.packet(BROKER, b"", SYN | ACK)
    pcap.packet(CLIENT, request("Metadata", 1, 1))
    pcap.packet(BROKER, response("Metadata", 1, 1))
    exchanges = pcap.exchanges()
    assert [each.connection for each in exchanges] == [0, 1]
    assert all(each.response for each in exchanges)


@pytest.mark.slow
def test_frames_above_100_mb_are_read(tmp_path: Path) -> None:
    pcap = Pcap(tmp_path / "a.pcap")
    records = bytes(101 << 20)
    topic = TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=records)])
    pcap.packet(CLIENT, request("Produce", 9, 1, acks=-1, topic_data=[topic]))
    pcap.packet(BROKER, response("Produce", 9, 1))
    pcap.packet(CLIENT, request("Fetch", 12, 2))
    fetched = FetchableTopicResponse(topic="t", partitions=[PartitionData(partition_index=0, records=records)])
    pcap.packet(BROKER, response("Fetch", 12, 2, responses=[fetched]))
    pcap.packet(CLIENT, request("Metadata", 1, 3))
    pcap.packet(BROKER, response("Metadata", 1, 3))
    exchanges = pcap.exchanges()
    assert [each.api_name for each in exchanges] == ["Produce", "Fetch", "Metadata"]
    assert [each.problem for each in exchanges] == [None, None, None]
    for each in exchanges:
        assert each.request is not None
        assert each.response is not None
        assert each.request.is_whole
        assert each.response.is_whole
    assert exchanges[0].request.size_bytes > len(records)
    assert exchanges[1].response.size_bytes > len(records)


def test_a_length_above_100_mb_without_a_request_is_skipped(tmp_path: Path) -> None:
    pcap = Pcap(tmp_path / "a.pcap")
    pcap.packet(CLIENT, request("Metadata", 1, 1))
    pcap.packet(BROKER, b"HTTP/1.1 400\r\n\r\n")
    pcap.packet(BROKER, response("Metadata", 1, 1))
    [exchange] = pcap.exchanges()
    assert exchange.problem is None
    assert exchange.response is not None
