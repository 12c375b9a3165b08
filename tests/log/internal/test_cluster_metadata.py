"""The cluster state replayed from its metadata log, compared with Kafka's snapshots and record by record."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.log.internal.dumps import NOW, batch, log_of

from kwire.errors import LogError
from kwire.internal_topics.cluster_rows import ClusterPart, cluster_rows
from kwire.internal_topics.cluster_state import ClusterState
from kwire.internal_topics.enums import label
from kwire.log import LogDirectory
from kwire.log.topics import list_snapshots, read_cluster_records, replay_cluster, topic_names
from kwire.messages import registry
from kwire.protocol import write_metadata_record

NOT_IN_SNAPSHOTS = {"end_timestamp", "leader", "problems", "snapshot_offset", "open_transaction", "records"}


def facts(cluster: ClusterState) -> dict[str, Any]:
    """Return the state of a cluster in comparable form."""
    return {
        field.name: getattr(cluster, field.name)
        for field in dataclasses.fields(cluster)
        if field.name not in NOT_IN_SNAPSHOTS
    }


@pytest.mark.parametrize("archive", ["modern", "modern44"])
def test_replaying_the_log_gives_the_contents_of_each_kafka_snapshot(
    archive: str, kafka_logs: dict[str, Path], tmp_path: Path
) -> None:
    """The snapshots are the controller's own state: brokers, topics, partitions, configs, quotas, ACLs..."""
    folder = kafka_logs[archive] / "data" / "__cluster_metadata-0"
    bare = tmp_path / folder.name
    shutil.copytree(folder, bare)
    first, *later = list_snapshots(LogDirectory(folder))
    assert len(later) == 2
    for snapshot in later:
        (bare / snapshot.name).unlink()
    for snapshot in later:
        by_snapshot = replay_cluster(LogDirectory(folder), at_offset=snapshot.end_offset)
        by_log = replay_cluster(LogDirectory(bare), at_offset=snapshot.end_offset)
        assert (by_snapshot.snapshot_offset, by_log.snapshot_offset) == (snapshot.end_offset, first.end_offset)
        assert facts(by_snapshot) == facts(by_log)
        assert (by_snapshot.leader, by_snapshot.end_timestamp) == (by_log.leader, by_log.end_timestamp)
        assert by_log.problems.count == 0


def test_the_state_of_the_modern_cluster_is_complete(kafka_logs: dict[str, Path]) -> None:
    cluster = replay_cluster(LogDirectory(kafka_logs["modern"] / "data"))
    assert (cluster.snapshot_offset, cluster.end_offset, cluster.leader, cluster.kraft_version) == (401, 445, 1, 1)
    assert cluster.features == {"metadata.version": 21}
    assert {name for name, _ in cluster.users} == {"m1-user", "m2-user"}
    assert cluster.configs["topic", "orders"] == {"segment.bytes": "131072"}
    assert cluster.configs["broker", ""] == {"log.cleaner.threads": "1"}
    assert cluster.quotas[("user", None),] == {"request_percentage": 75.0}
    assert {(acl.principal, label(acl.operation), label(acl.pattern_type)) for acl in cluster.acls.values()} == {
        ("User:m1-user", "READ", "PREFIXED"),
        ("User:m2-user", "READ", "PREFIXED"),
    }
    assert {name: len(topic.partitions) for name, topic in cluster.topics.items()} == {
        "__consumer_offsets": 3,
        "__transaction_state": 3,
        "compacted": 2,
        "compacted-txn": 1,
        "empty": 2,
        "ids": 2,
        "logappend": 2,
        "m1-wide": 8,
        "m2-wide": 8,
        "orders": 3,
        "orders.recompressed": 1,
        "trimmed": 1,
        "txn": 2,
    }
    (broker,) = cluster.brokers.values()
    assert (broker.fenced, broker.in_controlled_shutdown) == (True, True)  # it was stopped
    assert broker.endpoints[1].port == 21092


def test_the_topics_are_those_with_logs_in_the_directory(kafka_logs: dict[str, Path]) -> None:
    for archive in ("modern", "modern44"):
        directory = LogDirectory(kafka_logs[archive] / "data")
        topics = replay_cluster(directory).topics
        there = {topic: log.topic_id for (topic, _), log in directory.items() if topic != "__cluster_metadata"}
        assert {name: topic.topic_id for name, topic in topics.items()} == there


def test_the_state_at_an_earlier_offset_or_time_is_restored(kafka_logs: dict[str, Path]) -> None:
    directory = LogDirectory(kafka_logs["modern"] / "data")
    assert replay_cluster(directory, at_offset=0).topics == {}
    assert list(replay_cluster(directory, at_offset=21).topics) == ["orders"]
    assert replay_cluster(directory, at_offset=158).acls == {}
    assert len(replay_cluster(directory, at_offset=160).acls) == 2
    assert len(replay_cluster(directory, at_offset=162).acls) == 1  # mallory's was deleted
    moment = next(each for each in read_cluster_records(directory) if each.offset == 161).timestamp
    timed = replay_cluster(directory, at_time=moment)
    assert (timed.end_offset, len(timed.acls), timed.snapshot_offset) == (162, 1, 0)
    # between a snapshot's last record and its making
    late = replay_cluster(directory, at_time=1795235304229)
    assert late.snapshot_offset == 221


def test_a_log_without_its_start_is_read_from_its_snapshot(kafka_logs: dict[str, Path], tmp_path: Path) -> None:
    folder = kafka_logs["modern"] / "data" / "__cluster_metadata-0"
    data = tmp_path / "data"
    shutil.copytree(folder, data / folder.name)
    (data / "log-start-offset-checkpoint").write_text("0\n1\n__cluster_metadata 0 300\n")
    whole = replay_cluster(LogDirectory(folder))
    assert facts(replay_cluster(LogDirectory(data))) == facts(whole)
    with pytest.raises(LogError, match="begins at offset 300, and no snapshot"):
        replay_cluster(LogDirectory(data), at_offset=250)


def test_an_unfinished_snapshot_is_ignored(kafka_logs: dict[str, Path], tmp_path: Path) -> None:
    folder = kafka_logs["modern"] / "data" / "__cluster_metadata-0"
    copy = tmp_path / folder.name
    shutil.copytree(folder, copy)
    newest = copy / list_snapshots(LogDirectory(copy))[-1].name
    whole = newest.read_bytes()
    expected = facts(replay_cluster(LogDirectory(folder)))
    for damaged in (whole[:-75], whole[: len(whole) // 2], whole[:-100] + b"\xff" + whole[-99:], b""):
        newest.write_bytes(damaged)
        cluster = replay_cluster(LogDirectory(copy))
        assert cluster.snapshot_offset == 221
        assert facts(cluster) == expected


# ---- record by record

TOPIC_ID = UUID(int=77)


def made(name: str, /, **fields: Any) -> tuple[None, bytes]:
    message: Any = registry.get(name)(**fields)
    return None, write_metadata_record(message, message.VALID_VERSIONS.highest)


def cluster_of(data: Path, *records: tuple[None, bytes]) -> ClusterState:
    return replay_cluster(LogDirectory(log_of(data, "__cluster_metadata-0", batch(records, 0))))


TOPIC = made("TopicRecord", name="t", topic_id=TOPIC_ID)
PARTITION = made(
    "PartitionRecord", partition_id=0, topic_id=TOPIC_ID, replicas=[1, 2], isr=[1, 2], leader=1, leader_epoch=3,
    partition_epoch=5, directories=[UUID(int=1), UUID(int=2)],
)  # fmt: skip
BROKER = made("RegisterBrokerRecord", broker_id=1, broker_epoch=9, rack="r", fenced=True)


def test_a_partition_change_record_changes_only_its_fields(tmp_path: Path) -> None:
    change = {"partition_id": 0, "topic_id": TOPIC_ID}
    shrunk = cluster_of(tmp_path / "a", TOPIC, PARTITION, made("PartitionChangeRecord", isr=[1], **change))
    partition = shrunk.topics["t"].partitions[0]
    assert (partition.isr, partition.leader, partition.leader_epoch, partition.partition_epoch) == ((1,), 1, 3, 6)
    moved = cluster_of(
        tmp_path / "b",
        TOPIC,
        PARTITION,
        made(
            "PartitionChangeRecord", leader=2, isr=[2], leader_recovery_state=1, eligible_leader_replicas=[1], **change
        ),
    )
    partition = moved.topics["t"].partitions[0]
    assert (partition.leader, partition.leader_epoch, partition.recovering, partition.elr) == (2, 4, True, (1,))
    assert partition.replicas == (1, 2)
    cleared = cluster_of(
        tmp_path / "c",
        TOPIC,
        PARTITION,
        made("PartitionChangeRecord", eligible_leader_replicas=[1], last_known_elr=[1], **change),
        made("ClearElrRecord", topic_name="t"),
    )
    assert cleared.topics["t"].partitions[0].elr == ()


def test_brokers_are_registered_fenced_and_unregistered(tmp_path: Path) -> None:
    def state(*records: tuple[None, bytes]) -> Any:
        data = tmp_path / str(len(list(tmp_path.iterdir())))
        return cluster_of(data, BROKER, *records).brokers.get(1)

    assert (state().fenced, state().rack) == (True, "r")
    assert state(made("UnfenceBrokerRecord", id=1, epoch=9)).fenced is False
    unfenced = made("BrokerRegistrationChangeRecord", broker_id=1, broker_epoch=9, fenced=-1)
    stopping = made("BrokerRegistrationChangeRecord", broker_id=1, broker_epoch=9, in_controlled_shutdown=1)
    assert (state(unfenced).fenced, state(unfenced).in_controlled_shutdown) == (False, False)
    assert (state(unfenced, stopping).fenced, state(unfenced, stopping).in_controlled_shutdown) == (False, True)
    assert state(unfenced, made("FenceBrokerRecord", id=1, epoch=9)).fenced is True
    assert state(made("UnregisterBrokerRecord", broker_id=1, broker_epoch=9)) is None


def test_configs_quotas_users_and_tokens_are_set_and_removed(tmp_path: Path) -> None:
    entity = registry.get("ClientQuotaRecord").EntityData(entity_type="user", entity_name="u")  # type: ignore[attr-defined]
    made_ones = [
        TOPIC,
        made("ConfigRecord", resource_type=2, resource_name="t", name="retention.ms", value="1"),
        made("ConfigRecord", resource_type=2, resource_name="t", name="segment.ms", value="2"),
        made("ClientQuotaRecord", entity=[entity], key="producer_byte_rate", value=1.5),
        made("UserScramCredentialRecord", name="u", mechanism=2, salt=b"s", stored_key=b"k", server_key=b"v"),
        made("DelegationTokenRecord", token_id="tok", owner="User:o", renewers=["User:r"]),
        made("FeatureLevelRecord", name="group.version", feature_level=1),
        made("ProducerIdsRecord", broker_id=1, next_producer_id=1000),
    ]
    there = cluster_of(tmp_path / "a", *made_ones)
    assert there.configs == {("topic", "t"): {"retention.ms": "1", "segment.ms": "2"}}
    assert there.quotas == {(("user", "u"),): {"producer_byte_rate": 1.5}}
    assert there.users["u", "SCRAM-SHA-512"].salt == b"s"
    assert there.tokens["tok"].renewers == ("User:r",)
    assert (there.features, there.next_producer_id) == ({"group.version": 1}, 1000)
    gone = cluster_of(
        tmp_path / "b",
        *made_ones,
        made("ConfigRecord", resource_type=2, resource_name="t", name="retention.ms", value=None),
        made("ClientQuotaRecord", entity=[entity], key="producer_byte_rate", value=0.0, remove=True),
        made("RemoveUserScramCredentialRecord", name="u", mechanism=2),
        made("RemoveDelegationTokenRecord", token_id="tok"),
        made("FeatureLevelRecord", name="group.version", feature_level=0),
    )
    assert gone.configs == {("topic", "t"): {"segment.ms": "2"}}
    assert (gone.quotas, gone.users, gone.tokens, gone.features) == ({}, {}, {}, {})
    removed = cluster_of(tmp_path / "c", *made_ones, made("RemoveTopicRecord", topic_id=TOPIC_ID))
    assert (removed.topics, removed.configs) == ({}, {})


def test_a_deleted_topics_id_keeps_its_name_for_earlier_states(tmp_path: Path) -> None:
    removed = made("RemoveTopicRecord", topic_id=TOPIC_ID)
    log_of(tmp_path, "__cluster_metadata-0", batch([TOPIC, PARTITION, removed], 0))
    assert topic_names(LogDirectory(tmp_path)) == {}
    assert topic_names(LogDirectory(tmp_path), deleted=True) == {TOPIC_ID: "t"}


def test_records_of_a_metadata_transaction_apply_together_or_not_at_all(tmp_path: Path) -> None:
    begin, other = made("BeginTransactionRecord", name="x"), made("TopicRecord", name="u", topic_id=UUID(int=78))
    unfinished = cluster_of(tmp_path / "a", TOPIC, begin, other)
    assert set(unfinished.topics) == {"t"}
    assert [each.offset for each in unfinished.open_transaction or ()] == [2]
    assert set(cluster_of(tmp_path / "b", TOPIC, begin, other, made("EndTransactionRecord")).topics) == {"t", "u"}
    aborted = cluster_of(tmp_path / "c", TOPIC, begin, other, made("AbortTransactionRecord", reason="r"), BROKER)
    assert (set(aborted.topics), set(aborted.brokers)) == ({"t"}, {1})


def test_records_about_missing_entities_are_problems_and_later_ones_apply(tmp_path: Path) -> None:
    cluster = cluster_of(
        tmp_path,
        PARTITION,
        made("FenceBrokerRecord", id=4, epoch=9),
        made("RemoveTopicRecord", topic_id=TOPIC_ID),
        made("RemoveAccessControlEntryRecord", id=UUID(int=3)),
        made("UnregisterBrokerRecord", broker_id=8),
        made("ClearElrRecord", topic_name="nowhere"),
        (None, b"\1\x03\x7f"),
        TOPIC,
        made("PartitionChangeRecord", partition_id=6, topic_id=TOPIC_ID),
    )
    assert set(cluster.topics) == {"t"}
    assert [each.offset for each in cluster.problems.records] == [0, 1, 2, 3, 4, 5, 6, 8]
    assert "FenceBrokerRecord about broker 4, which does not exist" in [each.error for each in cluster.problems.records]
    assert (cluster.end_offset, cluster.end_timestamp) == (9, NOW + 8000)


def test_rows_hide_secrets_by_default(tmp_path: Path) -> None:
    cluster = cluster_of(
        tmp_path,
        made("ConfigRecord", resource_type=4, resource_name="1", name="ssl.keystore.password", value="hunter2"),
        made("ConfigRecord", resource_type=4, resource_name="1", name="log.cleaner.threads", value="2"),
        made("UserScramCredentialRecord", name="u", mechanism=1, salt=b"hunter2", stored_key=b"hunter2"),
        made("DelegationTokenRecord", token_id="hunter2", owner="User:o"),
    )
    for part in ClusterPart:
        assert "hunter2" not in str(list(cluster_rows(cluster, part))), part
        assert "aHVudGVyMg" not in str(list(cluster_rows(cluster, part))), part
    shown = str([list(cluster_rows(cluster, part, redact=False)) for part in ClusterPart])
    assert shown.count("hunter2") == 2
    assert shown.count("aHVudGVyMg==") == 2
    assert [row["value"] for row in cluster_rows(cluster, ClusterPart.CONFIGS)] == ["2", "[hidden]"]
