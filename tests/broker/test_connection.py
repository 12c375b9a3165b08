"""Connections: order of responses, limits, and misbehaving clients."""

from __future__ import annotations

import contextlib
import logging
import random
import resource
import socket
from collections.abc import Iterator

import pytest

from kwire import messages, records
from kwire.broker import Broker
from kwire.broker.apis import fetch
from tests.broker.wire import RawClient, connect
from tests.waiting import HANG_MS, until

TIME = 1_760_000_000_000


def asks(topic: str | None = None) -> messages.MetadataRequest:
    """Return a Metadata request, which every broker supports."""
    cls = messages.MetadataRequest
    return cls(topics=None if topic is None else [cls.MetadataRequestTopic(name=topic)])


def produces(topic: str, value: bytes, acks: int = 1) -> messages.ProduceRequest:
    cls = messages.ProduceRequest
    builder = records.BatchBuilder()
    builder.append(None, value, timestamp=TIME)
    data = cls.PartitionProduceData(index=0, records=builder.build())
    return cls(acks=acks, timeout_ms=1000, topic_data=[cls.TopicProduceData(name=topic, partition_data=[data])])


def fetches(topic: str, offset: int = 0, *, wait_ms: int = 0, max_bytes: int = 1 << 26) -> messages.FetchRequest:
    cls = messages.FetchRequest
    partition = cls.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
    topics = [cls.FetchTopic(topic=topic, partitions=[partition])]
    return cls(max_wait_ms=wait_ms, min_bytes=1, max_bytes=max_bytes, topics=topics)


@pytest.fixture
def still_serves(broker: Broker) -> Iterator[Broker]:
    """A broker that must still respond to other clients after the test."""
    yield broker
    with RawClient(broker) as client:
        assert client.ask(asks(), 12).brokers


def test_responses_are_in_the_order_of_requests(broker: Broker) -> None:
    with RawClient(broker) as client, RawClient(broker) as other:
        client.ask(asks("ordered"), 12)
        client.send(fetches("ordered", wait_ms=2 * HANG_MS), 11)  # waits
        for _ in range(20):
            client.send(asks(), 12)
        assert other.ask(produces("ordered", b"x"), 8).responses[0].partition_responses[0].error_code == 0
        assert client.receive().responses[0].partitions[0].high_watermark == 1
        assert all(client.receive().brokers for _ in range(20))


def test_many_pipelined_requests_get_responses(broker: Broker) -> None:
    with RawClient(broker) as client:
        client.ask(asks("many"), 12)
        frames = b"".join(client.protocol.send(produces("many", b"%d" % i), version=8) for i in range(500))
        client.sock.sendall(frames)
        offsets = [client.receive().responses[0].partition_responses[0].base_offset for _ in range(500)]
    assert offsets == list(range(500))


def test_a_frame_can_arrive_byte_by_byte(broker: Broker) -> None:
    with RawClient(broker) as client:
        for byte in client.protocol.send(asks(), version=12):
            client.sock.send(bytes([byte]))
        assert client.receive().brokers


def test_a_large_frame_can_arrive_in_chunks(broker: Broker) -> None:
    with RawClient(broker) as client:
        client.ask(asks("large"), 12)
        value = random.Random(1).randbytes(1_000_000)
        frame = client.protocol.send(produces("large", value), version=8) + client.protocol.send(asks(), version=12)
        for start in range(0, len(frame), 300_001):
            client.sock.sendall(frame[start : start + 300_001])
        assert client.receive().responses[0].partition_responses[0].error_code == 0
        assert client.receive().brokers
        (topic,) = client.ask(fetches("large"), 11).responses
    (batch,) = records.read_batches(topic.partitions[0].records)
    assert next(iter(batch.records())).value == value


def test_a_client_that_does_not_read_delays_only_itself(still_serves: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    handled = []
    handle = fetch.handle
    monkeypatch.setattr(fetch, "handle", lambda *given: handled.append(given) or handle(*given))
    with RawClient(still_serves) as client:
        client.ask(asks("slow"), 12)
        for _ in range(16):
            client.ask(produces("slow", bytes(1_000_000)), 8)
        for _ in range(8):
            client.send(fetches("slow"), 11)
        until(lambda: handled)
        with RawClient(still_serves) as other:
            for _ in range(50):
                assert other.ask(asks(), 12).brokers
        assert len(handled) == 1  # the next one is handled after its response was sent
        for _ in range(8):
            (topic,) = client.receive().responses
            assert sum(1 for _ in records.read_batches(topic.partitions[0].records)) == 16
    assert len(handled) == 8


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "frame of 1195725856 bytes"),
        ((-1).to_bytes(4, "big", signed=True), "frame of -1 bytes"),
        ((1 << 30).to_bytes(4, "big"), "frame of 1073741824 bytes"),
        (bytes(4), "request of 0 bytes"),
        (bytes.fromhex("0000000a 7fff 0000 00000001 ffff"), "api key 32767"),
        (bytes.fromhex("0000000a 0003 7fff 00000001 ffff"), "version 32767"),
        (bytes.fromhex("0000000e 0003 0001 00000001 ffff 7fffffff"), "Truncated"),
        (bytes.fromhex("0000000a 0007 0000 00000001 ffff"), "api key 7"),  # ControlledShutdown is not for clients
    ],
)
def test_invalid_bytes_close_the_connection_with_a_reason(
    still_serves: Broker, caplog: pytest.LogCaptureFixture, sent: bytes, why: str
) -> None:
    with caplog.at_level(logging.INFO, "kwire.broker"), RawClient(still_serves) as client:
        client.sock.sendall(sent)
        assert client.is_closed()
    assert why in caplog.text


def test_random_bytes_only_close_the_connection_or_wait(still_serves: Broker) -> None:
    draw = random.Random(4)
    for _ in range(150):
        with connect(still_serves) as sock:
            body = draw.randbytes(draw.randrange(60))
            framed = draw.random() < 0.7
            sock.sendall(len(body).to_bytes(4, "big") + body if framed else body)
            if framed and draw.random() < 0.3:
                sock.shutdown(socket.SHUT_WR)


def test_mutated_requests_at_most_close_their_connection(still_serves: Broker) -> None:
    draw = random.Random(5)
    with RawClient(still_serves) as client:
        client.ask(asks("changed"), 12)
        frames = [
            client.protocol.send(produces("changed", b"v"), version=8),
            client.protocol.send(fetches("changed"), version=11),
            client.protocol.send(asks("changed"), version=12),
        ]
    for _ in range(150):
        frame = bytearray(draw.choice(frames))
        for _ in range(draw.randrange(1, 4)):
            frame[draw.randrange(4, len(frame))] = draw.randrange(256)
        with connect(still_serves) as sock:
            sock.sendall(frame)


def test_disconnected_clients_leave_no_state(still_serves: Broker) -> None:
    with RawClient(still_serves) as client:
        client.ask(asks("vanishing"), 12)
        watched = still_serves.call(lambda node: node.topics.partition("vanishing", 0))
    for _ in range(20):
        with RawClient(still_serves) as gone:
            gone.send(fetches("vanishing", wait_ms=2 * HANG_MS), 11)
            gone.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes.fromhex("0100000000000000"))
    with RawClient(still_serves) as half:
        half.sock.sendall(half.protocol.send(asks(), version=12)[:7])
    until(lambda: not still_serves.call(lambda _: len(watched.watchers)))


def test_an_error_of_a_request_without_response_closes_the_connection(broker: Broker) -> None:
    with RawClient(broker) as client:
        client.ask(asks("unanswered"), 12)
        client.send(produces("unanswered", b"x", acks=0), 8)
        assert client.ask(asks(), 12).brokers
        client.send(produces("nowhere", b"x", acks=0), 8)
        assert client.is_closed()


def test_a_thousand_connections_are_served(still_serves: Broker) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4096)), hard))
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(RawClient(still_serves)) for _ in range(1000)]
        for client in clients:
            client.send(asks(), 12)
        assert all(client.receive().brokers for client in clients)


def test_connections_above_the_limit_are_refused() -> None:
    with Broker(max_connections_per_ip=2) as broker, RawClient(broker) as one, RawClient(broker) as two:
        assert one.ask(asks(), 12).brokers
        assert two.ask(asks(), 12).brokers
        with RawClient(broker) as three:
            assert three.is_closed()
        two.sock.close()

        def is_let_in() -> bool:
            with RawClient(broker) as four, contextlib.suppress(OSError, AssertionError):
                return bool(four.ask(asks(), 12).brokers)
            return False

        until(is_let_in, "a closed connection still counts towards the limit")


def test_idle_connections_are_closed_but_waiting_ones_stay_open() -> None:
    with Broker(connections_max_idle_ms=500) as broker, contextlib.ExitStack() as stack:
        broker.call(lambda node: node.controller.create_topic("idle", 1))
        watched = broker.call(lambda node: node.topics.partition("idle", 0))
        idle = stack.enter_context(RawClient(broker))
        waiting = RawClient(broker)

        def waits() -> bool:  # on a slow machine, it may be closed before its request arrives
            nonlocal waiting
            waiting.sock.close()
            waiting = stack.enter_context(RawClient(broker))
            waiting.send(fetches("idle", wait_ms=2 * HANG_MS), 11)
            until(lambda: broker.call(lambda _: len(watched.watchers)) or waiting.is_closed(wait_s=0))
            return bool(broker.call(lambda _: len(watched.watchers)))

        until(waits)
        assert idle.is_closed()
        with RawClient(broker) as late:
            assert late.is_closed()  # after another idle limit
        broker.advance(2 * HANG_MS)
        assert waiting.receive().responses[0].partitions[0].high_watermark == 0
