"""Dead letter queues of share groups (KIP-1191): the letters that Kafka 4.4.0 writes, and when there are none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kwire.broker import Broker, Cluster
from tests.broker.shares.dead_letter_cases import (
    CASES,
    CLIENT,
    COUNT,
    ENABLE,
    ENABLED,
    NAME,
    OURS,
    Case,
    acknowledge,
    archiving,
    ask_all,
    joined,
    lag,
    letters_of,
    observe,
    produce,
    topic_id_of,
)
from tests.broker.shares.harness import Member, acquired
from tests.broker.wire import RawClient
from tests.waiting import until


@pytest.fixture(scope="module")
def shared() -> Iterator[Broker]:
    with Broker(**OURS) as broker:
        yield broker


@pytest.fixture
def client(shared: Broker) -> Iterator[RawClient]:
    shared.reset()
    with RawClient(shared) as client:
        yield client


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_dead_letters_are_those_of_kafka(shared: Broker, client: RawClient, case: Case) -> None:
    assert observe(client, case, shared.advance) == case.letters


REJECTED = Case(
    name="rejected",
    steps=[[(0, 2, [3])]],
    letters=[(0, None, None, offset, 1, CLIENT) for offset in range(3)],
    queue=ENABLED,
)


@pytest.mark.parametrize("level", [1, 2])
def test_the_feature_enables_them(tmp_path: Path, level: int) -> None:
    with Broker(tmp_path, share_version=level, **OURS) as broker, RawClient(broker) as client:
        assert observe(client, REJECTED, broker.advance) == (REJECTED.letters if level == 2 else [])


def test_brokers_configs_change_at_once(client: RawClient, shared: Broker) -> None:
    case = replace(REJECTED, group={NAME: "letters"}, queue=None)
    shared.call(
        lambda node: node.controller.alter_broker_configs(
            "",
            {
                "errors.deadletterqueue.topic.name.prefix": "let",
                "errors.deadletterqueue.auto.create.topics.enable": "false",
            },
        )
    )
    assert observe(client, replace(case, letters=[]), shared.advance) == []
    configs = {"errors.deadletterqueue.auto.create.topics.enable": "true"}
    shared.call(lambda node: node.controller.alter_broker_configs("", configs))
    produce(client, "rejected", (b"d",))
    member = Member(client, "rejected", "rejected", topic_id_of(client, "rejected"), "m")
    assert acquired(member.fetch()) == [(3, 3, 1)]
    assert acknowledge(member, [(3, 3, [3])]) == (0, None)
    until(lambda: lag(client, "rejected") == 0)
    assert letters_of(client, case) == [(0, None, None, 3, 1, CLIENT)]
    topic = shared.call(lambda node: dict(node.topics.get("letters").configs))
    assert topic == {ENABLE: "true", "message.timestamp.type": "CreateTime"}


def test_what_was_being_copied_is_copied_after_a_start(client: RawClient) -> None:
    ask_all(client, REJECTED)
    member = joined(client, "rejected", topic_id_of(client, "rejected"))
    archiving(client, REJECTED, 2, 5)
    assert acquired(member.fetch()) == [(2, 2, 1)]
    until(lambda: lag(client, "rejected") == 1)
    assert letters_of(client, REJECTED) == [(0, None, None, 0, 2, CLIENT), (0, None, None, 1, 5, COUNT)]


@pytest.fixture
def waiting() -> Iterator[Cluster]:
    """A cluster whose dead letters have no leader: that is node 1, which is stopped."""
    with Cluster(nodes=2, **{**OURS, "num_partitions": 1}) as cluster, RawClient(cluster, node=2) as client:
        cluster.create_topic(REJECTED.queue_name, replication_factor=1, **{ENABLE: "true"})
        cluster.stop(1)
        ask_all(client, replace(REJECTED, queue=None))
        member = joined(client, "rejected", topic_id_of(client, "rejected"))
        assert acquired(member.fetch()) == [(0, 2, 1)]
        assert acknowledge(member, [(0, 2, [3])]) == (0, None)
        yield cluster


@pytest.mark.parametrize("returns", [True, False])
def test_a_copy_waits_for_a_leader(waiting: Cluster, returns: bool) -> None:
    """For half a minute; then the records are done without a letter."""
    with RawClient(waiting, node=2) as client:
        for wait_ms in (2000, 4000):
            waiting.advance(wait_ms)
        assert lag(client, "rejected") == 3
        if returns:
            waiting.start(1)
        waiting.advance(8000)
        assert lag(client, "rejected") == (0 if returns else 3)
        waiting.advance(16_000)
        assert lag(client, "rejected") == 0
    assert len(waiting.records(REJECTED.queue_name)) == (3 if returns else 0)


def test_a_copy_begins_again_after_a_stop(waiting: Cluster) -> None:
    waiting.stop()
    waiting.start()
    leader = waiting.call(lambda node: node.topics.get("rejected").partitions[0].state.leader)
    with RawClient(waiting, node=leader) as client:
        member = Member(client, "rejected", "rejected", topic_id_of(client, "rejected"))
        assert acquired(member.fetch()) == []
        until(lambda: len(waiting.records(REJECTED.queue_name)) == 3)
