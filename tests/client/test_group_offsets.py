"""Offsets of groups without members, against a broker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kwire.broker import Broker
from kwire.client import Client
from kwire.client.group_offsets import CommittedOffset, commit_offsets, fetch_offsets
from kwire.errors import BrokerError
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


def test_offsets_of_missing_partitions_are_refused(client: Client) -> None:
    with Client(client.connection().address, **SOON) as hasty:
        for nowhere in (("nowhere", 0), ("a", 9)):
            with pytest.raises(BrokerError, match=rf"offset {nowhere[0]}-{nowhere[1]} of group 'group': UNKNOWN_TOPIC"):
                commit_offsets(hasty, "group", {nowhere: 1})
