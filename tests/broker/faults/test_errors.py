"""Errors for a topic, partition, group or transactional id, while the broker handles the rest of the request."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from confluent_kafka import Consumer as ConfluentConsumer
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition

from kwire.broker import Broker
from kwire.protocol.error_codes import ErrorCode
from tests.broker.faults.conftest import end_offsets, fetch, message, produce
from tests.broker.shares.harness import EARLIEST, Member, acquired, configure, create
from tests.broker.shares.harness import produce as shared_produce
from tests.broker.wire import RawClient
from tests.waiting import HANG_S

NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER


def codes(response: Any, topics: str = "responses", partitions: str = "partition_responses") -> dict[int, int]:
    """Return the error of each partition."""
    return {
        getattr(each, "index", getattr(each, "partition_index", -1)): each.error_code
        for topic in getattr(response, topics)
        for each in getattr(topic, partitions)
    }


def test_one_partition_fails_and_the_others_are_written(broker: Broker, raw: RawClient) -> None:
    broker.create_topic("orders", 3)
    fault = broker.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", topic="orders", partition=1)
    assert codes(raw.ask(produce("orders", 0, 1, 2), 9)) == {0: 0, 1: NOT_LEADER, 2: 0}
    assert end_offsets(broker, "orders") == [1, 0, 1]
    assert fault.hits == 1
    assert codes(raw.ask(produce("orders", 0, 1, 2), 9)) == {0: 0, 1: 0, 2: 0}


def test_a_client_retries_the_partition_that_failed_only(broker: Broker) -> None:
    broker.create_topic("orders", 2)
    fault = broker.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", topic="orders", partition=0, times=2)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "retry.backoff.ms": 5, "log_level": 0})
    done: list[Any] = []
    for partition in (0, 1):
        producer.produce("orders", b"v", partition=partition, on_delivery=lambda error, _: done.append(error))
    assert producer.flush(HANG_S) == 0
    assert done == [None, None]
    assert fault.hits == 2
    assert end_offsets(broker, "orders") == [1, 1]


def test_topics_are_found_by_name_where_requests_have_their_ids(broker: Broker, raw: RawClient) -> None:
    broker.create_topic("orders", 2)
    topic_id = broker.call(lambda node: node.topics.get("orders").topic_id)
    broker.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", topic="ord*", partition=[0, 5])
    request = produce("", 0, 1)
    request.topic_data[0].topic_id = topic_id
    response = raw.ask(request, 13)
    assert codes(response) == {0: NOT_LEADER, 1: 0}
    assert [each.topic_id for each in response.responses] == [topic_id]


def test_an_unknown_topic_id_can_be_selected(broker: Broker, raw: RawClient) -> None:
    stale = UUID(int=77)
    fault = broker.faults.fail("Produce", "KAFKA_STORAGE_ERROR", topic_id=stale)
    request = produce("", 0)
    request.topic_data[0].topic_id = stale
    assert codes(raw.ask(request, 13)) == {0: ErrorCode.KAFKA_STORAGE_ERROR}
    assert fault.hits == 1


def test_several_faults_share_a_request(broker: Broker, raw: RawClient) -> None:
    broker.create_topic("orders", 3)
    faults = broker.faults
    first = faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", partition=0)
    second = faults.fail("Produce", "KAFKA_STORAGE_ERROR", topic="orders", partition=[0, 2])
    assert codes(raw.ask(produce("orders", 0, 1, 2), 3)) == {0: NOT_LEADER, 1: 0, 2: ErrorCode.KAFKA_STORAGE_ERROR}
    assert (first.hits, second.hits) == (1, 1)


def test_a_fault_for_all_partitions_leaves_nothing_to_the_broker(broker: Broker, raw: RawClient) -> None:
    broker.create_topic("orders", 2)
    broker.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", topic="orders")
    assert codes(raw.ask(produce("orders", 0, 1), 9)) == {0: NOT_LEADER, 1: NOT_LEADER}
    assert end_offsets(broker, "orders") == [0, 0]


def test_an_error_of_a_request_without_a_response_closes_the_connection(broker: Broker, raw: RawClient) -> None:
    broker.create_topic("orders", 1)
    broker.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", partition=0)
    raw.send(produce("orders", 0, acks=0), 9)
    assert raw.is_closed()


@pytest.mark.parametrize("version", [4, 12])
def test_a_fetch_returns_the_other_partitions(broker: Broker, raw: RawClient, version: int) -> None:
    broker.create_topic("orders", 2)
    raw.ask(produce("orders", 0, 1), 9)
    broker.faults.fail("Fetch", "NOT_LEADER_OR_FOLLOWER", topic="orders", partition=0)
    response = raw.ask(fetch("orders", 0, 1, max_wait_ms=30_000, session_epoch=-1), version)
    assert codes(response, partitions="partitions") == {0: NOT_LEADER, 1: 0}
    assert [bool(each.records) for each in response.responses[0].partitions] == [False, True]


def test_partitions_of_a_fetch_session_can_fail_and_come_back(broker: Broker, raw: RawClient) -> None:
    """An incremental request does not repeat its partitions, and one with an error stays in the session."""
    broker.create_topic("orders", 2)
    first = raw.ask(fetch("orders", 0, 1, session_epoch=0), 12)
    fault = broker.faults.fail("Fetch", "KAFKA_STORAGE_ERROR", topic="orders", partition=1)
    again = fetch("orders", max_wait_ms=30_000, session_id=first.session_id, session_epoch=1)
    again.topics = []
    response = raw.ask(again, 12)
    assert codes(response, partitions="partitions") == {1: ErrorCode.KAFKA_STORAGE_ERROR}
    assert fault.hits == 1
    again.session_epoch, again.max_wait_ms = 2, 0
    assert codes(raw.ask(again, 12), partitions="partitions") == {1: 0}


def test_a_topic_of_metadata_fails_beside_others(broker: Broker, raw: RawClient) -> None:
    for name in ("orders", "payments"):
        broker.create_topic(name, 2)
    broker.faults.fail("Metadata", "TOPIC_AUTHORIZATION_FAILED", topic="orders")
    response = raw.ask(message("MetadataRequest", topics=None), 9)
    assert {each.name: (each.error_code, len(each.partitions)) for each in response.topics} == {
        "orders": (ErrorCode.TOPIC_AUTHORIZATION_FAILED, 0),
        "payments": (0, 2),
    }
    assert response.brokers


def test_a_partition_of_metadata_can_be_without_a_leader(broker: Broker, raw: RawClient) -> None:
    broker.create_topic("orders", 2)
    fault = broker.faults.fail("Metadata", "LEADER_NOT_AVAILABLE", topic="orders", partition=1)
    response = raw.ask(message("MetadataRequest", topics=[{"name": "orders"}]), 9)
    assert {each.partition_index: (each.error_code, each.leader_id) for each in response.topics[0].partitions} == {
        0: (0, 1),
        1: (ErrorCode.LEADER_NOT_AVAILABLE, -1),
    }
    assert fault.hits == 1
    broker.faults.fail("Metadata", "LEADER_NOT_AVAILABLE", topic="payments")
    assert raw.ask(message("MetadataRequest", topics=[{"name": "orders"}]), 9).topics[0].error_code == 0
    assert len(broker.faults.unmatched) == 1


@pytest.mark.parametrize("version", [8, 13])
def test_all_of_metadata_can_fail_and_still_has_brokers(broker: Broker, raw: RawClient, version: int) -> None:
    broker.create_topic("orders", 1)
    broker.faults.fail("Metadata", "UNKNOWN_SERVER_ERROR")
    response = raw.ask(message("MetadataRequest", topics=[{"name": "orders"}]), version)
    assert [each.error_code for each in response.topics] == [-1]
    assert response.error_code == (-1 if version == 13 else 0)
    assert response.brokers


def test_topics_that_are_created_together_can_fail_alone(broker: Broker, raw: RawClient) -> None:
    broker.faults.fail("CreateTopics", "TOPIC_AUTHORIZATION_FAILED", topic="secret")
    topics = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in ("orders", "secret")]
    response = raw.ask(message("CreateTopicsRequest", topics=topics, timeout_ms=1000), 5)
    assert {each.name: each.error_code for each in response.topics} == {
        "orders": 0,
        "secret": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }
    assert broker.call(lambda node: [topic.name for topic in node.topics]) == ["orders"]


def test_one_of_several_groups_fails(broker: Broker, raw: RawClient) -> None:
    broker.faults.fail("OffsetFetch", "GROUP_AUTHORIZATION_FAILED", group="secret", times=None)
    groups = [{"group_id": name, "topics": None} for name in ("billing", "secret")]
    response = raw.ask(message("OffsetFetchRequest", groups=groups), 8)
    assert {each.group_id: each.error_code for each in response.groups} == {
        "billing": 0,
        "secret": ErrorCode.GROUP_AUTHORIZATION_FAILED,
    }
    broker.faults.fail("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", group="billing")
    response = raw.ask(message("FindCoordinatorRequest", key_type=0, coordinator_keys=["billing", "other"]), 4)
    assert {each.key: each.error_code for each in response.coordinators} == {
        "billing": ErrorCode.COORDINATOR_NOT_AVAILABLE,
        "other": 0,
    }
    response = raw.ask(message("FindCoordinatorRequest", key_type=1, coordinator_keys=["billing"]), 4)
    assert response.coordinators[0].error_code == 0, "a transactional id is not a group"


def test_offsets_of_one_partition_are_not_committed(broker: Broker) -> None:
    broker.create_topic("orders", 2)
    broker.faults.fail("OffsetCommit", "TOPIC_AUTHORIZATION_FAILED", group="billing", topic="orders", partition=1)
    consumer = ConfluentConsumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "billing", "log_level": 0})
    try:
        offsets = [TopicPartition("orders", index, 5) for index in (0, 1)]
        consumer.assign(offsets)
        with pytest.raises(KafkaException) as caught:
            consumer.commit(offsets=offsets, asynchronous=False)
        assert caught.value.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
        assert [each.offset for each in consumer.committed(offsets, HANG_S)] == [5, -1001]
    finally:
        consumer.close()


def test_one_transactional_id_is_fenced(broker: Broker) -> None:
    broker.faults.fail("InitProducerId", "PRODUCER_FENCED", transactional_id="billing-*")
    configs = {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0}
    Producer({**configs, "transactional.id": "orders-1"}).init_transactions(HANG_S)
    with pytest.raises(KafkaException) as caught:
        Producer({**configs, "transactional.id": "billing-1"}).init_transactions(HANG_S)
    assert caught.value.args[0].code() == KafkaError._FENCED


def test_the_whole_response_can_fail_for_one_topic(broker: Broker, raw: RawClient) -> None:
    broker.create_topic("orders", 2)
    broker.faults.fail("Fetch", "FETCH_SESSION_ID_NOT_FOUND", topic="orders", whole=True)
    response = raw.ask(fetch("orders", 0), 12)
    assert response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert response.responses == []


def test_one_config_resource_fails(broker: Broker, raw: RawClient) -> None:
    for name in ("orders", "other"):
        broker.create_topic(name)
    denied = broker.faults.fail(
        ["DescribeConfigs", "IncrementalAlterConfigs"], "TOPIC_AUTHORIZATION_FAILED",
        resource="ord*", resource_type="topic", times=None,
    )  # fmt: skip
    resources = [
        {"resource_type": kind, "resource_name": name} for kind, name in ((2, "orders"), (2, "other"), (4, "1"))
    ]
    response = raw.ask(message("DescribeConfigsRequest", resources=resources), 4)
    found = {
        (each.resource_type, each.resource_name): (each.error_code, len(each.configs)) for each in response.results
    }
    assert found[2, "orders"] == (29, 0)
    assert [found[key][0] for key in ((2, "other"), (4, "1"))] == [0, 0]
    assert found[2, "other"][1] > 20
    config = [{"name": "retention.ms", "value": "5"}]
    altered = [{**each, "configs": config} for each in resources[:2]]
    response = raw.ask(message("IncrementalAlterConfigsRequest", resources=altered), 1)
    assert {each.resource_name: each.error_code for each in response.responses} == {"orders": 29, "other": 0}
    assert [retention(broker, name) for name in ("orders", "other")] == [604_800_000, 5]
    assert denied.hits == 2


def retention(broker: Broker, topic: str) -> int:
    return broker.call(lambda node: int(node.topics.get(topic).partitions[0].opened.config.retention_ms))


def test_one_quota_entity_fails(broker: Broker, raw: RawClient) -> None:
    fault = broker.faults.fail("AlterClientQuotas", "INVALID_REQUEST", quota={"user": "alice", "client-id": None})
    entities = [{"user": "alice", "client-id": None}, {"user": "alice", "client-id": "app"}, {"user": "bob"}]
    entries = [
        {
            "entity": [{"entity_type": kind, "entity_name": name} for kind, name in each.items()],
            "ops": [{"key": "consumer_byte_rate", "value": 1000.0}],
        }
        for each in entities
    ]
    response = raw.ask(message("AlterClientQuotasRequest", entries=entries), 1)
    codes = [
        ({each.entity_type: each.entity_name for each in entry.entity}, entry.error_code) for entry in response.entries
    ]
    assert sorted(codes, key=str) == sorted([(entities[0], 42), (entities[1], 0), (entities[2], 0)], key=str)
    described = raw.ask(message("DescribeClientQuotasRequest", components=[]), 1)
    assert len(described.entries) == 2
    assert fault.hits == 1


def test_one_user_fails(broker: Broker, raw: RawClient) -> None:
    broker.faults.fail("DescribeUserScramCredentials", "UNACCEPTABLE_CREDENTIAL", user="alice")
    response = raw.ask(message("DescribeUserScramCredentialsRequest", users=[{"name": "alice"}, {"name": "bob"}]), 0)
    assert {each.user: each.error_code for each in response.results} == {"alice": 93, "bob": 91}


def test_partitions_of_a_share_session_fail(broker: Broker, raw: RawClient) -> None:
    """Later requests of the session do not name them."""
    topic_id = create(raw, "t", 2)
    configure(raw, "g", EARLIEST)
    for partition in (0, 1):
        shared_produce(raw, "t", 2, partition)
    member = Member(raw, "g", "t", topic_id).join()
    member.fetch(partitions=(0, 1), max_records=0)
    fault = broker.faults.fail("ShareFetch", "NOT_LEADER_OR_FOLLOWER", topic="t", partition=1)
    broker.faults.observe("ShareFetch", topic="other")
    second = member.fetch(partitions=())
    assert codes(second, partitions="partitions") == {0: 0, 1: NOT_LEADER}
    assert (acquired(second), fault.hits) == ([(0, 1, 1)], 1)
    third = member.fetch(partitions=())
    assert acquired(third) == [(0, 1, 1)]  # of partition 1
    refused = broker.faults.fail("ShareFetch", "NOT_LEADER_OR_FOLLOWER", topic="t", partition=1)
    fourth = member.fetch([(0, 1, [1])], partitions=(1,))
    (only,) = fourth.responses[0].partitions
    assert (only.error_code, only.acknowledge_error_code, refused.hits) == (NOT_LEADER, NOT_LEADER, 1)
    fifth = member.fetch([(0, 1, [1])], partitions=(1,))  # was not acknowledged before
    (only,) = fifth.responses[0].partitions
    assert (only.error_code, only.acknowledge_error_code) == (0, 0)
