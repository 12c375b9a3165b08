"""Generated from ListOffsetRequest.json, Kafka 2.0.1 to 2.7.2, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["ListOffsetPartition", "ListOffsetRequest", "ListOffsetTopic"]


class ListOffsetPartition(base.Struct, kw_only=True):
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


class ListOffsetTopic(base.Struct, kw_only=True):
    """Versions 0+."""

    name: str = ""
    """string; versions 0+; topicName."""
    partitions: list[ListOffsetPartition] = []
    """[]ListOffsetPartition; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class ListOffsetRequest(base.Message, kw_only=True):
    """Request, api key 2; versions 0-5; flexible none."""

    replica_id: int = 0
    """int32; versions 0+; brokerId."""
    isolation_level: int = 0
    """int8; versions 2+."""
    topics: list[ListOffsetTopic] = []
    """[]ListOffsetTopic; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    ListOffsetPartition: ClassVar[type[ListOffsetPartition]] = ListOffsetPartition
    ListOffsetTopic: ClassVar[type[ListOffsetTopic]] = ListOffsetTopic
    API_KEY: ClassVar[int | None] = 2
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 5)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, -1)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "ListOffsetRequest", "apiKey": 2,
  "validVersions": "0-5", "flexibleVersions": "none",
  "fields": [
    {"name": "ReplicaId", "type": "int32", "versions": "0+", "entityType": "brokerId"},
    {"name": "IsolationLevel", "type": "int8", "versions": "2+"},
    {"name": "Topics", "type": "[]ListOffsetTopic", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0+", "entityType": "topicName"},
      {"name": "Partitions", "type": "[]ListOffsetPartition", "versions": "0+", "fields": [
        {"name": "PartitionIndex", "type": "int32", "versions": "0+"},
        {"name": "CurrentLeaderEpoch", "type": "int32", "versions": "4+", "default": "-1", "ignorable": true},
        {"name": "Timestamp", "type": "int64", "versions": "0+"},
        {"name": "MaxNumOffsets", "type": "int32", "versions": "0", "default": "1"}
      ]}
    ]}
  ]
}
"""
