"""Clients that we did not write, while leaders and coordinators move and nodes stop and start at random.

With acks=all, no acknowledged record may be lost; with idempotence, none may be doubled, and the order is kept. A
consumer of a group has to read every record.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.structs import TopicPartition
from confluent_kafka import Consumer, Producer

from kwire.broker import Cluster
from kwire.errors import OptionError
from tests.waiting import HANG_S

PARTITIONS, RECORDS, BETWEEN_ACTS = 3, 90, 10
SEEDS = int(os.environ.get("KWIRE_CLUSTER_SCHEDULES", "30"))
"""Seeds of the slow tests."""
FAST = {"reconnect.backoff.ms": 5, "reconnect.backoff.max.ms": 50, "retry.backoff.ms": 5, "log_level": 0}
GROUP = "readers"


@pytest.fixture(scope="module")
def running() -> Iterator[Cluster]:
    with Cluster(nodes=3, keep_requests=0) as cluster:
        yield cluster


@pytest.fixture
def cluster(running: Cluster) -> Iterator[Cluster]:
    running.create_topic("t", PARTITIONS)
    yield running
    running.reset()


class Disorder:
    """Random acts on a cluster; at least one node keeps running, and those of `kept`."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self.cluster, self.random = cluster, random.Random(seed)
        self.kept = set[int]()

    def act(self) -> None:
        cluster, chance = self.cluster, self.random.random()
        up = [node.id for node in cluster.nodes if node.is_running]
        down = [node.id for node in cluster.nodes if not node.is_running]
        able = [node for node in up if node not in self.kept]
        with contextlib.suppress(OptionError):  # no other replica, no such group yet
            if chance < 0.35:
                cluster.move_leader("t", self.random.randrange(PARTITIONS))
            elif chance < 0.5:
                cluster.move_coordinator(GROUP)
            elif chance < 0.65 and len(up) > 1:
                cluster.stop(self.random.choice(able))
            elif chance < 0.75 and len(up) > 1:
                cluster.crash(self.random.choice(able))
            elif down:
                cluster.start(self.random.choice(down))

    def end(self) -> None:
        for node in self.cluster.nodes:
            if not node.is_running:
                self.cluster.start(node.id)


def check(cluster: Cluster, acknowledged: list[int]) -> None:
    """Check that the log has every acknowledged record once, in the order of production."""
    assert sorted(acknowledged) == list(range(RECORDS))
    for partition in range(PARTITIONS):
        stored = [int(record.value or b"") for record in cluster.records("t", partition)]
        assert stored == list(range(partition, RECORDS, PARTITIONS))


def produce_with_librdkafka(cluster: Cluster, disorder: Disorder) -> None:
    settings = {"bootstrap.servers": cluster.bootstrap_servers, "enable.idempotence": True, "linger.ms": 0, **FAST}
    producer = Producer(settings)
    acknowledged: list[int] = []
    for number in range(RECORDS):
        if number % BETWEEN_ACTS == 0:
            disorder.act()

        def done(error: object, _message: object, number: int = number) -> None:
            assert error is None
            acknowledged.append(number)

        producer.produce("t", b"%d" % number, partition=number % PARTITIONS, on_delivery=done)
        producer.poll(0.002)
    disorder.end()
    assert producer.flush(HANG_S) == 0
    check(cluster, acknowledged)


def produce_with_aiokafka(cluster: Cluster, disorder: Disorder) -> None:
    async def run() -> list[int]:
        producer = AIOKafkaProducer(
            bootstrap_servers=cluster.bootstrap_servers, enable_idempotence=True, retry_backoff_ms=5
        )
        await producer.start()
        try:
            futures = []
            for number in range(RECORDS):
                if number % BETWEEN_ACTS == 0:
                    disorder.act()
                futures.append(await producer.send("t", b"%d" % number, partition=number % PARTITIONS))
                await asyncio.sleep(0.002)
            disorder.end()
            await asyncio.wait_for(asyncio.gather(*futures), HANG_S)
            return list(range(RECORDS))
        finally:
            await producer.stop()

    check(cluster, asyncio.run(run()))


def produce_with_kafka_python(cluster: Cluster, disorder: Disorder) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of kafka-python's own code
        from kafka import KafkaProducer

    producer = KafkaProducer(
        bootstrap_servers=cluster.bootstrap_servers.split(","),
        enable_idempotence=True,
        acks="all",
        retry_backoff_ms=5,
        reconnect_backoff_ms=5,
        reconnect_backoff_max_ms=50,
    )
    try:
        futures = []
        for number in range(RECORDS):
            if number % BETWEEN_ACTS == 0:
                disorder.act()
            futures.append(producer.send("t", b"%d" % number, partition=number % PARTITIONS))
            time.sleep(0.002)
        disorder.end()
        for future in futures:
            future.get(timeout=HANG_S)
    finally:
        producer.close()
    check(cluster, list(range(RECORDS)))


PRODUCERS = [produce_with_librdkafka, produce_with_aiokafka, produce_with_kafka_python]


def read_with_librdkafka(cluster: Cluster, disorder: Disorder) -> None:
    """Read with a group that commits; every record is read, and positions only go back to a committed one."""
    settings = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": GROUP, "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "auto.commit.interval.ms": 20, "session.timeout.ms": 6000, **FAST})
    consumer.subscribe(["t"])
    write(cluster)
    seen: defaultdict[int, list[int]] = defaultdict(list)
    deadline = time.monotonic() + HANG_S
    count = 0
    try:
        while len({each for values in seen.values() for each in values}) < RECORDS:
            assert time.monotonic() < deadline
            message = consumer.poll(0.2)
            if message is None or message.error():
                continue
            seen[message.partition() or 0].append(int(message.value() or b""))
            count += 1
            if count % BETWEEN_ACTS == 0 and count <= RECORDS:
                disorder.act()
    finally:
        disorder.end()
        consumer.close()
    for partition, values in seen.items():
        assert list(dict.fromkeys(values)) == list(range(partition, RECORDS, PARTITIONS))


def read_with_aiokafka(cluster: Cluster, disorder: Disorder) -> None:
    """Read assigned partitions; each record is read once and in order.

    aiokafka asks only the nodes of its newest metadata: if all of them stop, it waits for one, whatever others say.
    """
    disorder.kept = {1}

    async def run() -> dict[int, list[int]]:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=cluster.bootstrap_servers,
            auto_offset_reset="earliest",
            retry_backoff_ms=5,
            metadata_max_age_ms=500,
            max_poll_records=1,
        )
        consumer.assign([TopicPartition("t", index) for index in range(PARTITIONS)])
        await consumer.start()
        seen: defaultdict[int, list[int]] = defaultdict(list)
        try:
            for count in range(RECORDS):
                if count % BETWEEN_ACTS == 0:
                    disorder.act()
                message = await asyncio.wait_for(consumer.getone(), HANG_S)
                seen[message.partition].append(int(message.value or b""))
        finally:
            disorder.end()
            await asyncio.sleep(0.5)  # stop() raises CancelledError while a fetch waits to be sent again
            await consumer.stop()
        return seen

    write(cluster)
    for partition, values in asyncio.run(run()).items():
        assert values == list(range(partition, RECORDS, PARTITIONS))


def write(cluster: Cluster) -> None:
    """Write the records to be read."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, **FAST})
    for number in range(RECORDS):
        producer.produce("t", b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(HANG_S) == 0


READERS = [read_with_librdkafka, read_with_aiokafka]
Work = Callable[[Cluster, Disorder], None]


@pytest.mark.parametrize("work", [*PRODUCERS[:2], *READERS])
def test_clients_survive_a_schedule(cluster: Cluster, work: Work) -> None:
    work(cluster, Disorder(cluster, 1))


@pytest.mark.slow
@pytest.mark.parametrize("work", [*PRODUCERS, *READERS])
def test_clients_survive_many_schedules(running: Cluster, work: Work) -> None:
    for seed in range(100, 100 + SEEDS):
        running.create_topic("t", PARTITIONS)
        try:
            work(running, Disorder(running, seed))
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        finally:
            running.reset()
