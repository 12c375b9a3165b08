"""Kafka 3.9 continues on the directory of our killed broker, and our broker on that of a killed Kafka.

tests/broker covers directories of cleanly stopped brokers: test_takeover, groups, transactions, security.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from tests.soak.broker_process import BrokerProcess
from tests.waiting import HANG_S
from tools.kafka import KafkaBroker

from kwire.log import LogDirectory

pytestmark = [pytest.mark.jvm, pytest.mark.slow]

QUIET = {"log_level": 0}
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
ANYBODY = "User:ANONYMOUS"
ENTRY = AclBinding(
    ResourceType.TOPIC, "plain", ResourcePatternType.LITERAL, "User:a", "*", AclOperation.READ, AclPermissionType.ALLOW
)
EVERY_ENTRY = AclBindingFilter(
    ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
)


def send(producer: Producer, topic: str, values: list[str]) -> None:
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(HANG_S) == 0


def transact(servers: str, transactional_id: str, topic: str, *steps: str) -> Producer:
    """Run one transaction per step: "commit", "abort" or "leave"; its value is the id and the step."""
    producer = Producer({"bootstrap.servers": servers, "transactional.id": transactional_id, **QUIET})
    producer.init_transactions(HANG_S)
    for step in steps:
        producer.begin_transaction()
        send(producer, topic, [f"{transactional_id} {step}"])
        if step == "commit":
            producer.commit_transaction(HANG_S)
        elif step == "abort":
            producer.abort_transaction(HANG_S)
    return producer


def read(servers: str, topic: str, count: int, *, group: str = "-", commit: bool = False) -> list[str]:
    """Return the committed records of partition 0; with a group, those it has not read yet."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **QUIET,
        }
    )
    if commit:
        consumer.subscribe([topic])
    else:
        consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[str] = []
    while len(found) < count:
        message = consumer.poll(HANG_S)
        assert message is not None, f"{found} and no more"
        assert message.error() is None, message.error()
        found.append(message.value().decode())
    if commit:
        consumer.commit(asynchronous=False)
    consumer.close()
    return found


def state(servers: str, *, acls: bool = True) -> dict[str, object]:
    """Return the state that an admin client sees."""
    admin = AdminClient({"bootstrap.servers": servers, **QUIET})
    topics = admin.list_topics(timeout=HANG_S).topics
    (described,) = admin.describe_configs([ConfigResource("topic", "plain")]).values()
    (offsets,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("readers")]).values()
    return {
        "topics": {name: len(topic.partitions) for name, topic in topics.items() if not name.startswith("__")},
        "config": {name: entry.value for name, entry in described.result(HANG_S).items() if entry.source == 1},
        "offsets": [(each.topic, each.offset) for each in offsets.result(HANG_S).topic_partitions],
        "acls": [str(each) for each in admin.describe_acls(EVERY_ENTRY).result(HANG_S)] if acls else None,
    }


@pytest.mark.requirement("G-01", "G-02", "F-50")
def test_kafka_recovers_our_killed_broker_and_we_recover_a_killed_kafka(tmp_path: Path) -> None:
    ours = BrokerProcess(tmp_path, **{"acls": "true", "super.users": ANYBODY})
    ours.start()
    plain = [f"plain {i}" for i in range(300)]
    try:
        servers = ours.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": servers, **QUIET})
        made = [
            NewTopic("plain", 1, 1, config={"retention.ms": "987654321"}),
            NewTopic("tx", 1, 1),
            NewTopic("no", 1, 1),
        ]
        for future in admin.create_topics(made).values():
            future.result(HANG_S)
        admin.delete_topics(["no"])["no"].result(HANG_S)
        admin.create_acls([ENTRY])[ENTRY].result(HANG_S)
        send(Producer({"bootstrap.servers": servers, "enable.idempotence": True, **QUIET}), "plain", plain)
        assert read(servers, "plain", 300, group="readers", commit=True) == plain
        done = transact(servers, "t", "tx", "commit", "abort", "commit")
        left = transact(servers, "left", "tx", "leave")
        before = state(servers)
        ours.kill()
        del done, left
    finally:
        ours.close()
    assert before["topics"] == {"plain": 1, "tx": 1}
    assert before["offsets"] == [("plain", 300)]
    real = KafkaBroker(tmp_path, **{"authorizer.class.name": AUTHORIZER, "super.users": ANYBODY})
    with real:
        servers = real.bootstrap_servers
        assert state(servers) == before
        assert read(servers, "plain", 300) == plain
        assert read(servers, "tx", 2) == ["t commit", "t commit"]
        transact(servers, "left", "tx", "commit")  # its open transaction is aborted first
        assert read(servers, "tx", 3) == ["t commit", "t commit", "left commit"]
        send(Producer({"bootstrap.servers": servers, **QUIET}), "plain", ["Kafka's"])
        assert read(servers, "plain", 1, group="readers", commit=True) == ["Kafka's"]
        hanging = transact(servers, "t", "tx", "leave")
        theirs = state(servers)
        real.stop(kill=True)
        del hanging
    ours.start()
    try:
        servers = ours.bootstrap_servers
        assert state(servers) == theirs
        assert read(servers, "plain", 301) == [*plain, "Kafka's"]
        transact(servers, "t", "tx", "commit")
        assert read(servers, "tx", 4) == ["t commit", "t commit", "left commit", "t commit"]
        ours.stop()
    finally:
        ours.close()
    assert [each for each in LogDirectory(tmp_path / "data").verify() if not each.is_harmless] == []
