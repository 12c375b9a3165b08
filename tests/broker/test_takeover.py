"""Real Kafka continues on our broker's directory, and our broker on the result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic
from tools.kafka import KafkaBroker

from kwire.broker import Broker
from tests.waiting import HANG_S

QUIET = {"log_level": 0}


def produce(address: str, topic: str, values: list[str]) -> None:
    """Produce with idempotence and wait for all acknowledgements."""
    errors: list[KafkaError] = []
    producer = Producer({"bootstrap.servers": address, "enable.idempotence": True, **QUIET})
    for value in values:
        producer.produce(topic, key=value, value=value, on_delivery=lambda e, _: errors.append(e) if e else None)
    assert producer.flush(HANG_S) == 0
    assert errors == []


def consume(address: str, group: str, topics: list[str], count: int) -> list[str]:
    """Consume what a group has not read yet, and commit its offsets.

    A record that comes again after a rebalance is one by its offset; a record that is in the log twice is two.
    """
    consumer = Consumer({"bootstrap.servers": address, "group.id": group, "auto.offset.reset": "earliest", **QUIET})
    consumer.subscribe(topics)
    values: dict[tuple[str, int, int], str] = {}
    while len(values) < count:
        message = consumer.poll(HANG_S)
        assert message is not None, f"{len(values)} of {count} records came"
        assert message.error() is None
        place, value = (message.topic(), message.partition(), message.offset()), message.value().decode()
        assert values.setdefault(place, value) == value
    consumer.commit(asynchronous=False)
    consumer.close()
    return sorted(values.values())


def own_settings(admin: AdminClient, topic: str) -> dict[str, Any]:
    (described,) = admin.describe_configs([ConfigResource("topic", topic)]).values()
    return {name: entry.value for name, entry in described.result(HANG_S).items() if entry.source == 1}


@pytest.mark.gate
@pytest.mark.jvm
@pytest.mark.slow
@pytest.mark.requirement("F-50", "G-01")
def test_kafka_and_kwire_alternate_on_one_directory(tmp_path: Path) -> None:
    ours, theirs, again = ([f"{who}{i:03}" for i in range(n)] for who, n in (("a", 200), ("b", 50), ("c", 50)))
    with Broker(tmp_path / "data") as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, **QUIET})
        made = admin.create_topics(
            [NewTopic("kept", 3, 1, config={"retention.ms": "99999999"}), NewTopic("gone", 1, 1)]
        )
        for future in made.values():
            future.result(HANG_S)
        admin.delete_topics(["gone"])["gone"].result(HANG_S)
        produce(broker.bootstrap_servers, "kept", ours)
        assert consume(broker.bootstrap_servers, "readers", ["kept"], 200) == ours
        cluster_id = broker.call(lambda node: node.cluster_id)
    kafka = KafkaBroker(tmp_path)
    with kafka:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, **QUIET})
        listed = admin.list_topics(timeout=HANG_S)
        assert listed.cluster_id == cluster_id
        assert {name for name in listed.topics if not name.startswith("__")} == {"kept"}
        assert own_settings(admin, "kept") == {"retention.ms": "99999999"}
        produce(kafka.bootstrap_servers, "kept", theirs)
        assert consume(kafka.bootstrap_servers, "readers", ["kept"], 50) == theirs
        admin.create_topics([NewTopic("theirs", 2, 1)])["theirs"].result(HANG_S)
    assert "ERROR" not in (tmp_path / "server.log").read_text()
    with Broker(tmp_path / "data") as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, **QUIET})
        assert {name for name in admin.list_topics(timeout=HANG_S).topics if not name.startswith("__")} == {
            "kept",
            "theirs",
        }
        produce(broker.bootstrap_servers, "theirs", again)
        assert consume(broker.bootstrap_servers, "readers", ["kept", "theirs"], 50) == again
        assert consume(broker.bootstrap_servers, "others", ["kept", "theirs"], 300) == sorted(ours + theirs + again)
