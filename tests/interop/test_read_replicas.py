"""Records of three Kafka brokers, read from the replica in the client's rack (KIP-392)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.interop.test_pulled_clusters import create, running, write
from tests.waiting import until
from tools import kafka

from kwire.client import Client
from kwire.client.broker_connection import BrokerConnection
from kwire.client.fetcher import FetchedBatches, Fetcher, Position
from kwire.client.shared_fetch import read_together
from kwire.messages import FetchRequest
from kwire.messages.base import Message
from kwire.records import read_batches

pytestmark = [pytest.mark.jvm, pytest.mark.slow]

KEY = "orders", 0
SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Count the Fetch requests to each address."""
    found: Counter[str] = Counter()
    send = BrokerConnection.send

    def spy(
        connection: BrokerConnection,
        message: Message,
        *,
        version: int | None = None,
        payloads: Sequence[bytes | memoryview] = (),
    ) -> None:
        if isinstance(message, FetchRequest):
            found[connection.address] += 1
        send(connection, message, version=version, payloads=payloads)

    with monkeypatch.context() as patch:
        patch.setattr(BrokerConnection, "send", spy)
        yield found


def offsets(records: memoryview) -> list[int]:
    return [record.offset for batch in read_batches(records) for record in batch.records()]


@pytest.mark.parametrize("version", ["3.9.1", "4.4.0"])
def test_records_are_read_in_the_clients_rack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    settings = {"broker_rack": "rack-{}", "replica_selector_class": SELECTOR}
    with running(tmp_path, version, **settings) as cluster:
        leader, replica = (f"127.0.0.1:{cluster.brokers[n].port}" for n in (2, 3))
        create(cluster, "orders", [[2, 3, 1]])
        end = max(write(cluster.servers, b"value" * 20, 50, "all") for _ in range(20))
        small = {"max.partition.fetch.bytes": 2000, "fetch.max.bytes": 2000}

        def read(client: Client, first: int, last: int) -> list[int]:
            return [each for one in client.read(*KEY, first, last) for each in offsets(one.records)]

        with Client(cluster.servers, **small) as client, counted(monkeypatch) as fetches:
            assert read(client, 0, end) == list(range(end))
        assert set(fetches) == {leader}

        with Client(cluster.servers, **{**small, "client.rack": "rack-3"}) as client:
            with counted(monkeypatch) as fetches:
                assert read(client, 0, end) == list(range(end))
            assert set(fetches) == {leader, replica}
            assert fetches[leader] == 1, "the leader is asked once"
            assert fetches[replica] > 1

            with counted(monkeypatch) as fetches:
                ranges = {KEY: (0, end)}
                together = read_together(client, ranges, isolation="read_committed", topic_ids={})
                assert [each for _, one in together for each in offsets(one.records)] == list(range(end))
            assert set(fetches) == {replica}

            with Fetcher(client) as fetcher, counted(monkeypatch) as fetches:
                fetcher.add(KEY, Position(0))
                found: list[int] = []

                def poll() -> int:
                    for result in fetcher.poll():
                        assert isinstance(result, FetchedBatches), result
                        found.extend(offsets(result.fetched.records))
                    return len(found)

                until(lambda: poll() == end)
                more = write(cluster.servers, b"more", 5, "all")
                until(lambda: poll() == more)
                assert set(fetches) == {replica}
                cluster.brokers[3].stop(kill=True)
                more = write(cluster.servers, b"rest", 5, "1")
                until(lambda: poll() == more)
                assert set(fetches) == {leader, replica}
                assert found == list(range(more))

        # a rack without a replica: the leader
        with (
            Client(cluster.servers, **{**small, "client.rack": "elsewhere"}) as client,
            counted(monkeypatch) as fetches,
        ):
            assert read(client, 0, end) == list(range(end))
        assert set(fetches) == {leader}


def test_a_client_with_a_rack_reads_from_a_single_broker(tmp_path: Path) -> None:
    """Most clusters have no replica selector, and old ones none of them."""
    with kafka.KafkaBroker(tmp_path / "kafka") as broker:
        end = write(broker.bootstrap_servers, b"value", 10, "all")
        with Client(broker.bootstrap_servers, **{"client.rack": "a"}) as client:
            assert [each for one in client.read(*KEY, 0, end) for each in offsets(one.records)] == list(range(end))
