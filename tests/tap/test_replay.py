"""Clients that get the responses of a recording: the same program, one that differs, one that polls more often."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from kwire.broker import Broker, Cluster
from kwire.errors import OptionError
from kwire.messages import (
    HeartbeatRequest,
    MetadataRequest,
    OffsetCommitRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from kwire.tap import Replay, Tap
from tests.tap.test_tap import QUIET, fetch, produce, raw
from tests.waiting import HANG_S


def program(servers: str, value: bytes = b"v") -> list[bytes]:
    """Produce and consume, as an application does."""
    producer = Producer({"bootstrap.servers": servers, **QUIET})
    for number in range(10):
        producer.produce("orders", value + b"%d" % number, partition=number % 2)
        assert not producer.flush(HANG_S)
    del producer
    group = {"group.id": "g", "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer({"bootstrap.servers": servers, **group, **QUIET})
    consumer.subscribe(["orders"])
    found = sorted(consumer.poll(HANG_S).value() for _ in range(10))
    consumer.close()
    return found


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of the program, before a cluster of two nodes."""
    file = tmp_path_factory.mktemp("tap") / "session.pcapng"
    with Cluster(nodes=2) as cluster:
        cluster.create_topic("orders", 2)
        with Tap(cluster.bootstrap_servers, record=file) as tap:
            assert program(tap.bootstrap_servers) == [b"v%d" % number for number in range(10)]
    return file


def test_the_same_program_gets_the_same_without_a_cluster(recording: Path) -> None:
    for _ in range(2):
        with Replay(recording) as replay:
            assert program(replay.bootstrap_servers) == [b"v%d" % number for number in range(10)]
        assert replay.mismatches == []
        assert replay.answered


def test_a_program_that_sends_something_else_is_told(recording: Path) -> None:
    with Replay(recording) as replay:
        program(replay.bootstrap_servers, b"w")
    produced = [each for each in replay.mismatches if each.api == "Produce"]
    assert len(produced) == 10
    assert "differs from request" in produced[0].what
    assert "records" in produced[0].what
    assert "b'v0'" in produced[0].what
    assert "b'w0'" in produced[0].what


def record(file: Path, *requests: tuple) -> None:
    """Record requests to a broker."""
    with Broker() as broker, Tap(broker.bootstrap_servers, record=file, keep_requests=0) as tap:
        broker.create_topic("t")
        with raw(tap.bootstrap_servers) as client:
            for request, version in requests:
                client.ask(request, version)


def test_order_and_repetition(tmp_path: Path) -> None:
    file = tmp_path / "f.pcapng"
    commit = OffsetCommitRequest(group_id="g")
    record(file, (HeartbeatRequest(group_id="a"), 4), (commit, 8), (MetadataRequest(topics=[]), 9))
    with Replay(file) as replay, raw(replay.bootstrap_servers) as client:
        for _ in range(3):  # reads may be repeated
            assert client.ask(HeartbeatRequest(group_id="a"), 4).error_code
        (broker,) = client.ask(MetadataRequest(topics=[]), 9).brokers
        assert broker.port
        assert replay.mismatch_count == 0
        assert replay.recording.unused == 1
        client.ask(commit, 8)
        assert (replay.mismatch_count, replay.recording.unused) == (0, 0)
        client.ask(commit, 8)
        assert replay.mismatches[0].what == "sent more often than in the recording"
        client.ask(HeartbeatRequest(group_id="b"), 4)
        assert replay.mismatches[1].what == "not in the recording: group_id was 'a', is 'b'"
        client.send(HeartbeatRequest(group_id="a"), 3)
        assert client.is_closed()
        assert str(replay.mismatches[2]) == "Heartbeat v3 from raw: recorded with version 4"
        with raw(replay.bootstrap_servers) as other:
            other.send(SaslHandshakeRequest(mechanism="PLAIN"), 1)
            assert other.is_closed()
        assert replay.mismatches[3].what == "not in the recording"
        client_of_fetches = raw(replay.bootstrap_servers)
        client_of_fetches.ask(fetch("t", 0, -1, (3,)), 11)
        client_of_fetches.sock.close()
        assert replay.mismatches[4].what == "partition 3 of t is not fetched in the recording"


def test_records_are_fetched_only_once_they_are_produced(tmp_path: Path) -> None:
    file = tmp_path / "f.pcapng"
    record(file, (produce("t", 0, b"v"), 9), (fetch("t", 0, -1, (0,)), 11))
    with Replay(file) as replay, raw(replay.bootstrap_servers) as client:
        for _ in range(2):
            body = client.ask(fetch("t", 0, -1, (0,)), 11)
            assert body.responses[0].partitions[0].records == b""
        client.ask(produce("t", 0, b"v"), 9)
        body = client.ask(fetch("t", 0, -1, (0,)), 11)
        assert b"v" in body.responses[0].partitions[0].records
        assert replay.mismatches == []


def test_passwords_are_not_compared(tmp_path: Path) -> None:
    file = tmp_path / "f.pcapng"
    login = SaslAuthenticateRequest(auth_bytes=b"\0u\0secret")
    with (
        Broker(users={"u": "secret"}) as broker,
        Tap(broker.bootstrap_servers, record=file) as tap,
        raw(tap.bootstrap_servers) as client,
    ):
        client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        client.ask(login, 2)
    with Replay(file) as replay, raw(replay.bootstrap_servers) as client:
        assert client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).mechanisms
        assert client.ask(SaslAuthenticateRequest(auth_bytes=b"\0u\0other"), 2).error_code == 0
        assert replay.mismatches == []


def test_files_that_cannot_be_replayed(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    record(tmp_path / "nothing.pcapng")
    for name, problem in (("none", "no such file"), ("empty", "not a pcap"), ("nothing.pcapng", "no requests")):
        with pytest.raises(OptionError, match=problem):
            Replay(tmp_path / name)


def test_clients_that_send_nonsense_are_disconnected(recording: Path) -> None:
    with Replay(recording) as replay:
        for data in (b"\xff\xff\xff\xff", b"\0\0\0\2ab", b"\0\0\0\x0c\0\x0c\0\4\0\0\0\1\0\1c\xff"):
            with raw(replay.bootstrap_servers) as client:
                client.sock.sendall(data)
                assert client.is_closed()
