"""Generated from FetchSnapshotRequest.json, Kafka 2.8.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

import msgspec

from kwire.messages import base

__all__ = ["FetchSnapshotRequest", "PartitionSnapshot", "SnapshotId", "TopicSnapshot"]


class SnapshotId(base.Struct, kw_only=True):
    """Versions 0+."""

    end_offset: int = 0
    """int64; versions 0+."""
    epoch: int = 0
    """int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class PartitionSnapshot(base.Struct, kw_only=True):
    """Versions 0+."""

    partition: int = 0
    """int32; versions 0+."""
    current_leader_epoch: int = 0
    """int32; versions 0+."""
    snapshot_id: SnapshotId = msgspec.field(default_factory=SnapshotId)
    """SnapshotId; versions 0+."""
    position: int = 0
    """int64; versions 0+."""
    replica_directory_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 1+; tag 0; ignorable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class TopicSnapshot(base.Struct, kw_only=True):
    """Versions 0+."""

    name: str = ""
    """string; versions 0+; topicName."""
    partitions: list[PartitionSnapshot] = []
    """[]PartitionSnapshot; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class FetchSnapshotRequest(base.Message, kw_only=True):
    """Request, api key 59; versions 0-1; flexible 0+; listeners controller."""

    replica_id: int = -1
    """int32; versions 0+; default -1; brokerId."""
    max_bytes: int = 2147483647
    """int32; versions 0+; default 2147483647."""
    topics: list[TopicSnapshot] = []
    """[]TopicSnapshot; versions 0+."""
    cluster_id: str | None = None
    """string; versions 0+; tag 0; nullable; default null."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    SnapshotId: ClassVar[type[SnapshotId]] = SnapshotId
    PartitionSnapshot: ClassVar[type[PartitionSnapshot]] = PartitionSnapshot
    TopicSnapshot: ClassVar[type[TopicSnapshot]] = TopicSnapshot
    API_KEY: ClassVar[int | None] = 59
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 1)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "FetchSnapshotRequest", "apiKey": 59,
  "validVersions": "0-1", "flexibleVersions": "0+",
  "listeners": ["controller"],
  "fields": [
    {"name": "ClusterId", "type": "string", "versions": "0+", "tag": 0, "taggedVersions": "0+", "nullableVersions": "0+", "default": "null"},
    {"name": "ReplicaId", "type": "int32", "versions": "0+", "default": "-1", "entityType": "brokerId"},
    {"name": "MaxBytes", "type": "int32", "versions": "0+", "default": "2147483647"},
    {"name": "Topics", "type": "[]TopicSnapshot", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0+", "entityType": "topicName"},
      {"name": "Partitions", "type": "[]PartitionSnapshot", "versions": "0+", "fields": [
        {"name": "Partition", "type": "int32", "versions": "0+"},
        {"name": "CurrentLeaderEpoch", "type": "int32", "versions": "0+"},
        {"name": "SnapshotId", "type": "SnapshotId", "versions": "0+", "fields": [
          {"name": "EndOffset", "type": "int64", "versions": "0+"},
          {"name": "Epoch", "type": "int32", "versions": "0+"}
        ]},
        {"name": "Position", "type": "int64", "versions": "0+"},
        {"name": "ReplicaDirectoryId", "type": "uuid", "versions": "1+", "tag": 0, "taggedVersions": "1+", "ignorable": true}
      ]}
    ]}
  ]
}
"""
