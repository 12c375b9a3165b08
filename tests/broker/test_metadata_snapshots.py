"""Snapshots of the metadata log: the same records as in Kafka's own, and a broker that starts from one."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tools.kafka import KafkaBroker

from kwire import messages
from kwire.broker import Broker
from kwire.broker.node import Node
from kwire.errors import LogError
from kwire.internal_topics.cluster_state import ClusterState
from kwire.internal_topics.metadata_records import metadata_record
from kwire.log import LogDirectory
from kwire.log.topics import replay_cluster
from kwire.log.topics.stored_metadata import read_metadata
from kwire.messages.base import Message
from kwire.protocol import read_metadata_record, write_metadata_record
from kwire.records import BatchBuilder, read_batches
from tests.broker.wire import RawClient
from tests.waiting import HANG_S

SMALL = {"metadata_log_max_record_bytes_between_snapshots": 1, "metadata_max_retention_bytes": 1}


def comparable(records: list[tuple[Message, int]]) -> dict[str, Any]:
    """Return records with their versions in a fixed order, since features of brokers are a hash map in Kafka."""
    for record, _ in records:
        if isinstance(record, messages.RegisterBrokerRecord):
            record.features.sort(key=lambda each: each.name)
    return {repr(record): version for record, version in records}


def stored(path: Path) -> list[tuple[int, tuple[Message, int]]]:
    return [
        (record.offset, read_metadata_record(record.value or b""))
        for batch in read_batches(path.read_bytes())
        if not batch.is_control
        for record in batch.records()
    ]


@pytest.mark.parametrize("archive", ["modern", "modern44"])
def test_a_snapshot_has_the_records_of_kafkas_snapshot(archive: str, kafka_logs: dict[str, Path]) -> None:
    folder = kafka_logs[archive] / "data" / "__cluster_metadata-0"
    (log,) = folder.glob("*.log")
    snapshots = [path for path in sorted(folder.glob("*.checkpoint")) if not path.name.startswith("0" * 20)]
    assert snapshots
    for snapshot in snapshots:
        cluster = ClusterState()
        end = int(snapshot.name.partition("-")[0])
        for offset, record in stored(log):
            if offset < end:
                cluster.apply(metadata_record(*record, offset=offset))
        assert not cluster.problems.records
        assert comparable(list(cluster.snapshot_records())) == comparable([each for _, each in stored(snapshot)])


def test_an_unsupported_metadata_record_prevents_startup(tmp_path: Path) -> None:
    builder = BatchBuilder()
    builder.append(None, write_metadata_record(messages.RemoveFeatureLevelRecord(), 0))
    (tmp_path / "00000000000000000000.log").write_bytes(builder.build())
    with pytest.raises(LogError, match="metadata record at offset 0: record type 16 is not supported"):
        read_metadata(tmp_path)


UNKNOWN_TAG = (90, b"of a newer release")


def test_a_record_of_an_unknown_version_stops_the_start(tmp_path: Path) -> None:
    builder = BatchBuilder()
    record = bytearray(write_metadata_record(messages.TopicRecord(name="t", topic_id=UUID(int=7)), 0))
    record[2] = 9
    builder.append(None, bytes(record))
    (tmp_path / "00000000000000000000.log").write_bytes(builder.build())
    with pytest.raises(LogError, match="metadata record at offset 0: TopicRecord: no version 9"):
        read_metadata(tmp_path)


def test_a_record_about_something_missing_stops_the_start(tmp_path: Path) -> None:
    change = messages.PartitionChangeRecord(partition_id=0, topic_id=UUID(int=7), leader=1), 0
    with Broker(tmp_path / "data") as broker:
        broker.call(lambda node: node.metadata_log.append([change]))
    with pytest.raises(LogError, match=r"metadata record at offset .*: PartitionChangeRecord about topic id"):
        Broker(tmp_path / "data").start()


def test_an_incomplete_snapshot_is_ignored_if_the_log_has_its_records(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Broker(data, metadata_log_max_record_bytes_between_snapshots=1) as broker:
        create_topics(broker, "kept")
        broker.call(take_snapshot)
    (snapshot,) = (data / "__cluster_metadata-0").glob("*.checkpoint")
    whole = snapshot.read_bytes()
    for damaged in (whole[:-75], whole[: len(whole) // 2], whole[:-100] + b"\xff" + whole[-99:], b""):
        snapshot.write_bytes(damaged)
        stored = read_metadata(snapshot.parent)
        assert stored.snapshot_offset == 0
        assert any(isinstance(each.value, messages.TopicRecord) for each in stored.records)
    (first, *_) = sorted(snapshot.parent.glob("*.log"))
    first.unlink()
    with pytest.raises(LogError, match=r"metadata log begins at offset .*, and no snapshot covers"):
        read_metadata(snapshot.parent)


def test_a_snapshot_keeps_the_tagged_fields_of_a_newer_release(tmp_path: Path) -> None:
    """The snapshot of an older broker has all unknown fields, nested structs included."""
    ids: dict[str, Any] = {"topic_id": UUID(int=7), "partition_id": 0}
    endpoint = messages.RegisterBrokerRecord.BrokerEndpoint(name="A", port=1, unknown_tagged_fields=[UNKNOWN_TAG])
    entity = messages.ClientQuotaRecord.EntityData(
        entity_type="user", entity_name="u", unknown_tagged_fields=[UNKNOWN_TAG]
    )
    kept: list[tuple[Any, int]] = [
        (messages.FeatureLevelRecord(name="group.version", feature_level=1), 0),
        (messages.RegisterBrokerRecord(broker_id=8, broker_epoch=3, end_points=[endpoint]), 3),
        (messages.RegisterControllerRecord(controller_id=8), 0),
        (messages.TopicRecord(name="t", topic_id=UUID(int=7)), 0),
        (messages.PartitionRecord(**ids, replicas=[1, 8], isr=[1, 8], leader=1, leader_epoch=4, partition_epoch=5), 1),
        (messages.ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value="1"), 0),
        (messages.ClientQuotaRecord(entity=[entity], key="producer_byte_rate", value=1.5), 0),
        (messages.ProducerIdsRecord(broker_id=1, next_producer_id=5000), 0),
        (messages.AccessControlEntryRecord(id=UUID(int=9), resource_type=2, resource_name="t", principal="User:u"), 0),
        (messages.UserScramCredentialRecord(name="u", mechanism=9, salt=b"s", iterations=4096), 0),
        (messages.DelegationTokenRecord(token_id="tok", owner="User:o", requester="User:o"), 0),
        (messages.PartitionChangeRecord(**ids, isr=[1]), 1),
        (messages.PartitionChangeRecord(**ids, leader=8), 1),
        (messages.BrokerRegistrationChangeRecord(broker_id=8, broker_epoch=3, fenced=-1), 2),
    ]
    for record, _ in kept:
        record.unknown_tagged_fields = [UNKNOWN_TAG]
    kept[-2][0].unknown_tagged_fields = [(91, b"later")]
    data = tmp_path / "data"
    with Broker(data, metadata_log_max_record_bytes_between_snapshots=1) as broker:
        broker.call(lambda node: node.metadata_log.append(kept))
        broker.call(take_snapshot)
        state = broker.call(
            lambda node: copy.deepcopy((node.cluster.brokers, node.cluster.topics, node.cluster.configs))
        )
    (snapshot,) = (data / "__cluster_metadata-0").glob("*.checkpoint")
    again, raw = ClusterState(), snapshot.read_bytes()
    records: list[Any] = [each for _, each in stored(snapshot)]
    for record, version in records:
        again.apply(metadata_record(record, version))
    assert not again.problems.records
    assert (again.brokers, again.topics, again.configs) == state
    partition = again.topics["t"].partitions[0]
    assert (partition.isr, partition.leader, partition.leader_epoch, partition.partition_epoch) == ((1,), 8, 5, 7)
    assert not again.brokers[8].fenced
    tagged = {type(record): record for record, _ in records if record.unknown_tagged_fields}
    assert set(tagged) == {type(record) for record, _ in kept}
    change: Any = tagged.pop(messages.PartitionChangeRecord)
    assert change == messages.PartitionChangeRecord(**ids, unknown_tagged_fields=[UNKNOWN_TAG, (91, b"later")])
    assert all(record.unknown_tagged_fields == [UNKNOWN_TAG] for record in tagged.values())
    assert raw.count(b"of a newer release") == len(kept) - 1 + 2, "and the endpoint's, and the entity's"
    assert comparable(list(again.snapshot_records())) == comparable(records), "a second snapshot loses nothing either"


def test_an_unfinished_metadata_transaction_is_aborted(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Broker(data) as broker:
        begin = messages.BeginTransactionRecord(name="x"), 0
        topic = messages.TopicRecord(name="half", topic_id=UUID(int=7)), 0
        broker.call(lambda node: node.metadata_log.append([begin, topic]))
    with Broker(data) as broker:
        create_topics(broker, "later")
    assert set(replay_cluster(LogDirectory(data)).topics) == {"later"}


def create_topics(broker: Broker, *names: str) -> None:
    create = messages.CreateTopicsRequest
    topics = [create.CreatableTopic(name=name, num_partitions=3, replication_factor=1) for name in names]
    with RawClient(broker) as client:
        assert {each.error_code for each in client.ask(create(topics=topics), 7).topics} == {0}


def change_much(broker: Broker) -> None:
    create_topics(broker, "kept", "changed", "gone")
    with RawClient(broker) as client:
        alter = messages.IncrementalAlterConfigsRequest
        config = alter.AlterableConfig(name="retention.ms", config_operation=0, value="1234567")
        resource = alter.AlterConfigsResource(resource_type=2, resource_name="changed", configs=[config])
        assert client.ask(alter(resources=[resource]), 1).responses[0].error_code == 0
        assert client.ask(messages.DeleteTopicsRequest(topic_names=["gone"]), 5).responses[0].error_code == 0


def take_snapshot(node: Node) -> None:
    """Take a snapshot and remove everything that it replaces, the preceding segment included."""
    node.metadata_log.log.roll(node.clock.now_ms())
    node.metadata_log.maintain()


@pytest.mark.requirement("F-50")
def test_a_broker_starts_from_its_own_snapshot(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Broker(data, log_segment_delete_delay_ms=0, **SMALL) as broker:
        change_much(broker)
        broker.call(take_snapshot)
        first = replay_cluster(LogDirectory(data))
        create_topics(broker, "later")
        broker.call(take_snapshot)
        log = data / "__cluster_metadata-0"
        assert len(list(log.glob("*.checkpoint"))) == 1, "one over retention is removed with the segments below it"
        assert int(min(log.glob("*.log")).stem) > 0
    cluster = replay_cluster(LogDirectory(data))
    assert cluster.problems.count == 0
    assert set(cluster.topics) == {"kept", "changed", "later"}
    assert cluster.topics["kept"].topic_id == first.topics["kept"].topic_id
    assert read_metadata(log).snapshot_offset > 0
    with Broker(data) as broker, RawClient(broker) as client:
        names = {topic.name for topic in client.ask(messages.MetadataRequest(topics=None), 12).topics}
        assert names == {"kept", "changed", "later"}
        describe = messages.DescribeConfigsRequest
        resource = describe.DescribeConfigsResource(
            resource_type=2, resource_name="changed", configuration_keys=["retention.ms"]
        )
        (config,) = client.ask(describe(resources=[resource]), 4).results[0].configs
        assert config.value == "1234567"


def test_snapshots_are_taken_by_size_and_by_time(tmp_path: Path) -> None:
    with Broker(tmp_path / "data", metadata_log_max_snapshot_interval_ms=3_600_000) as broker:
        log = tmp_path / "data" / "__cluster_metadata-0"
        change_much(broker)
        broker.call(lambda node: node.metadata_log.maintain())
        assert not list(log.glob("*.checkpoint"))
        broker.advance(3_600_001)
        broker.call(lambda node: node.metadata_log.maintain())
        assert len(list(log.glob("*.checkpoint"))) == 1
        broker.advance(3_600_001)
        broker.call(lambda node: node.metadata_log.maintain())
        assert len(list(log.glob("*.checkpoint"))) == 1, "nothing has changed since"


@pytest.mark.jvm
@pytest.mark.slow
@pytest.mark.requirement("F-50", "G-01")
def test_kafka_starts_from_our_snapshot_and_we_from_its_directory(tmp_path: Path) -> None:
    from confluent_kafka.admin import AdminClient

    data = tmp_path / "data"
    with Broker(data, log_segment_delete_delay_ms=0, **SMALL) as broker:
        change_much(broker)
        broker.call(take_snapshot)
        broker.call(take_snapshot)
        create_topics(broker, "later")
        broker.call(take_snapshot)
    with KafkaBroker(tmp_path) as kafka:
        topics = AdminClient({"bootstrap.servers": kafka.bootstrap_servers}).list_topics(timeout=HANG_S).topics
        assert {"kept", "changed", "later"} <= set(topics)
        assert "gone" not in topics
        assert len(topics["kept"].partitions) == 3
    with Broker(data) as broker, RawClient(broker) as client:
        names = {topic.name for topic in client.ask(messages.MetadataRequest(topics=None), 12).topics}
        assert {"kept", "changed", "later"} <= names
