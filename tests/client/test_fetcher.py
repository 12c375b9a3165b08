"""Partitions fetched from their leaders, by a caller that may be slow."""

from __future__ import annotations

import time

import pytest

from kwire.broker import Broker
from kwire.client import Client
from kwire.client.broker_connection import BrokerConnection
from kwire.client.fetch_requests import FETCH, TRUNCATION_VERSION
from kwire.client.fetcher import OFFSET_FOR_LEADER_EPOCH, Diverged, FetchedBatches, Fetcher, Position
from tests.client.test_cluster_logs import create, write


def test_a_response_that_waited_for_the_caller_is_used(caplog: pytest.LogCaptureFixture) -> None:
    settings = {"request.timeout.ms": 1000}
    with Broker() as broker, Client(broker.bootstrap_servers) as writer:
        create(writer, "t")
        write(writer, "t", 1)
        with Client(broker.bootstrap_servers, **settings) as client, Fetcher(client) as fetcher:
            fetcher.add(("t", 0), Position(0))
            ends = []
            for _ in range(2):
                for result in fetcher.poll():
                    assert isinstance(result, FetchedBatches)
                    ends.append(result.after.offset)
                write(writer, "t", 1)
                time.sleep(1.7)  # longer than a broker may be silent: request.timeout.ms and the wait for records
            assert ends == [10, 20]
            assert caplog.messages == []


@pytest.mark.parametrize(("offset", "is_in_log"), [(9, True), (10, True), (11, False)])
@pytest.mark.parametrize("version", [TRUNCATION_VERSION - 1, TRUNCATION_VERSION])
def test_a_log_that_ends_below_the_position_has_diverged(
    monkeypatch: pytest.MonkeyPatch, offset: int, is_in_log: bool, version: int
) -> None:
    """Brokers before 2.7 are asked by OffsetForLeaderEpoch; Fetch tells it later."""

    def version_for(self: BrokerConnection, api_key: int) -> int:
        found = self._connection.version_for(api_key)
        return min(found, {FETCH: version, OFFSET_FOR_LEADER_EPOCH: 2}.get(api_key, found))

    monkeypatch.setattr(BrokerConnection, "version_for", version_for)
    with Broker() as broker, Client(broker.bootstrap_servers) as client, Client(broker.bootstrap_servers) as writer:
        create(writer, "t")
        write(writer, "t", 1)
        position, key = Position(offset, leader_epoch=0), ("t", 0)
        with Fetcher(client) as fetcher:
            fetcher.add(key, position)
            first = fetcher.poll()
            if not is_in_log:
                assert first == [Diverged(key, 0, 10, position)]
                return
            assert key in fetcher
            write(writer, "t", 1)
            end = 0
            while end < 20:
                for result in first or fetcher.poll():
                    assert isinstance(result, FetchedBatches)
                    end = result.after.offset
                first = []


def test_a_seek_to_the_end_ends_a_partition() -> None:
    with Broker() as broker, Client(broker.bootstrap_servers) as client, Fetcher(client) as fetcher:
        fetcher.add(("t", 0), Position(0), end=5)
        fetcher.seek(("t", 0), Position(4))
        assert ("t", 0) in fetcher
        fetcher.seek(("t", 0), Position(5))
        assert ("t", 0) not in fetcher
