"""Memory of large requests of all connections."""

from __future__ import annotations

import socket
import threading

import pytest

from kwire.broker import Broker
from kwire.broker.network.memory import RequestMemory
from kwire.broker.network.server import Server
from kwire.protocol.frames import FIRST_FRAME_BYTES
from tests.broker.test_connection import asks, fetches, produces
from tests.broker.wire import RawClient

REQUEST_BYTES = 900_000
LIMIT_BYTES = 1_500_000
CLIENTS = 8


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> list[RequestMemory[object]]:
    """The request memory of the test's brokers."""
    made: list[RequestMemory[object]] = []
    listen = Server.listen

    def remember(server: Server) -> None:
        made.append(server.memory)  # type: ignore[arg-type]
        listen(server)

    monkeypatch.setattr(Server, "listen", remember)
    return made


def test_many_large_requests_share_the_memory_and_are_all_handled(memory: list[RequestMemory[object]]) -> None:
    with Broker(queued_max_request_bytes=LIMIT_BYTES) as broker:
        with RawClient(broker) as client:
            client.ask(asks("large"), 12)
        clients = [RawClient(broker) for _ in range(CLIENTS)]
        answers = []

        def finish(client: RawClient, rest: bytes) -> None:
            with client:
                client.sock.sendall(rest)
                answers.append(client.receive().responses[0].partition_responses[0].error_code)

        threads = []
        for client in clients:  # all of them are half sent before one is complete
            frame = client.protocol.send(produces("large", bytes(REQUEST_BYTES)), version=8)
            client.sock.sendall(frame[: REQUEST_BYTES // 4])
            threads.append(threading.Thread(target=finish, args=(client, frame[REQUEST_BYTES // 4 :])))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert answers == [0] * CLIENTS
        assert broker.call(lambda _: memory[0].used_bytes) == 0
        assert LIMIT_BYTES - REQUEST_BYTES < memory[0].peak_bytes <= LIMIT_BYTES + REQUEST_BYTES + 1000


def test_small_requests_are_handled_while_large_ones_have_all_the_memory(memory: list[RequestMemory[object]]) -> None:
    with Broker(queued_max_request_bytes=LIMIT_BYTES) as broker:
        with RawClient(broker) as client:
            client.ask(asks("busy"), 12)
        stalled = [RawClient(broker) for _ in range(4)]
        for client in stalled:
            frame = client.protocol.send(produces("busy", bytes(REQUEST_BYTES)), version=8)
            client.sock.setblocking(False)
            client.sock.send(frame[:-1])
        with RawClient(broker) as small:
            assert small.ask(asks(), 12).brokers
            assert small.ask(produces("busy", bytes(1000)), 8).responses[0].partition_responses[0].error_code == 0
            assert small.ask(fetches("busy"), 11).responses[0].partitions[0].high_watermark == 1
        for client in stalled:
            client.sock.close()
        with RawClient(broker) as large:  # closed connections hold no memory
            assert (
                large.ask(produces("busy", bytes(REQUEST_BYTES)), 8).responses[0].partition_responses[0].error_code == 0
            )
        while broker.call(lambda _: memory[0].used_bytes):
            pass  # until the broker has noticed that they are closed


def test_a_length_without_its_bytes_takes_no_memory(memory: list[RequestMemory[object]]) -> None:
    with Broker() as broker:
        for _ in range(20):
            with RawClient(broker) as client:
                client.sock.sendall((100 << 20).to_bytes(4, "big") + bytes(FIRST_FRAME_BYTES - 5))
                client.sock.shutdown(socket.SHUT_WR)
                assert client.is_closed()
        assert memory[0].peak_bytes == 0


def test_one_request_at_a_time_may_exceed_the_limit() -> None:
    woken: list[str] = []
    memory: RequestMemory[str] = RequestMemory(100, woken.append)
    assert memory.take("a", 60)
    assert memory.take("b", 60)  # the one that may exceed the limit
    assert not memory.take("c", 60)
    assert not memory.take("d", 30)  # another one is already waiting
    assert memory.take("b", 200)
    assert memory.is_short
    assert memory.holds("a")
    assert not memory.holds("c")
    memory.release("a")
    assert woken == ["c", "d"]
    assert not memory.take("c", 60)  # 260 are used
    memory.release("b")
    assert memory.take("c", 60)
    assert memory.take("d", 30)
    assert (memory.used_bytes, memory.peak_bytes, memory.is_short) == (90, 320, False)


def test_a_request_that_takes_all_the_rest_does_not_exceed_the_limit() -> None:
    for last_bytes, exceeds in ((40, False), (41, True)):
        memory: RequestMemory[str] = RequestMemory(100, lambda _: None)
        assert memory.take("a", 60)
        assert memory.take("b", last_bytes)
        assert memory.take("c", 1) is not exceeds  # only one may exceed it
        assert not memory.take("d", 1)


def test_without_a_limit_no_request_waits() -> None:
    memory: RequestMemory[str] = RequestMemory(-1, lambda _: None)
    assert all(memory.take(str(n), 1 << 40) for n in range(100))
