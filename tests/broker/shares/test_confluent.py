"""Share groups with librdkafka's share consumer, as an application's tests use them."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator

import pytest
from confluent_kafka import AcknowledgeType, Message, Producer, ShareConsumer

from kwire.broker import Broker
from tests.broker.shares.harness import EARLIEST, configure
from tests.broker.wire import RawClient
from tests.waiting import HANG_S

COUNT = 6
INTERVALS = {"group_share_heartbeat_interval_ms": 100, "group_share_min_heartbeat_interval_ms": 100}


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(num_partitions=1, group_share_assignment_interval_ms=0, **INTERVALS) as broker:
        with RawClient(broker) as client:
            configure(client, "g", EARLIEST)
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        for i in range(COUNT):
            producer.produce("t", b"%d" % i)
        producer.flush()
        del producer
        yield broker


def member(broker: Broker) -> ShareConsumer:
    settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "log_level": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        consumer = ShareConsumer({**settings, "share.acknowledgement.mode": "explicit"})
    consumer.subscribe(["t"])
    return consumer


def polled(consumer: ShareConsumer, count: int) -> list[Message]:
    """Return this many records, in order."""
    records: list[Message] = []
    deadline = time.monotonic() + HANG_S
    while len(records) < count and time.monotonic() < deadline:
        records += consumer.poll(0.2)
    return sorted(records, key=lambda record: record.offset())


def shown(records: list[Message]) -> list[tuple[int, int]]:
    return [(record.offset(), record.delivery_count()) for record in records]


def test_records_are_accepted_released_and_rejected(broker: Broker) -> None:
    consumer = member(broker)
    first = polled(consumer, COUNT)
    assert shown(first) == [(offset, 1) for offset in range(COUNT)]
    types = [AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT]
    for record in first:
        consumer.acknowledge(record, types[record.offset() % 3])
    assert list(consumer.commit_sync(HANG_S).values()) == [None]
    again = polled(consumer, 2)
    assert shown(again) == [(1, 2), (4, 2)]
    for record in again:
        consumer.acknowledge(record, AcknowledgeType.ACCEPT)
    consumer.close()


def test_a_test_lets_locks_end_by_advancing_the_clock(broker: Broker) -> None:
    slow, other = member(broker), member(broker)
    assert len(polled(slow, COUNT)) == COUNT
    broker.advance(30_001)
    late = polled(other, COUNT)
    assert shown(late) == [(offset, 2) for offset in range(COUNT)]
    for record in late:
        other.acknowledge(record, AcknowledgeType.ACCEPT)
    other.close()
    slow.close()
