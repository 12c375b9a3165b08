"""How long until a record is acknowledged while a broker has 1,000 connections, and how much memory do they take?

One client produces a record every few milliseconds and waits for its acknowledgement. Meanwhile a second process holds
1,000 connections: `idle` ones, or `active` ones that produce a record each once a second. Brokers in turns; medians of
the rounds.
"""

from __future__ import annotations

import contextlib
import heapq
import multiprocessing
import selectors
import socket
import statistics
import time
from collections.abc import Iterator
from multiprocessing.synchronize import Event

from benchmarks.broker.hostile import connect, receive
from benchmarks.broker.latency import percentiles
from benchmarks.broker.requests import PRODUCE, TOPIC, batch, frame
from benchmarks.broker.serving import BROKERS, PEERS, Served, kfake_broker
from benchmarks.broker.startup import first_record
from benchmarks.messages.timing import line
from kwire.messages import ProduceRequest

CONNECTIONS, ROUNDS = 1000, 3
SECONDS, PAUSE_S, PERIOD_S = 8, 0.004, 1.0


def produce_one() -> bytes:
    """Encode a Produce request with one record."""
    partition = ProduceRequest.PartitionProduceData(index=0, records=batch(1))
    topic = ProduceRequest.TopicProduceData(name=TOPIC, partition_data=[partition])
    return frame(PRODUCE, ProduceRequest(acks=1, timeout_ms=1000, topic_data=[topic]))


def hold(address: str, count: int, is_active: bool, begins: Event) -> None:
    """Open connections; with is_active, produce a record on each once a second. Runs until it is terminated."""
    socks = [connect(address) for _ in range(count)]
    begins.set()
    if not is_active:
        time.sleep(3600)
    request = produce_one()
    selector = selectors.DefaultSelector()
    due = []
    now = time.monotonic()
    for number, sock in enumerate(socks):
        sock.setblocking(False)
        selector.register(sock, selectors.EVENT_READ)
        heapq.heappush(due, (now + number * PERIOD_S / count, number))
    while True:
        for key, _ in selector.select(max(0.0, due[0][0] - time.monotonic())):
            with contextlib.suppress(BlockingIOError):
                key.fileobj.recv(4096)  # type: ignore[union-attr]
        while due[0][0] <= time.monotonic():
            at, number = heapq.heappop(due)
            socks[number].sendall(request)
            heapq.heappush(due, (at + PERIOD_S, number))


@contextlib.contextmanager
def connections(served: Served, count: int, *, is_active: bool) -> Iterator[None]:
    """Hold connections to a broker."""
    context = multiprocessing.get_context("spawn")
    begins = context.Event()
    process = context.Process(target=hold, args=(served.address, count, is_active, begins), daemon=True)
    process.start()
    begins.wait()
    time.sleep(1)  # connections are accepted
    try:
        yield
    finally:
        process.kill()
        process.join()


def acknowledgements(sock: socket.socket, seconds: float) -> list[float]:
    """Measure the time to each acknowledgement in seconds."""
    request = produce_one()
    found = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        start = time.perf_counter()
        sock.sendall(request)
        receive(sock)
        found.append(time.perf_counter() - start)
        time.sleep(PAUSE_S)
    return found


def measure(served: Served, count: int = CONNECTIONS, seconds: float = SECONDS) -> dict[str, float]:
    """Return figures by name."""
    figures = {}
    with connect(served.address) as sock:
        acknowledgements(sock, 1)
        for kind in ("none", "idle", "active"):
            before = served.memory_mb()
            with connections(served, 0 if kind == "none" else count, is_active=kind == "active"):
                found = percentiles(acknowledgements(sock, seconds))
                figures |= {f"{kind}.acknowledge_{name}": found[name] for name in ("p50", "p99", "p99.9")}
                if kind == "idle":
                    figures["memory_each"] = (served.memory_mb() - before) * 1024 / count
            time.sleep(1)  # the broker closes its side
    return figures


def main() -> None:
    """Print the figures."""
    brokers = {"kfake": kfake_broker, **BROKERS}
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in brokers}
    with contextlib.ExitStack() as stack:
        running = {name: stack.enter_context(serve()) for name, serve in brokers.items()}
        for served in running.values():
            first_record(served.address, TOPIC)
        for _ in range(ROUNDS):
            for name, served in running.items():
                rounds[name].append(measure(served))
    for peer, name in PEERS.items():
        for figure in rounds[peer][0]:
            ours, theirs = (statistics.median(each[figure] for each in rounds[who]) for who in ("kwire", peer))
            print(line(f"broker.connections.{figure}", ours, "KB" if figure == "memory_each" else "ms", theirs, name))


if __name__ == "__main__":
    main()
