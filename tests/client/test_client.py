"""The client against a broker."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from kwire.broker import Broker
from kwire.client import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, Client, OutgoingBatch, Producer
from kwire.client.admin import transactions
from kwire.client.admin.cluster import describe_cluster
from kwire.client.admin.groups import describe_groups
from kwire.client.broker_connection import BrokerConnection
from kwire.client.fetch_requests import Position, whole_batches
from kwire.client.group_offsets import commit_offsets, fetch_offsets
from kwire.client.partition_state import common_end, fetch_leader_epochs
from kwire.client.settings import ClientSettings
from kwire.errors import BrokerError, ConnectionFailed, CorruptBatch, OptionError
from kwire.messages import ListGroupsRequest, ListGroupsResponse, registry
from kwire.protocol.error_codes import ErrorCode
from kwire.records import ColumnWriter, read_batches
from kwire.storage.checkpoints import LeaderEpoch
from tests.rewriting_proxy import RewritingProxy
from tests.waiting import HANG_MS

SOON = {"default.api.timeout.ms": 300, "request.timeout.ms": HANG_MS}
"""Configs with few retries, but a long wait for responses."""


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap_servers


def create(client: Client, name: str, partitions: int = 1) -> None:
    cls: Any = registry.get("CreateTopicsRequest")
    topic = cls.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    response = client.request(cls(topics=[topic], timeout_ms=10_000))
    assert [each.error_code for each in response.topics] == [0]


def write(producer: Producer, topic: str, partition: int, values: list[bytes]) -> int:
    rows = pa.record_batch({"value": pa.array(values, pa.binary())})
    writer = ColumnWriter(**producer.fields(topic, partition))
    (piece,) = writer.write(rows)
    return producer.send(topic, partition, piece, len(values)).base_offset


def values(client: Client, topic: str, start: int, end: int, **options: Any) -> list[bytes]:
    found = []
    for fetched in client.read(topic, 0, start, end, **options):
        waiting, aborted = sorted(fetched.aborted, key=lambda each: each[1]), set[int]()
        for batch in read_batches(fetched.records):
            while waiting and waiting[0][1] <= batch.last_offset:
                aborted.add(waiting.pop(0)[0])
            if batch.is_control:
                aborted.discard(batch.producer_id)
            elif batch.producer_id not in aborted:
                found += [bytes(r.value or b"") for r in batch.records() if start <= r.offset < end]
    return found


def test_written_records_are_read(servers: str) -> None:
    with Client(servers, **{"max.partition.fetch.bytes": 300}) as client:
        create(client, "plain", 2)
        assert list(client.metadata(["plain"]).topics["plain"].partitions) == [0, 1]
        producer = Producer(client)
        for n in range(20):
            assert write(producer, "plain", 0, [b"%d" % n] * 5) == n * 5
        found = client.list_offsets({("plain", 0): LATEST_TIMESTAMP, ("plain", 1): EARLIEST_TIMESTAMP})
        assert [found["plain", 0].offset, found["plain", 1].offset] == [100, 0]
        assert values(client, "plain", 0, 100) == [b"%d" % n for n in range(20) for _ in range(5)]
        assert values(client, "plain", 42, 47) == [b"8", b"8", b"8", b"9", b"9"]


def test_a_batch_that_is_sent_twice_is_written_once(servers: str) -> None:
    with Client(servers) as client:
        create(client, "twice")
        producer = Producer(client)
        writer = ColumnWriter(**producer.fields("twice", 0))
        batch = b"".join(writer.write(pa.record_batch({"value": pa.array([b"once"], pa.binary())})))
        producer.send("twice", 0, batch, 1)
        producer.send("twice", 0, batch, 1)
        assert client.list_offsets({("twice", 0): LATEST_TIMESTAMP})["twice", 0].offset == 1


def test_read_committed_returns_committed_transactions_only(servers: str) -> None:
    with Client(servers, **{"transactional.id": "tx"}) as client:
        create(client, "tx")
        producer = Producer(client)
        for value, commit in ((b"a", True), (b"b", False), (b"c", True)):
            producer.begin()
            write(producer, "tx", 0, [value])
            if commit:
                producer.commit()
            else:
                producer.abort()
        assert values(client, "tx", 0, 6, isolation="read_committed") == [b"a", b"c"]
        assert values(client, "tx", 0, 6) == [b"a", b"b", b"c"]
        with pytest.raises(OptionError, match="call begin"):
            write(producer, "tx", 0, [b"d"])


def test_an_older_producer_of_the_same_transactional_id_is_fenced(servers: str) -> None:
    with Client(servers, **{"transactional.id": "fenced"}) as client:
        create(client, "fenced")
        old = Producer(client)
        old.begin()
        write(old, "fenced", 0, [b"a"])
        Producer(client)
        with pytest.raises(BrokerError) as caught:
            old.commit()
        assert caught.value.code in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED)


def test_another_process_can_end_a_transaction_with_offsets_of_a_group(servers: str) -> None:
    def committed(client: Client) -> list[tuple[int, str | None]]:
        cls: Any = registry.get("OffsetFetchRequest")
        group = cls.OffsetFetchRequestGroup(group_id="g", topics=None)
        request = cls(groups=[group], require_stable=True)
        response = client.request(request, node_id=client.coordinator("g", 0), version=9).groups[0]
        assert response.error_code == 0
        return [(each.committed_offset, each.metadata) for topic in response.topics for each in topic.partitions]

    with Client(servers, **{"transactional.id": "left"}) as client, Client(servers) as driver:
        create(client, "left", 2)
        for n, commit in enumerate((True, False, True)):
            producer = Producer(client)
            producer.begin()
            assert producer.leave() is None  # empty transaction
            producer.begin()
            write(producer, "left", 0, [b"%d" % n])
            write(producer, "left", 1, [b"x"])
            left = producer.leave()
            assert left is not None
            assert left.partitions == (("left", 0), ("left", 1))
            with pytest.raises(OptionError, match="no transaction is open"):
                producer.commit()
            other = Producer(driver, resume=left)
            other.check()
            other.send_offsets("g", {("left", 0): n}, f"batch {n}")
            if commit:
                other.commit()
                Producer(driver, resume=left).commit()  # again, as if the response was lost
            else:
                other.abort()
        assert values(client, "left", 0, 6, isolation="read_committed") == [b"0", b"2"]
        assert committed(driver) == [(2, "batch 2")]
        producer = Producer(client)
        producer.begin()
        write(producer, "left", 0, [b"z"])
        stale = producer.leave()
        assert stale is not None
        Producer(client)  # a new producer with the id aborts the open transaction
        with pytest.raises(BrokerError) as caught:
            Producer(driver, resume=stale).check()
        assert caught.value.code in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED)


def test_an_error_inside_a_transaction_is_raised_instead_of_an_error_of_its_abort(servers: str) -> None:
    with Client(servers, **{"transactional.id": "masked"}) as client:
        create(client, "masked")

        def fail() -> None:
            with Producer(client) as producer:
                producer.begin()
                write(producer, "masked", 0, [b"a"])
                Producer(client)  # fences the first one, so that its abort is refused
                raise KeyError("the caller's own")

        with pytest.raises(KeyError, match="the caller's own"):
            fail()


def test_batches_for_many_partitions_share_a_request_and_each_failure_is_raised(servers: str) -> None:
    with Client(servers, **SOON) as client:
        create(client, "many", 3)
        producer = Producer(client)

        def batch(partition: int, topic: str = "many") -> OutgoingBatch:
            rows = pa.record_batch({"value": pa.array([b"v"] * 2, pa.binary())})
            return OutgoingBatch(
                topic, partition, b"".join(ColumnWriter(**producer.fields(topic, partition)).write(rows)), 2
            )

        for n in range(3):
            found = producer.send_all([batch(partition) for partition in (2, 0, 1)])
            assert [(each.partition, each.base_offset) for each in found] == [(2, 2 * n), (0, 2 * n), (1, 2 * n)]
        good, bad = batch(0), batch(1)
        bad = bad._replace(data=bytes(bad.data[:-1]) + b"?")
        with pytest.raises(BrokerError, match=r"^many-1: "):
            producer.send_all([bad, good])
        ends = client.list_offsets({("many", n): LATEST_TIMESTAMP for n in (0, 1)})
        assert [ends["many", 0].offset, ends["many", 1].offset] == [8, 6]
        assert producer.send_all([]) == []


def test_a_string_of_topics_is_an_error(servers: str) -> None:
    with (
        Client(servers) as client,
        pytest.raises(OptionError, match="expected a list of names, got the string 'orders'"),
    ):
        client.metadata("orders")


def test_missing_topics_and_offsets_are_errors(servers: str) -> None:
    with Client(servers, **SOON) as client:
        with pytest.raises(BrokerError, match="UNKNOWN_TOPIC_OR_PARTITION"):
            client.list_offsets({("nowhere", 0): LATEST_TIMESTAMP})
        create(client, "short")
        write(Producer(client), "short", 0, [b"a"])
        with pytest.raises(BrokerError, match="OFFSET_OUT_OF_RANGE"):
            values(client, "short", 5, 9)
        with pytest.raises(BrokerError, match="expected records up to offset 9"):
            values(client, "short", 0, 9)


def test_a_broker_that_refuses_or_never_responds_is_an_error() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = {"default.api.timeout.ms": 300, "socket.connection.setup.timeout.ms": 200}
    with Client(f"127.0.0.1:{port}", **settings) as client, pytest.raises(ConnectionFailed, match="refused"):
        client.metadata()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        where = f"127.0.0.1:{silent.getsockname()[1]}"
        with Client(where, **settings) as client, pytest.raises(ConnectionFailed, match="timed out"):
            client.metadata()


@pytest.mark.slow
def test_a_broker_that_hangs_ends_a_read_after_the_timeout() -> None:
    """Not after another default.api.timeout.ms, nor after request.timeout.ms for each address of that broker."""
    hangs, connections = threading.Event(), []
    resumed = threading.Event()

    def observe(request: object) -> None:
        if hangs.is_set():
            connections.append(request)
            resumed.wait(30)

    settings = {"default.api.timeout.ms": 2000, "request.timeout.ms": 1000, "max.partition.fetch.bytes": 1}
    with Broker() as broker, RewritingProxy(("127.0.0.1", broker.port)) as proxy:
        proxy.observe = {"FetchRequest": observe, "ApiVersionsRequest": observe}
        with Client(proxy.address.replace("127.0.0.1", "localhost"), **settings) as client:
            create(client, "stuck")
            write(Producer(client), "stuck", 0, [b"a"])
            write(Producer(client), "stuck", 0, [b"b"])
            assert values(client, "stuck", 0, 2) == [b"a", b"b"]
            hangs.set()
            with pytest.raises(ConnectionFailed, match="timed out"):
                values(client, "stuck", 0, 2)
        assert [type(each).__name__ for each in connections] == ["FetchRequest", "ApiVersionsRequest"]
        resumed.set()


def test_an_invalid_response_is_a_kwire_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def response() -> None:
            peer, _ = server.accept()
            with peer:
                peer.recv(1000)
                peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=response)
        thread.start()
        with pytest.raises(Exception, match="frame of") as caught:
            Client(f"127.0.0.1:{server.getsockname()[1]}").metadata()
        thread.join()
        assert type(caught.value).__module__ == "kwire.errors"


def test_the_next_fetch_starts_after_the_last_complete_batch() -> None:
    rows = pa.record_batch({"value": pa.array([b"v"] * 10, pa.binary())})
    data = b"".join(bytes(piece) for piece in ColumnWriter(batch_size=100, base_offset=7).write(rows))
    batches = [(batch.position, batch.last_offset) for batch in read_batches(data)]
    assert len(batches) > 2

    def after(data: bytes, offset: int = 7) -> int:
        whole, found = whole_batches(memoryview(data), Position(offset), "t-0")
        assert data[: len(whole)] == whole
        return found.offset

    assert after(data) == 17
    assert after(b"") == 7
    for cut in range(batches[-1][0], len(data)):
        assert after(data[:cut]) == batches[-2][1] + 1
    for cut in range(1, batches[1][0]):
        with pytest.raises(CorruptBatch, match=f"the broker returned {cut} bytes of a larger batch at offset 7"):
            after(data[:cut])
    impossible = bytes(8) + (13).to_bytes(4, "big") + data
    assert after(data + impossible) == 17  # the next request returns what follows
    with pytest.raises(CorruptBatch, match="size 13 is below the minimum of 14"):
        after(impossible, 17)
    with pytest.raises(CorruptBatch, match="a Fetch response for offset 17 ends at offset 16"):
        after(data, 17)  # a broker that repeats itself must not cause an endless loop


# ---- brokers that go and come


@pytest.fixture
def proxy() -> Iterator[RewritingProxy]:
    with Broker() as broker, RewritingProxy(("127.0.0.1", broker.port)) as started:
        yield started


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def test_each_retry_asks_where_a_broker_is(proxy: RewritingProxy) -> None:
    """A broker that was restarted elsewhere, or was not in the cluster for a moment, is found again."""
    moves = iter(["closed", "gone"])

    def move(response: Any) -> None:
        match next(moves, ""):
            case "closed":
                response.brokers[0].port = closed_port()
            case "gone":
                response.brokers.clear()

    proxy.rewrite["MetadataResponse"] = move
    with Client(proxy.address, **{"default.api.timeout.ms": HANG_MS}) as client:
        assert client.request(ListGroupsRequest(), ListGroupsResponse, node_id=1).error_code == 0
    assert next(moves, None) is None


@pytest.mark.slow
def test_admin_requests_go_on_without_a_dead_broker(proxy: RewritingProxy) -> None:
    proxy.brokers = {7: closed_port()}
    with Client(proxy.address) as client:
        create(client, "orders")
        commit_offsets(client, "readers", {("orders", 0): 3})
        groups, requests = describe_groups(client)
        assert [each.offset for each in groups.groups["readers"].offsets.values()] == [3]
        assert list(requests.unseen) == ["groups of broker 7"]
        assert "cannot connect" in requests.unseen["groups of broker 7"]
        _, requests = transactions.describe_transactions(client)
        assert list(requests.unseen) == ["transactional ids of broker 7"]
        described = describe_cluster(client)
        assert "configs of broker 7" in described.requests.unseen
        assert described.requests.passing == {"configs of broker 7"}
        assert described.requests.heard == {1}


def test_a_partition_without_a_leader_does_not_hide_the_offsets_of_others(proxy: RewritingProxy) -> None:
    def without_leader(response: Any) -> None:
        for topic in response.topics:
            topic.partitions[1].leader_id = -1

    with Client(proxy.address, **SOON) as client:
        create(client, "orders", 3)
        proxy.rewrite["MetadataResponse"] = without_leader
        found, errors = client.find_offsets({("orders", n): LATEST_TIMESTAMP for n in range(3)})
    assert sorted(found) == [("orders", 0), ("orders", 2)]
    assert [(key, error.code) for key, error in errors.items()] == [(("orders", 1), ErrorCode.LEADER_NOT_AVAILABLE)]


def test_a_read_asks_for_nothing_beyond_its_end(proxy: RewritingProxy) -> None:
    asked: list[int] = []
    with Client(proxy.address) as client:
        create(client, "short")
        write(Producer(client), "short", 0, [b"a", b"b"])
        connection = client.connection(client.leader(("short", 0)))
        proxy.observe["FetchRequest"] = lambda request: asked.append(request.topics[0].partitions[0].fetch_offset)
        assert values(client, "short", 0, 2) == [b"a", b"b"]
        assert client.connection(client.leader(("short", 0))) is connection  # no response to wait for is left in it
    assert asked == [0]


@pytest.mark.parametrize(("age_ms", "is_found"), [(899_999, False), (900_000, True)])
def test_a_transaction_hangs_when_no_coordinator_can_end_it_in_time(
    proxy: RewritingProxy, age_ms: int, is_found: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """transaction.max.timeout.ms, 15 minutes, after its last record."""
    now_s = 1_700_000_000
    monkeypatch.setattr(transactions, "time", SimpleNamespace(time=lambda: now_s))
    rows = pa.record_batch({"timestamp": pa.array([now_s * 1000 - age_ms]), "value": pa.array([b"v"])})
    with Client(proxy.address, **{"transactional.id": "lost"}) as client, Producer(client) as producer:
        create(client, "orders")
        producer.begin()
        producer.send("orders", 0, b"".join(ColumnWriter(**producer.fields("orders", 0)).write(rows)), 1)
        assert transactions.find_hanging(client, [("orders", 0)])[0] == []  # its coordinator has it open
        proxy.rewrite["ListTransactionsResponse"] = emptied("transaction_states")
        found, _ = transactions.find_hanging(client, [("orders", 0)])
        assert [(each.start_offset, each.transactional_id) for each in found] == ([(0, None)] if is_found else [])
        producer.abort()


# ---- responses that do not fit their requests


def emptied(name: str) -> Callable[[Any], None]:
    def empty(response: Any) -> None:
        getattr(response, name).clear()

    return empty


def test_partitions_that_a_response_leaves_out_are_errors(proxy: RewritingProxy) -> None:
    key = "orders", 0
    with Client(proxy.address, **SOON) as client:
        create(client, "orders", 2)
        commit_offsets(client, "readers", {key: 0})
        for name, part, ask, message in (
            ("ListOffsetsResponse", "topics", lambda: client.list_offsets({key: -1}), "offsets of orders-0: missing"),
            (
                "OffsetCommitResponse",
                "topics",
                lambda: commit_offsets(client, "readers", {key: 0}),
                "orders-0 of group 'readers': missing",
            ),
            ("OffsetFetchResponse", "groups", lambda: fetch_offsets(client, "readers"), "group 'readers': missing in"),
            ("OffsetFetchResponse", "groups", lambda: describe_groups(client), "group 'readers': missing in"),
            ("FindCoordinatorResponse", "coordinators", lambda: client.coordinator("a"), "of 'a': missing in the Find"),
            (
                "OffsetForLeaderEpochResponse",
                "topics",
                lambda: fetch_leader_epochs(client, key, 0),
                "missing in the Off",
            ),
        ):
            proxy.rewrite = {name: emptied(part)}
            with pytest.raises(BrokerError, match=message):
                ask()
        proxy.rewrite = {}
        assert client.list_offsets({key: -1})[key].offset == 0


def test_results_that_were_not_asked_for_are_ignored(proxy: RewritingProxy) -> None:
    def rename(response: Any) -> None:
        for each in response.results:
            each.resource_type, each.resource_name = 32, "other"

    def add(response: Any) -> None:
        response.topics[0].partitions[0].partition_index = 7

    with Client(proxy.address, **SOON) as client:
        create(client, "orders")
        proxy.rewrite = {"DescribeConfigsResponse": rename, "ListOffsetsResponse": add}
        assert describe_cluster(client).state.configs == {}
        with pytest.raises(BrokerError, match="offsets of orders-0: missing in the ListOffsets response"):
            client.list_offsets({("orders", 0): LATEST_TIMESTAMP})


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ([], [], None),
        ([(0, 0)], [], None),
        ([], [(0, 0)], None),
        ([(0, 0)], [(1, 0)], None),
        ([(0, 0)], [(0, 0)], 90),
        ([(0, 0), (2, 50)], [(0, 0), (2, 40)], 90),
        ([(0, 0), (2, 50)], [(0, 0), (3, 40)], 40),
        ([(0, 0), (1, 50), (4, 60)], [(0, 0), (1, 50), (3, 70)], 60),
    ],
)
def test_logs_agree_up_to_the_end_of_their_newest_common_epoch(
    ours: list[tuple[int, int]], theirs: list[tuple[int, int]], expected: int | None
) -> None:
    logs = [[LeaderEpoch(leader_epoch=epoch, start_offset=start) for epoch, start in log] for log in (ours, theirs)]
    assert common_end(logs[0], 100, logs[1], 90) == expected


@pytest.mark.parametrize(("throttle_ms", "expected_s"), [(0, 0), (50_000, 50), (2**31 - 1, 300)])
def test_a_throttled_client_waits_longer_for_the_next_response(
    throttle_ms: int, expected_s: int, proxy: RewritingProxy
) -> None:
    """KIP-219: the broker reads the next request when the throttle time has passed."""
    proxy.rewrite = {"MetadataResponse": lambda response: setattr(response, "throttle_time_ms", throttle_ms)}
    host, port = proxy.address.rsplit(":", 1)
    connection = BrokerConnection(host, int(port), ClientSettings.parse({"bootstrap.servers": proxy.address}))
    before = time.monotonic()
    connection.request(registry.get("MetadataRequest")())
    waits = connection.deadline_after(2000)
    assert before + expected_s + 2 <= waits <= time.monotonic() + expected_s + 2
    connection.close()
