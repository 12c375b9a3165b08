"""The recorded responses to config changes, compared with a real Kafka 4.4.0."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from tests.broker.test_config_changes import RECORDED, alter, in_order
from tests.broker.wire import RawClient
from tests.waiting import until
from tools import kafka

from kwire import messages

pytestmark = [pytest.mark.jvm, pytest.mark.slow]

OWN_ADDRESS = "Error creating broker listeners"
"""Kafka's text has the ports of its listeners."""


def test_kafka_responds_as_recorded(tmp_path: Path) -> None:
    with kafka.KafkaBroker(tmp_path, version="4.4.0", heap="512m") as broker, RawClient(broker) as client:
        create(client)
        for line in gzip.decompress(RECORDED.read_bytes()).splitlines():
            case = json.loads(line)
            if case["kind"] == 16:
                continue
            code, message = alter(client, case["kind"], case["name"], case["ops"], validate_only=True)
            assert code == case["code"], case
            if not (message or "").startswith(OWN_ADDRESS):
                assert in_order(message) == in_order(case["message"]), case


def create(client: RawClient) -> None:
    """Create the topic once the controller is ready."""
    cls = messages.CreateTopicsRequest
    topic = cls.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    until(lambda: client.ask(cls(topics=[topic], timeout_ms=10_000), 7).topics[0].error_code in (0, 36))
    until(lambda: not alter(client, 2, "t", [["retention.ms", 0, "5"]], validate_only=True)[0])
