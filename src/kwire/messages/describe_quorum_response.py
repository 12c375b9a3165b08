"""Generated from DescribeQuorumResponse.json, Kafka 2.7.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["DescribeQuorumResponse", "Listener", "Node", "PartitionData", "ReplicaState", "TopicData"]


class ReplicaState(base.Struct, kw_only=True):
    """Common struct; versions 0+."""

    replica_id: int = 0
    """int32; versions 0+; brokerId."""
    replica_directory_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 2+."""
    log_end_offset: int = 0
    """int64; versions 0+."""
    last_fetch_timestamp: int = -1
    """int64; versions 1+; default -1; ignorable."""
    last_caught_up_timestamp: int = -1
    """int64; versions 1+; default -1; ignorable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class PartitionData(base.Struct, kw_only=True):
    """Versions 0+."""

    partition_index: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    error_message: str | None = ""
    """string; versions 2+; nullable; ignorable."""
    leader_id: int = 0
    """int32; versions 0+; brokerId."""
    leader_epoch: int = 0
    """int32; versions 0+."""
    high_watermark: int = 0
    """int64; versions 0+."""
    current_voters: list[ReplicaState] = []
    """[]ReplicaState; versions 0+."""
    observers: list[ReplicaState] = []
    """[]ReplicaState; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class TopicData(base.Struct, kw_only=True):
    """Versions 0+."""

    topic_name: str = ""
    """string; versions 0+; topicName."""
    partitions: list[PartitionData] = []
    """[]PartitionData; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class Listener(base.Struct, kw_only=True):
    """Versions 2+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("name",)

    name: str = ""
    """string; versions 2+; map key."""
    host: str = ""
    """string; versions 2+."""
    port: int = 0
    """uint16; versions 2+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("listeners")
class Node(base.Struct, kw_only=True):
    """Versions 2+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("node_id",)

    node_id: int = 0
    """int32; versions 2+; map key; brokerId."""
    listeners: base.Keyed[Listener] = base.keyed()
    """[]Listener; versions 2+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("nodes")
class DescribeQuorumResponse(base.Message, kw_only=True):
    """Response, api key 55; versions 0-2; flexible 0+."""

    error_code: int = 0
    """int16; versions 0+."""
    error_message: str | None = ""
    """string; versions 2+; nullable; ignorable."""
    topics: list[TopicData] = []
    """[]TopicData; versions 0+."""
    nodes: base.Keyed[Node] = base.keyed()
    """[]Node; versions 2+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    ReplicaState: ClassVar[type[ReplicaState]] = ReplicaState
    PartitionData: ClassVar[type[PartitionData]] = PartitionData
    TopicData: ClassVar[type[TopicData]] = TopicData
    Listener: ClassVar[type[Listener]] = Listener
    Node: ClassVar[type[Node]] = Node
    API_KEY: ClassVar[int | None] = 55
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 2)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "DescribeQuorumResponse", "apiKey": 55,
  "validVersions": "0-2", "flexibleVersions": "0+",
  "commonStructs": [
    {"name": "ReplicaState", "versions": "0+", "fields": [
      {"name": "ReplicaId", "type": "int32", "versions": "0+", "entityType": "brokerId"},
      {"name": "ReplicaDirectoryId", "type": "uuid", "versions": "2+"},
      {"name": "LogEndOffset", "type": "int64", "versions": "0+"},
      {"name": "LastFetchTimestamp", "type": "int64", "versions": "1+", "default": "-1", "ignorable": true},
      {"name": "LastCaughtUpTimestamp", "type": "int64", "versions": "1+", "default": "-1", "ignorable": true}
    ]}
  ],
  "fields": [
    {"name": "ErrorCode", "type": "int16", "versions": "0+"},
    {"name": "ErrorMessage", "type": "string", "versions": "2+", "nullableVersions": "2+", "ignorable": true},
    {"name": "Topics", "type": "[]TopicData", "versions": "0+", "fields": [
      {"name": "TopicName", "type": "string", "versions": "0+", "entityType": "topicName"},
      {"name": "Partitions", "type": "[]PartitionData", "versions": "0+", "fields": [
        {"name": "PartitionIndex", "type": "int32", "versions": "0+"},
        {"name": "ErrorCode", "type": "int16", "versions": "0+"},
        {"name": "ErrorMessage", "type": "string", "versions": "2+", "nullableVersions": "2+", "ignorable": true},
        {"name": "LeaderId", "type": "int32", "versions": "0+", "entityType": "brokerId"},
        {"name": "LeaderEpoch", "type": "int32", "versions": "0+"},
        {"name": "HighWatermark", "type": "int64", "versions": "0+"},
        {"name": "CurrentVoters", "type": "[]ReplicaState", "versions": "0+"},
        {"name": "Observers", "type": "[]ReplicaState", "versions": "0+"}
      ]}
    ]},
    {"name": "Nodes", "type": "[]Node", "versions": "2+", "fields": [
      {"name": "NodeId", "type": "int32", "versions": "2+", "mapKey": true, "entityType": "brokerId"},
      {"name": "Listeners", "type": "[]Listener", "versions": "2+", "fields": [
        {"name": "Name", "type": "string", "versions": "2+", "mapKey": true},
        {"name": "Host", "type": "string", "versions": "2+"},
        {"name": "Port", "type": "uint16", "versions": "2+"}
      ]}
    ]}
  ]
}
"""
