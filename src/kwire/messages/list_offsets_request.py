"""Generated from ListOffsetsRequest.json, Kafka 2.8.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["ListOffsetsPartition", "ListOffsetsRequest", "ListOffsetsTopic"]


class ListOffsetsPartition(base.Struct, kw_only=True):
    """Versions 0+."""

    partition_index: int = 0
    """int32; versions 0+."""
    current_leader_epoch: int = -1
    """int32; versions 4+; default -1; ignorable."""
    timestamp: int = 0
    """int64; versions 0+."""
    max_num_offsets: int = 1
    """int32; versions 0; default 1."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class ListOffsetsTopic(base.Struct, kw_only=True):
    """Versions 0+."""

    name: str = ""
    """string; versions 0+; topicName."""
    partitions: list[ListOffsetsPartition] = []
    """[]ListOffsetsPartition; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class ListOffsetsRequest(base.Message, kw_only=True):
    """Request, api key 2; versions 0-11; flexible 6+; deprecated 0; listeners broker, zkBroker."""

    replica_id: int = 0
    """int32; versions 0+; brokerId."""
    isolation_level: int = 0
    """int8; versions 2+."""
    topics: list[ListOffsetsTopic] = []
    """[]ListOffsetsTopic; versions 0+."""
    timeout_ms: int = 0
    """int32; versions 10+; ignorable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    ListOffsetsPartition: ClassVar[type[ListOffsetsPartition]] = ListOffsetsPartition
    ListOffsetsTopic: ClassVar[type[ListOffsetsTopic]] = ListOffsetsTopic
    API_KEY: ClassVar[int | None] = 2
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 11)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(6, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "ListOffsetsRequest", "apiKey": 2,
  "validVersions": "0-11", "deprecatedVersions": "0", "flexibleVersions": "6+",
  "listeners": ["broker", "zkBroker"],
  "fields": [
    {"name": "ReplicaId", "type": "int32", "versions": "0+", "entityType": "brokerId"},
    {"name": "IsolationLevel", "type": "int8", "versions": "2+"},
    {"name": "Topics", "type": "[]ListOffsetsTopic", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0+", "entityType": "topicName"},
      {"name": "Partitions", "type": "[]ListOffsetsPartition", "versions": "0+", "fields": [
        {"name": "PartitionIndex", "type": "int32", "versions": "0+"},
        {"name": "CurrentLeaderEpoch", "type": "int32", "versions": "4+", "default": "-1", "ignorable": true},
        {"name": "Timestamp", "type": "int64", "versions": "0+"},
        {"name": "MaxNumOffsets", "type": "int32", "versions": "0", "default": "1"}
      ]}
    ]},
    {"name": "TimeoutMs", "type": "int32", "versions": "10+", "ignorable": true}
  ]
}
"""
