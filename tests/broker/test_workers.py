"""Long work on records runs on worker threads, a few jobs at a time, and delays no other client."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Iterator

import pytest

from kwire import messages, records
from kwire.broker import Broker
from kwire.broker.context import Peer
from kwire.broker.network.workers import THREADS, Workers
from kwire.broker.node import Node
from kwire.records.attributes import Compression
from tests.broker.test_connection import TIME, asks, fetches, produces
from tests.broker.wire import RawClient
from tests.waiting import HANG_S

BOMB_BYTES = 8 << 20


def peer(name: str = "test") -> Peer:
    return Peer(connection_id=name, host="127.0.0.1", port=1, listener="PLAINTEXT")


@contextlib.contextmanager
def busy_workers(broker: Broker) -> Iterator[None]:
    """Keep all worker threads of a broker busy."""
    new_session, go_on = threading.Semaphore(0), threading.Event()

    def work() -> None:
        new_session.release()
        go_on.wait(HANG_S)

    def occupy(node: Node) -> None:
        for _ in range(THREADS):
            node.workers.run(peer(), work)

    broker.call(occupy)
    for _ in range(THREADS):
        new_session.acquire()
    try:
        yield
    finally:
        go_on.set()


def batch(compression: Compression, *values: bytes, magic: int = 2) -> bytes:
    builder = records.BatchBuilder(compression=compression, magic=magic)
    for value in values:
        builder.append(None, value, timestamp=TIME)
    return builder.build()


def sends(topic: str, data: bytes, acks: int = 1) -> messages.ProduceRequest:
    cls = messages.ProduceRequest
    partition = cls.PartitionProduceData(index=0, records=data)
    return cls(acks=acks, timeout_ms=1000, topic_data=[cls.TopicProduceData(name=topic, partition_data=[partition])])


def result(response: messages.ProduceResponse) -> tuple[int, int]:
    (partition,) = response.responses[0].partition_responses
    return partition.error_code, partition.base_offset


@pytest.mark.parametrize("compression", [Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD])
def test_other_requests_are_handled_during_decompression(broker: Broker, compression: Compression) -> None:
    topic = f"bombs-{compression.text}"
    with RawClient(broker) as bomber, RawClient(broker) as other:
        other.ask(asks(topic), 12)
        with busy_workers(broker):
            bomber.send(sends(topic, batch(compression, bytes(BOMB_BYTES))), 8)
            bomber.send(sends(topic, batch(Compression.NONE, b"behind")), 8)
            for n in range(3):
                assert result(other.ask(produces(topic, b"small"), 8)) == (0, n)
            assert other.ask(fetches(topic), 11).responses[0].partitions[0].high_watermark == 3
        assert result(bomber.receive()) == (0, 3)  # its offset was assigned on append
        assert result(bomber.receive()) == (0, 4)
        (fetched,) = other.ask(fetches(topic), 11).responses
    found = list(records.read_batches(fetched.partitions[0].records))
    assert [each.base_offset for each in found] == [0, 1, 2, 3, 4]
    assert all(each.is_valid for each in found)
    assert len(next(iter(found[3].records())).value or b"") == BOMB_BYTES


def test_a_small_compressed_batch_needs_no_worker_thread(broker: Broker) -> None:
    with RawClient(broker) as client:
        client.ask(asks("small"), 12)
        with busy_workers(broker):
            for compression in Compression:
                assert result(client.ask(sends("small", batch(compression, bytes(20_000))), 8))[0] == 0


def test_records_are_recompressed_in_a_worker_thread(broker: Broker) -> None:
    create = messages.CreateTopicsRequest
    config = create.CreatableTopicConfig(name="compression.type", value="gzip")
    topic = create.CreatableTopic(name="gzipped", num_partitions=1, replication_factor=1, configs=[config])
    with RawClient(broker) as client, RawClient(broker) as other:
        client.ask(create(topics=[topic], timeout_ms=10_000), 4)
        with busy_workers(broker):
            client.send(sends("gzipped", batch(Compression.NONE, bytes(100_000), b"two")), 8)
            assert other.ask(asks(), 12).brokers
        assert result(client.receive()) == (0, 0)


def test_records_are_down_converted_in_a_worker_thread(broker: Broker) -> None:
    with RawClient(broker) as old, RawClient(broker) as other:
        old.ask(asks("converted"), 12)
        other.ask(sends("converted", batch(Compression.GZIP, b"one", b"two")), 8)
        with busy_workers(broker):
            old.send(fetches("converted"), 3)
            assert other.ask(asks(), 12).brokers
        (topic,) = old.receive().responses
    assert [each.magic for each in records.read_batches(topic.partitions[0].records)] == [1]


def test_an_old_client_that_waited_gets_converted_records(broker: Broker) -> None:
    with RawClient(broker) as old, RawClient(broker) as other:
        old.ask(asks("waited"), 12)
        old.send(fetches("waited", wait_ms=600_000), 3)
        other.ask(sends("waited", batch(Compression.GZIP, b"one")), 8)
        (topic,) = old.receive().responses
    assert [each.magic for each in records.read_batches(topic.partitions[0].records)] == [1]


def test_invalid_records_are_rejected_in_a_worker_thread(broker: Broker) -> None:
    data = bytearray(batch(Compression.GZIP, *(b"%d" % n for n in range(100_000))))
    data[17:21] = b"crc!"
    with RawClient(broker) as client:
        client.ask(asks("bad"), 12)
        assert result(client.ask(sends("bad", bytes(data)), 8)) == (2, -1)  # CORRUPT_MESSAGE
        client.send(sends("bad", bytes(data), acks=0), 8)
        assert client.is_closed()


def test_a_topic_deleted_meanwhile_gets_no_records(broker: Broker) -> None:
    with RawClient(broker) as client, RawClient(broker) as other:
        client.ask(asks("deleted"), 12)
        with busy_workers(broker):
            client.send(sends("deleted", batch(Compression.GZIP, bytes(BOMB_BYTES))), 8)
            other.ask(messages.DeleteTopicsRequest(topic_names=["deleted"], timeout_ms=10_000), 3)
        assert result(client.receive()) == (3, -1)  # UNKNOWN_TOPIC_OR_PARTITION


def test_the_jobs_of_a_disconnected_client_are_not_run(broker: Broker) -> None:
    with RawClient(broker) as other:
        other.ask(asks("left"), 12)
        with busy_workers(broker):
            with RawClient(broker) as gone:
                gone.send(sends("left", batch(Compression.GZIP, bytes(BOMB_BYTES))), 8)
                other.ask(asks(), 12)
            while broker.call(lambda node: len(node.workers.waiting)) > 0:
                other.ask(asks(), 12)
        assert other.ask(fetches("left"), 11).responses[0].partitions[0].high_watermark == 0


def test_at_most_one_job_per_thread_runs() -> None:
    async def scene() -> None:
        workers, full, go_on = Workers(), threading.Barrier(THREADS + 1), threading.Event()

        def work() -> None:
            full.wait(HANG_S)
            go_on.wait(HANG_S)

        jobs = [workers.run(peer(), work) for _ in range(THREADS)]
        queued = [workers.run(peer(), lambda n=n: n) for n in range(3)]  # type: ignore[misc]
        full.wait(HANG_S)
        assert workers.waiting == queued
        queued[1].cancel()
        assert workers.waiting == [queued[0], queued[2]]
        go_on.set()
        assert await asyncio.gather(*jobs, queued[0], queued[2]) == [None] * THREADS + [0, 2]
        assert queued[1].cancelled()
        workers.close()

    asyncio.run(scene())


def test_jobs_of_the_clients_that_used_the_threads_least_go_first() -> None:
    """The heavy client asks before the last light one, which has asked for nothing yet, and waits for it."""

    async def scene() -> list[str]:
        workers, order = Workers(), list[str]()
        gates = {name: threading.Event() for name in ("other", "heavy 1", "light 1")}

        def work(name: str, cpu_s: float = 0) -> None:
            order.append(name)
            started = time.thread_time()
            while time.thread_time() - started < cpu_s:
                pass
            if name in gates:
                gates[name].wait(HANG_S)

        heavy, names = peer("heavy"), ("light 1", "light 2", "light 3")
        others = [workers.run(peer(), lambda: work("other")) for _ in range(THREADS - 1)]  # leaves one thread
        first = workers.run(heavy, lambda: work("heavy 1", 0.03))
        lights = [workers.run(peer(name), lambda name=name: work(name)) for name in names]  # type: ignore[misc]
        gates["heavy 1"].set()
        await first
        second = workers.run(heavy, lambda: work("heavy 2"))
        late = workers.run(peer("late"), lambda: work("late"))
        gates["light 1"].set()
        await asyncio.gather(second, late, *lights)
        gates["other"].set()
        await asyncio.gather(*others)
        workers.close()
        return order

    order = asyncio.run(scene())
    assert [name for name in order if name != "other"] == [
        "heavy 1",
        "light 1",
        "light 2",
        "light 3",
        "late",
        "heavy 2",
    ]


def test_an_error_in_a_worker_thread_is_set_on_the_future() -> None:
    async def scene() -> None:
        workers = Workers()
        with pytest.raises(ZeroDivisionError):
            await workers.run(peer(), lambda: 1 // 0)
        workers.close()

    asyncio.run(scene())
