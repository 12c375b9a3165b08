"""What is the longest wait of a client while other clients attack the broker?

One client sends an ApiVersions request every few milliseconds. Each attack runs in a separate process:

    pipelined     a connection sends 60,000 requests in one write, repeatedly
    unread        60 connections fetch 4 MB of records each and never read the responses
    metadata      60 connections request 60,000 unknown topics, a response of 4 MB, and never read it
    bombs         4 connections produce batches of 100 KB that decompress to 100 MB
    empty         one connection produces a batch of 30 KB with 4 million empty records
    incomplete    8 connections send all but the last byte of a request of 100 MB

Two figures for each: the longest wait of the client in ms, and the peak of the broker's resident memory in MB.
"""

from __future__ import annotations

import contextlib
import gzip
import multiprocessing
import socket
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.synchronize import Event

from benchmarks.broker.requests import METADATA, PRODUCE, frame
from benchmarks.broker.serving import Served, kwire_broker
from benchmarks.messages.timing import line
from kwire import records
from kwire.messages import (
    ApiVersionsRequest,
    CreateTopicsRequest,
    FetchRequest,
    MetadataRequest,
    ProduceRequest,
)
from kwire.records.attributes import Compression
from kwire.records.format.default_writer import BatchFields, join_batch

SECONDS = 8
PAUSE_S = 0.005
TIMEOUT_S = 120
LOADING_S = 6
API_VERSIONS, CREATE_TOPICS, FETCH = (18, 0), (19, 4), (1, 11)
TOPIC = "attacked"
TOPICS = 60_000
PIPELINED = 60_000
CONNECTIONS = 60
RESPONSE_BYTES = 4 << 20
BOMBS, BOMB_BYTES = 4, 100 << 20
EMPTY_RECORDS = 4_000_000
ANNOUNCED, ANNOUNCED_BYTES = 8, 100 << 20
NOW_MS = 1_790_000_000_000

Attack = Callable[[str, Event], None]


def connect(address: str) -> socket.socket:
    """Connect to the broker."""
    host, _, port = address.rpartition(":")
    sock = socket.create_connection((host, int(port)), timeout=TIMEOUT_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def receive(sock: socket.socket) -> bytes:
    """Receive the next response, without its length."""
    return receive_bytes(sock, int.from_bytes(receive_bytes(sock, 4), "big"))


def receive_bytes(sock: socket.socket, size: int) -> bytes:
    """Receive exactly size bytes. Raises ConnectionError at the end of the stream."""
    data = bytearray()
    while len(data) < size:
        chunk = sock.recv(size - len(data))
        if not chunk:
            raise ConnectionError("the broker closed the connection")
        data += chunk
    return bytes(data)


# Attacks: each runs until its process is terminated, and reports when it starts


def pipelined(address: str, begins: Event) -> None:
    """Send many requests in one write; a thread reads the responses."""
    request = frame(API_VERSIONS, ApiVersionsRequest())
    sock = connect(address)
    begins.set()
    while True:
        sender = threading.Thread(target=sock.sendall, args=(request * PIPELINED,), daemon=True)
        sender.start()
        for _ in range(PIPELINED):
            receive(sock)
        sender.join()


def unread(address: str, begins: Event) -> None:
    """Fetch without reading the responses."""
    partition = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=RESPONSE_BYTES)
    topic = FetchRequest.FetchTopic(topic=TOPIC, partitions=[partition])
    keep_asking(address, begins, frame(FETCH, FetchRequest(max_wait_ms=0, max_bytes=RESPONSE_BYTES, topics=[topic])), 8)


def metadata(address: str, begins: Event) -> None:
    """Request metadata without reading the responses."""
    names = [MetadataRequest.MetadataRequestTopic(name=f"{index:060}") for index in range(TOPICS)]
    keep_asking(address, begins, frame(METADATA, MetadataRequest(topics=names, allow_auto_topic_creation=False)), 1)


def keep_asking(address: str, begins: Event, request: bytes, requests: int) -> None:
    """Send a few requests on each of many connections, never read, then start again with new connections."""
    begins.set()
    while True:
        socks = [connect(address) for _ in range(CONNECTIONS)]
        for sock in socks:
            sock.sendall(request * requests)
        time.sleep(1)
        for sock in socks:
            sock.close()


def bombs(address: str, begins: Event) -> None:
    """Produce batches that are large when decompressed."""
    value = bytes(BOMB_BYTES - 100)
    builder = records.BatchBuilder(compression=Compression.GZIP)
    builder.append(None, value, timestamp=NOW_MS)
    produce_for_ever(address, begins, builder.build(), BOMBS)


def empty(address: str, begins: Event) -> None:
    """Produce a batch of empty records with the same offset, which compresses well."""
    section = bytes((12, 0, 0, 0, 1, 1, 0)) * EMPTY_RECORDS
    batch = join_batch(
        BatchFields(compression=Compression.GZIP),
        gzip.compress(section),
        base_offset=0,
        last_offset=EMPTY_RECORDS - 1,
        base_timestamp=NOW_MS,
        max_timestamp=NOW_MS,
        count=EMPTY_RECORDS,
    )
    produce_for_ever(address, begins, batch, 1)


def produce_for_ever(address: str, begins: Event, batch: bytes, connections: int) -> None:
    """Produce a batch repeatedly on a number of connections."""
    partition = ProduceRequest.PartitionProduceData(index=0, records=batch)
    topic = ProduceRequest.TopicProduceData(name=TOPIC, partition_data=[partition])
    request = frame(PRODUCE, ProduceRequest(acks=1, timeout_ms=TIMEOUT_S * 1000, topic_data=[topic]))

    def produce() -> None:
        sock = connect(address)
        while True:
            sock.sendall(request)
            receive(sock)

    begins.set()
    threads = [threading.Thread(target=produce, daemon=True) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def incomplete(address: str, begins: Event) -> None:
    """Send requests without their last byte."""
    socks = [connect(address) for _ in range(ANNOUNCED)]
    head = ANNOUNCED_BYTES.to_bytes(4, "big") + frame(METADATA, MetadataRequest(topics=None))[4:]

    def send(sock: socket.socket) -> None:
        with contextlib.suppress(OSError):
            sock.sendall(head + bytes(ANNOUNCED_BYTES - len(head) + 3))
            time.sleep(TIMEOUT_S)

    begins.set()
    threads = [threading.Thread(target=send, args=(sock,), daemon=True) for sock in socks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


ATTACKS: dict[str, Attack] = {
    attack.__name__: attack for attack in (pipelined, unread, metadata, bombs, empty, incomplete)
}


# The measured client


def prepare(address: str, *, filled: bool) -> None:
    """Create the topics. filled: write records to the topic that is fetched, and warm the broker up."""
    topics = [CreateTopicsRequest.CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)]
    with connect(address) as sock:
        sock.sendall(frame(CREATE_TOPICS, CreateTopicsRequest(topics=topics, timeout_ms=60_000)))
        receive(sock)
        if not filled:
            return
        builder = records.BatchBuilder()
        builder.append(None, bytes(1_000_000), timestamp=NOW_MS)
        partition = ProduceRequest.PartitionProduceData(index=0, records=builder.build())
        topic = ProduceRequest.TopicProduceData(name=TOPIC, partition_data=[partition])
        for _ in range(8):
            sock.sendall(frame(PRODUCE, ProduceRequest(acks=1, timeout_ms=1000, topic_data=[topic])))
            receive(sock)
    time.sleep(LOADING_S)


def waits(address: str, seconds: float) -> list[float]:
    """Measure the duration of each request of a client in seconds."""
    request = frame(API_VERSIONS, ApiVersionsRequest())
    found = []
    end = time.monotonic() + seconds
    with connect(address) as sock:
        while (start := time.monotonic()) < end:
            sock.sendall(request)
            receive(sock)
            found.append(time.monotonic() - start)
            time.sleep(PAUSE_S)
    return found


def under(attack: Attack, served: Served, seconds: float) -> tuple[float, float]:
    """Return the longest wait in ms and the broker's peak memory in MB during an attack."""
    context = multiprocessing.get_context("spawn")
    begins = context.Event()
    attacker = context.Process(target=attack, args=(served.address, begins), daemon=True)
    largest = 0.0
    stop = threading.Event()

    def watch() -> None:
        nonlocal largest
        while not stop.wait(0.05):
            largest = max(largest, served.memory_mb())

    watcher = threading.Thread(target=watch)
    watcher.start()
    attacker.start()
    begins.wait()
    try:
        found = waits(served.address, seconds)
    finally:
        attacker.kill()
        attacker.join()
        stop.set()
        watcher.join()
    return max(found) * 1000, largest


def main(names: list[str] | None = None) -> None:
    """Print the figures."""
    for name in names or ATTACKS:
        with kwire_broker() as served:
            prepare(served.address, filled=name != empty.__name__)
            quiet = max(waits(served.address, 2)) * 1000
            wait_ms, memory_mb = under(ATTACKS[name], served, SECONDS)
        print(line(f"broker.hostile.{name}.longest_wait", wait_ms, "ms", quiet, "without attack"))
        print(line(f"broker.hostile.{name}.memory", memory_mb, "MB"))


if __name__ == "__main__":
    main(sys.argv[1:])
