"""Metadata logs for another Kafka release: what it does not accept is changed, and said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kwire.internal_topics.cluster_state import ClusterState
from kwire.internal_topics.cluster_values import Partition, Topic
from kwire.internal_topics.enums import ConfigResource
from kwire.internal_topics.metadata_versions import RELEASES, MetadataRelease
from kwire.internal_topics.topic_records import new_cluster
from kwire.log import LogDirectory
from kwire.log.topics import replay_cluster
from kwire.maintenance.accepted_configs import accepted_configs, accepted_records
from kwire.maintenance.adopt import plan_adoption
from kwire.maintenance.cluster_metadata import METADATA_DIRECTORY, write_metadata_log
from kwire.maintenance.restore import AtTime, RestoreOptions, restore_directory
from kwire.messages import ConfigRecord
from kwire.storage.file_system import FileSystem
from tests.maintenance.adopt.nodes import NOW_MS, ONE_EPOCH, ORDERS, node

OF_3_9 = {
    "segment.bytes": "65536",
    "retention.ms": "-1",
    "message.format.version": "3.0-IV1",
    "message.downconversion.enable": "false",
}


Write = Callable[[Path, MetadataRelease | None], tuple[ClusterState, list[str]]]


def source_of_3_9(directory: Path) -> Path:
    """Write the directory of a node of Kafka 3.9, with its metadata log."""
    path = node(directory, 1, {("orders", 0): ONE_EPOCH})
    broker = ConfigRecord(
        resource_type=ConfigResource.BROKER.value, resource_name="", name="log.segment.bytes", value="65536"
    )
    partition = Partition(partition=0, replicas=(1,), isr=(1,), leader_epoch=0)
    cluster = new_cluster(
        [Topic(name="orders", topic_id=ORDERS, partitions={0: partition})],
        RELEASES["3.9"],
        configs={"orders": OF_3_9},
        next_producer_id=5000,
        others=[(broker, 0)],
    )
    write_metadata_log(FileSystem(), f"{path}/{METADATA_DIRECTORY}", cluster, now_ms=NOW_MS)
    return path


def restored(source: Path, release: MetadataRelease | None) -> tuple[ClusterState, list[str]]:
    """Restore a directory; return its cluster and what was said."""
    target = source.parent / "new"
    point = AtTime(time_ms=NOW_MS)
    result = restore_directory(str(source), str(target), point, RestoreOptions(release=release), now_ms=NOW_MS)
    return replay_cluster(LogDirectory(target)), result.warnings


def adopted(source: Path, release: MetadataRelease | None) -> tuple[ClusterState, list[str]]:
    """Plan an adoption; return the same."""
    plan = plan_adoption([str(source)], release=release)
    assert plan.topics["orders"].configs == plan.cluster.configs_of(ConfigResource.TOPIC, "orders")
    return plan.cluster, plan.assumptions


@pytest.mark.parametrize("write", [restored, adopted])
def test_kafka_4_gets_segments_that_it_accepts(write: Write, tmp_path: Path) -> None:
    cluster, said = write(source_of_3_9(tmp_path / "source"), RELEASES["4.3"])
    assert cluster.configs_of(ConfigResource.TOPIC, "orders") == {"segment.bytes": "1048576", "retention.ms": "-1"}
    assert cluster.configs_of(ConfigResource.BROKER, "") == {"log.segment.bytes": "1048576"}
    assert "segment.bytes of topic orders is raised to 1048576: Kafka 4 does not start with less" in said
    assert "message.format.version of topic orders is left out: Kafka 4.3 does not know it" in said
    assert "message.downconversion.enable of topic orders is left out: Kafka 4.3 does not know it" in said
    assert "log.segment.bytes is raised to 1048576: Kafka 4 ignores less" in said


@pytest.mark.parametrize("write", [restored, adopted])
def test_kafka_3_9_keeps_them_and_kafka_4_is_warned_of(write: Write, tmp_path: Path) -> None:
    cluster, said = write(source_of_3_9(tmp_path / "source"), None)
    assert cluster.configs_of(ConfigResource.TOPIC, "orders") == OF_3_9
    assert cluster.configs_of(ConfigResource.BROKER, "") == {"log.segment.bytes": "65536"}
    assert any("Kafka 4 does not start with segment.bytes of topic orders" in each for each in said)
    assert any("Kafka 4 ignores log.segment.bytes below 1048576" in each for each in said)


@pytest.mark.parametrize(
    ("value", "expected"), [("1048575", "1048576"), ("1048576", "1048576"), ("1048577", "1048577"), ("14", "1048576")]
)
def test_the_smallest_accepted_value_is_a_mebibyte(value: str, expected: str) -> None:
    notes: list[str] = []
    configs = {"a": {"segment.bytes": value}, "b": {"segment.ms": "5"}, "c": {}}
    found = accepted_configs(configs, RELEASES["4.0"], notes)
    assert found == {"a": {"segment.bytes": expected}, "b": {"segment.ms": "5"}, "c": {}}
    assert bool(notes) == (value != expected)
    notes.clear()
    assert accepted_configs(configs, RELEASES["3.9"], notes) == configs
    assert bool(notes) == (value != expected)


def test_kafka_3_9_gets_no_configs_of_kafka_4() -> None:
    notes: list[str] = []
    configs = {name: {"max.decompressed.message.bytes": "1000", "retention.ms": "5"} for name in ("b", "a")}
    assert accepted_configs(configs, RELEASES["4.4"], notes) == configs
    assert notes == []
    found = accepted_configs(configs, RELEASES["3.9"], notes)
    assert found == {"a": {"retention.ms": "5"}, "b": {"retention.ms": "5"}}
    assert notes == ["max.decompressed.message.bytes of topics a, b is left out: Kafka 3.9 does not know it"]


@pytest.mark.parametrize(("release", "expected"), [("3.9", "65536"), ("4.0", "1048576")])
def test_brokers_get_segments_that_kafka_4_accepts_from_4_0_on(release: str, expected: str) -> None:
    config = ConfigRecord(resource_type=4, resource_name="", name="log.segment.bytes", value="65536")
    ((message, _),) = accepted_records([(config, 0)], RELEASES[release], [])
    assert isinstance(message, ConfigRecord)
    assert message.value == expected
