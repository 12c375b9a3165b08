"""The effect of each kind of fault, on the wire."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from kwire.broker import Broker
from kwire.errors import CorruptBatch
from kwire.protocol.error_codes import ErrorCode
from kwire.records import read_batches
from tests.broker.faults.conftest import end_offsets, fetch, message, produce
from tests.broker.wire import RawClient, connect
from tests.waiting import HANG_S, until


def ask(raw: RawClient) -> Any:
    return raw.ask(message("MetadataRequest", topics=[]), 9)


def test_a_response_of_ones_own(broker: Broker, raw: RawClient) -> None:
    broker.faults.respond("Metadata", {"cluster_id": "mine", "brokers": [{"node_id": 7, "host": "h", "port": 1}]})
    response = ask(raw)
    assert (response.cluster_id, response.brokers[0].node_id, response.brokers[0].host) == ("mine", 7, "h")
    assert ask(raw).cluster_id != "mine"


def test_a_response_may_be_a_message_or_a_function_of_the_request(broker: Broker, raw: RawClient) -> None:
    broker.faults.respond("Heartbeat", message("HeartbeatResponse", error_code="REBALANCE_IN_PROGRESS"))
    request = message("HeartbeatRequest", group_id="billing", member_id="m")
    assert raw.ask(request, 4).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    broker.faults.respond("Heartbeat", lambda asked: {"throttle_time_ms": len(asked.group_id)})
    assert raw.ask(request, 4).throttle_time_ms == len("billing")


def test_a_changed_response_of_ones_own_is_the_same_the_next_time(broker: Broker, raw: RawClient) -> None:
    broker.faults.throttle("Heartbeat", 7)
    broker.faults.respond("Heartbeat", {"error_code": "REBALANCE_IN_PROGRESS"}, times=None)
    request = message("HeartbeatRequest", group_id="billing")
    assert [raw.ask(request, 4).throttle_time_ms for _ in range(2)] == [7, 0]


def test_fields_of_the_broker_s_response_can_be_changed(broker: Broker, raw: RawClient) -> None:
    broker.create_topic("orders", 2)
    broker.faults.change("Metadata", {"throttle_time_ms": 5, "topics.*.partitions.1.leader_id": -1, "cluster_id": None})
    request = message("MetadataRequest", topics=[{"name": "orders"}])
    response = raw.ask(request, 9)
    assert (response.throttle_time_ms, response.cluster_id) == (5, None)
    assert [each.leader_id for each in response.topics[0].partitions] == [1, -1]

    def rename(asked: Any, response: Any) -> None:
        response.topics[0].name = asked.topics[0].name.upper()

    broker.faults.change("Metadata", rename)
    assert raw.ask(request, 9).topics[0].name == "ORDERS"


def test_changes_of_a_fetch_with_records(broker: Broker, raw: RawClient) -> None:
    """Records are sent from their file unless a fault needs them."""
    broker.create_topic("orders", 1)
    raw.ask(produce("orders", 0), 9)
    broker.faults.change("Fetch", {"responses.partitions.high_watermark": 99})
    (partition,) = raw.ask(fetch("orders", 0), 11).responses[0].partitions
    assert partition.high_watermark == 99
    assert [record.value for each in read_batches(partition.records) for record in each.records()] == [b"v"]


def test_a_client_obeys_the_throttle_time(broker: Broker, raw: RawClient) -> None:
    broker.create_topic("orders", 1)
    fault = broker.faults.throttle("Produce", 300)
    assert raw.ask(produce("orders", 0), 9).throttle_time_ms == 300
    assert raw.ask(produce("orders", 0), 9).throttle_time_ms == 0, "the broker itself does not pause"
    assert fault.hits == 1


def test_a_held_join_waits_for_its_release(broker: Broker) -> None:
    """A consumer joins when the test allows it to, and not by the length of a pause."""
    broker.create_topic("orders", 1)
    held = broker.faults.hold("JoinGroup", group="billing")
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "billing", "log_level": 0,
         "auto.offset.reset": "earliest"}
    )  # fmt: skip
    assigned = threading.Event()
    consumer.subscribe(["orders"], on_assign=lambda *_: assigned.set())
    try:
        until(lambda: consumer.poll(0.05) or held.hits)
        assert held.wait(1, HANG_S) == 1
        assert held.held == 1
        assert broker.call(lambda node: node.groups.store.groups()) == []
        assert held.release() == 1
        until(lambda: consumer.poll(0.05) or assigned.is_set())
        assert held.held == 0
    finally:
        consumer.close()


def test_a_response_can_be_held_after_its_request_took_effect(broker: Broker, raw: RawClient) -> None:
    broker.create_topic("orders", 1)
    held = broker.faults.hold("Produce", after=True)
    raw.send(produce("orders", 0), 9)
    held.wait(1, HANG_S)
    until(lambda: end_offsets(broker, "orders") == [1])
    assert held.held == 1
    held.remove()
    assert raw.receive().responses[0].partition_responses[0].error_code == 0


def test_several_held_requests_are_released_in_order(broker: Broker) -> None:
    held = broker.faults.hold("Metadata", times=3)
    clients = [RawClient(broker) for _ in range(3)]
    for count, client in enumerate(clients, 1):
        client.send(message("MetadataRequest", topics=[]), 9)
        held.wait(count, HANG_S)
    assert held.release(1) == 1
    assert clients[0].receive().brokers
    assert held.held == 2
    clients[1].sock.close()
    until(lambda: held.held == 1, "the request of a client that has gone stays held")
    assert held.release() == 1
    assert clients[2].receive().brokers
    for client in clients:
        client.sock.close()


def test_a_reset_releases_what_is_held(broker: Broker, raw: RawClient) -> None:
    held = broker.faults.hold("Metadata")
    raw.send(message("MetadataRequest", topics=[]), 9)
    held.wait(1, HANG_S)
    broker.reset()
    assert raw.receive().brokers


def test_a_dropped_connection(broker: Broker) -> None:
    broker.create_topic("orders", 1)
    for after in (False, True):
        broker.faults.drop("Produce", after=after)
        with RawClient(broker) as raw:
            raw.send(produce("orders", 0), 9)
            assert raw.is_closed()
        assert end_offsets(broker, "orders") == [int(after)]


def by_confluent(servers: str) -> None:
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "log_level": 0})
    producer.produce("orders", b"v")
    assert producer.flush(HANG_S) == 0


def by_kafka_python(servers: str) -> None:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=servers, enable_idempotence=True, retry_backoff_ms=20)
    producer.send("orders", b"v").get(HANG_S)
    producer.close()


def by_aiokafka(servers: str) -> None:
    from aiokafka import AIOKafkaProducer

    async def write() -> None:
        async with AIOKafkaProducer(bootstrap_servers=servers, enable_idempotence=True) as producer:
            await producer.send_and_wait("orders", b"v")

    asyncio.run(write())


@pytest.mark.filterwarnings("ignore:.*_text is deprecated:DeprecationWarning")
@pytest.mark.parametrize("write", [by_confluent, by_kafka_python, by_aiokafka])
def test_a_lost_response_of_an_idempotent_producer_gives_no_duplicate(
    broker: Broker, write: Callable[[str], None]
) -> None:
    broker.create_topic("orders", 1)
    lost = broker.faults.drop("Produce", after=True)
    write(broker.bootstrap_servers)
    assert lost.hits == 1
    assert len(broker.requests.of("Produce")) == 2
    assert [record.value for record in broker.records("orders")] == [b"v"]


def test_half_a_response(broker: Broker, raw: RawClient) -> None:
    broker.create_topic("orders", 100)
    whole = message("MetadataRequest", topics=[{"name": "orders"}])
    size = len(raw.ask(whole, 9).encode(version=9))
    for sent_bytes, expected in ((None, (size + 9) // 2), (3, 3), (10**9, size + 8)):
        with RawClient(broker) as client:
            broker.faults.cut("Metadata", sent_bytes)
            client.send(whole, 9)
            received = b""
            while data := client.sock.recv(1 << 16):
                received += data
        assert abs(len(received) - expected) <= 1, sent_bytes
        assert int.from_bytes(received[:4], "big") == size + 5 or sent_bytes == 3


def test_a_slow_response_arrives_whole_and_others_after_it(broker: Broker, raw: RawClient) -> None:
    broker.create_topic("orders", 100)
    request = message("MetadataRequest", topics=[{"name": "orders"}])
    size = len(raw.ask(request, 9).encode(version=9))
    broker.faults.slow("Metadata", 2 * size)
    started = time.monotonic()
    raw.send(request, 9)
    raw.send(message("MetadataRequest", topics=[]), 9)
    assert len(raw.receive().topics[0].partitions) == 100
    assert time.monotonic() - started >= 0.4
    assert raw.receive().topics == []


def test_a_slow_connection_ends_with_its_client(broker: Broker, raw: RawClient) -> None:
    broker.faults.slow("Metadata", 1)
    raw.send(message("MetadataRequest", topics=[]), 9)
    assert raw.sock.recv(1)
    raw.sock.close()
    with RawClient(broker) as other:
        assert ask(other).brokers


def test_corrupt_records_of_one_partition(broker: Broker, raw: RawClient) -> None:
    broker.create_topic("orders", 2)
    raw.ask(produce("orders", 0, 1), 9)
    broker.faults.corrupt("Fetch", topic="orders", partition=1)
    parts = {each.partition_index: each.records for each in raw.ask(fetch("orders", 0, 1), 11).responses[0].partitions}
    for each in read_batches(parts[0]):
        each.check()
    (corrupt,) = read_batches(parts[1])
    with pytest.raises(CorruptBatch):
        corrupt.check()


def test_silence_lasts_for_the_connection(broker: Broker, raw: RawClient) -> None:
    silent = broker.faults.silence("Metadata", client_id="raw")
    raw.send(message("MetadataRequest", topics=[]), 9)
    silent.wait(1, HANG_S)
    raw.send(message("MetadataRequest", topics=[]), 9)
    assert not raw.is_closed(0.05)
    with RawClient(broker, client_id="other") as other:
        assert ask(other).brokers
    silent.remove()
    assert raw.is_closed()


def test_a_silent_broker_may_have_done_the_work(broker: Broker, raw: RawClient) -> None:
    broker.create_topic("orders", 1)
    for after in (False, True):
        silent = broker.faults.silence("Produce", after=after)
        with RawClient(broker) as client:
            client.send(produce("orders", 0), 9)
            silent.wait(1, HANG_S)
            if after:
                until(lambda: end_offsets(broker, "orders") == [1])
            assert not client.is_closed(0.02)
        assert end_offsets(broker, "orders") == [int(after)]


def test_refused_connections_are_reset(broker: Broker) -> None:
    refused = broker.faults.refuse(times=2)
    for _ in range(2):
        with pytest.raises(ConnectionResetError), contextlib.closing(connect(broker)) as sock:
            sock.recv(1)  # unless the connection was reset before
    assert refused.hits == 2
    with RawClient(broker) as raw:
        assert ask(raw).brokers


def test_a_client_connects_again_after_a_refusal(broker: Broker) -> None:
    refused = broker.faults.refuse(times=2)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "reconnect.backoff.ms": 5, "log_level": 0})
    producer.produce("orders", b"v")
    assert producer.flush(HANG_S) == 0
    assert refused.hits == 2


def test_faults_combine(broker: Broker, raw: RawClient) -> None:
    """Delay, then fail, and the error arrives slowly, in half."""
    faults = broker.faults
    used = [
        faults.hold("Metadata"),
        faults.slow("Metadata", 1000),
        faults.cut("Metadata", 6),
        faults.fail("Heartbeat", "UNKNOWN_MEMBER_ID"),
        faults.respond("Metadata", {"cluster_id": "mine"}),
        faults.drop("Metadata"),
    ]
    raw.send(message("MetadataRequest", topics=[]), 9)
    used[0].wait(1, HANG_S)
    used[0].release()
    received = b""
    while data := raw.sock.recv(1 << 16):
        received += data
    assert len(received) == 6
    assert [each.hits for each in used] == [1, 1, 1, 0, 1, 0]


def test_a_delay_before_an_error_passes_with_the_clock(broker: Broker, raw: RawClient) -> None:
    broker.faults.delay("Heartbeat", 3_600_000)
    failing = broker.faults.fail("Heartbeat", "NOT_COORDINATOR")
    raw.send(message("HeartbeatRequest", group_id="billing"), 4)
    failing.wait(1, HANG_S)
    raw.sock.settimeout(0.05)
    with pytest.raises(socket.timeout):
        raw.receive()
    raw.sock.settimeout(HANG_S)
    broker.advance(3_600_000)
    assert raw.receive().error_code == ErrorCode.NOT_COORDINATOR


def test_a_delayed_response_of_a_request_that_took_effect(broker: Broker, raw: RawClient) -> None:
    broker.create_topic("orders", 1)
    broker.faults.delay("Produce", 3_600_000, after=True)
    raw.send(produce("orders", 0), 9)
    until(lambda: end_offsets(broker, "orders") == [1])
    broker.advance(3_600_000)
    assert raw.receive().responses


def test_observers_count_what_others_answer(broker: Broker, raw: RawClient) -> None:
    seen = broker.faults.observe("Heartbeat", group="billing")
    other = broker.faults.observe("Heartbeat", group="other")
    broker.faults.fail("Heartbeat", "NOT_COORDINATOR")
    late = broker.faults.observe("Heartbeat")
    for _ in range(2):
        raw.ask(message("HeartbeatRequest", group_id="billing"), 4)
    assert (seen.hits, other.hits, late.hits) == (2, 0, 2)
    assert broker.faults.unmatched == [other]
