"""Offsets of groups without members, against a broker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kwire.broker import Broker
from kwire.client import Client, Producer
from kwire.client.group_offsets import CommittedOffset, commit_offsets, fetch_offsets
from kwire.errors import BrokerError, OptionError
from kwire.messages import registry
from tests.client.test_client import SOON


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with Broker() as broker, Client(broker.bootstrap_servers) as client:
        cls: Any = registry.get("CreateTopicsRequest")
        topics = [cls.CreatableTopic(name=name, num_partitions=2, replication_factor=1) for name in ("a", "b")]
        client.request(cls(topics=topics, timeout_ms=10_000))
        yield client


def test_committed_offsets_are_fetched_with_their_metadata(client: Client) -> None:
    assert fetch_offsets(client, "group") == {}
    commit_offsets(client, "group", {("a", 0): 5, ("b", 1): 0}, "note")
    commit_offsets(client, "group", {("a", 0): 6})
    assert fetch_offsets(client, "group") == {("a", 0): CommittedOffset(6, ""), ("b", 1): CommittedOffset(0, "note")}
    assert fetch_offsets(client, "other") == {}


def test_offsets_that_a_transaction_is_about_to_commit_are_waited_for(client: Client) -> None:
    """The former offset would make a reader repeat what the transaction has done (KIP-447)."""
    commit_offsets(client, "moving", {("a", 0): 5})
    address = client.connection().address
    with (
        Client(address, **SOON) as hasty,
        Client(address, **{"transactional.id": "mover"}) as other,
        Producer(other) as producer,
    ):
        producer.begin()
        producer.send_offsets("moving", {("a", 0): 9})
        with pytest.raises(BrokerError, match="offset a-0 of group 'moving': UNSTABLE_OFFSET_COMMIT"):
            fetch_offsets(hasty, "moving")
        producer.commit()
        assert fetch_offsets(client, "moving") == {("a", 0): CommittedOffset(9, "")}


@pytest.mark.parametrize("end", ["commit", "abort"])
@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_transaction_with_offsets_alone_is_ended(client: Client, end: str, elsewhere: bool) -> None:
    """The coordinator knows of it, so it would stay open until its timeout. Another process may end it."""
    group = f"alone-{end}-{elsewhere}"
    commit_offsets(client, group, {("a", 0): 5})
    with Client(client.connection().address, **{"transactional.id": group}) as own, Producer(own) as producer:
        for n in (8, 9):
            producer.begin()
            producer.send_offsets(group, {("a", 0): n})
            producer.check()
            if elsewhere and n == 9:
                left = producer.leave()
                assert left is not None
                assert (left.partitions, left.groups) == ((), (group,))
                producer = Producer(client, resume=left)
                producer.check()
            getattr(producer, end)()
            with pytest.raises(OptionError, match="no transaction is open"):
                producer.check()
        assert fetch_offsets(client, group) == {("a", 0): CommittedOffset(9 if end == "commit" else 5, "")}
        producer = Producer(own)
        producer.begin()
        assert producer.leave() is None  # the offsets belonged to the transactions before


def test_offsets_of_missing_partitions_are_refused(client: Client) -> None:
    with Client(client.connection().address, **SOON) as hasty:
        for nowhere in (("nowhere", 0), ("a", 9)):
            with pytest.raises(BrokerError, match=rf"offset {nowhere[0]}-{nowhere[1]} of group 'group': UNKNOWN_TOPIC"):
                commit_offsets(hasty, "group", {nowhere: 1})
