"""Injected faults as common clients see them, the request log, the manual clock and resets."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from kwire.broker import Broker, request_log
from kwire.client import Client
from kwire.errors import BrokerError, ConnectionFailed, OptionError
from kwire.messages import MetadataResponse, registry
from kwire.protocol.error_codes import ErrorCode
from tests.waiting import HANG_MS, HANG_S, until

QUICK = {"retry.backoff.ms": 5}
DAY_MS = 24 * 3_600_000


@pytest.fixture(scope="module")
def running() -> Iterator[Broker]:
    with Broker(keep_requests=1000) as broker:
        yield broker


@pytest.fixture
def broker(running: Broker) -> Iterator[Broker]:
    yield running
    running.reset()


def write(broker: Broker, value: bytes = b"v", **settings: Any) -> list[KafkaError | None]:
    """Produce one record and return the reported errors."""
    errors: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0, **settings})
    producer.produce("t", value, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(HANG_S) == 0
    return errors


def read(broker: Broker, count: int) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "r", "log_level": 0})
    try:
        consumer.assign([TopicPartition("t", 0, 0)])
        return [m.value() for m in consumer.consume(count, timeout=HANG_S) if not m.error()]
    finally:
        consumer.close()


def test_the_client_retries_a_transient_error(broker: Broker) -> None:
    broker.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", times=2)
    assert write(broker, **{"retry.backoff.ms": 10}) == [None]
    codes = [each.response.responses[0].partition_responses[0].error_code for each in broker.requests.of("Produce")]
    assert codes == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 2 + [ErrorCode.NONE]
    assert broker.faults.pending == []
    assert read(broker, 1) == [b"v"]


def test_a_permanent_error_reaches_the_application(broker: Broker) -> None:
    broker.faults.fail("Produce", "TOPIC_AUTHORIZATION_FAILED")
    (error,) = write(broker)
    assert error is not None
    assert error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_a_lost_response_leaves_one_record(broker: Broker) -> None:
    broker.faults.drop("Produce", after=True)
    assert write(broker, **{"enable.idempotence": True}) == [None]
    assert len(broker.requests.of("Produce")) == 2
    assert read(broker, 1) == [b"v"]
    with Client(broker.bootstrap_servers) as client:
        assert client.list_offsets({("t", 0): -1})["t", 0].offset == 1


def test_a_connection_lost_before_the_write_is_retried(broker: Broker) -> None:
    with Client(broker.bootstrap_servers, **QUICK) as client:
        client.metadata()
        broker.faults.drop("Metadata")
        with pytest.raises(ConnectionFailed):
            client.connection().request(registry.get("MetadataRequest")(topics=[]))  # one attempt: no retries
        broker.faults.drop("Metadata")
        client.metadata()
        assert broker.faults.pending == []


def test_a_delay_takes_its_configured_time(broker: Broker) -> None:
    with Client(broker.bootstrap_servers, **QUICK) as client:
        client.metadata()
        broker.faults.delay("Metadata", 200)
        started = time.monotonic()
        client.metadata()
        assert time.monotonic() - started >= 0.19


def test_advancing_the_clock_ends_a_delay(broker: Broker) -> None:
    with Client(broker.bootstrap_servers, **QUICK) as client:
        connection = client.connection()
        broker.faults.delay("Metadata", 3_600_000)
        connection.send(registry.get("MetadataRequest")(topics=[]))
        until(lambda: broker.call(lambda node: node.faults.pending == []))
        broker.advance(3_600_000)
        assert connection.receive(MetadataResponse).brokers


def test_the_client_detects_corrupt_records(broker: Broker) -> None:
    write(broker)
    broker.faults.corrupt("Fetch", times=None)
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "r", "check.crcs": True, "log_level": 0}
    )
    consumer.assign([TopicPartition("t", 0, 0)])
    message = consumer.poll(HANG_S)
    consumer.close()
    assert message is not None
    assert message.error().code() == KafkaError._BAD_MSG
    broker.faults.clear()
    assert read(broker, 1) == [b"v"]


def test_a_fault_can_target_one_client(broker: Broker) -> None:
    broker.faults.fail("*", "UNKNOWN_SERVER_ERROR", times=None, client_id="unlucky-*")
    with Client(broker.bootstrap_servers, **QUICK) as client:
        client.list_offsets({})
        client.metadata()
    with pytest.raises(BrokerError), Client(broker.bootstrap_servers, **QUICK, client_id="unlucky-1") as client:
        client.metadata()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda faults: faults.fail("Produse", 1), r"unknown API 'Produse' \(did you mean 'Produce'\?\)"),
        (lambda faults: faults.fail("Produce", "NOT_LEADER"), "unknown error 'NOT_LEADER'"),
        (lambda faults: faults.drop("Produce", times=0), "times 0"),
        (lambda faults: faults.delay("Produce", -1), "delay_ms -1"),
        (lambda faults: faults.corrupt("Produce"), "only responses of Fetch and ShareFetch carry records"),
    ],
)
def test_invalid_faults_are_rejected(broker: Broker, call: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        call(broker.faults)


def test_requests_are_logged_decoded_and_without_secrets() -> None:
    settings: dict[str, Any] = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl_enabled_mechanisms": "PLAIN",
        "users": {"alice": "wonderland"},
    }
    login = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": "wonderland",
    }
    with Broker(keep_requests=100, **settings) as broker, Client(broker.bootstrap_servers, **login) as client:
        client.metadata()
        logged = list(broker.requests)
    apis = list(dict.fromkeys(each.api for each in logged))
    assert apis == ["ApiVersions", "SaslHandshake", "SaslAuthenticate", "Metadata"]
    assert logged[-1].principal == "User:alice"
    assert logged[-1].response.brokers
    assert "wonderland" not in repr(logged)


def test_the_request_log_is_bounded() -> None:
    with Broker(keep_requests=3) as broker, Client(broker.bootstrap_servers) as client:
        for _ in range(5):
            client.metadata()
        assert [each.api for each in broker.requests] == ["Metadata"] * 3


def test_a_reset_broker_is_empty_and_serves_the_same_clients(broker: Broker) -> None:
    write(broker)
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    consumer.subscribe(["t"])
    assert [m.value() for m in consumer.consume(1, HANG_S)] == [b"v"]
    consumer.commit(asynchronous=False)
    broker.reset()
    with Client(broker.bootstrap_servers) as client:
        assert client.metadata().topics == {}
        assert client.request(registry.get("ListGroupsRequest")()).groups == []
    consumer.close()
    assert write(broker, b"again") == [None]
    assert read(broker, 1) == [b"again"]


@pytest.mark.parametrize("resets", [0, 2])
def test_a_stop_reaches_coordinators_created_meanwhile(resets: int) -> None:
    with Broker() as broker:
        for _ in range(resets):
            broker.reset()
        timers, groups, transactions, watchers = broker.call(
            lambda node: (node.timers, node.groups, node.transactions, len(node.topics.observers))
        )
        stopped = []
        for each in (groups, transactions):
            each.stop = lambda stop=each.stop, who=each: (stopped.append(who), stop())
    assert stopped == [transactions, groups]
    assert len(timers.pending) <= 1  # what looks whether compiled code is worth loading
    assert watchers == 1


def test_advancing_the_clock_expires_old_data(broker: Broker) -> None:
    """A week of retention passes by advancing the clock."""
    cls: Any = registry.get("CreateTopicsRequest")
    config = cls.CreatableTopicConfig(name="retention.ms", value="604800000")
    with Client(broker.bootstrap_servers) as client:
        client.request(
            cls(topics=[cls.CreatableTopic(name="t", num_partitions=1, replication_factor=1, configs=[config])])
        )
        write(broker)
        broker.advance(8 * DAY_MS)
        assert client.list_offsets({("t", 0): -2})["t", 0].offset == 1


def test_requests_are_kept_by_default_and_their_absence_is_not_silence() -> None:
    with Broker() as broker:
        with Client(broker.bootstrap_servers) as client:
            client.metadata()
        assert [each.api for each in broker.requests.of("metadata")] == ["Metadata"]
        assert {each.api for each in broker.requests.of("*")} == {"ApiVersions", "Metadata"}
        with pytest.raises(OptionError, match=r"unknown API 'Metadatas' \(did you mean 'Metadata'"):
            broker.requests.of("Metadatas")
    with Broker(keep_requests=0) as broker:
        for read in (broker.requests.of, list, len):
            with pytest.raises(OptionError, match="the broker keeps no requests: set keep_requests"):
                read("Metadata" if read == broker.requests.of else broker.requests)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="invalid keep_requests -1"):
        Broker(keep_requests=-1)


def test_kept_requests_are_bounded_by_their_size(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_log, "MAX_BYTES", 3000)
    for size in (1000, 1000, 1000, 10, 5000):
        write(broker, b"x" * size)
        kept = broker.requests.of("Produce")
        sizes = [len(each.request.topic_data[0].partition_data[0].records) for each in kept]  # type: ignore[union-attr]
        assert sum(sizes) <= 3000 or len(broker.requests) == 1
    assert sizes[0] > 5000


def test_a_kept_request_has_the_errors_of_all_parts_of_its_response(broker: Broker) -> None:
    cls: Any = registry.get("CreateTopicsRequest")
    names = ["a", "", "a b", "c"]
    with Client(broker.bootstrap_servers, client_id="tests") as client:
        topics = [cls.CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
        topics.append(cls.CreatableTopic(name="d", num_partitions=0, replication_factor=1))
        client.request(cls(topics=topics))
    (made,) = broker.requests.of("CreateTopics")
    assert made.errors == ["INVALID_TOPIC_EXCEPTION", "INVALID_PARTITIONS"]
    assert str(made).endswith(" from tests: INVALID_TOPIC_EXCEPTION, INVALID_PARTITIONS")


def test_a_reset_takes_the_clock_back(broker: Broker) -> None:
    """Otherwise records written after the reset are as old as the clock was advanced before it."""
    write(broker, b"before")
    broker.advance(8 * DAY_MS)
    broker.reset()
    assert abs(broker.call(lambda node: node.clock.now_ms()) - time.time_ns() // 1_000_000) < HANG_MS
    write(broker, b"after")
    broker.advance(7 * DAY_MS - HANG_MS)  # just below the retention, for which all checks run
    assert read(broker, 1) == [b"after"]
    broker.advance(2 * HANG_MS)
    with Client(broker.bootstrap_servers) as client:
        assert client.list_offsets({("t", 0): -2})["t", 0].offset == 1


def test_a_reset_keeps_the_delay_of_deleted_topics_and_the_age_of_sessions(broker: Broker) -> None:
    """What was stamped while the clock was ahead must not wait until the system's clock is there."""
    write(broker)
    broker.advance(8 * DAY_MS)
    broker.reset()
    write(broker)
    broker.advance(8 * DAY_MS)
    broker.call(lambda node: node.controller.delete_topic(node.topics.get("t")))
    fetch: Any = registry.get("FetchRequest")
    one = fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)
    request = fetch(session_epoch=0, topics=[fetch.FetchTopic(topic="t", partitions=[one])])
    broker.call(lambda node: node.fetch_sessions.view(request, 12))
    broker.reset()

    def stamped(node: Any) -> tuple[list[int], list[int]]:
        due = [due_ms - node.clock.now_ms() for due_ms, _ in node.log_manager._removal._waiting]
        return due, [node.clock.elapsed_ms() - s.last_used_ms for s in node.fetch_sessions._sessions.values()]

    due, ages = broker.call(stamped)
    assert due, "nothing waits for its removal"
    assert all(each <= 60_000 for each in due)
    assert [0 <= each <= HANG_MS for each in ages] == [True]
