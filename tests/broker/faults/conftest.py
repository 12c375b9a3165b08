"""A broker without faults for each test, and requests to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kwire.broker import Broker
from kwire.messages import registry
from kwire.records import Record, write_batch
from tests.broker.wire import RawClient


@pytest.fixture(scope="package")
def running() -> Iterator[Broker]:
    with Broker(keep_requests=1000) as broker:
        yield broker


@pytest.fixture
def broker(running: Broker) -> Iterator[Broker]:
    yield running
    running.reset()


@pytest.fixture
def raw(broker: Broker) -> Iterator[RawClient]:
    with RawClient(broker) as client:
        yield client


def message(name: str, **values: Any) -> Any:
    """Return a message with values by field name; dictionaries become structs."""
    from kwire.broker.faults.fields import build

    return build(registry.get(name), values)


def batch(value: bytes = b"v") -> bytes:
    """Return a batch of one record."""
    return write_batch([Record(offset=0, timestamp=1, timestamp_type=0, key=None, value=value, headers=[])])


def produce(topic: str, *partitions: int, acks: int = -1) -> Any:
    """Return a request that writes a record to each partition."""
    data = [{"index": index, "records": batch()} for index in partitions]
    return message("ProduceRequest", acks=acks, timeout_ms=1000, topic_data=[{"name": topic, "partition_data": data}])


def fetch(topic: str, *partitions: int, max_wait_ms: int = 0, **values: Any) -> Any:
    """Return a request that reads partitions from their start."""
    asked = [{"partition": index, "fetch_offset": 0, "partition_max_bytes": 1 << 20} for index in partitions]
    topics = [{"topic": topic, "partitions": asked}]
    given = {"max_wait_ms": max_wait_ms, "min_bytes": 1, "max_bytes": 1 << 20, "topics": topics, **values}
    return message("FetchRequest", **given)


def end_offsets(broker: Broker, topic: str) -> list[int]:
    """Return the log end offset of each partition."""
    return broker.call(lambda node: [each.log.log_end_offset for each in node.topics.get(topic).partitions.values()])
