"""The pytest fixture `kafka_broker`: a Kafka broker for every test that asks for it.

    def test_orders(kafka_broker):
        producer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})

One broker serves a whole session (a worker's, with pytest-xdist) and is made new after every test, in milliseconds.
Settings for all tests of a file or folder: a fixture `kafka_broker_settings` of scope session that returns them, by
Kafka's names with underscores.

This module is loaded by pytest in every project that has kwire installed, so it imports nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kwire.broker import Broker

__all__ = ["kafka_broker", "kafka_broker_settings"]

KEPT_REQUESTS = 10_000


@pytest.fixture(scope="session")
def kafka_broker_settings() -> dict[str, Any]:
    """Settings of the broker; override it to give some."""
    return {}


@pytest.fixture(scope="session")
def _kafka_broker(kafka_broker_settings: dict[str, Any]) -> Iterator[Broker]:
    from kwire.broker import Broker

    with Broker(**{"keep_requests": KEPT_REQUESTS, **kafka_broker_settings}) as broker:
        yield broker


@pytest.fixture
def kafka_broker(_kafka_broker: Broker) -> Iterator[Broker]:
    """A running broker without topics, groups or faults: kwire.broker.Broker."""
    yield _kafka_broker
    _kafka_broker.reset()
