"""Quotas are enforced as in Kafka: the same requests gave the same throttle times in Kafka 4.4.0.

The first request of a client begins its first sample, so its throttle time is exact: the rate covers ten seconds.
"""

from __future__ import annotations

import select
from collections.abc import Iterator
from typing import Any

import pytest

from kwire import messages, records
from kwire.broker import Broker
from kwire.messages.error_codes import ErrorCode
from tests.broker.wire import RawClient

ANONYMOUS = ("user", "ANONYMOUS")
WINDOW_S = 10
"""Seconds that the rate of a first sample is taken over: one window less than quota.window.num."""
PRODUCE, FETCH, REQUEST = "producer_byte_rate", "consumer_byte_rate", "request_percentage"
MUTATION = "controller_mutation_rate"


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as running:
        running.call(lambda node: node.controller.create_topic("t", 1))
        yield running


def set_quota(broker: Broker, key: str, value: float | None, *entity: tuple[str, str | None]) -> None:
    cls = messages.AlterClientQuotasRequest
    entry = cls.EntryData(
        entity=[cls.EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
        ops=[cls.OpData(key=key, value=value or 0.0, remove=value is None)],
    )
    with RawClient(broker, "admin") as client:
        assert client.ask(cls(entries=[entry]), 1).entries[0].error_code == 0


def produce_request(size_bytes: int, acks: int = 1) -> messages.ProduceRequest:
    builder = records.BatchBuilder(magic=2)
    builder.append(None, bytes(size_bytes), timestamp=1_760_000_000_000)
    cls = messages.ProduceRequest
    data = cls.PartitionProduceData(index=0, records=builder.build())
    return cls(acks=acks, timeout_ms=1000, topic_data=[cls.TopicProduceData(name="t", partition_data=[data])])


def produce(broker: Broker, client_id: str, size_bytes: int = 50_000) -> tuple[int, int]:
    """Return the throttle time of a first produce request, and the counted bytes."""
    with RawClient(broker, client_id) as client:
        request = produce_request(size_bytes)
        counted = len(client.protocol.send(request, version=9)) - 4
        client.protocol.next_response()
    with RawClient(broker, client_id) as client:
        return client.ask(request, 9).throttle_time_ms, counted


def expected_ms(size_bytes: int, quota: float) -> int:
    return int((size_bytes / WINDOW_S - quota) / quota * WINDOW_S * 1000 + 0.5)


BATCH_BYTES = len(produce_request(10_000).topic_data[0].partition_data[0].records or b"")


def fetch_request(max_bytes: int = 1 << 20, epoch: int = -1) -> messages.FetchRequest:
    cls = messages.FetchRequest
    partition = cls.FetchPartition(partition=0, partition_max_bytes=max_bytes)
    return cls(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=max_bytes,
        session_epoch=epoch,
        topics=[cls.FetchTopic(topic="t", partitions=[partition])],
    )


def fetched_bytes(response: Any) -> int:
    return sum(len(each.records or b"") for topic in response.responses for each in topic.partitions)


def is_silent(client: RawClient, others: Broker) -> bool:
    """Return whether a client gets no response while another one is served."""
    with RawClient(others, "other") as other:
        for _ in range(5):
            other.ask(messages.MetadataRequest(topics=[]), 9)
    return not select.select([client.sock], [], [], 0)[0]


def test_a_producer_above_its_rate_waits_and_its_connection_is_muted(broker: Broker) -> None:
    set_quota(broker, PRODUCE, 10, ("client-id", "p"))
    with RawClient(broker, "p") as client:
        response = client.ask(produce_request(50_000), 9)
        assert response.responses[0].partition_responses[0].error_code == 0
        assert response.throttle_time_ms > 3_600_000
        client.send(messages.MetadataRequest(topics=[]), 9)
        assert is_silent(client, broker)
        broker.advance(response.throttle_time_ms)
        assert client.receive().throttle_time_ms == 0


def test_other_connections_of_a_throttled_client_are_served(broker: Broker) -> None:
    set_quota(broker, PRODUCE, 10, ("client-id", "p"))
    assert produce(broker, "p")[0] > 0
    with RawClient(broker, "p") as client:
        assert client.ask(messages.MetadataRequest(topics=[]), 9).throttle_time_ms == 0
        assert client.ask(produce_request(1), 9).throttle_time_ms > 0  # the rate is the client's, not the connection's


def test_produce_with_acks_0_mutes_the_connection(broker: Broker) -> None:
    set_quota(broker, PRODUCE, 10, ("client-id", "p"))
    with RawClient(broker, "p") as client:
        client.send(produce_request(50_000, acks=0), 9)
        client.send(messages.MetadataRequest(topics=[]), 9)
        assert is_silent(client, broker)
        broker.advance(24 * 3_600_000)
        assert client.receive().brokers


def test_the_throttle_time_brings_the_rate_down_to_the_quota(broker: Broker) -> None:
    for quota in (100, 1000, 4999):
        set_quota(broker, PRODUCE, quota, ("client-id", f"p{quota}"))
        throttle_ms, counted = produce(broker, f"p{quota}")
        assert throttle_ms == expected_ms(counted, quota)
    set_quota(broker, PRODUCE, 5100, ("client-id", "below"))
    assert produce(broker, "below")[0] == 0


def test_the_most_specific_quota_applies(broker: Broker) -> None:
    """Quotas are set from the least to the most specific; user quotas take precedence over client quotas."""
    quotas: list[tuple[float, list[tuple[str, str | None]]]] = [
        (4000, [("client-id", None)]),
        (4100, [("client-id", "{}")]),
        (4200, [("user", None)]),
        (4300, [("user", None), ("client-id", None)]),
        (4400, [("user", None), ("client-id", "{}")]),
        (4500, [ANONYMOUS]),
        (4600, [ANONYMOUS, ("client-id", None)]),
        (4700, [ANONYMOUS, ("client-id", "{}")]),
    ]
    for number in range(1, len(quotas) + 1):
        broker.reset()
        broker.call(lambda node: node.controller.create_topic("t", 1))
        client_id = f"c{number}"
        for quota, entity in quotas[:number]:
            named = [(kind, name.format(client_id) if name else None) for kind, name in entity]
            set_quota(broker, PRODUCE, quota, *named)
        throttle_ms, counted = produce(broker, client_id)
        assert throttle_ms == expected_ms(counted, quotas[number - 1][0])


def test_a_removed_quota_no_longer_applies(broker: Broker) -> None:
    set_quota(broker, PRODUCE, 10, ANONYMOUS)
    set_quota(broker, PRODUCE, None, ANONYMOUS)
    assert produce(broker, "p")[0] == 0


def test_clients_of_a_user_share_the_users_quota(broker: Broker) -> None:
    set_quota(broker, PRODUCE, 5500, ANONYMOUS)
    assert produce(broker, "one")[0] == 0
    assert produce(broker, "two")[0] > 0


def test_a_throttled_fetch_is_empty_and_not_counted(broker: Broker) -> None:
    for _ in range(10):
        assert produce(broker, "setup", 10_000)[0] == 0
    set_quota(broker, FETCH, 1000, ("client-id", "f"))
    with RawClient(broker, "f") as client:
        response = client.ask(fetch_request(), 11)  # the first batch is larger than what the quota allows in a window
        assert (response.responses, response.error_code, response.session_id) == ([], 0, 0)
        assert response.throttle_time_ms > 0
        client.send(fetch_request(), 11)
        assert is_silent(client, broker)
    set_quota(broker, FETCH, 1100, ("client-id", "f"))
    with RawClient(broker, "f") as client:  # nothing was counted
        response = client.ask(fetch_request(BATCH_BYTES), 11)
        assert (response.throttle_time_ms, fetched_bytes(response)) == (0, BATCH_BYTES)


def test_a_fetch_is_limited_to_what_the_quota_allows_in_a_window(broker: Broker) -> None:
    for _ in range(10):
        assert produce(broker, "setup", 10_000)[0] == 0
    set_quota(broker, FETCH, 3500, ("client-id", "f"))
    with RawClient(broker, "f") as client:
        response = client.ask(fetch_request(), 11)  # 35,000 bytes of records, and some around them
        assert fetched_bytes(response) == 0
        assert 0 < response.throttle_time_ms < 50
        broker.advance(response.throttle_time_ms)
        response = client.ask(fetch_request(30_000), 11)
        assert (response.throttle_time_ms, fetched_bytes(response)) == (0, 30_000)
        response = client.ask(fetch_request(), 11)
        assert fetched_bytes(response) == 0
        assert response.throttle_time_ms > 2000


def test_a_throttled_fetch_session_is_created_later(broker: Broker) -> None:
    assert produce(broker, "setup", 20_000)[0] == 0
    set_quota(broker, FETCH, 1000, ("client-id", "f"))
    with RawClient(broker, "f") as client:
        response = client.ask(fetch_request(epoch=0), 11)
        assert (response.session_id, response.responses) == (0, [])
        assert broker.call(lambda node: len(node.fetch_sessions)) == 0
        set_quota(broker, FETCH, None, ("client-id", "f"))
        broker.advance(response.throttle_time_ms)
        response = client.ask(fetch_request(epoch=0), 11)
        assert response.session_id > 0
        assert fetched_bytes(response) > 20_000


def mutate(broker: Broker, request: Any, version: int) -> tuple[int, list[int]]:
    """Return throttle time and error codes, on a separate connection."""
    with RawClient(broker, "m") as client:
        response = client.ask(request, version)
    results = getattr(response, "topics", None) or getattr(response, "responses", None) or response.results
    assert all(each.error_message in (None, "") for each in results)
    return response.throttle_time_ms, [each.error_code for each in results]


def create(name: str, count: int, *, validate_only: bool = False) -> Any:
    cls = messages.CreateTopicsRequest
    topics = [cls.CreatableTopic(name=each, num_partitions=count, replication_factor=1) for each in name.split(",")]
    return cls(topics=topics, validate_only=validate_only)


def delete(name: str, version: int) -> Any:
    cls = messages.DeleteTopicsRequest
    return cls(topics=[cls.DeleteTopicState(name=name)]) if version >= 6 else cls(topic_names=[name])


def grow(name: str, count: int) -> Any:
    cls = messages.CreatePartitionsRequest
    return cls(topics=[cls.CreatePartitionsTopic(name=name, count=count, assignments=None)])


def test_newer_versions_reject_mutations_above_the_rate(broker: Broker) -> None:
    set_quota(broker, MUTATION, 0.001, ("client-id", "m"))  # a token is back after 1,000 s; the burst is less than one
    exceeded = ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert mutate(broker, create("v", 1, validate_only=True), 7)[1] == [0]  # counts, though nothing is created
    throttle_ms, codes = mutate(broker, create("a,b", 2), 7)
    assert codes == [exceeded, exceeded]
    assert 900_000 < throttle_ms <= 1_000_000
    assert broker.call(lambda node: node.topics.get("a")) is None
    throttle_ms, codes = mutate(broker, create("a", 2), 5)  # before version 6 it is carried out, and counted
    assert codes == [0]
    assert 2_900_000 < throttle_ms <= 3_000_000
    assert mutate(broker, grow("a", 3), 3)[1] == [exceeded]
    assert mutate(broker, delete("a", 6), 6)[1] == mutate(broker, delete("a", 5), 5)[1] == [exceeded]
    throttle_ms, codes = mutate(broker, grow("a", 3), 2)
    assert codes == [0]
    assert 3_900_000 < throttle_ms <= 4_000_000
    throttle_ms, codes = mutate(broker, delete("a", 4), 4)
    assert codes == [0]
    assert 6_900_000 < throttle_ms <= 7_000_000
    broker.advance(throttle_ms)
    assert mutate(broker, create("c", 1), 7) == (0, [0])


def test_the_request_quota_throttles_at_most_one_window(broker: Broker) -> None:
    set_quota(broker, REQUEST, 0.000001, ("client-id", "r"))
    with RawClient(broker, "r") as client:
        assert client.ask(messages.MetadataRequest(topics=None), 9).throttle_time_ms == 1000
        client.send(messages.MetadataRequest(topics=None), 9)
        broker.advance(1000)
        assert client.receive().throttle_time_ms == 1000
        client.send(fetch_request(), 11)
        broker.advance(1000)
        response = client.receive()
        assert (response.throttle_time_ms, response.responses) == (1000, [])


def test_a_muted_client_can_disconnect(broker: Broker) -> None:
    set_quota(broker, PRODUCE, 10, ("client-id", "p"))
    with RawClient(broker, "p") as client:
        client.ask(produce_request(50_000), 9)
    broker.advance(24 * 3_600_000)
    with RawClient(broker, "other") as other:
        assert other.ask(messages.MetadataRequest(topics=[]), 9).brokers


def test_responses_of_versions_without_a_throttle_time_have_none(broker: Broker) -> None:
    set_quota(broker, REQUEST, 0.000001, ("client-id", "r"))
    for version in range(4):
        with RawClient(broker, "r") as client:
            response = client.ask(
                messages.ApiVersionsRequest(client_software_name="a", client_software_version="1"), version
            )
            assert response.throttle_time_ms == (1000 if version else 0)
