"""The pytest fixture `kafka_broker`: a Kafka broker for tests.

    def test_orders(kafka_broker):
        producer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})

One broker serves the session (with pytest-xdist, the session of a worker) and is reset after every test, which takes
milliseconds. To configure it, define a session-scoped fixture `kafka_broker_settings` that returns Kafka's broker
configs, with underscores instead of dots.

pytest loads this module in every project where kwire is installed, so it imports only what pytest has imported.
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
    """Configs of the broker by name; override this fixture to set some."""
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
