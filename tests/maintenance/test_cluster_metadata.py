"""A metadata log that is written for new directories: kwire reads it and starts from it, as Kafka does."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from kwire.broker import Broker
from kwire.errors import OptionError
from kwire.identifiers import parse_uuid
from kwire.internal_topics.cluster_state import ClusterState
from kwire.internal_topics.cluster_values import Partition, Topic
from kwire.internal_topics.enums import ConfigResource
from kwire.internal_topics.metadata_versions import NEWEST_RELEASE, RELEASES, MetadataRelease, release_of
from kwire.internal_topics.topic_records import new_cluster
from kwire.log import LogDirectory
from kwire.log.topics import replay_cluster
from kwire.log.topics.stored_metadata import apply_records, read_metadata
from kwire.maintenance.cluster_metadata import METADATA_DIRECTORY, write_metadata_log
from kwire.messages import ClientQuotaRecord, MetadataRequest, ProducerIdsRecord
from kwire.protocol import write_metadata_record
from kwire.records import BatchBuilder
from kwire.storage.file_system import FileSystem
from kwire.storage.meta_properties import MetaProperties
from tests.broker.wire import RawClient

NOW_MS = 1_800_000_000_000
ORDERS = UUID(int=4711)


def cluster(release: MetadataRelease, directory_id: str = "A" * 22) -> ClusterState:
    partitions = {
        index: Partition(
            partition=index, replicas=(1,), isr=(1,), leader_epoch=5 + index, directories=(parse_uuid(directory_id),)
        )
        for index in range(2)
    }
    quota = ClientQuotaRecord(
        entity=[ClientQuotaRecord.EntityData(entity_type="user", entity_name="ada")],
        key="request_percentage",
        value=5.0,
    )
    return new_cluster(
        [Topic(name="orders", topic_id=ORDERS, partitions=partitions)],
        release,
        configs={"orders": {"retention.ms": "-1"}},
        next_producer_id=7000,
        others=[(quota, 0)],
    )


@pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES)
def test_a_written_metadata_log_reads_as_the_cluster(release: MetadataRelease, tmp_path: Path) -> None:
    directory = tmp_path / METADATA_DIRECTORY
    write_metadata_log(FileSystem(), str(directory), cluster(release), now_ms=NOW_MS, end_offset=900, leader_epoch=7)
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=1\n")
    found = replay_cluster(LogDirectory(tmp_path))
    assert found.features == release.features
    assert found.configs == {(ConfigResource.TOPIC.label, "orders"): {"retention.ms": "-1"}}
    assert found.next_producer_id == 7000
    assert found.quotas == {(("user", "ada"),): {"request_percentage": 5.0}}
    assert [each.leader_epoch for each in found.topics["orders"].partitions.values()] == [5, 6]
    assert (found.snapshot_offset, found.end_offset, found.brokers) == (900, 900, {})
    stored, again = read_metadata(directory), ClusterState()
    apply_records(stored, again)
    assert (stored.snapshot_offset, stored.quorum.leader_epoch) == (900, 7)
    assert list(again.snapshot_records()) == list(found.snapshot_records())


@pytest.mark.parametrize(("logs", "release"), [("modern", "3.9"), ("modern44", "4.4")])
def test_it_has_the_types_and_versions_of_records_that_kafka_writes(
    logs: str, release: str, kafka_logs: dict[str, Path], tmp_path: Path
) -> None:
    write_metadata_log(FileSystem(), str(tmp_path / METADATA_DIRECTORY), cluster(RELEASES[release]), now_ms=NOW_MS)
    ours, of_kafka = (
        {(each.kind, each.version) for each in read_metadata(directory / METADATA_DIRECTORY).records}
        for directory in (tmp_path, kafka_logs[logs] / "data")
    )
    assert ours <= of_kafka
    assert (("ZkMigrationStateRecord", 0) in ours) == (("ZkMigrationStateRecord", 0) in of_kafka)


def test_the_first_record_after_a_snapshot_is_read(tmp_path: Path) -> None:
    directory = tmp_path / METADATA_DIRECTORY
    write_metadata_log(FileSystem(), str(directory), cluster(RELEASES["3.9"]), now_ms=NOW_MS, end_offset=900)
    builder = BatchBuilder(base_offset=899)  # the snapshot has the record before
    for next_id in (8000, 9000):
        builder.append(None, write_metadata_record(ProducerIdsRecord(next_producer_id=next_id), 0), timestamp=NOW_MS)
    last = BatchBuilder(base_offset=901)
    last.append(None, write_metadata_record(ProducerIdsRecord(next_producer_id=9500), 0), timestamp=NOW_MS)
    file = directory / f"{900:020}.log"
    for batches, expected in ((builder.build(), 9000), (builder.build() + last.build(), 9500)):
        file.write_bytes(batches)
        again = ClusterState()
        apply_records(read_metadata(directory), again)
        assert again.next_producer_id == expected


def test_a_broker_starts_from_it_and_continues_after_its_end(tmp_path: Path) -> None:
    ids = MetaProperties.new(1)
    ids.write(FileSystem(), str(tmp_path), NOW_MS)
    write_metadata_log(
        FileSystem(),
        str(tmp_path / METADATA_DIRECTORY),
        cluster(RELEASES["3.9"], ids.directory_id),
        now_ms=NOW_MS,
        end_offset=900,
        leader_epoch=7,
    )
    for start in range(2):
        with Broker(tmp_path) as broker:
            assert broker.call(lambda node: node.metadata_log.leader_epoch) == 8 + start
            assert broker.call(lambda node: node.metadata_log.log.log_start_offset) == 900
            with RawClient(broker) as client:
                topics = client.ask(MetadataRequest(topics=None), 12).topics
            (orders,) = topics
            assert (orders.name, orders.topic_id) == ("orders", ORDERS)
            epochs = {each.partition_index: (each.leader_id, each.leader_epoch) for each in orders.partitions}
            assert epochs == {0: (1, 6 + 2 * start), 1: (1, 7 + 2 * start)}


def test_a_release_is_named_by_its_version() -> None:
    assert release_of("3.9.1") is release_of("3.9") is RELEASES["3.9"]
    assert NEWEST_RELEASE is list(RELEASES.values())[-1]
    for text in ("3.2", "3", "", "3.9.x", "4.99"):
        with pytest.raises(OptionError, match=r"unknown Kafka version .*; expected one of 3\.3, "):
            release_of(text)
