"""Eligible leader replicas (KIP-966): which replicas may lead once the ISR is below min.insync.replicas, or empty."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kwire import messages
from kwire.broker import Broker, Cluster
from kwire.broker.replication.elections import RECOVERING, Election, change
from kwire.errors import OptionError
from kwire.internal_topics.cluster_values import NO_LEADER, Partition
from kwire.internal_topics.metadata_versions import ELR_VERSION
from kwire.log import LogDirectory
from kwire.log.topics import replay_cluster
from tests.broker.wire import RawClient

TOPIC = UUID(int=1)


def partition(leader: int, isr: list[int], elr: list[int] | None = None, known: list[int] | None = None) -> Partition:
    return Partition(
        partition=0, replicas=(1, 2, 3), isr=tuple(isr), leader=leader, leader_epoch=0, elr=tuple(elr or ()),
        last_known_elr=tuple(known or ()),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("state", "given", "expected"),
    [
        (partition(1, [1, 2, 3]), {"isr": [1, 2], "running": [1, 2]}, {"isr": [1, 2]}),
        (partition(1, [1, 2]), {"isr": [1], "running": [1]}, {"isr": [1], "eligible_leader_replicas": [2]}),
        (
            partition(1, [1], [2]),
            {"isr": [], "running": []},
            {"isr": [], "leader": NO_LEADER, "eligible_leader_replicas": [1, 2], "last_known_elr": [1]},
        ),
        (
            partition(NO_LEADER, [], [1, 2], [1]),
            {"running": [2]},
            {"isr": [2], "leader": 2, "eligible_leader_replicas": [1], "last_known_elr": []},
        ),
        (partition(NO_LEADER, [], [1, 2], [1]), {"running": [3], "kind": Election.ONLINE}, None),
        (
            partition(NO_LEADER, [], [1, 2], [1]),
            {"running": [], "crashed": [1]},
            {"eligible_leader_replicas": [2]},
        ),
        (
            partition(NO_LEADER, [], [], [1]),
            {"running": [1, 3]},
            {"isr": [1], "leader": 1, "last_known_elr": [], "leader_recovery_state": RECOVERING},
        ),
        (partition(NO_LEADER, [], [], [1]), {"running": [3]}, None),
        (
            partition(NO_LEADER, [], [2], [1]),
            {"running": [3], "kind": Election.UNCLEAN},
            {
                "isr": [3], "leader": 3, "eligible_leader_replicas": [], "last_known_elr": [],
                "leader_recovery_state": RECOVERING,
            },
        ),
        (partition(1, [1], [2]), {"running": [1, 2], "min_isr": 1}, {"eligible_leader_replicas": []}),
    ],
)  # fmt: skip
def test_changes(state: Partition, given: dict[str, Any], expected: dict[str, Any] | None) -> None:
    record = change(TOPIC, state, **{"min_isr": 2, **given})
    if expected is None:
        assert record is None
        return
    assert record == messages.PartitionChangeRecord(partition_id=0, topic_id=TOPIC, **expected)


def described(cluster: Cluster) -> tuple[int, list[int], list[int], list[int]]:
    """Return leader, ISR, eligible and last known leader replicas."""
    cls = messages.DescribeTopicPartitionsRequest
    with RawClient(cluster, node=1) as client:
        (topic,) = client.ask(cls(topics=[cls.TopicRequest(name="t")], response_partition_limit=9), 0).topics
    (only,) = topic.partitions
    return only.leader_id, only.isr_nodes, only.eligible_leader_replicas, only.last_known_elr


def test_the_last_replicas_of_a_cluster_are_eligible(tmp_path: Path) -> None:
    with Cluster(nodes=3, data_dir=tmp_path, eligible_leader_replicas_version=1) as cluster:
        cluster.create_topic("t", min_insync_replicas=2)
        with RawClient(cluster, node=1) as client:
            finalized = client.ask(
                messages.ApiVersionsRequest(client_software_name="a", client_software_version="1"), 4
            ).finalized_features
        assert {each.name: each.max_version_level for each in finalized}[ELR_VERSION] == 1
        cluster.move_leader("t", 0, to=3)
        assert described(cluster) == (3, [1, 2, 3], [], [])
        cluster.stop(2)
        cluster.crash(3)
        cluster.advance(9000)
        assert described(cluster) == (1, [1], [3], [])
        cluster.start(3)  # it may lack records, but catches up
        assert described(cluster) == (1, [1, 3], [], [])
        cluster.stop(3)
    assert [each.elr for each in replay_cluster(LogDirectory(tmp_path)).topics["t"].partitions.values()] == [()]


def test_without_the_feature_the_last_replica_stays_in_sync() -> None:
    with Cluster(nodes=3) as cluster:
        cluster.create_topic("t", min_insync_replicas=2)
        cluster.move_leader("t", 0, to=3)
        cluster.stop(2)
        assert described(cluster) == (3, [1, 3], [], [])
        cluster.stop(3)
        assert described(cluster) == (1, [1], [], [])
    with (
        pytest.raises(OptionError, match="eligible_leader_replicas_version 2 is not supported; use 0 to 1"),
        Broker(eligible_leader_replicas_version=2),
    ):
        pass
