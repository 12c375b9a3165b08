"""Captures of real conversations, incomplete or damaged, compared to the frames that a proxy recorded."""

from __future__ import annotations

import base64
import gzip
import json
import struct
import time
import tracemalloc
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


@pytest.mark.sampled
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


# ---- many connections


def packet(
    number: int, client: int, data: bytes, *, sequence: int = 1, is_response: bool = False, flags: int = 0x18
) -> bytes:
    """Return a packet of a pcap file, from or to port 9092. client: its number."""
    ends = (
        struct.pack(">II", 0x0A000000 + client // 50_000, 1024 + client % 50_000),
        struct.pack(">II", 0x0B000001, 9092),
    )
    source, target = reversed(ends) if is_response else ends
    ports = struct.pack(">HH", int.from_bytes(source[4:]), int.from_bytes(target[4:]))
    tcp = ports + struct.pack(">IIBBHHH", sequence, 1, 0x50, flags, 1000, 0, 0) + data
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0) + source[:4] + target[:4] + tcp
    frame = bytes(12) + b"\x08\0" + ip
    return struct.pack("<IIII", number // 1_000_000, number % 1_000_000, len(frame), len(frame)) + frame


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


PCAP = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
REQUEST = framed(struct.pack(">hhih", 18, 0, 7, 3) + b"abc")  # ApiVersions
RESPONSE = framed(struct.pack(">ihi", 7, 0, 0))
SYN = 2


@pytest.mark.parametrize(("others", "problem"), [(49, None), (50, "its response was not captured")])
def test_the_connection_that_is_idle_for_longest_is_ended_where_too_many_are_open(
    others: int, problem: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kwire.capture.capture.MAX_CONNECTIONS", 50)
    path = tmp_path / "flood.pcap"
    first = [packet(0, 0, b"", sequence=0, flags=SYN), *(packet(n, n, b"", flags=SYN) for n in range(1, 50))]
    again = [packet(60, 0, REQUEST)]  # no longer the idle one
    flood = [packet(100 + n, 100 + n, b"", flags=SYN) for n in range(others)]
    path.write_bytes(PCAP + b"".join([*first, *again, *flood, packet(900, 0, RESPONSE, is_response=True)]))
    counts = CaptureCounts()
    exchanges = list(read_capture(path, counts=counts))
    assert [each.problem for each in exchanges if each.request is not None] == [problem]
    assert counts.given_up >= others
    assert counts.connections == 50 + others + (problem is not None)


@pytest.mark.slow
def test_a_scan_of_many_ports_needs_little_memory_and_time(tmp_path: Path) -> None:
    path = tmp_path / "scan.pcap"
    count = 20_000
    path.write_bytes(PCAP + b"".join(packet(n, n, b"\0\0\0\x20abcdef" + bytes(20)) for n in range(count)))
    counts = CaptureCounts()
    began = time.process_time()
    tracemalloc.start()
    assert list(read_capture(path, counts=counts)) == []
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert counts.connections == count
    assert peak / count < 1500
    assert time.process_time() - began < 20  # tracemalloc multiplies it


@pytest.mark.slow
def test_many_small_packets_before_a_request_are_looked_at_once(tmp_path: Path) -> None:
    path = tmp_path / "drops.pcap"
    drops = (packet(n + 1, 0, b"x", sequence=n + 1, is_response=True) for n in range(60_000))
    path.write_bytes(PCAP + packet(0, 0, b"", sequence=0, flags=SYN) + b"".join(drops))
    began = time.process_time()
    assert list(read_capture(path)) == []
    assert time.process_time() - began < 10


def test_closed_connections_are_forgotten_some_time_later(tmp_path: Path) -> None:
    path = tmp_path / "closed.pcap"
    late = 11_000_000  # us
    parts = [packet(0, 0, REQUEST), packet(1, 0, RESPONSE, is_response=True), packet(2, 0, b"", sequence=99, flags=4)]
    path.write_bytes(PCAP + b"".join([*parts, packet(late, 1, REQUEST), packet(late + 1, 0, REQUEST, sequence=200)]))
    counts = CaptureCounts()
    assert [each.connection for each in read_capture(path, counts=counts)] == [0, 1, 2]
    assert counts.connections == 3
