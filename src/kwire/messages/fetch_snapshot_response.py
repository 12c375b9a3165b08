"""Generated from FetchSnapshotResponse.json, Kafka 2.8.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from kwire.messages import base

__all__ = [
    "FetchSnapshotResponse",
    "LeaderIdAndEpoch",
    "NodeEndpoint",
    "PartitionSnapshot",
    "SnapshotId",
    "TopicSnapshot",
]


class SnapshotId(base.Struct, kw_only=True):
    """Versions 0+."""

    end_offset: int = 0
    """int64; versions 0+."""
    epoch: int = 0
    """int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class LeaderIdAndEpoch(base.Struct, kw_only=True):
    """Versions 0+."""

    leader_id: int = 0
    """int32; versions 0+; brokerId."""
    leader_epoch: int = 0
    """int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class PartitionSnapshot(base.Struct, kw_only=True):
    """Versions 0+."""

    index: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    snapshot_id: SnapshotId = msgspec.field(default_factory=SnapshotId)
    """SnapshotId; versions 0+."""
    size: int = 0
    """int64; versions 0+."""
    position: int = 0
    """int64; versions 0+."""
    unaligned_records: bytes | None = None
    """records; versions 0+."""
    current_leader: LeaderIdAndEpoch = msgspec.field(default_factory=LeaderIdAndEpoch)
    """LeaderIdAndEpoch; versions 0+; tag 0."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class TopicSnapshot(base.Struct, kw_only=True):
    """Versions 0+."""

    name: str = ""
    """string; versions 0+; topicName."""
    partitions: list[PartitionSnapshot] = []
    """[]PartitionSnapshot; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class NodeEndpoint(base.Struct, kw_only=True):
    """Versions 1+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("node_id",)

    node_id: int = 0
    """int32; versions 1+; map key; brokerId."""
    host: str = ""
    """string; versions 1+."""
    port: int = 0
    """uint16; versions 1+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("node_endpoints")
class FetchSnapshotResponse(base.Message, kw_only=True):
    """Response, api key 59; versions 0-1; flexible 0+."""

    throttle_time_ms: int = 0
    """int32; versions 0+; ignorable."""
    error_code: int = 0
    """int16; versions 0+."""
    topics: list[TopicSnapshot] = []
    """[]TopicSnapshot; versions 0+."""
    node_endpoints: base.Keyed[NodeEndpoint] = base.keyed()
    """[]NodeEndpoint; versions 1+; tag 0."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    SnapshotId: ClassVar[type[SnapshotId]] = SnapshotId
    LeaderIdAndEpoch: ClassVar[type[LeaderIdAndEpoch]] = LeaderIdAndEpoch
    PartitionSnapshot: ClassVar[type[PartitionSnapshot]] = PartitionSnapshot
    TopicSnapshot: ClassVar[type[TopicSnapshot]] = TopicSnapshot
    NodeEndpoint: ClassVar[type[NodeEndpoint]] = NodeEndpoint
    API_KEY: ClassVar[int | None] = 59
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 1)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "FetchSnapshotResponse", "apiKey": 59,
  "validVersions": "0-1", "flexibleVersions": "0+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+", "ignorable": true},
    {"name": "ErrorCode", "type": "int16", "versions": "0+"},
    {"name": "Topics", "type": "[]TopicSnapshot", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0+", "entityType": "topicName"},
      {"name": "Partitions", "type": "[]PartitionSnapshot", "versions": "0+", "fields": [
        {"name": "Index", "type": "int32", "versions": "0+"},
        {"name": "ErrorCode", "type": "int16", "versions": "0+"},
        {"name": "SnapshotId", "type": "SnapshotId", "versions": "0+", "fields": [
          {"name": "EndOffset", "type": "int64", "versions": "0+"},
          {"name": "Epoch", "type": "int32", "versions": "0+"}
        ]},
        {"name": "CurrentLeader", "type": "LeaderIdAndEpoch", "versions": "0+", "tag": 0, "taggedVersions": "0+", "fields": [
          {"name": "LeaderId", "type": "int32", "versions": "0+", "entityType": "brokerId"},
          {"name": "LeaderEpoch", "type": "int32", "versions": "0+"}
        ]},
        {"name": "Size", "type": "int64", "versions": "0+"},
        {"name": "Position", "type": "int64", "versions": "0+"},
        {"name": "UnalignedRecords", "type": "records", "versions": "0+"}
      ]}
    ]},
    {"name": "NodeEndpoints", "type": "[]NodeEndpoint", "versions": "1+", "tag": 0, "taggedVersions": "1+", "fields": [
      {"name": "NodeId", "type": "int32", "versions": "1+", "mapKey": true, "entityType": "brokerId"},
      {"name": "Host", "type": "string", "versions": "1+"},
      {"name": "Port", "type": "uint16", "versions": "1+"}
    ]}
  ]
}
"""
