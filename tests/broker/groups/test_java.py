"""Java's consumers and admin client in our groups, and real Kafka on a directory with our groups."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools import kafka

from kwire.broker import Broker
from tests.waiting import HANG_S

pytestmark = [pytest.mark.jvm, pytest.mark.slow]

PEER = Path(__file__).parent / "java" / "GroupPeer.java"
NEWEST = "4.4.0"
RECORDS = 40


def run(servers: str, *arguments: object, version: str = kafka.VERSION) -> list[str]:
    """Run GroupPeer and return its output."""
    classes = kafka.compile_java(PEER, version=version)
    words = [str(each) for each in arguments]
    return kafka.java("GroupPeer", servers, *words, version=version, classes=classes).splitlines()


def fill(broker: Broker) -> None:
    """Create the topics t and t2, and records in t."""
    from confluent_kafka import Producer

    broker.call(lambda node: node.controller.create_topic("t", 4))
    broker.call(lambda node: node.controller.create_topic("t2", 2))
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(RECORDS):
        producer.produce("t", str(number), partition=number % 4)
    assert producer.flush(HANG_S) == 0


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    settings = {"group_consumer_heartbeat_interval_ms": 200}
    with Broker(offsets_topic_num_partitions=3, **settings) as broker:
        fill(broker)
        yield broker


@pytest.mark.parametrize(
    ("protocols", "described"),
    [
        ("classic,classic", "Stable cooperative-sticky {-=4}"),
        ("consumer,consumer", "Stable uniform {-=4}"),
        ("classic:a,classic:b", "Stable cooperative-sticky {a=2, b=2}"),
        ("consumer:a,consumer:b", "Stable uniform {a=2, b=2}"),
        ("classic,consumer", "Stable uniform {-=4}"),  # upgraded while the first works
        ("consumer,classic", "Stable uniform {-=4}"),
    ],
)
def test_java_consumers_share_a_topic(broker: Broker, protocols: str, described: str) -> None:
    group = protocols.replace(",", "-").replace(":", "_")
    printed = run(broker.bootstrap_servers, "share", group, RECORDS, "t", protocols)
    assert printed == [f"read {RECORDS}", "assigned 4 of 4", f"group {group} {described}"]


def test_the_broker_resolves_the_regexes_of_java_clients(broker: Broker) -> None:
    arguments = ("share", "pattern", RECORDS, "/t2?/", "consumer,consumer")
    printed = run(broker.bootstrap_servers, *arguments, version=NEWEST)
    assert printed == [f"read {RECORDS}", "assigned 6 of 6", "group pattern Stable uniform {-=6}"]


def test_kafka_loads_our_groups_and_we_load_them_back(tmp_path: Path) -> None:
    data = tmp_path / "data"
    heartbeats = {"group_consumer_heartbeat_interval_ms": 200, "group_consumer_min_heartbeat_interval_ms": 200}
    with Broker(data_dir=data, offsets_topic_num_partitions=3, **heartbeats) as broker:
        fill(broker)
        for protocol in ("classic", "consumer"):
            run(broker.bootstrap_servers, "share", f"g-{protocol}", RECORDS, "t", f"{protocol},{protocol}")
        ours = run(broker.bootstrap_servers, "groups")
    everything = "{t-0=10:, t-1=10:, t-2=10:, t-3=10:}"
    assert ours == [f"g-classic Empty Classic {everything}", f"g-consumer Empty Consumer {everything}"]
    settings = {"group.coordinator.rebalance.protocols": "classic,consumer"}
    with kafka.KafkaBroker(tmp_path, **settings) as theirs:
        assert run(theirs.bootstrap_servers, "groups") == ours
        for group in ("g-classic", "g-consumer"):
            run(theirs.bootstrap_servers, "alter", group, "t", 3)
        printed = run(theirs.bootstrap_servers, "share", "g-consumer", 7, "t", "consumer")
        assert printed[-1] == "group g-consumer Stable uniform {-=4}"
        left = run(theirs.bootstrap_servers, "groups")
    shutil.copytree(data, tmp_path / "again")
    with Broker(data_dir=tmp_path / "again") as broker:
        assert run(broker.bootstrap_servers, "groups") == left
        printed = run(broker.bootstrap_servers, "share", "g-classic", 7, "t", "classic")
        assert printed[-1] == "group g-classic Stable cooperative-sticky {-=4}"
