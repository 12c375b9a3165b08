"""Snapshots of the metadata log: the same records as in Kafka's own, and a broker that starts from one."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tools.kafka import KafkaBroker

from kwire import messages
from kwire.broker import Broker
from kwire.broker.metadata_records import read_metadata
from kwire.broker.node import Node
from kwire.errors import LogError
from kwire.internal_topics.cluster_records import snapshot_records
from kwire.internal_topics.cluster_state import ClusterState
from kwire.internal_topics.metadata_records import metadata_record
from kwire.log import LogDirectory
from kwire.log.internal import replay_cluster
from kwire.messages.base import Message
from kwire.protocol import read_metadata_record, write_metadata_record
from kwire.records import BatchBuilder, read_batches
from tests.broker.wire import RawClient
from tests.waiting import HANG_S

SMALL = {"metadata_log_max_record_bytes_between_snapshots": 1, "metadata_max_retention_bytes": 1}


def comparable(records: list[tuple[Message, int]]) -> dict[str, Any]:
    """Records with their versions, in an order of their own; features of brokers are a hash map in Kafka."""
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
def test_a_snapshot_has_the_records_of_kafkas_own(archive: str, kafka_logs: dict[str, Path]) -> None:
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
        assert comparable(list(snapshot_records(cluster))) == comparable([each for _, each in stored(snapshot)])


def test_a_record_that_a_snapshot_would_lose_stops_the_start(tmp_path: Path) -> None:
    builder = BatchBuilder()
    builder.append(None, write_metadata_record(messages.RemoveFeatureLevelRecord(), 0))
    (tmp_path / "00000000000000000000.log").write_bytes(builder.build())
    with pytest.raises(LogError, match="metadata record at offset 0: record type 16 is not supported"):
        read_metadata(tmp_path)


def test_a_transaction_without_an_end_is_aborted(tmp_path: Path) -> None:
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
    """A snapshot, with all that it replaces removed: the segment before it, too."""
    node.metadata_log.log.roll(node.clock.now_ms())
    node.metadata_log.maintain()


@pytest.mark.requirement("F-50")
def test_a_broker_starts_from_a_snapshot_of_its_own(tmp_path: Path) -> None:
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


def test_snapshots_come_by_bytes_and_by_time(tmp_path: Path) -> None:
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
def test_kafka_boots_from_our_snapshot_and_we_from_what_it_left(tmp_path: Path) -> None:
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
