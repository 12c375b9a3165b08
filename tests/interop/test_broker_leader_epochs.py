"""The leader epochs of a new partition, compared with a real Kafka 4.4.0."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.broker.test_fetch import produce
from tests.broker.test_leader_epochs import EMPTY, ONE_RECORD, create, state
from tests.broker.wire import RawClient
from tools import kafka

pytestmark = [pytest.mark.jvm, pytest.mark.slow]


def test_kafka_responds_as_the_broker_does(tmp_path: Path) -> None:
    with kafka.KafkaBroker(tmp_path, version="4.4.0", heap="512m") as broker, RawClient(broker) as client:
        create(client, "t")
        assert state(client, "t") == EMPTY
        assert produce(client, "t") == 0
        assert state(client, "t") == ONE_RECORD
