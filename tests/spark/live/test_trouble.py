"""Lost brokers, deleted topics and deleted offsets during reads and writes: errors without hangs."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kwire.broker import Broker
from kwire.client import Client
from kwire.errors import BrokerError, ConnectionFailed, LogError
from kwire.messages import CreateAclsRequest, DeleteAclsRequest, registry

pytest.importorskip("pyspark.sql.datasource")
pytest.importorskip("confluent_kafka")

from tests.spark.live.test_sink import batch, create, options, values, write
from tests.spark.live.test_source import Cluster
from tests.waiting import HANG_MS
from tools.kafka import free_port

from kwire.spark.live.options import parse_options
from kwire.spark.live.reading import read_range
from kwire.spark.live.source import LiveStreamReader
from kwire.spark.offsets import OffsetRange

WAIT_MS = 1500
# What is over after WAIT_MS is retrying; the response to a request may take as long as a slow machine needs.
PATIENT = {"request.timeout.ms": str(HANG_MS), "socket.connection.setup.timeout.ms": str(HANG_MS)}


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as made:
        yield made


@pytest.fixture
def cluster(broker: Broker) -> Iterator[Cluster]:
    found = Cluster(broker.bootstrap_servers)
    found.create("t")
    found.write("t", 0, [f"{n:04d}" for n in range(100)])
    yield found
    found.client.close()


def offsets(servers: str, start: int, end: int, *, strict: bool = True, **settings: str) -> Iterator[int]:
    """Yield the offsets that a task returns for a range of t-0, one batch per response."""
    given = {
        "bootstrap.servers": servers,
        "default.api.timeout.ms": str(WAIT_MS),
        "max.partition.fetch.bytes": "1",
        **PATIENT,
        "client.id": f"{time.monotonic_ns()}",  # a separate client without open connections
        **settings,
    }
    wanted = OffsetRange("t", 0, start, end)
    for rows in read_range(wanted, ("offset",), given, "read_uncommitted", fail_on_data_loss=strict):
        yield from rows.column("offset").to_pylist()


def test_a_broker_lost_during_a_task_is_retried_then_reported(broker: Broker, cluster: Cluster) -> None:
    for _ in range(3):  # one response is in flight while another is read
        cluster.write("t", 0, ["more"] * 100)
    found = offsets(broker.bootstrap_servers, 0, 400)
    assert next(found) == 0
    broker.stop()
    with pytest.raises(ConnectionFailed, match="refused"):
        list(found)


def test_an_unresponsive_broker_does_not_hang_a_task(broker: Broker, cluster: Cluster) -> None:
    cluster.write("t", 0, ["more"] * 100)
    broker.faults.delay("Fetch", 2 * HANG_MS, times=None)
    short = {"request.timeout.ms": str(WAIT_MS)}
    with pytest.raises(ConnectionFailed, match="timed out"):
        list(offsets(broker.bootstrap_servers, 0, 200, **short))


def test_a_broker_that_returns_in_time_loses_and_duplicates_no_row(tmp_path: Path) -> None:
    port = free_port()
    kept = {"data_dir": tmp_path / "data", "port": port}
    rows = [f"{n:05d}" for n in range(3000)]
    with Broker(**kept) as first:
        servers = first.bootstrap_servers
        create(servers, "t")
        given = options(servers, topic="t", **{"kafka.batch.size": "2000"})
        write(batch(value=pa.array(rows[:1500])), given)
        found = offsets(servers, 0, 1500, **{"default.api.timeout.ms": str(HANG_MS)})
        assert next(found) == 0
        first.stop()

    def come_back() -> Broker:
        with socket.create_server(("127.0.0.1", port)) as nobody:
            for _ in range(2):  # attempts of the write that fail
                nobody.accept()[0].close()
        broker = Broker(**kept)
        broker.start()
        return broker

    with ThreadPoolExecutor() as pool:
        coming = pool.submit(come_back)
        write(batch(value=pa.array(rows[1500:])), given)
        broker = coming.result()
        try:
            assert list(found) == list(range(1, 1500))
            assert values(servers, "t") == rows
        finally:
            broker.stop()


@pytest.mark.slow
def test_a_write_without_a_broker_ends_at_its_timeout(broker: Broker) -> None:
    create(broker.bootstrap_servers, "w")
    short = {"kafka.delivery.timeout.ms": str(WAIT_MS)}
    given = options(broker.bootstrap_servers, topic="w", **short)
    in_transaction = options(broker.bootstrap_servers, topic="w", transactionalIdPrefix="w", **short)
    broker.faults.delay("Produce", 2 * HANG_MS, times=None)
    for each in (given, in_transaction):
        with pytest.raises(ConnectionFailed, match="timed out"):
            write(batch(value=[b"a"]), each)
    broker.stop()
    for each in (given, in_transaction):
        with pytest.raises(ConnectionFailed, match="refused"):
            write(batch(value=[b"a"]), each)


def test_offsets_deleted_during_a_read_are_reported_or_skipped(broker: Broker, cluster: Cluster) -> None:
    for _ in range(3):
        cluster.write("t", 0, ["more"] * 100)
    found = offsets(broker.bootstrap_servers, 0, 400, strict=False)
    assert next(found) == 0
    cluster.delete_before("t", 0, 350)
    rest = [*found]
    assert rest[-50:] == list(range(350, 400))
    assert rest[:-50] in [[*range(1, end)] for end in (100, 200, 300)]  # responses in flight
    assert list(offsets(broker.bootstrap_servers, 0, 400, strict=False)) == list(range(350, 400))
    with pytest.raises(LogError, match=r"offsets from 0 on were deleted \(the log starts at 350\)"):
        list(offsets(broker.bootstrap_servers, 0, 400))


def test_planned_offsets_of_a_recreated_topic_are_rejected(
    broker: Broker, cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    planned = (broker.bootstrap_servers, 50, 100)
    delete(cluster, "t")
    cluster.create("t")
    cluster.write("t", 0, ["new"] * 10)
    with pytest.raises(LogError, match=r"offsets from 50 on were deleted \(the log ends at 10\)"):
        list(offsets(*planned))
    assert list(offsets(*planned, strict=False)) == []
    assert "offsets from 50 on were deleted (the log ends at 10)" in caplog.text


def test_a_topic_deleted_during_a_query_is_reported(broker: Broker, cluster: Cluster) -> None:
    given = {
        "kafka.bootstrap.servers": broker.bootstrap_servers,
        "startingoffsets": "earliest",
        "kafkaconsumer.polltimeoutms": str(WAIT_MS),
        **{f"kafka.{name}": value for name, value in PATIENT.items()},
    }
    cluster.create("u")
    stream = LiveStreamReader(parse_options({**given, "subscribe": "t,u"}, "stream"), ("offset",))
    pattern = {**given, "subscribepattern": "t|u"}
    lenient = LiveStreamReader(parse_options({**pattern, "failondataloss": "false"}, "stream"), ("offset",))
    strict = LiveStreamReader(parse_options(pattern, "stream"), ("offset",))
    end = stream.latestOffset(stream.initialOffset())
    assert positions(end) == {"t": {"0": 100}, "u": {"0": 0}}
    delete(cluster, "t")
    with pytest.raises(BrokerError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        list(offsets(broker.bootstrap_servers, 0, 100))
    with pytest.raises(LogError, match="t not found in this cluster"):
        stream.latestOffset(end)
    with pytest.raises(
        LogError, match=r"t-0. not found, deleted or not visible to this query, which has read t-0 up to"
    ):
        strict.latestOffset(end)
    after = lenient.latestOffset(end)
    assert positions(after) == {"t": {"0": 100}, "u": {"0": 0}}
    assert lenient.partitions(end, after) == []
    for each in (stream, strict, lenient):
        each.stop()


ALL, DESCRIBE = 2, 8  # operations
DENY, ALLOW = 2, 3
TOPIC_RESOURCE, LITERAL = 2, 3


def add_acl(root: Client, topic: str, operation: int, permission: int) -> None:
    """Add an ACL of alice on a topic."""
    acl = CreateAclsRequest.AclCreation(
        resource_type=TOPIC_RESOURCE,
        resource_name=topic,
        resource_pattern_type=LITERAL,
        principal="User:alice",
        host="*",
        operation=operation,
        permission_type=permission,
    )
    assert root.request(CreateAclsRequest(creations=[acl])).results[0].error_code == 0


def remove_denials(root: Client) -> None:
    """Remove all ACLs that deny something."""
    denials = DeleteAclsRequest.DeleteAclsFilter(
        resource_type_filter=TOPIC_RESOURCE,
        resource_name_filter=None,
        pattern_type_filter=LITERAL,
        principal_filter=None,
        host_filter=None,
        operation=DESCRIBE,
        permission_type=DENY,
    )
    assert len(root.request(DeleteAclsRequest(filters=[denials])).filter_results[0].matching_acls) == 2


def test_topics_that_an_acl_hides_for_a_moment_are_not_read_again() -> None:
    # The offsets of a topic that the pattern did not find were dropped, and it was read again from its start.
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    rules = {"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "acls": True, "super_users": "User:root"}
    with Broker(**rules, users={"root": "r", "alice": "a"}) as broker, ExitStack() as stack:
        cluster = Cluster(broker.bootstrap_servers, **login, **{"sasl.username": "root", "sasl.password": "r"})
        root = stack.enter_context(cluster.client)
        add_acl(root, "*", ALL, ALLOW)
        for name in ("orders", "other"):
            cluster.create(name)
            cluster.write(name, 0, ["value"] * 10)
        alice = {**login, "bootstrap.servers": broker.bootstrap_servers, "sasl.username": "alice", "sasl.password": "a"}
        given = {f"kafka.{name}": value for name, value in alice.items()}
        given |= {"subscribepattern": "^o", "startingoffsets": "earliest"}
        strict, lenient = (
            LiveStreamReader(parse_options({**given, "failondataloss": fails}, "stream"), ("offset",))
            for fails in ("true", "false")
        )
        for each in (strict, lenient):
            stack.callback(each.stop)
        start = lenient.latestOffset(lenient.initialOffset())

        add_acl(root, "orders", DESCRIBE, DENY)
        cluster.write("other", 0, ["value"])
        with pytest.raises(
            LogError, match=r"\[orders-0\] not found, deleted or not visible .* read orders-0 up to offset 10;"
        ):
            strict.latestOffset(start)
        during = lenient.latestOffset(start)
        assert positions(during) == {"orders": {"0": 10}, "other": {"0": 11}}
        (task,) = lenient.partitions(start, during)
        assert task.ranges == [OffsetRange("other", 0, 10, 11)]
        # Records of a micro-batch that was planned before are not skipped, as those of a deleted topic are.
        with pytest.raises(BrokerError, match="topic 'orders': TOPIC_AUTHORIZATION_FAILED"):
            lenient.partitions({"orders": {"0": 5}}, during)

        add_acl(root, "other", DESCRIBE, DENY)
        assert lenient.latestOffset(during) == during
        remove_denials(root)
        cluster.write("orders", 0, ["value"])
        for each in (strict, lenient):
            after = each.latestOffset(during)
            (task,) = each.partitions(during, after)
            assert task.ranges == [OffsetRange("orders", 0, 10, 11)]


def positions(offset: dict[str, Any]) -> dict[str, Any]:
    """Return the offset of a stream without its topic ids, which are random."""
    return {topic: places for topic, places in offset.items() if "#" not in topic}


def delete(cluster: Cluster, topic: str) -> None:
    cls: Any = registry.get("DeleteTopicsRequest")
    response = cluster.client.request(cls(topic_names=[topic], timeout_ms=9_000), version=5)
    assert response.responses[0].error_code == 0
