"""Groups of real clients: librdkafka in both protocols, kafka-python, aiokafka."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kwire.broker import Broker
from kwire.broker.node import Node
from tests.waiting import HANG_S, until

PARTITIONS, RECORDS = 4, 40
SESSION_MS = 60_000  # nobody falls out of a group because the machine is slow


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """A broker with records in topic t and short group timeouts."""
    from confluent_kafka import Producer

    settings = {"group_min_session_timeout_ms": 1_000, "group_consumer_heartbeat_interval_ms": 100}
    with Broker(offsets_topic_num_partitions=4, **settings) as broker:
        broker.call(lambda node: node.controller.create_topic("t", PARTITIONS))
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        for number in range(RECORDS):
            producer.produce("t", str(number), partition=number % PARTITIONS)
        assert producer.flush(HANG_S) == 0
        yield broker


def committed(broker: Broker, group_id: str) -> dict[tuple[str, int], int]:
    """Return the committed offsets."""

    def look(node: Node) -> dict[tuple[str, int], int]:
        found = node.groups.store.state.offsets_of(group_id)
        return {partition: offset.offset for partition, offset in found.items()}

    return broker.call(look)


EVERYTHING = {("t", partition): RECORDS // PARTITIONS for partition in range(PARTITIONS)}


class Confluent:
    """A librdkafka consumer; `step` polls once."""

    def __init__(self, broker: Broker, group_id: str, protocol: str, **settings: Any) -> None:
        from confluent_kafka import Consumer

        config: dict[str, Any] = {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": group_id,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **settings,
        }
        if protocol == "classic":
            config |= {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": 100}
        self.consumer = Consumer(config)
        self.consumer.subscribe(["t"])
        self.read: list[tuple[int, int]] = []

    def step(self) -> None:
        message = self.consumer.poll(0.02)
        if message is not None:
            assert message.error() is None, message.error()
            self.read.append((message.partition(), message.offset()))

    @property
    def partitions(self) -> set[int]:
        return {partition.partition for partition in self.consumer.assignment()}


def poll_until(is_so: Callable[[], bool], *members: Confluent) -> None:
    """Poll with all members until a condition holds."""

    def is_so_after_a_poll() -> bool:
        for member in members:
            member.step()
        return is_so()

    until(is_so_after_a_poll)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_librdkafka_consumers_share_a_topic_and_take_over_partitions(broker: Broker, protocol: str) -> None:
    group = f"rdk-{protocol}"
    first = Confluent(broker, group, protocol)
    poll_until(lambda: len(first.read) == RECORDS, first)
    first.consumer.commit(asynchronous=False)
    assert committed(broker, group) == EVERYTHING
    second = Confluent(broker, group, protocol)
    poll_until(lambda: len(first.partitions) == len(second.partitions) == 2, first, second)
    assert first.partitions | second.partitions == set(range(PARTITIONS))
    first.consumer.close()
    poll_until(lambda: len(second.partitions) == PARTITIONS, second)
    assert second.read == []  # what the first had read is not read again
    second.consumer.close()
    states = broker.call(lambda node: {row[0]: row[2:] for row in node.groups.listed([], [])})
    assert states[group] == ("Empty", protocol)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_static_librdkafka_member_returns_to_its_partitions(broker: Broker, protocol: str) -> None:
    group = f"static-{protocol}"
    members = [Confluent(broker, group, protocol, **{"group.instance.id": f"i{number}"}) for number in range(2)]
    poll_until(lambda: sum(len(member.read) for member in members) >= RECORDS, *members)
    poll_until(lambda: all(len(member.partitions) == 2 for member in members), *members)
    had = members[1].partitions

    def epoch(node: Node) -> int:
        found = node.groups.store.group(group)
        return int(getattr(found, "generation_id", 0) or getattr(found, "epoch", 0))

    before = broker.call(epoch)
    members[1].consumer.close()
    members[1] = Confluent(broker, group, protocol, **{"group.instance.id": "i1"})
    poll_until(lambda: len(members[1].partitions) == 2, *members)
    assert members[1].partitions == had
    assert broker.call(epoch) == before
    for member in members:
        member.consumer.close()


@pytest.mark.filterwarnings("ignore:.*_text is deprecated:DeprecationWarning")  # of kafka-python, on import
def test_kafka_python_consumers_share_a_topic(broker: Broker) -> None:
    from kafka import KafkaConsumer

    read: list[tuple[int, int]] = []
    consumers: list[Any] = []
    stop = threading.Event()

    def consume() -> None:
        consumer = KafkaConsumer(
            "t",
            bootstrap_servers=broker.bootstrap_servers,
            group_id="python",
            auto_offset_reset="earliest",
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=100,
            auto_commit_interval_ms=100,
        )
        # a leader that assigns before it has the topic's metadata gives out nothing, and looks again after minutes
        until(lambda: consumer.partitions_for_topic("t"))
        consumers.append(consumer)
        while not stop.is_set():
            for partition, found in consumer.poll(timeout_ms=50).items():
                read.extend((partition.partition, record.offset) for record in found)
        consumer.close()

    threads = [threading.Thread(target=consume, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()

    def is_shared() -> bool:
        with contextlib.suppress(RuntimeError):  # assignment() while a poll changes it
            return len(consumers) == 2 and all(len(c.assignment()) == 2 for c in consumers)
        return False

    try:
        until(lambda: is_shared() and len(set(read)) == RECORDS)
    finally:
        stop.set()
    for thread in threads:
        thread.join(HANG_S)
    assert len(set(read)) == RECORDS
    assert committed(broker, "python") == EVERYTHING


def test_aiokafka_consumers_share_a_topic(broker: Broker) -> None:
    from aiokafka import AIOKafkaConsumer

    async def share() -> None:
        consumers = [
            AIOKafkaConsumer(
                "t",
                bootstrap_servers=broker.bootstrap_servers,
                group_id="aio",
                auto_offset_reset="earliest",
                session_timeout_ms=SESSION_MS,
                heartbeat_interval_ms=100,
                enable_auto_commit=False,
            )
            for _ in range(2)
        ]
        for consumer in consumers:
            await consumer.start()
        read: set[tuple[int, int]] = set()
        async with asyncio.timeout(HANG_S):
            while len(read) < RECORDS or any(len(consumer.assignment()) != 2 for consumer in consumers):
                for consumer in consumers:
                    for partition, found in (await consumer.getmany(timeout_ms=50)).items():
                        read |= {(partition.partition, record.offset) for record in found}
        for consumer in consumers:
            await consumer.commit()
            await consumer.stop()

    asyncio.run(share())
    assert committed(broker, "aio") == EVERYTHING


def test_librdkafkas_admin_client_lists_and_deletes_groups(broker: Broker) -> None:
    from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions, TopicPartition
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    member = Confluent(broker, "admin", "consumer")
    poll_until(lambda: len(member.partitions) == PARTITIONS, member)
    described = admin.describe_consumer_groups(["admin"])["admin"].result(HANG_S)
    assert described.state == ConsumerGroupState.STABLE
    assert len(described.members[0].assignment.topic_partitions) == PARTITIONS
    member.consumer.close()
    change = ConsumerGroupTopicPartitions("admin", [TopicPartition("t", 0, 3)])
    admin.alter_consumer_group_offsets([change])["admin"].result(HANG_S)
    listed = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("admin")])["admin"].result(HANG_S)
    assert [(p.partition, p.offset) for p in listed.topic_partitions] == [(0, 3)]
    assert "admin" in {group.group_id for group in admin.list_consumer_groups().result(HANG_S).valid}
    admin.delete_consumer_groups(["admin"])["admin"].result(HANG_S)
    assert "admin" not in {group.group_id for group in admin.list_consumer_groups().result(HANG_S).valid}
