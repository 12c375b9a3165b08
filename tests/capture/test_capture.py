"""Captures of real conversations, incomplete or damaged, compared to the frames that a proxy recorded."""

from __future__ import annotations

import base64
import gzip
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from kwire.capture import CaptureCounts, Exchange, read_capture
from kwire.capture.packets import FIN, Segment, read_segments
from kwire.errors import KwireError, LogError, Malformed
from kwire.storage.store import LocalStore

SETS = ("k391", "k282")
Key = tuple[int, str, bytes]  # client port, direction, frame
BROKER_PORTS = {"k391": 21802, "k282": 21822}


class Recorded:
    """The frames of a set that the proxy recorded."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name
        with (folder / f"{name}.conns.json").open() as stream:
            conns = {c["conn"]: (c["client_port"], c["server_port"]) for c in json.load(stream)["conns"]}
        self.frames: list[tuple[tuple[int, int], str, bytes]] = [
            (conns[line["conn"]], line["dir"], base64.b64decode(line["b64"])) for line in self.lines("frames")
        ]
        self.decoded = self.lines("decoded")
        self.first_ports = {conns[number][0] for number in sorted(conns)[:6]}

    def lines(self, kind: str) -> list[Any]:
        with gzip.open(self.folder / f"{self.name}.{kind}.jsonl.gz", "rt") as stream:
            return [json.loads(line) for line in stream]

    def pcap(self, kind: str) -> Path:
        return self.folder / f"{self.name}.{kind}.pcap"

    def segments(self, kind: str) -> list[Segment]:
        with LocalStore(str(self.folder)).open(self.pcap(kind).name) as file:
            return list(read_segments(file))

    def all(self) -> Counter[Key]:
        return Counter((ports[0], direction, data) for ports, direction, data in self.frames)


@pytest.fixture(scope="module", params=SETS)
def recorded(request: pytest.FixtureRequest, kafka_logs: dict[str, Path]) -> Recorded:
    return Recorded(next(kafka_logs["wire"].rglob(f"{request.param}.conns.json")).parent, request.param)


def found(exchanges: list[Exchange]) -> Counter[Key]:
    """Return the complete frames of exchanges."""
    return Counter(
        (each.client[1], direction, frame.data)
        for each in exchanges
        for direction, frame in (("c2s", each.request), ("s2c", each.response))
        if frame is not None and frame.is_whole
    )


def wholly_captured(recorded: Recorded, kind: str) -> Counter[Key]:
    """The recorded frames of which every byte is in a capture, found by sequence numbers alone.

    The stream's first sequence number is told by the FIN at its end, since a capture may lack the beginning.
    """
    totals: Counter[tuple[int, int]] = Counter()
    for (client, server), direction, data in recorded.frames:
        totals[(client, server) if direction == "c2s" else (server, client)] += len(data)
    bases = {
        ports: s.sequence + len(s.data) - totals[ports]
        for s in recorded.segments(kind)
        for ports in ((s.source[1], s.target[1]),)
        if s.flags & FIN
    }
    ranges: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for segment in recorded.segments(kind):
        ports = segment.source[1], segment.target[1]
        start = (segment.sequence - bases[ports]) % (1 << 32)
        ranges[ports].append((start, start + len(segment.data)))
    expected: Counter[Key] = Counter()
    ends: Counter[tuple[int, int]] = Counter()
    for (client, server), direction, data in recorded.frames:
        ports = (client, server) if direction == "c2s" else (server, client)
        position, ends[ports] = ends[ports], ends[ports] + len(data)
        for start, end in sorted(ranges[ports]):
            if start <= position < end:
                position = end
        if position >= ends[ports]:
            expected[client, direction, data] += 1
    return expected


@pytest.mark.parametrize("kind", ["clean", "disordered", "tcpdump"])
def test_every_recorded_frame_is_found_and_nothing_else(recorded: Recorded, kind: str) -> None:
    exchanges = list(read_capture(recorded.pcap(kind)))
    assert found(exchanges) == recorded.all()
    answered = [each for each in exchanges if each.request and each.response]
    assert all(each.problem is None for each in answered)
    assert len(answered) == sum(direction == "s2c" for _, direction, _ in recorded.frames)


def test_requests_and_responses_are_matched_and_decoded_as_kafka_did(recorded: Recorded) -> None:
    decoded = {}
    for (ports, direction, _), line in zip(recorded.frames, recorded.decoded, strict=True):
        decoded[ports[0], direction, line["correlationId"]] = line
    for exchange in read_capture(recorded.pcap("clean")):
        assert exchange.correlation_id is not None
        for direction, message, version in (
            ("c2s", exchange.request_message(), exchange.api_version),
            ("s2c", exchange.response_message(), exchange.response_version()),
        ):
            if message is None:
                continue
            line = decoded.pop((exchange.client[1], direction, exchange.correlation_id))
            assert (line["apiKey"], line["api"]) == (exchange.api_key, exchange.api_name)
            assert line["apiVersion"] == exchange.api_version
            if direction == "c2s":
                assert line["clientId"] == exchange.client_id
            ours = message.to_json(version=version)
            same = set(ours) & set(line["body"])  # a later release renamed a field
            assert len(same) >= len(ours) - 1
            assert all(ours[key] == line["body"][key] for key in same if isinstance(ours[key], int | str))
    assert not decoded


def test_addresses_and_times_of_another_byte_order_tagged_networks_and_nanoseconds(recorded: Recorded) -> None:
    exchanges = list(read_capture(recorded.pcap("v6-vlan-be-nano")))
    expected = Counter({key: n for key, n in recorded.all().items() if key[0] in recorded.first_ports})
    assert found(exchanges) == expected
    assert all(len(each.client[0]) == 16 for each in exchanges)
    clean = {(e.client[1], e.correlation_id): e for e in read_capture(recorded.pcap("clean"))}
    for each in exchanges:
        other = clean[each.client[1], each.correlation_id]
        assert each.request is not None
        assert other.request is not None
        assert (
            abs(each.request.time_ns - other.request.time_ns) < 1000
        )  # the other file has a resolution of microseconds


def test_frames_around_a_gap_are_found(recorded: Recorded) -> None:
    exchanges = list(read_capture(recorded.pcap("gap")))
    assert found(exchanges) == wholly_captured(recorded, "gap")
    cut = [frame for e in exchanges for frame in (e.request, e.response) if frame is not None and not frame.is_whole]
    assert all(frame.size_bytes > len(frame.data) for frame in cut)


def test_a_connection_that_began_before_the_capture_is_read(recorded: Recorded) -> None:
    """Only responses to requests before the capture are missing, since their API is unknown."""
    exchanges = list(read_capture(recorded.pcap("midstream")))
    whole, got = wholly_captured(recorded, "midstream"), found(exchanges)
    assert not got - recorded.all()
    missing = whole - got
    assert {direction for _, direction, _ in missing} <= {"s2c"}
    requests = {(port, data[8:12]) for port, direction, data in whole if direction == "c2s"}
    assert not [1 for port, _, frame in missing if (port, frame[4:8]) in requests]


def test_truncated_packets_have_headers_and_report_missing_bytes(recorded: Recorded) -> None:
    exchanges = list(read_capture(recorded.pcap("snap120")))
    expected = {key for key in recorded.all() if key[0] in recorded.first_ports}
    requests = [each for each in exchanges if each.request]
    assert len(requests) == sum(direction == "c2s" for _, direction, _ in expected)
    assert all(each.response and each.api_name for each in requests)
    rows = [each.to_json() for each in exchanges]
    cut = [row for row in rows if row["problem"]]
    assert cut
    assert all("bytes were not captured" in row["problem"] for row in cut)


def test_a_pcapng_file_with_two_interfaces(recorded: Recorded) -> None:
    """Written by Wireshark's mergecap 4.0 from the first 60 packets of k282.tcpdump and k391.v6-vlan-be-nano."""
    path = Path(__file__).parents[1] / "data" / "captures" / "two-interfaces.pcapng"
    counts = CaptureCounts()
    exchanges = [e for e in read_capture(path, counts=counts) if e.server[1] == BROKER_PORTS[recorded.name]]
    assert counts.packets == 144
    assert not found(exchanges) - recorded.all()
    if recorded.name == "k391":
        assert found(exchanges) == found(list(read_capture(recorded.pcap("v6-vlan-be-nano"))))


def test_ports_choose_connections(recorded: Recorded) -> None:
    port = BROKER_PORTS[recorded.name]
    assert list(read_capture(recorded.pcap("clean"), ports=[9])) == []
    assert found(list(read_capture(recorded.pcap("clean"), ports=[port]))) == recorded.all()


def test_a_truncated_file_is_read_to_its_end(recorded: Recorded, tmp_path: Path) -> None:
    data = recorded.pcap("v6-vlan-be-nano").read_bytes()
    whole = recorded.all()
    for cut in range(24, len(data), 211):
        (tmp_path / "cut.pcap").write_bytes(data[:cut])
        assert not found(list(read_capture(tmp_path / "cut.pcap"))) - whole


def test_any_changed_byte_returns_exchanges_or_raises_a_kwire_error(recorded: Recorded, tmp_path: Path) -> None:
    data = bytearray(recorded.pcap("snap120").read_bytes())
    path = tmp_path / "changed.pcap"
    for position in range(0, len(data), 37):
        data[position] ^= 0xFF
        path.write_bytes(data)
        data[position] ^= 0xFF
        try:
            for exchange in read_capture(path):
                exchange.to_json()
        except KwireError:
            pass


def test_damage_is_raised_after_the_exchanges_before_it(recorded: Recorded, tmp_path: Path) -> None:
    data = bytearray(recorded.pcap("v6-vlan-be-nano").read_bytes())
    position = 24
    for _ in range(40):
        position += 16 + int.from_bytes(data[position + 8 : position + 12], "big")
    data[position + 8 : position + 12] = b"\xff" * 4
    (tmp_path / "damaged.pcap").write_bytes(data)
    exchanges: list[Exchange] = []
    with pytest.raises(Malformed, match=r"damaged\.pcap: packet of 4294967295") as caught:
        exchanges.extend(read_capture(tmp_path / "damaged.pcap"))
    assert caught.value.position == position
    assert exchanges  # those before the error


def test_a_file_that_is_not_a_capture_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")
    with pytest.raises(Malformed, match="not a pcap or pcapng file"):
        list(read_capture(tmp_path / "text"))
    with pytest.raises(LogError, match="cannot be opened"):
        list(read_capture(tmp_path / "missing.pcap"))
