"""What does `kwire tap` add to a request, and how many bytes does it pass on?

Round trips of a small request go to kwire's broker directly and through taps, in turns: one that passes on, one with a
request log, which decodes everything, and one that records. Bytes: a process sends responses of 1 MB as fast as they
are taken, of Fetch 11, which are passed on, and of Fetch 16, which are held and decoded for the addresses in them; and
another takes Produce requests. CPU time is that of the tap; the peer is the same without one.
"""

from __future__ import annotations

import contextlib
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.messages.timing import line
from kwire.messages import FetchRequest, FetchResponse, HeartbeatRequest, ProduceRequest
from kwire.protocol import write_request
from kwire.protocol.requests import write_response

ROUNDS, TRIPS = 5, 1000
FRAME_BYTES, TOTAL_BYTES = 1 << 20, 1 << 30
IN_FLIGHT = 4
MEGABYTE = 1e6
TICKS = os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def served(*arguments: str) -> Iterator[tuple[int, str]]:
    """Run a process that prints BROKERS=; the value is its id and its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        yield process.pid, process.stdout.readline().strip().partition("=")[2]
    finally:
        process.kill()
        process.communicate()


def cpu_s(pid: int) -> float:
    """Return the CPU time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def connect(address: str) -> socket.socket:
    """Connect to an address."""
    host, _, port = address.rpartition(":")
    sock = socket.create_connection((host, int(port)))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def round_trips(folder: str) -> None:
    """Print the latency that taps add."""
    frame, _ = write_request(HeartbeatRequest(group_id="g", member_id="m"), 4, correlation_id=1, client_id="benchmark")
    with contextlib.ExitStack() as stack:
        _, broker = stack.enter_context(served("kwire.cli", "serve", "--port", "0"))
        tap = ("kwire.cli", "tap", "--to", broker)
        ways = {"direct": (0, broker)}
        for name, more in {
            "passed": (), "logged": ("--control", "0"), "recorded": ("--record", f"{folder}/trips.pcapng")
        }.items():  # fmt: skip
            ways[name] = stack.enter_context(served(*tap, *more))
        sockets = {name: connect(address) for name, (_, address) in ways.items()}
        times: dict[str, list[float]] = {name: [] for name in ways}
        for number in range(ROUNDS * TRIPS + TRIPS):
            if number == TRIPS:  # the first are not counted
                began = {name: cpu_s(pid) if pid else 0.0 for name, (pid, _) in ways.items()}
                times = {name: [] for name in ways}
            for name, sock in sockets.items():
                start = time.perf_counter()
                sock.sendall(frame)
                sock.recv(1 << 16)
                times[name].append(time.perf_counter() - start)
        direct = statistics.median(times["direct"]) * 1e6
        print(line("broker.tap.direct", direct, "us"))
        for name, (pid, _) in list(ways.items())[1:]:
            median = statistics.median(times[name]) * 1e6
            print(line(f"broker.tap.{name}", median, "us", direct, "direct"))
            print(line(f"broker.tap.{name}.added", median - direct, "us"))
            used = (cpu_s(pid) - began[name]) / (ROUNDS * TRIPS) * 1e6
            print(line(f"broker.tap.{name}.cpu", used, "us a request"))


def fetch_response(version: int) -> bytes:
    """Return a response of FRAME_BYTES."""
    partition = FetchResponse.PartitionData(partition_index=0, records=os.urandom(FRAME_BYTES))
    topic = FetchResponse.FetchableTopicResponse(topic="t", partitions=[partition])
    if version > 12:
        topic = FetchResponse.FetchableTopicResponse(partitions=[partition])
    return write_response(FetchResponse(responses=[topic]), api_key=1, version=version, correlation_id=1)


def peer() -> None:
    """Serve: respond to each Fetch with 1 MB, take each Produce; responses and requests have one correlation id."""
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"BROKERS=127.0.0.1:{listener.getsockname()[1]}", flush=True)
    while True:
        sock, _ = listener.accept()
        head = sock.recv(8, socket.MSG_PEEK | socket.MSG_WAITALL)
        buffer = bytearray(FRAME_BYTES + 4096)
        size = 4 + int.from_bytes(head[:4], "big")
        response = fetch_response(int.from_bytes(head[6:8], "big")) if head[4:6] == b"\0\1" else b"\0\0\0\4\0\0\0\1"
        with contextlib.suppress(OSError):
            while sock.recv_into(buffer, size, socket.MSG_WAITALL) == size:
                sock.sendall(response)
        sock.close()


def rate(address: str, frame: bytes, response_bytes: int) -> float:
    """Exchange TOTAL_BYTES; return MB a second."""
    sock = connect(address)
    buffer = bytearray(response_bytes)
    count = TOTAL_BYTES // FRAME_BYTES
    start = time.perf_counter()
    for _ in range(IN_FLIGHT):
        sock.sendall(frame)
    for number in range(count):
        if sock.recv_into(buffer, response_bytes, socket.MSG_WAITALL) != response_bytes:
            raise RuntimeError("the connection was closed")
        if number < count - IN_FLIGHT:
            sock.sendall(frame)
    took = time.perf_counter() - start
    sock.close()
    return TOTAL_BYTES / MEGABYTE / took


def throughput(folder: str) -> None:
    """Print the rates with and without a tap."""
    produced = ProduceRequest(
        acks=1,
        topic_data=[
            ProduceRequest.TopicProduceData(
                name="t", partition_data=[ProduceRequest.PartitionProduceData(records=os.urandom(FRAME_BYTES))]
            )
        ],
    )
    cases = {
        "fetch-11": (FetchRequest(), 11, len(fetch_response(11))),
        "fetch-16": (FetchRequest(), 16, len(fetch_response(16))),
        "produce-9": (produced, 9, 8),
    }
    with contextlib.ExitStack() as stack:
        _, source = stack.enter_context(served("benchmarks.broker.tap", "peer"))
        pid, tap = stack.enter_context(served("kwire.cli", "tap", "--to", source))
        for name, (body, version, response_bytes) in cases.items():
            frame, _ = write_request(body, version, correlation_id=1, client_id="benchmark")
            rates: dict[str, list[float]] = {"direct": [], "tap": []}
            used = 0.0
            for _ in range(3):
                rates["direct"].append(rate(source, frame, response_bytes))
                before = cpu_s(pid)
                rates["tap"].append(rate(tap, frame, response_bytes))
                used += cpu_s(pid) - before
            best = {way: max(found) for way, found in rates.items()}
            print(line(f"broker.tap.{name}", best["tap"], "MB/s", best["direct"], "direct"))
            print(line(f"broker.tap.{name}.cpu", used / 3 / (TOTAL_BYTES / 1e9), "s/GB"))


def main() -> None:
    """Run all."""
    with tempfile.TemporaryDirectory() as folder:
        round_trips(folder)
        throughput(folder)


if __name__ == "__main__":
    peer() if sys.argv[1:] == ["peer"] else main()
