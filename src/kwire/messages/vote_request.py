"""Generated from VoteRequest.json, Kafka 2.7.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["PartitionData", "TopicData", "VoteRequest"]


class PartitionData(base.Struct, kw_only=True):
    """Versions 0+."""

    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = (
        ("candidateDirectoryId", "replica_directory_id", 1, 1),
        ("candidateEpoch", "replica_epoch", 0, 1),
        ("candidateId", "replica_id", 0, 1),
    )

    partition_index: int = 0
    """int32; versions 0+."""
    replica_epoch: int = 0
    """int32; versions 0+."""
    replica_id: int = 0
    """int32; versions 0+; brokerId."""
    replica_directory_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 1+; ignorable."""
    voter_directory_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 1+; ignorable."""
    last_offset_epoch: int = 0
    """int32; versions 0+."""
    last_offset: int = 0
    """int64; versions 0+."""
    pre_vote: bool = False
    """bool; versions 2+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class TopicData(base.Struct, kw_only=True):
    """Versions 0+."""

    topic_name: str = ""
    """string; versions 0+; topicName."""
    partitions: list[PartitionData] = []
    """[]PartitionData; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class VoteRequest(base.Message, kw_only=True):
    """Request, api key 52; versions 0-2; flexible 0+; listeners controller."""

    cluster_id: str | None = None
    """string; versions 0+; nullable; default null."""
    voter_id: int = -1
    """int32; versions 1+; default -1; ignorable; brokerId."""
    topics: list[TopicData] = []
    """[]TopicData; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    PartitionData: ClassVar[type[PartitionData]] = PartitionData
    TopicData: ClassVar[type[TopicData]] = TopicData
    API_KEY: ClassVar[int | None] = 52
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 2)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "VoteRequest", "apiKey": 52,
  "validVersions": "0-2", "flexibleVersions": "0+",
  "listeners": ["controller"],
  "fields": [
    {"name": "ClusterId", "type": "string", "versions": "0+", "nullableVersions": "0+", "default": "null"},
    {"name": "VoterId", "type": "int32", "versions": "1+", "default": "-1", "ignorable": true, "entityType": "brokerId"},
    {"name": "Topics", "type": "[]TopicData", "versions": "0+", "fields": [
      {"name": "TopicName", "type": "string", "versions": "0+", "entityType": "topicName"},
      {"name": "Partitions", "type": "[]PartitionData", "versions": "0+", "fields": [
        {"name": "PartitionIndex", "type": "int32", "versions": "0+"},
        {"name": "ReplicaEpoch", "type": "int32", "versions": "0+"},
        {"name": "ReplicaId", "type": "int32", "versions": "0+", "entityType": "brokerId"},
        {"name": "ReplicaDirectoryId", "type": "uuid", "versions": "1+", "ignorable": true},
        {"name": "VoterDirectoryId", "type": "uuid", "versions": "1+", "ignorable": true},
        {"name": "LastOffsetEpoch", "type": "int32", "versions": "0+"},
        {"name": "LastOffset", "type": "int64", "versions": "0+"},
        {"name": "PreVote", "type": "bool", "versions": "2+"}
      ]}
    ]}
  ]
}
"""
