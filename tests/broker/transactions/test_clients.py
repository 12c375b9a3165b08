"""Transactions of common clients on a running broker."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import confluent_kafka
import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.structs import TopicPartition as AioPartition
from confluent_kafka import KafkaException, TopicPartition

from kwire.broker import Broker
from kwire.broker.transactions import TransactionState
from tests.waiting import HANG_S, until

SMALL = {"offsets_topic_num_partitions": 1, "transaction_state_log_num_partitions": 1}  # quick to make and to open


class HasBootstrap(Protocol):
    """Our broker or a real one."""

    @property
    def bootstrap_servers(self) -> str: ...


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(**SMALL, transaction_abort_timed_out_transaction_cleanup_interval_ms=100) as running:
        yield running


def producer(broker: HasBootstrap, transactional_id: str, **settings: Any) -> confluent_kafka.Producer:
    """Return a librdkafka producer with an initialized transactional id."""
    made = confluent_kafka.Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "transactional.id": transactional_id,
            "log_level": 0,
            **settings,
        }
    )
    made.init_transactions(HANG_S)
    return made


def send(made: confluent_kafka.Producer, topic: str, *values: bytes) -> None:
    for value in values:
        made.produce(topic, value, partition=0)
    assert made.flush(HANG_S) == 0


def read(broker: HasBootstrap, topic: str, count: int, isolation: str = "read_committed") -> list[bytes]:
    """Return the first records of a topic's partition 0, and those that arrive shortly after."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "reader",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[bytes] = []
    while True:
        message = consumer.poll(HANG_S)
        assert message is not None, f"{topic}: {len(found)} of {count} records came"
        if message.error() is None:
            found.append(message.value())
        elif len(found) >= count:
            assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
            break
    consumer.close()
    return found


def test_librdkafka_commits_and_aborts(broker: Broker) -> None:
    made = producer(broker, "commits")
    for number in range(4):
        made.begin_transaction()
        send(made, "commits", b"%d" % number, b"%d." % number)
        made.abort_transaction(HANG_S) if number % 2 else made.commit_transaction(HANG_S)
    assert read(broker, "commits", 4) == [b"0", b"0.", b"2", b"2."]
    assert read(broker, "commits", 8, "read_uncommitted") == [b"%d%s" % (n, s) for n in range(4) for s in (b"", b".")]


def test_librdkafka_does_not_read_past_an_open_transaction(broker: Broker) -> None:
    made, other = producer(broker, "open"), producer(broker, "other")
    for each, value in ((made, b"first"), (other, b"second")):
        each.begin_transaction()
        send(each, "open", value)
    other.commit_transaction(HANG_S)
    assert read(broker, "open", 0) == []
    made.commit_transaction(HANG_S)
    assert read(broker, "open", 2) == [b"first", b"second"]


def test_librdkafka_is_fenced_by_its_successor(broker: Broker) -> None:
    first = producer(broker, "fenced")
    first.begin_transaction()
    send(first, "fenced", b"lost")
    second = producer(broker, "fenced")
    with pytest.raises(KafkaException) as caught:
        first.commit_transaction(HANG_S)
    assert caught.value.args[0].fatal()
    second.begin_transaction()
    send(second, "fenced", b"kept")
    second.commit_transaction(HANG_S)
    assert read(broker, "fenced", 1) == [b"kept"]


def test_librdkafka_is_fenced_after_the_transaction_timeout(broker: Broker) -> None:
    made = producer(broker, "slow", **{"transaction.timeout.ms": 1000})
    made.begin_transaction()
    send(made, "slow", b"lost")
    until(
        lambda: broker.call(lambda node: node.transactions.describe("slow").status) == TransactionState.COMPLETE_ABORT
    )
    with pytest.raises(KafkaException):
        made.commit_transaction(HANG_S)
    assert read(broker, "slow", 0) == []


@pytest.mark.parametrize("commit", [True, False])
def test_librdkafka_commits_offsets_in_a_transaction(broker: Broker, commit: bool) -> None:
    group = f"offsets-{commit}"
    made = producer(broker, group)
    send_plain(broker, "source")
    consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group})
    made.begin_transaction()
    offsets = [TopicPartition("source", 0, 3)]
    made.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), HANG_S)
    partition = TopicPartition("source", 0)
    made.commit_transaction(HANG_S) if commit else made.abort_transaction(HANG_S)
    [committed] = consumer.committed([partition], HANG_S)
    assert committed.offset == (3 if commit else confluent_kafka.OFFSET_INVALID)
    consumer.close()


def send_plain(broker: Broker, topic: str) -> None:
    """Create the topic and produce to it without a transaction."""
    made = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    send(made, topic, b"x")


def test_aiokafka_commits_aborts_and_sends_offsets(broker: Broker) -> None:
    async def run() -> None:
        made = AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="aio")
        await made.start()
        try:
            async with made.transaction():
                await made.send_and_wait("aio", b"one", partition=0)
                await made.send_offsets_to_transaction({AioPartition("aio", 0): 7}, "aio-group")
            await made.begin_transaction()
            await made.send_and_wait("aio", b"two", partition=0)
            await made.abort_transaction()
            async with made.transaction():
                await made.send_and_wait("aio", b"three", partition=0)
        finally:
            await made.stop()

    asyncio.run(run())
    assert read(broker, "aio", 2) == [b"one", b"three"]
    assert offset_of(broker, "aio-group", "aio") == 7


@pytest.mark.filterwarnings("ignore:.*_text is deprecated:DeprecationWarning")
def test_kafka_python_commits_aborts_and_sends_offsets(broker: Broker) -> None:
    from kafka import KafkaProducer, OffsetAndMetadata
    from kafka import TopicPartition as PythonPartition

    made = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="python")
    made.init_transactions()
    for value, ends in ((b"one", made.commit_transaction), (b"two", made.abort_transaction)):
        made.begin_transaction()
        made.send("python", value, partition=0)
        if value == b"one":
            offsets = {PythonPartition("python", 0): OffsetAndMetadata(7, "", -1)}
            made.send_offsets_to_transaction(offsets, "python-group")
        ends()
    made.begin_transaction()
    made.send("python", b"three", partition=0)
    made.commit_transaction()
    made.close()
    assert read(broker, "python", 2) == [b"one", b"three"]
    assert offset_of(broker, "python-group", "python") == 7


def offset_of(broker: Broker, group: str, topic: str) -> int:
    """Return the committed offset of a group for partition 0."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group})
    [committed] = consumer.committed([TopicPartition(topic, 0)], HANG_S)
    consumer.close()
    offset: int = committed.offset
    return offset


CRASHING = """
import os, sys
import confluent_kafka
from kwire.broker import Broker
from kwire.broker.transactions.partitions import PartitionMarkers

made_markers = 0

def write_marker(markers, partition, marker, write=PartitionMarkers.write_marker):
    global made_markers
    if made_markers == int(sys.argv[2]):
        os._exit(9)
    made_markers += 1
    write(markers, partition, marker)

PartitionMarkers.write_marker = write_marker
with Broker(sys.argv[1], offsets_topic_num_partitions=1, transaction_state_log_num_partitions=1) as broker:
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "crash"})
    producer.init_transactions()
    producer.begin_transaction()
    for topic in ("crash-a", "crash-b"):
        producer.produce(topic, b"kept", partition=0)
    offsets = [confluent_kafka.TopicPartition("crash-a", 0, 5)]
    consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "crash-group"})
    producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 20)
    producer.flush()
    producer.commit_transaction()
"""


@pytest.mark.slow
@pytest.mark.parametrize("markers_before", [1])
def test_a_commit_interrupted_by_a_crash_completes_at_startup(tmp_path: Path, markers_before: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CRASHING, str(tmp_path), str(markers_before)],
        env=os.environ,
        timeout=HANG_S,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 9, done.stderr
    with Broker(tmp_path) as broker:
        state = broker.call(lambda node: node.transactions.describe("crash").status)
        assert state == TransactionState.COMPLETE_COMMIT
        assert read(broker, "crash-a", 1) == read(broker, "crash-b", 1) == [b"kept"]
        assert offset_of(broker, "crash-group", "crash-a") == 5
        made = producer(broker, "crash")
        made.begin_transaction()
        send(made, "crash-a", b"after")
        made.commit_transaction(HANG_S)
        assert read(broker, "crash-a", 2) == [b"kept", b"after"]
