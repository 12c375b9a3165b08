"""Batches of magic 2 and other requests for brokers with older versions; tests/interop has such a broker of Kafka."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kwire.broker import Broker
from kwire.client import Client, OutgoingBatch, Producer, partition_state
from kwire.client.admin.cluster import DESCRIBE_CLUSTER, describe_cluster
from kwire.client.admin.groups import describe_groups
from kwire.client.admin.requests import AdminRequests
from kwire.client.admin.transactions import _open_transactions
from kwire.client.broker_connection import BrokerConnection
from kwire.client.client import FIND_COORDINATOR
from kwire.client.fetch_requests import FETCH, FetchSession
from kwire.client.fetcher import FetchedBatches, Fetcher, Position
from kwire.client.group_offsets import OFFSET_FETCH, commit_offsets, fetch_offsets
from kwire.errors import BrokerError, ConnectionFailed, OptionError, UnsupportedVersion
from kwire.messages import FetchRequest
from kwire.records import Compression, Record, TimestampType, read_batches, write_batch
from tests.client.test_client import create
from tests.rewriting_proxy import RewritingProxy

PLAIN = {"enable.idempotence": "false"}
Speak = Callable[[int], None]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as found:
        yield found


@pytest.fixture
def speak(monkeypatch: pytest.MonkeyPatch) -> Speak:
    """speak(2): for the client, the broker supports Produce up to version 2 and no producer ids."""

    def capped(highest: int) -> None:
        def version_for(self: BrokerConnection, api_key: int) -> int:
            if api_key == 22:
                raise UnsupportedVersion("as before Kafka 0.11")
            found = self._connection.version_for(api_key)
            return min(found, highest) if api_key == 0 else found

        monkeypatch.setattr(BrokerConnection, "version_for", version_for)

    return capped


def make(broker: Broker, *topics: str) -> None:
    with Client(broker.bootstrap_servers) as client:
        for topic in topics:
            create(client, topic)


def rows(**more: Any) -> list[Record]:
    make = {"timestamp_type": TimestampType.CREATE_TIME, "headers": [], **more}
    return [Record(offset=i, timestamp=1000 + i, key=b"key", value=b"value %d" % i * 20, **make) for i in range(5)]


def written(broker: Broker, topic: str) -> list[tuple[int, int, bytes | None, bytes | None]]:
    with Client(broker.bootstrap_servers) as client:
        end = client.list_offsets({(topic, 0): -1})[topic, 0].offset
        return [
            (record.offset, record.timestamp, record.key, record.value)
            for fetched in client.read(topic, 0, 0, end)
            for batch in read_batches(fetched.records)
            for record in batch.records()
        ]


@pytest.mark.requirement("S31-05")
@pytest.mark.parametrize("version", [0, 1, 2, 3])
@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4"])
def test_batches_are_down_converted_for_old_brokers(
    broker: Broker, speak: Speak, version: int, compression: str
) -> None:
    topic = f"old-{version}-{compression}"
    make(broker, topic)
    speak(version)
    records = rows()
    data = bytes(write_batch(records, magic=2, compression=Compression[compression.upper()]))
    with Client(broker.bootstrap_servers, **PLAIN) as client:
        producer = Producer(client)
        assert [producer.send(topic, 0, data, 5).base_offset for _ in range(2)] == [0, 5]
    no_time = version < 2
    assert written(broker, topic) == [
        (n + record.offset, -1 if no_time else record.timestamp, record.key, record.value)
        for n in (0, 5)
        for record in records
    ]


@pytest.mark.parametrize("version", [0, 2])
def test_headers_are_refused_for_brokers_without_headers(broker: Broker, speak: Speak, version: int) -> None:
    make(broker, f"headers-{version}", f"beside-{version}")
    speak(version)
    good, bad = bytes(write_batch(rows(), magic=2)), bytes(write_batch(rows(headers=[("h", b"1")]), magic=2))
    with Client(broker.bootstrap_servers, **PLAIN) as client:
        producer = Producer(client)
        with pytest.raises(BrokerError, match=r"brokers before Kafka 0\.11 do not support record headers") as caught:
            producer.send(f"headers-{version}", 0, bad, 5)
        assert caught.value.code == 43
        with pytest.raises(BrokerError, match=f"headers-{version}-0 on 127"):
            producer.send_all(
                [OutgoingBatch(f"beside-{version}", 0, good, 5), OutgoingBatch(f"headers-{version}", 0, bad, 5)]
            )
        assert producer.send(f"beside-{version}", 0, good, 5).base_offset == 0  # the connection can still be used
    assert written(broker, f"headers-{version}") == []


@pytest.mark.parametrize("version", [2, 6])
def test_zstd_is_refused_for_brokers_without_zstd(broker: Broker, speak: Speak, version: int) -> None:
    make(broker, f"zstd-{version}")
    speak(version)
    data = bytes(write_batch(rows(), magic=2, compression=Compression.ZSTD))
    with Client(broker.bootstrap_servers, **PLAIN) as client:
        with pytest.raises(BrokerError, match=r"zstd requires a broker of Kafka 2\.1 or later") as caught:
            Producer(client).send(f"zstd-{version}", 0, data, 5)
        assert caught.value.code == 76


def test_idempotence_is_refused_for_brokers_without_producer_ids(broker: Broker, speak: Speak) -> None:
    speak(2)
    what = r"before Kafka 0\.11 do not support idempotent producers; set enable\.idempotence to false"
    with Client(broker.bootstrap_servers) as client, pytest.raises(OptionError, match=what):
        Producer(client)
    transactional = Client(broker.bootstrap_servers, **{"transactional.id": "t"})
    with transactional, pytest.raises(OptionError, match=r"not support transactions; remove transactional\.id"):
        Producer(transactional)


def test_a_broker_that_disconnects_at_api_versions_may_be_too_old() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def hang_up() -> None:
            with contextlib.suppress(OSError):  # the socket is shut down below
                while True:
                    accepted, _ = listening.accept()
                    with accepted:
                        accepted.recv(1 << 16)

        peer = threading.Thread(target=hang_up)
        peer.start()
        client = Client(f"127.0.0.1:{listening.getsockname()[1]}", **{"default.api.timeout.ms": "1000"})
        what = r"closed the connection in response to ApiVersions, which brokers before Kafka 0\.10 do not support"
        with client, pytest.raises(ConnectionFailed, match=what):
            client.connection()
        listening.shutdown(socket.SHUT_RDWR)
        peer.join()


@pytest.fixture
def cap(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int], None]:
    """cap(9, 2): for the client, the broker supports OffsetFetch up to version 2."""

    def capped(key: int, highest: int) -> None:
        def version_for(self: BrokerConnection, api_key: int) -> int:
            found = self._connection.version_for(api_key)
            return min(found, highest) if api_key == key else found

        monkeypatch.setattr(BrokerConnection, "version_for", version_for)

    return capped


@pytest.mark.parametrize("version", [1, 2])
def test_the_end_of_committed_records_is_asked_for_from_list_offsets_2_on(
    broker: Broker, cap: Callable[[int, int], None], version: int
) -> None:
    topic = f"open-{version}"
    make(broker, topic)
    with (
        Client(broker.bootstrap_servers, **{"transactional.id": topic}) as writing,
        Client(broker.bootstrap_servers) as client,
        Producer(writing) as producer,
    ):
        producer.begin()
        producer.send(topic, 0, bytes(write_batch(rows(), magic=2, **producer.fields(topic, 0))), 5)
        (opened,) = _open_transactions(client, AdminRequests(), (topic, 0))
        assert opened.start_offset == 0
        cap(2, version)
        found = client.list_offsets({(topic, 0): -1}, isolation="read_committed")
        assert found[topic, 0].offset == (0 if version == 2 else 5)
        producer.abort()


@pytest.mark.parametrize("version", [1, 2])
def test_offsets_of_groups_are_listed_from_offset_fetch_2_on(
    broker: Broker, cap: Callable[[int, int], None], version: int
) -> None:
    """Version 1 has no request for all partitions."""
    topic, group = f"offsets-{version}", f"group-{version}"
    make(broker, topic)
    with Client(broker.bootstrap_servers) as client:
        commit_offsets(client, group, {(topic, 0): 5})
        cap(9, version)
        state, requests = describe_groups(client)
        if version == 2:
            assert {key: each.offset for key, each in state.groups[group].offsets.items()} == {(topic, 0): 5}
        assert (f"offsets of group {group!r}" in requests.unseen) == (version == 1)


@pytest.mark.parametrize("version", [7, 8, 9])
def test_offsets_of_groups_are_listed_by_any_version(
    broker: Broker, cap: Callable[[int, int], None], version: int
) -> None:
    """Versions below 8 name one group for the whole request."""
    topic, group = f"listed-{version}", f"lists-{version}"
    make(broker, topic)
    with Client(broker.bootstrap_servers) as client:
        commit_offsets(client, group, {(topic, 0): 0})
        cap(OFFSET_FETCH, version)
        state, requests = describe_groups(client)
        assert {key: each.offset for key, each in state.groups[group].offsets.items()} == {(topic, 0): 0}
        assert requests.unseen == {}


def test_a_leader_may_be_node_0() -> None:
    with Broker(node_id=0) as broker:
        make(broker, "zero")
        with Client(broker.bootstrap_servers) as client, Producer(client) as producer:
            producer.send("zero", 0, bytes(write_batch(rows(), magic=2, **producer.fields("zero", 0))), 5)
            with Fetcher(client) as fetcher:
                fetcher.add(("zero", 0), Position(0), end=5)
                results = fetcher.poll()
                assert [(type(each), each.after.offset) for each in results] == [(FetchedBatches, 5)]  # type: ignore[union-attr]
                assert len(fetcher) == 0  # nothing is asked for at the end


@pytest.mark.parametrize(
    ("api", "version"), [(FIND_COORDINATOR, 3), (FIND_COORDINATOR, 4), (OFFSET_FETCH, 7), (OFFSET_FETCH, 8)]
)
def test_one_group_or_many_are_asked_for_by_the_version(
    broker: Broker, cap: Callable[[int, int], None], api: int, version: int
) -> None:
    """Many groups: from FindCoordinator 4 and OffsetFetch 8 on."""
    topic, group = f"group-of-{api}-{version}", f"group-{api}-{version}"
    make(broker, topic)
    with Client(broker.bootstrap_servers) as client:
        commit_offsets(client, group, {(topic, 0): 0})
        cap(api, version)
        assert {key: each.offset for key, each in fetch_offsets(client, group).items()} == {(topic, 0): 0}


@pytest.mark.parametrize("version", [4, 6, 7, 8, 11, 12, 13, 16])
def test_records_are_read_with_any_version_of_fetch(
    broker: Broker, cap: Callable[[int, int], None], version: int
) -> None:
    """Sessions from 7 on, epochs of the last fetch from 12, topic ids from 13."""
    topic = f"read-{version}"
    make(broker, topic)
    with Client(broker.bootstrap_servers) as client, Producer(client) as producer:
        producer.send(topic, 0, bytes(write_batch(rows(), magic=2, **producer.fields(topic, 0))), 5)
    cap(FETCH, version)
    assert written(broker, topic) == [(each.offset, each.timestamp, each.key, each.value) for each in rows()]


def test_zstd_is_sent_from_produce_7_on(broker: Broker, speak: Speak) -> None:
    make(broker, "zstd-7")
    speak(7)
    data = bytes(write_batch(rows(), magic=2, compression=Compression.ZSTD))
    with Client(broker.bootstrap_servers, **PLAIN) as client:
        assert Producer(client).send("zstd-7", 0, data, 5).base_offset == 0


@pytest.mark.parametrize(("version", "epoch"), [(6, -1), (7, 0)])
def test_partitions_are_fetched_in_sessions_from_fetch_7_on(
    broker: Broker, cap: Callable[[int, int], None], version: int, epoch: int
) -> None:
    topic, sent = f"session-{version}", list[int]()
    make(broker, topic)
    cap(FETCH, version)
    with RewritingProxy(("127.0.0.1", broker.port)) as proxy, Client(proxy.address) as client:
        proxy.observe["FetchRequest"] = lambda request: sent.append(request.session_epoch)
        with Producer(client) as producer, Fetcher(client) as fetcher:
            producer.send(topic, 0, bytes(write_batch(rows(), magic=2, **producer.fields(topic, 0))), 5)
            fetcher.add((topic, 0), Position(0))
            fetcher.poll()
    assert sent[0] == epoch


@pytest.mark.parametrize("version", [12, 13, 16])
def test_topics_are_fetched_by_id_from_fetch_13_on(
    broker: Broker, cap: Callable[[int, int], None], version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, versions, original = f"by-id-{version}", list[int](), FetchSession.next_request

    def next_request(*given: Any, **more: Any) -> tuple[FetchRequest, int]:
        request, used = original(*given, **more)
        versions.append(used)
        return request, used

    monkeypatch.setattr(FetchSession, "next_request", next_request)
    make(broker, topic)
    cap(FETCH, version)
    with Client(broker.bootstrap_servers) as client, Producer(client) as producer, Fetcher(client) as fetcher:
        producer.send(topic, 0, bytes(write_batch(rows(), magic=2, **producer.fields(topic, 0))), 5)
        fetcher.add((topic, 0), Position(0, topic_id=client.metadata([topic]).topics[topic].topic_id))
        (result,) = fetcher.poll()
        assert isinstance(result, FetchedBatches)
        assert (result.after.offset, versions[0]) == (5, version)


@pytest.mark.parametrize(("version", "is_asked"), [(1, False), (2, True)])
def test_fenced_brokers_are_asked_for_from_describe_cluster_2_on(
    broker: Broker, cap: Callable[[int, int], None], version: int, is_asked: bool
) -> None:
    asked: list[bool] = []
    cap(DESCRIBE_CLUSTER, version)
    with RewritingProxy(("127.0.0.1", broker.port)) as proxy, Client(proxy.address) as client:
        proxy.observe["DescribeClusterRequest"] = lambda request: asked.append(request.include_fenced_brokers)
        assert list(describe_cluster(client).state.brokers) == [1]
    assert asked == [is_asked]


@pytest.mark.parametrize(
    ("newest", "known"), [(newest, known) for newest in range(5) for known in range(-1, newest + 1)]
)
def test_the_newest_epoch_that_a_leader_knows_is_searched_for(
    newest: int, known: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition_state, "_end_of", lambda client, key, epoch: (epoch if epoch <= known else -1, 9))
    assert partition_state._newest_known(None, ("t", 0), newest) == known  # type: ignore[arg-type]
