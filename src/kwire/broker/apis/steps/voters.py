"""Checks of requests that change the voters of the metadata log.

Source: org.apache.kafka.raft.KafkaRaftClient, ReplicaKey, VoterSet 4.4.0.
"""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from kwire.broker.node import Node
from kwire.identifiers import render_uuid
from kwire.internal_topics.metadata_versions import KRAFT_VERSION
from kwire.messages.base import ZERO_UUID
from kwire.protocol.error_codes import ErrorCode, refusal

__all__ = ["ReplicaKey", "check_request", "check_static_voters", "is_voter", "voter_keys"]


class ReplicaKey(NamedTuple):
    """A voter. directory_id: of its log directory, zero if it is not known. As text, it is Kafka's."""

    node_id: int
    directory_id: UUID

    def __str__(self) -> str:
        directory = "<undefined>" if self.directory_id == ZERO_UUID else render_uuid(self.directory_id)
        return f"ReplicaKey(id={self.node_id}, directoryId={directory})"


def check_request(node: Node, cluster_id: str | None, voter: ReplicaKey, verb: str) -> None:
    """Raise BrokerError for a request for another cluster, or one without a whole key. verb: Add or Remove."""
    if cluster_id not in (None, node.cluster_id):
        what = f'The given id "{cluster_id}" doesn\'t match the cluster id "{node.cluster_id}"'
        raise refusal(ErrorCode.INCONSISTENT_CLUSTER_ID, what)
    if voter.node_id < 0 or voter.directory_id == ZERO_UUID:
        raise refusal(ErrorCode.INVALID_REQUEST, f"{verb} voter request didn't include a valid voter")


def check_static_voters(node: Node, doing: str) -> None:
    """Raise BrokerError if the voters are static. doing: adding or removing."""
    level = node.cluster.kraft_version
    if not level:
        what = f"Cluster doesn't support {doing} voter because the {KRAFT_VERSION} feature is {level}"
        raise refusal(ErrorCode.UNSUPPORTED_VERSION, what)


def is_voter(node: Node, key: ReplicaKey) -> bool:
    """Return whether the metadata log names a voter with this id and directory."""
    voter = node.cluster.voters.get(key.node_id)
    return voter is not None and voter.directory_id == key.directory_id


def voter_keys(node: Node) -> str:
    """Return the voters of the metadata log as Kafka prints a set of them."""
    keys = (ReplicaKey(each.node_id, each.directory_id) for each in node.cluster.voters.values())
    return f"[{', '.join(map(str, keys))}]"
