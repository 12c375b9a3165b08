"""Which requests a fault applies to, what it counts, and faults that can never apply."""

from __future__ import annotations

import threading
from typing import Any
from uuid import UUID

import pytest

from kwire.broker import Broker
from kwire.broker.apis import SERVED
from kwire.broker.faults import Faults, rules
from kwire.errors import OptionError
from tests.broker.faults.conftest import message
from tests.broker.wire import RawClient
from tests.waiting import HANG_S


def beat(raw: RawClient, group: str = "billing", version: int = 4, **values: Any) -> int:
    """Send a heartbeat; return the error of the response."""
    return int(raw.ask(message("HeartbeatRequest", group_id=group, **values), version).error_code)


def hits_of(raw: RawClient, count: int) -> list[bool]:
    """Return which of some heartbeats fail with error 27, of the tests' faults."""
    return [beat(raw) == 27 for _ in range(count)]


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        ({}, [1, 0, 0, 0, 0, 0]),
        ({"times": 2}, [1, 1, 0, 0, 0, 0]),
        ({"times": None}, [1, 1, 1, 1, 1, 1]),
        ({"skip": 2}, [0, 0, 1, 0, 0, 0]),
        ({"skip": 2, "times": 2}, [0, 0, 1, 1, 0, 0]),
        ({"on_call": 1}, [1, 0, 0, 0, 0, 0]),
        ({"on_call": 3}, [0, 0, 1, 0, 0, 0]),
        ({"every": 2}, [0, 1, 0, 1, 0, 1]),
        ({"every": 2, "times": 2}, [0, 1, 0, 1, 0, 0]),
        ({"every": 2, "skip": 1}, [0, 0, 1, 0, 1, 0]),
        ({"every": 1}, [1, 1, 1, 1, 1, 1]),
        ({"probability": 1}, [1, 1, 1, 1, 1, 1]),
    ],
)
def test_which_requests_in_turn(broker: Broker, raw: RawClient, when: Any, expected: list[int]) -> None:
    fault = broker.faults.fail("Heartbeat", "REBALANCE_IN_PROGRESS", **when)
    assert hits_of(raw, 6) == [bool(each) for each in expected]
    assert fault.hits == sum(expected)


def test_chance_is_repeatable(broker: Broker, raw: RawClient) -> None:
    drawn = []
    for seed in (1, 1, 2):
        with broker.faults.fail("Heartbeat", "REBALANCE_IN_PROGRESS", probability=0.5, seed=seed):
            drawn.append(hits_of(raw, 30))
    assert drawn[0] == drawn[1] != drawn[2]
    assert 3 < sum(drawn[0]) < 27


@pytest.mark.parametrize(
    ("when", "applies"),
    [
        ({"group": "billing"}, True),
        ({"group": "bill*"}, True),
        ({"group": "other"}, False),
        ({"version": 4}, True),
        ({"version": (0, 4)}, True),
        ({"version": [0, 3]}, False),
        ({"client_id": "raw"}, True),
        ({"client_id": "other-*"}, False),
        ({"where": {"member_id": "m", "generation_id": 3}}, True),
        ({"where": {"generationId": 4}}, False),
        ({"when": lambda request: request.generation_id > 2}, True),
        ({"when": lambda request: request.generation_id > 3}, False),
        ({"group": "billing", "version": 4, "client_id": "r?w", "where": {"member_id": "m"}}, True),
    ],
)
def test_which_requests(broker: Broker, raw: RawClient, when: Any, applies: bool) -> None:
    fault = broker.faults.fail("Heartbeat", "REBALANCE_IN_PROGRESS", **when)
    assert (beat(raw, member_id="m", generation_id=3) == 27) is applies
    assert (fault.hits, fault.calls) == (int(applies), int(applies))


def test_several_apis_and_all(broker: Broker, raw: RawClient) -> None:
    some = broker.faults.observe(["Heartbeat", "metadata"])
    every = broker.faults.observe("*")
    named = broker.faults.observe("*", group="billing")
    beat(raw)
    raw.ask(message("MetadataRequest", topics=[]), 9)
    raw.ask(message("ListGroupsRequest"), 4)
    assert (some.hits, every.hits, named.hits) == (2, 3, 1)


def test_fields_of_elements_are_compared(broker: Broker, raw: RawClient) -> None:
    names = broker.faults.observe("CreateTopics", where={"topics.name": "b", "validateOnly": True})
    topics = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in "ab"]
    raw.ask(message("CreateTopicsRequest", topics=topics, validate_only=True), 5)
    raw.ask(message("CreateTopicsRequest", topics=topics[:1], validate_only=True), 5)
    assert names.hits == 1


def test_topic_and_partition_belong_together(broker: Broker, raw: RawClient) -> None:
    seen = broker.faults.observe("ListOffsets", topic="a", partition=1)
    for pairs in ([("a", 0), ("b", 1)], [("a", 1)]):
        topics = [{"name": name, "partitions": [{"partition_index": index}]} for name, index in pairs]
        raw.ask(message("ListOffsetsRequest", topics=topics), 4)
    assert seen.hits == 1


def test_a_failing_function_is_reported_to_the_test(broker: Broker, raw: RawClient) -> None:
    fault = broker.faults.observe("Heartbeat", when=lambda request: request.no_such_field)
    assert beat(raw) != 27
    for use in (lambda: fault.hits, lambda: fault.wait(1, 0)):
        with pytest.raises(AttributeError, match="no_such_field"):
            use()
    fault = broker.faults.respond("Heartbeat", lambda request: {"no_such": 1})
    assert beat(raw) == -1
    with pytest.raises(OptionError, match="unknown field 'no_such'"):
        fault.wait()


# Handles


def test_waiting_for_hits(broker: Broker, raw: RawClient) -> None:
    fault = broker.faults.observe("Heartbeat")
    sender = threading.Thread(target=lambda: [beat(raw) for _ in range(3)])
    sender.start()
    assert fault.wait(3, HANG_S) >= 3
    sender.join()
    with pytest.raises(TimeoutError, match=r"observe api='Heartbeat': 3 of 3 requests.* to 4 requests: after 0.01 s"):
        fault.wait(4, 0.01)


def test_waiting_for_more_hits_than_can_come_ends_at_once(broker: Broker, raw: RawClient) -> None:
    fault = broker.faults.fail("Heartbeat", "REBALANCE_IN_PROGRESS")
    beat(raw)
    assert fault.wait() == 1
    with pytest.raises(TimeoutError, match="1 of 1 request> has not applied to 2 requests: it is used up"):
        fault.wait(2, HANG_S)


@pytest.mark.parametrize("timeout", ["x", None, True, -1, 10**12, float("inf"), float("nan")])
def test_timeouts_are_checked(broker: Broker, timeout: Any) -> None:
    fault = broker.faults.observe("Heartbeat")
    for wait in (
        lambda: fault.wait(timeout=timeout),
        lambda: broker.wait_for("Heartbeat", timeout=timeout),
        lambda: broker.wait_until_stable("billing", timeout=timeout),
    ):
        with pytest.raises(OptionError, match=r"invalid timeout .*: must be seconds, 0 to \d+"):
            wait()


@pytest.mark.parametrize("number", [-1, "1", 1.5, True])
def test_numbers_are_checked(broker: Broker, number: Any) -> None:
    fault = broker.faults.hold("Heartbeat")
    for use in (fault.wait, fault.release, lambda n: broker.wait_until_stable("billing", n)):
        with pytest.raises(OptionError, match=r"must be 0 or more"):
            use(number)


def test_a_removed_fault_does_not_apply_and_ends_waiting(broker: Broker, raw: RawClient) -> None:
    with broker.faults.fail("Heartbeat", "REBALANCE_IN_PROGRESS", times=None) as fault:
        assert beat(raw) == 27
        assert broker.faults.pending == [fault]
    assert beat(raw) != 27
    assert (fault.hits, fault.is_active, broker.faults.pending) == (1, False, [])
    with pytest.raises(TimeoutError, match="it was removed"):
        fault.wait(2)
    fault.remove()
    assert broker.faults.is_empty


def test_many_faults_that_are_used_up_do_not_all_count(
    broker: Broker, raw: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "COUNTED", 2)
    faults = [broker.faults.fail("Heartbeat", "REBALANCE_IN_PROGRESS") for _ in range(4)]
    assert [beat(raw) for _ in range(5)] == [27] * 4 + [25]
    assert [each.calls for each in faults] == [3, 3, 3, 2]
    faults[2].remove()
    beat(raw)
    assert [each.calls for each in faults] == [3, 3, 3, 3]
    broker.faults.clear()
    assert broker.faults.is_empty


def test_faults_that_matched_nothing_can_be_found(broker: Broker, raw: RawClient) -> None:
    used = broker.faults.fail("Heartbeat", "REBALANCE_IN_PROGRESS")
    later = broker.faults.fail("Heartbeat", "REBALANCE_IN_PROGRESS", on_call=7)
    unused = broker.faults.fail("JoinGroup", "REBALANCE_IN_PROGRESS", group="typo")
    beat(raw)
    beat(raw)
    assert [each.hits for each in broker.faults.all] == [1, 0, 0]
    assert broker.faults.unmatched == [unused]
    assert (used.times, used.calls) == (0, 2)  # the second one came when it was used up
    assert later.calls == 1
    broker.faults.clear()
    assert broker.faults.all == []


# Faults that can never apply


def test_a_node_that_a_single_broker_is_not_is_refused(broker: Broker) -> None:
    """Its only node is the one of its setting node.id."""
    for single, number in ((broker, 1), (Broker(node_id=5), 5)):
        assert not single.faults.fail("Produce", 1, node=number).hits
        for add in (lambda faults: faults.fail("Produce", 1, node=7), lambda faults: faults.refuse(node=[7])):
            with pytest.raises(OptionError, match=f"node 7 can never match: the nodes are {number}$"):
                add(single.faults)


@pytest.mark.parametrize(
    ("add", "error"),
    [
        (lambda f: f.fail("Produse", 1), r"unknown API 'Produse' \(did you mean 'Produce'\?\)"),
        (lambda f: f.fail("Vote", 1), "Vote can never match: the broker does not serve this API"),
        (lambda f: f.fail([], 1), "no API"),
        (lambda f: f.fail([3], 1), "invalid API 3"),
        (lambda f: f.fail("Produce", "NOT_LEADER"), r"unknown error 'NOT_LEADER' \(did you mean"),
        (lambda f: f.fail("Produce", "NONE"), "NONE is not an error: use `observe`"),
        (lambda f: f.fail("Produce", 99999), "unknown error 99999: Kafka has -1 to "),
        (lambda f: f.fail("Produce", 9999), "unknown error 9999"),
        (lambda f: f.fail("Produce", 1, version=14), "version 14 can never match.*Produce in versions 0 to 13"),
        (lambda f: f.fail(["Fetch", "Heartbeat"], 1, version=9), "the broker serves Heartbeat in versions 0 to 4"),
        (lambda f: f.fail("*", 1, version=99), "version 99 can never match"),
        (lambda f: f.fail("Produce", 1, version="9"), "invalid version '9'"),
        (lambda f: f.fail("Produce", 1, version=(9, 3)), "invalid version"),
        (lambda f: f.fail("Heartbeat", 1, partition=0), "Heartbeat requests name no partition; use group"),
        (lambda f: f.fail("Heartbeat", 1, topic="a"), "topic can never match: Heartbeat requests name no topic"),
        (lambda f: f.fail("Produce", 1, group="a"), "name no group; use topic or partition or transactional_id"),
        (lambda f: f.fail("ApiVersions", 1, topic="a"), "ApiVersions requests name no topic$"),
        (lambda f: f.fail("Produce", 1, version=2, transactional_id="a"), "Produce requests name no transactional_id"),
        (lambda f: f.fail("CreateTopics", 1, partition=1), "CreateTopics requests name no partition; use topic"),
        (lambda f: f.fail("DescribeLogDirs", 1, partition=1), "has no error for a partition: use whole=True"),
        (lambda f: f.fail("Produce", 1, topic="a/b"), "topic 'a/b' can never match: names of topics have"),
        (lambda f: f.fail("Produce", 1, topic=""), "invalid topic ''"),
        (lambda f: f.fail("Produce", 1, topic_id="xyz"), "invalid topic_id 'xyz'"),
        (lambda f: f.fail("Produce", 1, partition=-1), "invalid partition -1"),
        (lambda f: f.fail("Produce", 1, partition=[]), "invalid partition"),
        (lambda f: f.fail("Produce", 1, partition="0"), "invalid partition '0'"),
        (lambda f: f.fail("Produce", 1, resource="a"), "resource can never match: Produce requests name no resource"),
        (lambda f: f.fail("DescribeConfigs", 1, topic="a"), "topic can never match.*use resource"),
        (
            lambda f: f.fail("DescribeConfigs", 1, resource_type="topics"),
            r"unknown resource_type 'topics' \(did you mean 'topic'\?\)",
        ),
        (lambda f: f.fail("AlterClientQuotas", 1, quota="alice"), "invalid quota 'alice'"),
        (lambda f: f.fail("AlterClientQuotas", 1, quota={"users": "a"}), r"unknown type 'users'.*did you mean 'user'"),
        (lambda f: f.fail("AlterClientQuotas", 1, quota={"user": ""}), "invalid user '' of a quota"),
        (lambda f: f.fail("DescribeClientQuotas", 1, quota={"user": "a"}), "requests name no quota"),
        (lambda f: f.fail("Produce", 1, topics="a"), r"unknown condition 'topics' \(did you mean 'topic'\?\)"),
        (lambda f: f.fail("Produce", 1, where={"ack": 0}), r"unknown field 'ack' \(did you mean 'acks'\?\)"),
        (lambda f: f.fail("Produce", 1, where=["acks"]), "invalid where"),
        (lambda f: f.fail("*", 1, where={"acks": 0}), "where needs one API"),
        (lambda f: f.fail("Produce", 1, when="acks"), "invalid when 'acks': must be a function"),
        (lambda f: f.fail("Produce", 1, times=0), "invalid times 0"),
        (lambda f: f.fail("Produce", 1, times=True), "invalid times True"),
        (lambda f: f.fail("Produce", 1, skip=-1), "invalid skip -1"),
        (lambda f: f.fail("Produce", 1, on_call=0), "invalid on_call 0"),
        (lambda f: f.fail("Produce", 1, every=0), "invalid every 0"),
        (lambda f: f.fail("Produce", 1, probability=0), "invalid probability 0"),
        (lambda f: f.fail("Produce", 1, probability=1.1), "invalid probability"),
        (lambda f: f.fail("Produce", 1, seed=1), "seed needs probability"),
        (lambda f: f.fail("Produce", 1, on_call=2, times=2), "on_call and times are mutually exclusive"),
        (lambda f: f.delay("Produce", -1), "invalid delay_ms -1"),
        (lambda f: f.delay("Produce", float("nan")), "invalid delay_ms nan"),
        (lambda f: f.delay("Produce", "5"), "invalid delay_ms 5"),
        (lambda f: f.slow("Produce", 0), "invalid bytes_per_second 0"),
        (lambda f: f.cut("Produce", 0), "invalid sent_bytes 0"),
        (lambda f: f.corrupt("Produce"), "only responses of Fetch and ShareFetch carry records"),
        (lambda f: f.corrupt("*"), "only responses of Fetch and ShareFetch carry records"),
        (lambda f: f.refuse(client_id="a"), "refuse takes no 'client_id', only node, skip"),
        (lambda f: f.throttle("Produce", -1), "invalid throttle_ms -1"),
        (lambda f: f.throttle("Produce", 5, version=0), "versions 0 to 0 have no throttle_time_ms"),
        (lambda f: f.throttle("SaslHandshake", 5), "unknown field 'throttle_time_ms'"),
        (lambda f: f.throttle("*", 5), "one API is needed"),
        (lambda f: f.change("Metadata", {"clusterID": "a"}), r"unknown field 'clusterID' \(did you mean 'cluster_id'"),
        (lambda f: f.change("Metadata", {"cluster_id.name": 1}), "'cluster_id' has no fields"),
        (lambda f: f.change("Metadata", {"cluster_id.*": 1}), "does not follow an array"),
        (lambda f: f.change("Metadata", {"throttle_time_ms": "x"}), "invalid value 'x': must be int32"),
        (
            lambda f: f.change("Metadata", {"topics": [1]}),
            r"topics.0: invalid value 1",
        ),
        (lambda f: f.change("Metadata", {"topics.*.is_internal": 1}), "invalid value 1: must be bool"),
        (lambda f: f.change("Metadata", {"brokers.0.host": None}), "invalid value None: must be string"),
        (lambda f: f.change("Metadata", {"topics.topic_id": "x"}), "invalid UUID 'x'"),
        (lambda f: f.change("Fetch", {"responses.partitions.records": "x"}), "bytes are given as base64"),
        (lambda f: f.change("Heartbeat", {"error_code": "REBALANCING"}), "unknown error 'REBALANCING'"),
        (lambda f: f.change("Metadata", {}), "invalid changes"),
        (lambda f: f.respond("Metadata", {"topic": []}), r"unknown field 'topic' \(did you mean 'topics'\?\)"),
        (lambda f: f.respond("Metadata", {"topics": [{"nam": 1}]}), r"MetadataResponse.topics.0: unknown field 'nam'"),
        (lambda f: f.respond("Metadata", {"controller_id": 2**31}), "invalid value 2147483648: must be int32"),
        (lambda f: f.respond("Metadata", message("HeartbeatResponse")), "must be values by field name"),
    ],
)
def test_a_fault_that_can_never_apply_is_refused(add: Any, error: str) -> None:
    faults = Faults(SERVED)
    with pytest.raises(OptionError, match=error):
        add(faults)
    assert faults.is_empty
    assert faults.all == []


def test_topic_ids_are_read_as_kafka_prints_them_too() -> None:
    fault = Faults(SERVED).observe("Produce", topic_id="AAAAAAAAAAAAAAAAAAAATQ")
    assert fault.conditions is not None
    assert fault.conditions.topic_id == UUID(int=77)
    assert Faults(SERVED).observe("Produce", topic_id=str(UUID(int=77))).conditions == fault.conditions
