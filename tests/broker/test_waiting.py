"""Waiting for requests and for groups."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from kwire.broker import Broker
from kwire.errors import OptionError
from tests.broker.faults.conftest import message, produce
from tests.broker.wire import RawClient
from tests.waiting import HANG_S


def test_a_request_of_the_log_or_to_come(broker: Broker) -> None:
    broker.create_topic("orders", 2)
    with RawClient(broker) as raw:
        raw.ask(produce("orders", 0), 9)
        raw.ask(produce("orders", 1), 9)
        found: Any = broker.wait_for("Produce", topic="orders", partition=1)
        assert found.request.topic_data[0].partition_data[0].index == 1
        assert found.errors == []
        later: list[Any] = []
        waiter = threading.Thread(target=lambda: later.append(broker.wait_for("Heartbeat", group="b", timeout=HANG_S)))
        waiter.start()
        for group in "ab":
            raw.ask(message("HeartbeatRequest", group_id=group), 4)
        waiter.join()
    assert later[0].request.group_id == "b"


def test_a_request_that_does_not_come(broker: Broker) -> None:
    with pytest.raises(TimeoutError, match=r"no request to JoinGroup, group='x' in 0.01 s, of \d+ in the request log"):
        broker.wait_for("JoinGroup", group="x", timeout=0.01)
    with pytest.raises(OptionError, match="times is a condition of faults only"):
        broker.wait_for("JoinGroup", times=2)
    with pytest.raises(OptionError, match="JoinGroup requests name no partition"):
        broker.wait_for("JoinGroup", partition=2)


def test_an_entry_is_found_though_others_leave_the_log() -> None:
    with Broker(keep_requests=2) as broker, RawClient(broker) as raw:
        found: list[Any] = []
        waiter = threading.Thread(target=lambda: found.append(broker.wait_for("Metadata", timeout=HANG_S)))
        waiter.start()
        for _ in range(50):
            raw.ask(message("HeartbeatRequest", group_id="a"), 4)
        raw.ask(message("MetadataRequest", topics=[]), 9)
        waiter.join()
        assert found[0].api == "Metadata"


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_is_stable_once_all_members_have_their_partitions(broker: Broker, protocol: str) -> None:
    broker.create_topic(f"t-{protocol}", 2)
    Producer({"bootstrap.servers": broker.bootstrap_servers}).flush()
    with pytest.raises(TimeoutError, match=r"group 'missing' is missing, not stable, after 0\.01 s"):
        broker.wait_until_stable("missing", timeout=0.01)
    consumers = []
    stop = threading.Event()

    def run(name: str) -> None:
        consumer = Consumer(
            {"bootstrap.servers": broker.bootstrap_servers, "group.id": protocol, "group.protocol": protocol,
             "client.id": name, "log_level": 0}
        )  # fmt: skip
        consumer.subscribe([f"t-{protocol}"])
        while not stop.is_set():
            consumer.poll(0.05)
        consumer.close()

    for name in ("one", "two"):
        consumers.append(threading.Thread(target=run, args=(name,)))
        consumers[-1].start()
    try:
        state = broker.wait_until_stable(protocol, members=2, timeout=HANG_S)
        assert (state.kind, sorted(state.members.values())) == (protocol, ["one", "two"])
        with pytest.raises(TimeoutError, match="Stable with 2 members, not stable with 3 members"):
            broker.wait_until_stable(protocol, 3, timeout=0.01)
    finally:
        stop.set()
        for thread in consumers:
            thread.join()
    with pytest.raises(OptionError, match="invalid group ''"):
        broker.wait_until_stable("")
