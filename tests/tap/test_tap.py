"""The tap before kwire's own broker and cluster: addresses, faults, requests, TLS, logins, peers that misbehave."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from confluent_kafka import Consumer, Producer

import kwire
from kwire.broker import Broker, Cluster
from kwire.client import Client
from kwire.errors import KwireError, OptionError
from kwire.messages import (
    ApiVersionsRequest,
    DescribeClusterRequest,
    FetchRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    MetadataRequest,
    ProduceRequest,
    SaslHandshakeRequest,
)
from kwire.protocol import write_request
from kwire.protocol.error_codes import ErrorCode
from kwire.protocol.requests import response_codec
from kwire.records import Record, TimestampType, write_batch
from kwire.tap import Tap
from kwire.tap.shared import Shared
from tests.broker.shares.harness import EARLIEST, Member, acquired, configure, create
from tests.broker.shares.harness import produce as shared_produce
from tests.broker.wire import RawClient
from tests.waiting import HANG_S, until

QUIET = {"log_level": 0}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A cluster that all tests share."""
    with Cluster(nodes=3) as running:
        running.create_topic("orders", 3)
        yield running


@pytest.fixture
def tap(cluster: Cluster) -> Iterator[Tap]:
    """A tap before the cluster."""
    with Tap(cluster.bootstrap_servers.split(",")[0]) as running:
        yield running


def raw(servers: str) -> RawClient:
    """Return a raw client of an address."""

    class Named:
        bootstrap_servers = servers

    return RawClient(Named())  # type: ignore[arg-type]


def record(value: bytes) -> Record:
    """Return a record."""
    return Record(offset=0, timestamp=0, timestamp_type=TimestampType.CREATE_TIME, key=None, value=value, headers=[])


def produce(topic: str, partition: int, value: bytes, acks: int = -1) -> ProduceRequest:
    """Return a request with one record."""
    batch = write_batch([record(value)])
    data = ProduceRequest.PartitionProduceData(index=partition, records=batch)
    return ProduceRequest(
        acks=acks,
        timeout_ms=10_000,
        topic_data=[ProduceRequest.TopicProduceData(name=topic, partition_data=[data])],
    )


def test_every_version_of_every_response_with_addresses_names_the_tap(tap: Tap, cluster: Cluster) -> None:
    theirs = {int(each.rpartition(":")[2]) for each in cluster.bootstrap_servers.split(",")}
    with raw(tap.bootstrap_servers) as client:
        for version in range(14):
            body = client.ask(MetadataRequest(topics=None if version else []), version)
            assert {each.node_id for each in body.brokers} == {1, 2, 3}
            assert not theirs & {each.port for each in body.brokers}
        for version in range(7):
            asked = FindCoordinatorRequest(coordinator_keys=["g"]) if version >= 4 else FindCoordinatorRequest(key="g")
            body = client.ask(asked, version)
            found = body.coordinators[0] if version >= 4 else body
            assert found.error_code == 0
            assert found.port not in theirs
        for version in range(3):
            body = client.ask(DescribeClusterRequest(), version)
            assert not theirs & {each.port for each in body.brokers}
    ports = {each.node_id: int(each.address.rpartition(":")[2]) for each in tap.nodes}
    assert {each.port for each in body.brokers} == set(ports.values())


def test_the_new_leader_of_an_error_is_behind_the_tap(tap: Tap, cluster: Cluster) -> None:
    leader = cluster.move_leader("orders", 0, to=2)
    other = next(each for each in (1, 3) if each != leader)
    with raw(tap.bootstrap_servers) as client:
        client.ask(MetadataRequest(topics=None), 9)
    addresses = {each.node_id: each.address for each in tap.nodes}
    with raw(addresses[other]) as client:
        body = client.ask(produce("orders", 0, b"x"), 10)
    assert body.responses[0].partition_responses[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert [f"{each.host}:{each.port}" for each in body.node_endpoints] == [addresses[leader]]


def test_clients_follow_leaders_through_the_tap(tap: Tap, cluster: Cluster) -> None:
    cluster.create_topic("moved", 1)
    producer = Producer({"bootstrap.servers": tap.bootstrap_servers, **QUIET})
    for node in (1, 2, 3):
        cluster.move_leader("moved", 0, to=node)
        producer.produce("moved", b"to %d" % node)
        assert not producer.flush(HANG_S)
    del producer
    consumer = Consumer(
        {"bootstrap.servers": tap.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest", **QUIET}
    )
    consumer.subscribe(["moved"])
    assert [consumer.poll(HANG_S).value() for _ in range(3)] == [b"to 1", b"to 2", b"to 3"]
    consumer.close()
    assert {each.node_id for each in tap.requests.of("Produce")} == {1, 2, 3}


def test_kwires_own_client_works_through_the_tap(tap: Tap, cluster: Cluster) -> None:
    cluster.create_topic("own", 2)
    with Client(tap.bootstrap_servers) as client:
        cluster_id = client.metadata().cluster_id
    assert cluster_id == tap.requests.of("Metadata")[0].response.cluster_id  # type: ignore[union-attr]


def test_api_versions_are_limited_to_what_the_tap_can_read(tap: Tap) -> None:
    with raw(tap.bootstrap_servers) as client:
        for version in (0, 3, 4):
            body = client.ask(ApiVersionsRequest(client_software_name="t", client_software_version="1"), version)
            assert body.error_code == 0
            assert len(body.api_keys) > 40
        frame, _ = write_request(ApiVersionsRequest(), 4, correlation_id=77, client_id="c")
        client.sock.sendall(frame[:6] + (99).to_bytes(2, "big") + frame[8:])
        data = client.sock.recv(1 << 16)
    assert data[4:8] == (77).to_bytes(4, "big")
    assert int.from_bytes(data[8:10], "big") == ErrorCode.UNSUPPORTED_VERSION


def test_versions_whose_addresses_it_cannot_replace_are_refused(tap: Tap, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "kwire.tap")
    frame, _ = write_request(MetadataRequest(), 9, correlation_id=1, client_id="c")
    with raw(tap.bootstrap_servers) as client:
        client.sock.sendall(frame[:6] + (99).to_bytes(2, "big") + frame[8:])
        assert client.is_closed()
    assert "api key 3 version 99 is not supported by the tap; supported versions: 0-13" in caplog.text


def test_pipelined_requests_keep_their_order(tap: Tap) -> None:
    with raw(tap.bootstrap_servers) as client:
        asked = [MetadataRequest(topics=[]), HeartbeatRequest(group_id="g"), ApiVersionsRequest()] * 20
        versions = [9, 4, 2] * 20
        frames = [client.protocol.send(each, version=version) for each, version in zip(asked, versions, strict=True)]
        client.sock.sendall(b"".join(frames))
        names = [type(client.receive()).__name__ for _ in asked]
    assert names == ["MetadataResponse", "HeartbeatResponse", "ApiVersionsResponse"] * 20


@pytest.mark.parametrize("kept", [0, 1000])
def test_requests_without_a_response_do_not_shift_those_after_them(cluster: Cluster, kept: int) -> None:
    cluster.create_topic(f"fire-{kept}", 1)
    leader = cluster.move_leader(f"fire-{kept}", 0, to=1)
    with Tap(cluster.bootstrap_servers.split(",")[leader - 1], keep_requests=kept) as tap:
        with raw(tap.bootstrap_servers) as client:
            for number in range(5):
                client.sock.sendall(
                    write_request(produce(f"fire-{kept}", 0, b"x", acks=0), 9, correlation_id=number, client_id=None)[0]
                )
            assert client.ask(HeartbeatRequest(group_id="g"), 4).error_code
        until(lambda: len(cluster.records(f"fire-{kept}", 0)) == 5)


def test_small_responses_do_not_wait_for_acknowledgements_of_those_before_them(tap: Tap) -> None:
    def options(_: Shared) -> list[int]:
        (connection,) = tap._connections
        sides = [each.transport for each in (connection.client, connection.upstream)]
        sockets = [side.get_extra_info("socket") for side in sides if side is not None]
        return [each.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) for each in sockets]

    with raw(tap.bootstrap_servers) as client:
        client.ask(HeartbeatRequest(group_id="g"), 4)
        assert tap.call(options) == [1, 1]


@pytest.mark.parametrize("kept", [0, 1000])
def test_requests_of_a_client_that_leaves_at_once_arrive(kept: int) -> None:
    with Broker() as broker, Tap(broker.bootstrap_servers, keep_requests=kept) as tap:
        broker.create_topic("forgotten", 1)
        for number in range(20):  # before the tap has connected to the broker
            with raw(tap.bootstrap_servers) as client:
                client.send(produce("forgotten", 0, b"%d" % number, acks=0), 9)
        until(lambda: len(broker.records("forgotten", 0)) == 20)
        until(lambda: not tap._connections)


# Faults


def test_a_fault_of_one_partition_leaves_the_others_to_the_cluster(tap: Tap, cluster: Cluster) -> None:
    cluster.create_topic("two", 2)
    for partition in (0, 1):
        cluster.move_leader("two", partition, to=1)
    fault = tap.faults.fail("Produce", "NOT_ENOUGH_REPLICAS", topic="two", partition=0)
    one, other = produce("two", 0, b"0"), produce("two", 1, b"1")
    one.topic_data[0].partition_data += other.topic_data[0].partition_data
    with raw(tap.bootstrap_servers) as client:
        body = client.ask(one, 9)
    codes = {each.index: each.error_code for each in body.responses[0].partition_responses}
    assert codes == {0: ErrorCode.NOT_ENOUGH_REPLICAS, 1: 0}
    assert fault.hits == 1
    assert [len(cluster.records("two", partition)) for partition in (0, 1)] == [0, 1]
    assert tap.requests.of("Produce")[0].errors == ["NOT_ENOUGH_REPLICAS"]


def fetch(topic: str, session_id: int, epoch: int, partitions: tuple[int, ...]) -> FetchRequest:
    asked = [FetchRequest.FetchPartition(partition=each, partition_max_bytes=1000) for each in partitions]
    topics = [FetchRequest.FetchTopic(topic=topic, partitions=asked)] if partitions else []
    return FetchRequest(
        max_wait_ms=0, min_bytes=0, max_bytes=10_000, session_id=session_id, session_epoch=epoch, topics=topics
    )


def codes_of(body: Any) -> dict[int, int]:
    return {each.partition_index: each.error_code for topic in body.responses for each in topic.partitions}


def test_errors_of_fetches_reach_partitions_of_a_session(cluster: Cluster) -> None:
    cluster.create_topic("sessions", 2)
    for partition in (0, 1):
        cluster.move_leader("sessions", partition, to=1)
    with Tap(cluster.bootstrap_servers.split(",")[0]) as tap, raw(tap.bootstrap_servers) as client:
        begun = client.ask(fetch("sessions", 0, 0, (0, 1)), 11)
        assert codes_of(begun) == {0: 0, 1: 0}
        with tap.faults.fail("Fetch", "KAFKA_STORAGE_ERROR", topic="sessions", partition=1, times=None) as fault:
            body = client.ask(fetch("sessions", begun.session_id, 1, ()), 11)
            assert codes_of(body) == {1: ErrorCode.KAFKA_STORAGE_ERROR}, "left out of the cluster's response"
            assert fault.hits == 1
        assert codes_of(client.ask(fetch("sessions", begun.session_id, 2, ()), 11)) == {}


def test_a_session_that_was_passed_unread_is_begun_again_for_a_fault(cluster: Cluster) -> None:
    with Tap(cluster.bootstrap_servers.split(",")[0], keep_requests=0) as tap, raw(tap.bootstrap_servers) as client:
        begun = client.ask(fetch("sessions", 0, 0, (0, 1)), 11)
        assert client.ask(fetch("sessions", begun.session_id, 1, ()), 11).error_code == 0
        tap.faults.fail("Fetch", "KAFKA_STORAGE_ERROR", topic="sessions", partition=0)
        body = client.ask(fetch("sessions", begun.session_id, 2, ()), 11)
        assert body.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        body = client.ask(fetch("sessions", 0, 0, (0, 1)), 11)
        assert codes_of(body) == {0: ErrorCode.KAFKA_STORAGE_ERROR, 1: 0}


def test_a_partition_of_a_share_session_fails() -> None:
    """Of one that the tap has seen from its start, and of one that it has not: its client begins it again."""
    with (
        Broker() as broker,
        Tap(broker.bootstrap_servers, keep_requests=0) as tap,
        raw(tap.bootstrap_servers) as client,
    ):
        topic_id = create(client, "shared", 2)
        configure(client, "g", EARLIEST)
        for partition in (0, 1):
            shared_produce(client, "shared", 2, partition)
        member = Member(client, "g", "shared", topic_id).join()
        assert acquired(member.fetch(partitions=(0, 1), max_records=0)) == []
        client.ask(MetadataRequest(topics=None), 12)  # the tap learns the topic's name
        fault = tap.faults.fail("ShareFetch", "NOT_LEADER_OR_FOLLOWER", topic="shared", partition=1)
        assert member.fetch(partitions=()).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
        assert fault.hits == 0
        with tap.faults.observe("ShareFetch", partition=0) as seen:
            assert member.fetch(epoch=0, partitions=(0,), max_records=0).error_code == 0
            assert member.fetch(partitions=(1,), max_records=0).responses[0].partitions[0].error_code == 6
            assert (fault.hits, seen.hits) == (1, 2)
            again = tap.faults.fail("ShareFetch", "NOT_LEADER_OR_FOLLOWER", topic="shared", partition=1)
            response = member.fetch(partitions=())
            codes = {each.partition_index: each.error_code for each in response.responses[0].partitions}
            assert (codes, acquired(response)) == ({0: 0, 1: 6}, [(0, 1, 1)])
            assert (again.hits, seen.hits) == (1, 3)
            tap.faults.fail("ShareFetch", "NOT_LEADER_OR_FOLLOWER", topic="shared", partition=0)
            (failed,) = member.fetch([(0, 1, [1])]).responses[0].partitions
            assert (failed.error_code, failed.acknowledge_error_code) == (6, 6)
            (done,) = member.fetch([(0, 1, [1])]).responses[0].partitions
            assert (done.error_code, done.acknowledge_error_code) == (0, 0)


def test_held_requests_hold_the_ones_after_them(tap: Tap) -> None:
    held = tap.faults.hold("Heartbeat")
    with raw(tap.bootstrap_servers) as client:
        client.send(HeartbeatRequest(group_id="g"), 4)
        client.send(MetadataRequest(topics=[]), 9)
        held.wait()
        assert not client.is_closed(0)
        client.sock.settimeout(HANG_S)
        held.release()
        assert [type(client.receive()).__name__ for _ in range(2)] == ["HeartbeatResponse", "MetadataResponse"]
        held.remove()


def test_a_client_that_leaves_is_no_longer_held(tap: Tap) -> None:
    held = tap.faults.hold("Heartbeat", times=None)
    with raw(tap.bootstrap_servers) as client:
        client.send(HeartbeatRequest(group_id="g"), 4)
        held.wait()
        assert held.held == 1
    until(lambda: held.held == 0)


def test_other_effects(tap: Tap) -> None:
    address = tap.bootstrap_servers
    tap.faults.drop("Heartbeat")
    with raw(address) as client:
        client.send(HeartbeatRequest(group_id="g"), 4)
        assert client.is_closed()
    tap.faults.cut("Heartbeat", 6)
    with raw(address) as client:
        client.send(HeartbeatRequest(group_id="g"), 4)
        assert len(client.sock.recv(100)) == 6
        assert client.is_closed()
    tap.faults.respond("Heartbeat", {"error_code": "REBALANCE_IN_PROGRESS"})
    tap.faults.change("Metadata", {"cluster_id": "changed"})
    tap.faults.slow("Heartbeat", 200, skip=1)
    with raw(address) as client:
        assert client.ask(HeartbeatRequest(group_id="g"), 4).error_code == ErrorCode.REBALANCE_IN_PROGRESS
        assert client.ask(MetadataRequest(topics=[]), 9).cluster_id == "changed"
        assert client.ask(HeartbeatRequest(group_id="g"), 4).error_code
        assert client.ask(HeartbeatRequest(group_id="g"), 4).error_code
    refused = tap.faults.refuse()
    with contextlib.suppress(OSError), raw(address) as client:  # the reset may be faster than the test
        client.send(HeartbeatRequest(group_id="g"), 4)
        assert client.is_closed()
    assert refused.wait() == 1


def test_a_node_in_the_conditions_is_one_behind_the_tap(tap: Tap) -> None:
    with raw(tap.bootstrap_servers) as client:
        client.ask(MetadataRequest(topics=[]), 9)
    fault = tap.faults.fail("Heartbeat", "NOT_COORDINATOR", node=3)
    addresses = {each.node_id: each.address for each in tap.nodes}
    for node, expected in ((2, 0), (3, 1)):
        with raw(addresses[node]) as client:
            client.ask(HeartbeatRequest(group_id="g"), 4)
        assert fault.hits == expected


def test_requests_that_are_waited_for(tap: Tap) -> None:
    with raw(tap.bootstrap_servers) as client:
        client.ask(MetadataRequest(topics=[]), 9)
        client.ask(HeartbeatRequest(group_id="billing"), 4)
    found = tap.wait_for("Heartbeat", group="billing")
    assert found.node_id == 1
    with pytest.raises(TimeoutError, match="no request to Heartbeat"):
        tap.wait_for("Heartbeat", group="other", timeout=0)


# TLS and logins


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Paths of certificates and keys."""
    root = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(root / "ca.pem")
    for who in ("server", "client"):
        issued = authority.issue_cert("127.0.0.1", common_name=who)
        issued.private_key_and_cert_chain_pem.write_to_path(root / f"{who}.pem")
    return {path.name: str(path) for path in root.iterdir()}


def test_tls_on_both_sides_with_certificates_of_clients(files: dict[str, str]) -> None:
    server = {"ssl_certfile": files["server.pem"], "ssl_cafile": files["ca.pem"], "ssl_client_auth": "required"}
    own = {
        "security.protocol": "SSL", "ssl.ca.location": files["ca.pem"], "ssl.certificate.location": files["client.pem"],
        "ssl.key.location": files["client.pem"],
    }  # fmt: skip
    with Broker(**server) as broker, Tap(broker.bootstrap_servers, listen_configs=server, **own) as tap:
        broker.create_topic("t")
        producer = Producer({"bootstrap.servers": tap.bootstrap_servers, **own, **QUIET})
        producer.produce("t", b"v")
        assert not producer.flush(HANG_S)
        assert [each.value for each in broker.records("t")] == [b"v"]
        assert all(each.principal.startswith("User:CN=client,") for each in tap.requests)
        del producer
        without = {name: own[name] for name in ("security.protocol", "ssl.ca.location")}
        other = Client(tap.bootstrap_servers, default_api_timeout_ms=500, **without)
        with pytest.raises(KwireError), other as client:
            client.metadata()


def test_the_tap_trusts_no_other_cluster(files: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    other = trustme.CA()
    server = {"ssl_certfile": files["server.pem"]}
    configs = {"security.protocol": "SSL", "ssl.truststore.certificates": other.cert_pem.bytes().decode()}
    with (
        Broker(**server) as broker,
        Tap(broker.bootstrap_servers, **configs) as tap,
        raw(tap.bootstrap_servers) as client,
    ):
        assert client.is_closed()
    assert "TLS: CERTIFICATE_VERIFY_FAILED" in caplog.text


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_logins_are_passed_on(mechanism: str) -> None:
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism, "sasl.username": "u"}
    with Broker(users={"u": "secret"}) as broker, Tap(broker.bootstrap_servers) as tap:
        broker.create_topic("t")
        producer = Producer({"bootstrap.servers": tap.bootstrap_servers, **login, "sasl.password": "secret", **QUIET})
        producer.produce("t", b"v")
        assert not producer.flush(HANG_S)
        del producer
        assert "secret" not in str(list(tap.requests))
        assert "[hidden]" in str(list(tap.requests))


@pytest.mark.parametrize("kept", [0, 10])
def test_tokens_of_the_first_version_have_no_header(kept: int) -> None:
    token = b"\0u\0secret"
    with (
        Broker(users={"u": "secret"}) as broker,
        Tap(broker.bootstrap_servers, keep_requests=kept) as tap,
        raw(tap.bootstrap_servers) as client,
    ):
        client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 0)
        client.sock.sendall(len(token).to_bytes(4, "big") + token)
        assert client.sock.recv(100) == b"\0\0\0\0"
        assert client.ask(MetadataRequest(topics=[]), 9).brokers
        assert client.ask(HeartbeatRequest(group_id="g"), 4).error_code


@pytest.mark.parametrize(
    ("listen_configs", "configs", "problem"),
    [
        ({}, {}, "ask for no TLS"),
        ({"ssl.client.auth": "none"}, {}, "ask for no TLS"),
        ({"ssl.certfle": "x"}, {}, "ssl.certfle"),
        ({"ssl.certfile": "/nowhere.pem"}, {}, "ssl_certfile"),
        ({"sasl.enabled.mechanisms": "PLAIN"}, {}, "passes logins on to the cluster; remove it"),
        ({"super.users": "User:a"}, {}, "config super.users is not supported"),
        (None, {"ssl.truststore.location": "/ca.pem"}, "no effect without TLS"),
        (None, {"security.protocol": "SASL_PLAINTEXT", "ssl.truststore.location": "/ca.pem"}, "no effect without TLS"),
        (None, {"security.protocl": "SSL"}, "unknown config 'security.protocl'"),
        (None, {"security.protocol": "TLS"}, "security.protocol"),
    ],
)
def test_protection_is_never_lost(
    listen_configs: dict[str, object] | None, configs: dict[str, str], problem: str
) -> None:
    with pytest.raises(OptionError, match=problem):
        Tap("127.0.0.1:9", listen_configs=listen_configs, **configs)


def test_clients_have_certificates_where_their_authority_is_given(files: dict[str, str]) -> None:
    own = {"ssl.certfile": files["server.pem"], "ssl.keyfile": files["server.pem"], "ssl.cafile": files["ca.pem"]}
    for mode in ({}, {"ssl.client.auth": "none"}):
        with pytest.raises(OptionError, match=r"config ssl\.cafile has no effect: .* set ssl\.client\.auth=required"):
            Tap("127.0.0.1:9", listen_configs={**own, **mode})


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_configs_of_logins_are_named(caplog: pytest.LogCaptureFixture, protocol: str) -> None:
    """Another warning said that security.protocol was PLAINTEXT, whatever it was."""
    Tap("127.0.0.1:9", security_protocol=protocol, sasl_mechanism="PLAIN", acks="all")
    (warning,) = [each.getMessage() for each in caplog.records]
    assert "whose clients use their own: sasl.mechanism, acks" in warning


# Peers that misbehave


class Peer:
    """A server that does what it is told to with each connection."""

    def __init__(self, act: Any) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "{}:{}".format(*self._listener.getsockname())
        self._act = act

    def __enter__(self) -> Peer:
        threading.Thread(target=self._run, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _run(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self._listener.accept()
                sock.settimeout(HANG_S)
                threading.Thread(target=self._one, args=(sock,), daemon=True).start()

    def _one(self, sock: socket.socket) -> None:
        with contextlib.suppress(OSError), sock:
            self._act(sock)


CORRELATION = (1).to_bytes(4, "big")
ANSWERS = {
    "closes": b"",
    "half a length": b"\0\0",
    "half a frame": b"\0\0\1\0" + CORRELATION,
    "a negative length": b"\xff\xff\xff\xff",
    "a frame of 2**31 - 1 bytes": b"\x7f\xff\xff\xff" + CORRELATION,
    "another correlation id": b"\0\0\0\4\0\0\0\7",
    "no correlation id": b"\0\0\0\2ab",
    "an invalid response": b"\0\0\0\x08" + CORRELATION + b"\xff\xff\xff\xff",
    "one response too many": b"\0\0\0\6" + CORRELATION + b"\0\0" + b"\0\0\0\4\0\0\0\2",
}


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("kept", [0, 10])
def test_brokers_that_misbehave_end_the_connection_and_nothing_else(name: str, kept: int) -> None:
    def act(sock: socket.socket) -> None:
        sock.recv(1000)
        sock.sendall(ANSWERS[name])
        if name == "closes":
            return
        sock.shutdown(socket.SHUT_WR)
        sock.recv(1000)

    with Peer(act) as peer, Tap(peer.address, keep_requests=kept) as tap:
        for _ in range(2):
            with raw(tap.bootstrap_servers) as client:
                client.sock.sendall(write_request(MetadataRequest(topics=[]), 9, correlation_id=1, client_id="c")[0])
                with contextlib.suppress(ConnectionResetError):
                    while client.sock.recv(1000):
                        pass


REQUESTS = {
    "a negative length": b"\xff\xff\xff\xff",
    "a frame above the limit of Kafka": (100 * 1024 * 1024 + 1).to_bytes(4, "big"),
    "too short": b"\0\0\0\2ab",
    "no correlation id": b"\0\0\0\7\0\3\0\11abc",
}


@pytest.mark.parametrize("name", REQUESTS)
def test_clients_that_misbehave_are_disconnected(name: str, tap: Tap) -> None:
    with raw(tap.bootstrap_servers) as client:
        client.sock.sendall(REQUESTS[name])
        assert client.is_closed()
    with raw(tap.bootstrap_servers) as client:
        assert client.ask(MetadataRequest(topics=[]), 9).brokers


def test_a_request_that_the_tap_cannot_read_is_for_the_cluster_to_judge(tap: Tap) -> None:
    with raw(tap.bootstrap_servers) as client:
        client.sock.sendall(
            b"\0\0\0\x0e\0\x0c\0\4\0\0\0\1\0\1c\xff\xff\xff"
        )  # a Heartbeat with a tag section of nothing
        assert client.is_closed(), "by the broker"


@pytest.mark.parametrize("kept", [0, 10])
def test_a_client_that_does_not_read_stops_the_broker(kept: int) -> None:
    """What the broker can send is what the sockets' buffers and one frame take, not what it has."""
    sent = 0
    frame = (1 << 20).to_bytes(4, "big") + CORRELATION + bytes((1 << 20) - 4)

    def act(sock: socket.socket) -> None:
        nonlocal sent
        sock.recv(1000)
        sock.settimeout(0.5)
        while True:
            sent += sock.send(frame[sent % len(frame) :])

    with Peer(act) as peer, Tap(peer.address, keep_requests=kept) as tap, raw(tap.bootstrap_servers) as client:
        request = write_request(HeartbeatRequest(group_id="g"), 4, correlation_id=1, client_id="c")[0]
        client.sock.sendall(request * 200)
        until(lambda: sent > 0)
        before = -1
        while sent != before:
            before = sent
            time.sleep(0.3)
    assert sent < 20 << 20


def test_a_client_that_sends_without_end_is_stopped() -> None:
    def act(sock: socket.socket) -> None:
        time.sleep(30)

    sent = 0
    with Peer(act) as peer, Tap(peer.address, keep_requests=0) as tap, raw(tap.bootstrap_servers) as client:
        request = write_request(HeartbeatRequest(group_id="g"), 4, correlation_id=1, client_id="c")[0] * 1000
        client.sock.settimeout(0.5)
        with contextlib.suppress(TimeoutError):
            while sent < 100 << 20:
                sent += client.sock.send(request)
    assert sent < 40 << 20


HALF = (99_000_000).to_bytes(4, "big") + b"\0\0\0\x09\0\0\0\1\0\1c" + bytes(5_000_000)
"""The begin of a Produce request."""


def test_halves_of_large_requests_have_a_limit_over_all_connections(cluster: Cluster) -> None:
    """Twenty clients, each with half of a large request, took 1.3 GB of the tap; those that left, until it ended."""
    limit = 12_000_000
    with Tap(cluster.bootstrap_servers.split(",")[0]) as tap, contextlib.ExitStack() as clients:

        def used(shared: Shared) -> int:
            return sum(each._requests.kept_bytes for each in tap._connections)

        def lower(shared: Shared) -> None:
            shared.request_memory.pool.limit_bytes = limit

        tap.call(lower)
        waiting = []
        for _ in range(6):
            client = clients.enter_context(raw(tap.bootstrap_servers))
            client.sock.setblocking(False)
            rest = memoryview(HALF)
            with contextlib.suppress(BlockingIOError):
                while rest:
                    rest = rest[client.sock.send(rest) :]
            waiting.append(client)
        until(lambda: tap.call(lambda shared: shared.request_memory.pool.is_short))
        assert tap.call(used) < limit + 6 * (1 << 20), "the limit, and what was read at once"
        with raw(tap.bootstrap_servers) as other:  # small requests have no part in it
            assert other.ask(ApiVersionsRequest(), 0).api_keys
        for client in waiting[:-1]:
            client.sock.close()
        until(lambda: not tap.call(lambda shared: shared.request_memory.pool.is_short))
        waiting[-1].sock.close()
        until(lambda: not tap.call(lambda shared: shared.request_memory.pool.used_bytes))


def test_a_large_request_that_waited_for_memory_arrives(cluster: Cluster) -> None:
    with Tap(cluster.bootstrap_servers.split(",")[0]) as tap, contextlib.ExitStack() as clients:
        tap.call(lambda shared: setattr(shared.request_memory.pool, "limit_bytes", 1_000_000))
        request = produce("orders", 0, bytes(900_000))
        sent = [clients.enter_context(raw(tap.bootstrap_servers)) for _ in range(4)]
        data = [client.protocol.send(request, version=9) for client in sent]
        for client, each in zip(sent, data, strict=True):  # halves of all, then the rest
            client.sock.sendall(each[:500_000])
        for client, each in reversed(list(zip(sent, data, strict=True))):
            client.sock.sendall(each[500_000:])
        for client in sent:
            assert client.receive().responses, "from the first node, whoever leads"


def test_a_cluster_that_is_down_is_an_error_that_clients_survive(caplog: pytest.LogCaptureFixture) -> None:
    broker = Broker()
    broker.start()
    broker.create_topic("t")
    address = broker.bootstrap_servers
    broker.stop()
    with Tap(address) as tap:
        with raw(tap.bootstrap_servers) as client:
            assert client.is_closed()
            with raw(tap.bootstrap_servers) as again:
                assert again.is_closed()
        assert caplog.text.count(f"cannot connect to {address}: Connection refused") == 1, "not with each attempt"
        producer = Producer({"bootstrap.servers": tap.bootstrap_servers, "reconnect.backoff.max.ms": 100, **QUIET})
        producer.produce("t", b"v")
        broker.start()
        assert not producer.flush(HANG_S)
        del producer
    broker.stop()


def test_a_tap_before_itself_says_so(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with Tap(f"127.0.0.1:{port}", port) as tap, raw(tap.bootstrap_servers) as client:
        assert client.is_closed()
    assert "this is the tap's own address" in caplog.text


def test_a_node_with_an_address_of_the_tap_costs_it_nothing() -> None:
    """Each connection to itself was accepted and led to the next one: one client, and the tap was busy for good."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with Tap(f"127.0.0.1:{port}", port) as tap:
        with raw(tap.bootstrap_servers) as client:
            assert client.is_closed()
        time.sleep(0.1)
        count = tap._count
        time.sleep(0.1)
        assert tap._count == count < 10


def taken_port() -> socket.socket:
    """Return a listening socket before whose port there is a free one."""
    while True:
        taken = socket.create_server(("127.0.0.1", 0))
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", taken.getsockname()[1] - 1)):
            return taken
        taken.close()


def test_ports_in_use_are_skipped_or_named() -> None:
    with Broker() as broker, taken_port() as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OptionError, match=f"cannot listen on 127.0.0.1:{port}: Address already in use"):
            Tap(broker.bootstrap_servers, port).start()
        with Tap(f"localhost:{broker.port}", port - 1) as tap, raw(tap.bootstrap_servers) as client:
            client.ask(MetadataRequest(topics=[]), 9)
            (node,) = tap.nodes
            assert int(node.address.rpartition(":")[2]) > port


def test_a_cluster_of_one_keeps_the_port_that_was_chosen() -> None:
    with Broker() as broker, Tap(broker.bootstrap_servers) as tap, raw(tap.bootstrap_servers) as client:
        (named,) = client.ask(MetadataRequest(topics=[]), 9).brokers
        assert f"{named.host}:{named.port}" == tap.bootstrap_servers


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"record": 5}, "invalid record 5: must be a path, or None for no recording"),
        ({"record": ""}, "invalid record '': must be a path, or None for no recording"),
        ({"listen_configs": 5}, "invalid listen_configs 5: must be a mapping, or None for no TLS"),
    ],
)
def test_arguments_of_another_type_are_errors(given: dict[str, Any], problem: str) -> None:
    """A recording went to a file with the name 5, and a number instead of configs was a TypeError."""
    with pytest.raises(OptionError, match=problem):
        Tap("127.0.0.1:9092", **given)


def test_it_stops_while_clients_wait_and_starts_again(cluster: Cluster) -> None:
    tap = Tap(cluster.bootstrap_servers)
    for _ in range(2):
        with tap:
            held = tap.faults.hold("Heartbeat", times=None)
            client = raw(tap.bootstrap_servers)
            client.send(HeartbeatRequest(group_id="g"), 4)
            held.wait(1)
            held.remove()
        client.sock.close()
    with pytest.raises(OptionError, match="the tap is not running"):
        _ = tap.bootstrap_servers


def test_a_recording_shows_what_clients_saw(cluster: Cluster, tmp_path: Path) -> None:
    from kwire.capture import CaptureCounts, read_capture

    cluster.create_topic("recorded", 1)
    file = tmp_path / "session.pcapng"
    with Tap(cluster.bootstrap_servers.split(",")[0], record=file) as tap:
        tap.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER")
        producer = Producer({"bootstrap.servers": tap.bootstrap_servers, **QUIET})
        producer.produce("recorded", b"v" * 100_000)
        assert not producer.flush(HANG_S)
        del producer
        sent = [(each.api, each.errors) for each in tap.requests if each.api == "Produce"]
        addresses = {each.address for each in tap.nodes}
    counts = CaptureCounts()
    exchanges = [each.to_json() for each in read_capture(file, counts=counts)]
    assert not counts.lost_bytes
    left_early = "its response was not captured"  # librdkafka asks for metadata again, and ends as soon as all is sent
    assert not [
        each for each in exchanges if each["problem"] and (each["api"], each["problem"]) != ("Metadata", left_early)
    ]
    produced = [each for each in exchanges if each["api"] == "Produce"]
    assert len(produced) == len(sent) == 2
    assert all(each["server"] in addresses for each in produced)
    with pytest.raises(OptionError, match="exists already"), Tap(cluster.bootstrap_servers, record=file):
        pass
    with kwire.open(file) as logs:
        assert [len(each.value or b"") for each in logs["recorded", 0].read()] == [100_000]


@pytest.mark.parametrize("kept", [0, 10])
@pytest.mark.parametrize("version", [0, 1])
def test_a_recording_has_no_secrets(kept: int, version: int, tmp_path: Path) -> None:
    from kwire.messages import IncrementalAlterConfigsRequest, SaslAuthenticateRequest

    file = tmp_path / "secret.pcapng"
    value = b"\0u\0se-cret"
    with (
        Broker(users={"u": "se-cret"}) as broker,
        Tap(broker.bootstrap_servers, record=file, keep_requests=kept) as tap,
        raw(tap.bootstrap_servers) as client,
    ):
        client.ask(SaslHandshakeRequest(mechanism="PLAIN"), version)
        if version:
            assert client.ask(SaslAuthenticateRequest(auth_bytes=value), 2).error_code == 0
        else:
            client.sock.sendall(len(value).to_bytes(4, "big") + value)
            assert client.sock.recv(100) == b"\0\0\0\0"
        config = IncrementalAlterConfigsRequest.AlterableConfig(name="ssl.keystore.password", value="se-cret")
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=4, resource_name="1", configs=[config]
        )
        client.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
        assert client.ask(MetadataRequest(topics=[]), 9).brokers
        frame, _ = write_request(SaslAuthenticateRequest(auth_bytes=value), 2, correlation_id=1, client_id="c")
        with raw(tap.bootstrap_servers) as client:  # in a version that the tap cannot read
            client.sock.sendall(frame[:6] + (99).to_bytes(2, "big") + frame[8:])
            assert client.is_closed()
        with raw(tap.bootstrap_servers) as client:  # a token without a handshake, as in Kafka 0.9
            client.sock.sendall((len(value) + 9).to_bytes(4, "big") + b"\0somebody" + value)
            assert client.is_closed()
        tap.faults.slow("SaslAuthenticate", 1000)
        with raw(tap.bootstrap_servers) as client:
            client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
            assert client.ask(SaslAuthenticateRequest(auth_bytes=value), 2).error_code == 0
    data = file.read_bytes()
    assert b"se-cret" not in data
    assert b"[hidden]" in data
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.slow
@pytest.mark.parametrize(("version", "keep_requests"), [(12, 100), (17, 0), (17, 100)])
def test_fetched_records_above_the_largest_frame_are_passed_on(version: int, keep_requests: int) -> None:
    """110 MB in one response; what is held of it at a time is what the sockets have."""
    with (
        Broker(message_max_bytes=60 << 20, fetch_max_bytes=1 << 30) as broker,
        Tap(broker.bootstrap_servers, keep_requests=keep_requests) as tap,
        raw(tap.bootstrap_servers) as client,
    ):
        broker.create_topic("large", 2)
        value = bytes(55 << 20)
        for partition in (0, 1):
            response = client.ask(produce("large", partition, value), 9)
            assert response.responses[0].partition_responses[0].error_code == 0
        topic_id = broker.call(lambda node: node.topics.get("large").topic_id)  # type: ignore[union-attr]
        parts = [FetchRequest.FetchPartition(partition=each, partition_max_bytes=1 << 30) for each in (0, 1)]
        topic = FetchRequest.FetchTopic(topic="large", topic_id=topic_id, partitions=parts)
        request = FetchRequest(max_wait_ms=1000, min_bytes=1, max_bytes=1 << 30, topics=[topic], session_epoch=-1)
        received = fetched(client, request, version)
        assert [len(each.records or b"") > len(value) for each in received.responses[0].partitions] == [True, True]
        assert client.ask(MetadataRequest(topics=None), 12).topics[0].name == "large"
        if keep_requests:
            assert [(each.api, each.response is None) for each in tap.requests][-2:] == [
                ("Fetch", True), ("Metadata", False)
            ]  # fmt: skip


def fetched(client: RawClient, request: FetchRequest, version: int) -> Any:
    """Return the response to a request, which may be larger than those of other clients."""
    frame, _ = write_request(request, version=version, correlation_id=1, client_id="raw")
    client.sock.sendall(frame)
    size = int.from_bytes(client.sock.recv(4, socket.MSG_WAITALL), "big")
    assert size > 100 << 20
    received = bytearray(size + 4)
    received[:4] = size.to_bytes(4, "big")
    at = 4
    while at < len(received):
        at += client.sock.recv_into(memoryview(received)[at:])
    _, body = response_codec(1, version).decode(bytes(received), True, True, False)
    return body
