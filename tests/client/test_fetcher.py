"""Partitions fetched from their leaders, by a caller that may be slow."""

from __future__ import annotations

import time

import pytest

from kwire.broker import Broker
from kwire.client import Client
from kwire.client.fetcher import FetchedBatches, Fetcher, Position
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
