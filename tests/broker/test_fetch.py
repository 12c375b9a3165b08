"""Fetch: limits, waiting, transactions, old formats."""

from __future__ import annotations

import os
import random
import time
import uuid
from collections.abc import Iterable
from typing import Any

import pytest

from kwire import messages, records
from kwire.broker import Broker
from kwire.protocol.error_codes import ErrorCode
from tests.broker.wire import RawClient
from tests.waiting import HANG_MS, until

TIME = 1_760_000_000_000
BATCHES, VALUE_BYTES = 5, 1000
FOR_EVER_MS = 2 * HANG_MS
"""A fetch with this wait only returns in time for another reason."""


def produce(
    client: RawClient, topic: str, value: bytes = bytes(VALUE_BYTES), compression: str = "none", *, partition: int = 0
) -> int:
    """Produce one record in its own batch and return the error code."""
    cls = messages.ProduceRequest
    builder = records.BatchBuilder(compression=compression)
    builder.append(b"k", value, timestamp=TIME)
    data = cls.PartitionProduceData(index=partition, records=builder.build())
    request = cls(acks=-1, timeout_ms=1000, topic_data=[cls.TopicProduceData(name=topic, partition_data=[data])])
    return int(client.ask(request, 9).responses[0].partition_responses[0].error_code)


def create(client: RawClient, topic: str, **configs: str) -> None:
    """Create a topic of two partitions with these configs."""
    cls = messages.CreateTopicsRequest
    given = [cls.CreatableTopicConfig(name=name.replace("_", "."), value=value) for name, value in configs.items()]
    made = client.ask(
        cls(topics=[cls.CreatableTopic(name=topic, num_partitions=2, replication_factor=1, configs=given)]), 7
    )
    assert made.topics[0].error_code == 0, made.topics[0].error_message


def fetch(client: RawClient, topic: str, version: int = 11, offset: int = 0, *, wait_ms: int = 0, **limits: int) -> Any:
    """Fetch and return the response for partition 0."""
    cls = messages.FetchRequest
    partition = cls.FetchPartition(
        partition=0,
        fetch_offset=offset,
        partition_max_bytes=limits.get("partition_max_bytes", 1 << 20),
        current_leader_epoch=limits.get("leader_epoch", -1),
    )
    request = cls(
        max_wait_ms=wait_ms,
        min_bytes=limits.get("min_bytes", 1),
        max_bytes=limits.get("max_bytes", 1 << 20),
        topics=[cls.FetchTopic(topic=topic, partitions=[partition])],
    )
    return client.ask(request, version).responses[0].partitions[0]


@pytest.fixture(scope="module")
def filled(broker: Broker) -> str:
    """Create a topic with five batches."""
    with RawClient(broker) as client:
        create(client, "filled")
        for _ in range(BATCHES):
            assert produce(client, "filled") == 0
    return "filled"


def test_the_first_batch_is_returned_whole_despite_limits(broker: Broker, filled: str) -> None:
    with RawClient(broker) as client:
        small = fetch(client, filled, max_bytes=1, partition_max_bytes=1)
        assert [batch.last_offset for batch in records.read_batches(small.records)] == [0]
        oldest = fetch(
            client, filled, version=2, partition_max_bytes=100
        )  # before KIP-74: cut, and the client asks again
        assert list(records.read_batches(oldest.records)) == []


def test_a_limit_applies_and_the_next_fetch_continues(broker: Broker, filled: str) -> None:
    with RawClient(broker) as client:
        part = fetch(client, filled, offset=1, partition_max_bytes=2500)
        assert [batch.base_offset for batch in records.read_batches(part.records)] == [1, 2]
        assert len(part.records) <= 2500


@pytest.mark.parametrize(("offset", "code"), [(-1, 1), (BATCHES + 1, 1), (BATCHES, 0)])
def test_an_offset_outside_the_log_is_out_of_range(broker: Broker, filled: str, offset: int, code: int) -> None:
    with RawClient(broker) as client:
        found = fetch(client, filled, offset=offset)
    assert (found.error_code, found.high_watermark) == ((1, -1) if code else (0, BATCHES))


@pytest.mark.parametrize(("epoch", "code"), [(-1, 0), (0, 0), (1, 75)])
def test_an_unknown_leader_epoch_is_rejected(broker: Broker, filled: str, epoch: int, code: int) -> None:
    with RawClient(broker) as client:
        assert fetch(client, filled, leader_epoch=epoch).error_code == code


def test_a_fetch_waits_for_min_bytes_at_most_max_wait(broker: Broker) -> None:
    with RawClient(broker) as client, RawClient(broker) as producer:
        create(client, "waited")
        begin = time.monotonic()
        assert fetch(client, "waited", wait_ms=200).records == b""
        assert time.monotonic() - begin > 0.15
        cls = messages.FetchRequest
        partition = cls.FetchPartition(partition=0, partition_max_bytes=1 << 20)
        topics = [cls.FetchTopic(topic="waited", partitions=[partition])]
        client.send(cls(max_wait_ms=FOR_EVER_MS, min_bytes=2500, topics=topics), 11)
        for _ in range(3):
            assert produce(producer, "waited") == 0
        found = client.receive().responses[0].partitions[0]
        assert sum(1 for _ in records.read_batches(found.records)) == 3


@pytest.mark.requirement("U-02", "U-10", "U-12")
@pytest.mark.parametrize(("version", "magic"), [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (11, 2)])
def test_old_clients_get_a_format_they_support(broker: Broker, filled: str, version: int, magic: int) -> None:
    with RawClient(broker) as client:
        found = fetch(client, filled, version=version, offset=2)
    batches = list(records.read_batches(found.records))
    assert {batch.magic for batch in batches} == {magic}
    assert [record.offset for batch in batches for record in batch.records()] == [2, 3, 4]


@pytest.mark.requirement("U-02", "U-03")
def test_records_that_cannot_be_converted_are_rejected(broker: Broker) -> None:
    with RawClient(broker) as client:
        create(client, "always-zstd", compression_type="zstd")
        create(client, "never-converted", message_downconversion_enable="false")
        create(client, "some-zstd")
        assert produce(client, "always-zstd") == produce(client, "never-converted") == 0
        assert produce(client, "some-zstd", compression="zstd") == 0
        assert fetch(client, "always-zstd", version=9).error_code == 76
        assert fetch(client, "always-zstd", version=10).error_code == 0
        assert fetch(client, "never-converted", version=3).error_code == 35
        assert fetch(client, "never-converted", version=4).error_code == 0
        assert fetch(client, "some-zstd", version=1).error_code == 76


@pytest.mark.requirement("A-21", "A-22", "U-04")
@pytest.mark.parametrize(("format_version", "magic"), [("0.9.0", 0), ("0.10.2", 1), ("3.0-IV1", 2)])
def test_records_are_stored_in_the_topics_format(broker: Broker, format_version: str, magic: int) -> None:
    topic = f"format-{magic}"
    with RawClient(broker) as client:
        create(client, topic, message_format_version=format_version)
        assert produce(client, topic, compression="gzip") == 0
        kept = list(records.read_batches(fetch(client, topic).records))
    assert [batch.magic for batch in kept] == [magic]


FORMATS = {0: "0.9.0", 1: "0.10.2", 2: "3.0-IV1"}
ASKED = {0: 1, 1: 3, 2: 11}  # magic -> a version of Fetch that carries no later one


def set_format(client: RawClient, topic: str, magic: int, **more: str) -> None:
    """Change the record format of a topic, and other configs."""
    cls = messages.IncrementalAlterConfigsRequest
    settings = {"message.format.version": FORMATS[magic], **{name.replace("_", "."): more[name] for name in more}}
    configs = [cls.AlterableConfig(name=name, config_operation=0, value=value) for name, value in settings.items()]
    resource = cls.AlterConfigsResource(resource_type=2, resource_name=topic, configs=configs)
    assert client.ask(cls(resources=[resource]), 1).responses[0].error_code == 0


@pytest.fixture
def sent_files(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes passed to os.sendfile."""
    sizes: list[int] = []
    original = os.sendfile

    def counted(out: int, file: int, position: int, size: int) -> int:
        sizes.append(size)
        return original(out, file, position, size)

    monkeypatch.setattr(os, "sendfile", counted)
    return sizes


@pytest.mark.requirement("U-02", "U-04", "S31-24", "S31-25")
@pytest.mark.parametrize("stored", FORMATS)
@pytest.mark.parametrize("configured", FORMATS)
@pytest.mark.parametrize("asked", ASKED)
def test_files_are_sent_unless_a_stored_batch_is_of_a_later_format(
    broker: Broker, sent_files: list[int], stored: int, configured: int, asked: int
) -> None:
    """The format of the topic is raised or lowered after its records are written."""
    topic = f"zero-copy-{stored}-{configured}-{asked}"
    with RawClient(broker) as client:
        create(client, topic, message_format_version=FORMATS[stored])
        assert produce(client, topic, value=bytes(200_000)) == 0
        set_format(client, topic, configured)
        found = fetch(client, topic, version=ASKED[asked])
    converts = configured > asked and stored > asked
    assert [batch.magic for batch in records.read_batches(found.records)] == [asked if converts else stored]
    assert bool(sent_files) != converts


@pytest.mark.requirement("U-02")
def test_batches_of_an_old_format_need_no_conversion(broker: Broker) -> None:
    with RawClient(broker) as client:
        create(client, "raised", message_format_version=FORMATS[1])
        assert produce(client, "raised") == 0
        set_format(client, "raised", 2, message_downconversion_enable="false")
        assert fetch(client, "raised", version=2).error_code == 0
        assert produce(client, "raised") == 0
        assert fetch(client, "raised", version=2).error_code == 35
        assert fetch(client, "raised", version=4).error_code == 0


@pytest.mark.requirement("A-21", "U-04")
@pytest.mark.parametrize("magic", FORMATS)
def test_the_brokers_format_is_the_default_of_topics(magic: int) -> None:
    with Broker(log_message_format_version=FORMATS[magic]) as broker, RawClient(broker) as client:
        create(client, "default")
        create(client, "own", message_format_version=FORMATS[2 - magic])
        assert produce(client, "default") == produce(client, "own") == 0
        kept = [fetch(client, topic).records for topic in ("default", "own")]
    assert [[batch.magic for batch in records.read_batches(data)] for data in kept] == [[magic], [2 - magic]]


def test_a_deleted_topic_ends_a_waiting_fetch(broker: Broker) -> None:
    with RawClient(broker) as client, RawClient(broker) as other:
        create(client, "removed")
        cls = messages.FetchRequest
        partition = cls.FetchPartition(partition=0, partition_max_bytes=1 << 20)
        topics = [cls.FetchTopic(topic="removed", partitions=[partition])]
        client.send(cls(max_wait_ms=FOR_EVER_MS, min_bytes=1, topics=topics), 11)
        removed = other.ask(messages.DeleteTopicsRequest(topic_names=["removed"]), 5)
        assert removed.responses[0].error_code == 0
        assert client.receive().responses[0].partitions[0].error_code != 0


@pytest.mark.parametrize("version", [3, 11, 13])
def test_a_waiting_fetch_reports_a_deleted_topic(broker: Broker, version: int) -> None:
    cls = messages.FetchRequest
    with RawClient(broker) as waiting, RawClient(broker) as other:
        create(other, "passing")
        topic_id = broker.call(lambda node: node.topics.get("passing").topic_id)  # type: ignore[union-attr]
        topic = cls.FetchTopic(topic="passing", topic_id=topic_id, partitions=[cls.FetchPartition(partition=1)])
        waiting.send(cls(max_wait_ms=FOR_EVER_MS, min_bytes=1, topics=[topic]), version)
        until(lambda: broker.call(lambda node: node.topics.partition("passing", 1).watchers))  # type: ignore[union-attr]
        other.ask(messages.DeleteTopicsRequest(topic_names=["passing"], timeout_ms=1000), 3)
        (partition,) = waiting.receive().responses[0].partitions
    assert partition.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, []),
        ({"fetch_offset": 0}, [(0, ErrorCode.NONE)]),
        ({"fetch_offset": 9}, [(0, ErrorCode.OFFSET_OUT_OF_RANGE)]),
        ({"current_leader_epoch": 0, "last_fetched_epoch": 0}, []),
        ({"current_leader_epoch": 7}, [(0, ErrorCode.UNKNOWN_LEADER_EPOCH)]),
        ({"last_fetched_epoch": 7}, [(0, ErrorCode.OFFSET_OUT_OF_RANGE)]),
    ],
    ids=str,
)
def test_a_session_at_the_end_of_a_partition_returns_only_what_has_changed(
    broker: Broker, changed: dict[str, int], expected: list[tuple[int, ErrorCode]]
) -> None:
    cls = messages.FetchRequest
    topic = f"at-the-end-{uuid.uuid4()}"
    with RawClient(broker) as client:
        create(client, topic)
        produce(client, topic)

        def ask(session_id: int, epoch: int, **values: int) -> Any:
            partition = cls.FetchPartition(**{"partition": 0, "fetch_offset": 1, **values})
            topics = [cls.FetchTopic(topic=topic, partitions=[partition])]
            return client.ask(cls(max_wait_ms=0, session_id=session_id, session_epoch=epoch, topics=topics), 12)

        for offset, end in ((0, -1), (1, -1), (2, 1)):  # only a log that is longer than this one diverges
            (found,) = ask(0, -1, fetch_offset=offset, last_fetched_epoch=0).responses
            assert found.partitions[0].diverging_epoch.end_offset == end
            assert found.partitions[0].error_code == ErrorCode.NONE
        session_id = ask(0, 0).session_id
        assert ask(session_id, 1).responses == []
        found = ask(session_id, 2, **changed).responses
        assert [(each.partition_index, each.error_code) for one in found for each in one.partitions] == expected
        produce(client, topic)
        (after,) = ask(session_id, 3).responses
        assert after.partitions[0].high_watermark == 2
        assert after.partitions[0].records


@pytest.mark.parametrize("version", [12, 17])
def test_partitions_of_a_session_get_their_own_records(broker: Broker, version: int) -> None:
    """Partitions with records move to the end of their session, so that those of a topic are not together any more."""
    draw, cls = random.Random(version), messages.FetchRequest
    keys = [(f"session-{version}-{topic}", index) for topic in "abc" for index in range(2)]
    with RawClient(broker) as client:
        for topic in sorted({topic for topic, _ in keys}):
            create(client, topic)
        described = client.ask(messages.MetadataRequest(topics=None), 12).topics
        ids = {each.name: each.topic_id for each in described}
        names = {each: topic for topic, each in ids.items()}

        def ask(session_id: int, epoch: int, wanted: Iterable[tuple[str, int]]) -> Any:
            partitions = {
                key: cls.FetchPartition(partition=key[1], fetch_offset=read[key], partition_max_bytes=1 << 20)
                for key in wanted
            }
            topics = [
                cls.FetchTopic(topic=key[0], topic_id=ids[key[0]], partitions=[each])
                for key, each in partitions.items()
            ]
            return client.ask(cls(max_wait_ms=0, session_id=session_id, session_epoch=epoch, topics=topics), version)

        read = dict.fromkeys(keys, 0)
        produced, changed = dict.fromkeys(keys, 0), set(keys)
        session_id = ask(0, 0, keys).session_id
        for epoch in range(1, 40):
            for topic, index in draw.sample(keys, draw.randint(1, len(keys))):
                value = f"{topic} {index} {produced[topic, index]}".encode()
                assert produce(client, topic, value, partition=index) == 0
                produced[topic, index] += 1
            response, changed = ask(session_id, epoch, sorted(changed)), set()
            for each in response.responses:
                for partition in each.partitions:
                    key = (each.topic or names[each.topic_id], partition.partition_index)
                    for record in (
                        record for batch in records.read_batches(partition.records) for record in batch.records()
                    ):
                        assert record.value == f"{key[0]} {key[1]} {read[key]}".encode()
                        read[key] += 1
                        changed.add(key)
            assert read == produced


@pytest.mark.parametrize("version", [2, 3, 12])
def test_the_first_batch_of_another_partition_is_whole_or_absent(broker: Broker, version: int) -> None:
    """Consumers stop at the beginning of a batch. Before version 3 they fetch again with a larger limit."""
    cls, topic = messages.FetchRequest, f"whole-{version}"
    with RawClient(broker) as client:
        create(client, topic)
        for partition in (0, 1):
            assert produce(client, topic, bytes(5000), partition=partition) == 0
        whole = len(fetch(client, topic).records)
        for limit in (1000, whole - 1, whole):
            partitions = [cls.FetchPartition(partition=each, partition_max_bytes=limit) for each in (0, 1)]
            request = cls(max_wait_ms=0, max_bytes=1 << 20, topics=[cls.FetchTopic(topic=topic, partitions=partitions)])
            (found,) = client.ask(request, version).responses
            sizes = {each.partition_index: len(each.records) for each in found.partitions}
            if version < 3:
                assert sizes == {0: limit, 1: limit}
            else:
                assert sizes == {0: whole, 1: whole if limit == whole else 0}
