"""Generated from BeginQuorumEpochResponse.json, Kafka 2.7.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["BeginQuorumEpochResponse", "NodeEndpoint", "PartitionData", "TopicData"]


class PartitionData(base.Struct, kw_only=True):
    """Versions 0+."""

    partition_index: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    leader_id: int = 0
    """int32; versions 0+; brokerId."""
    leader_epoch: int = 0
    """int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class TopicData(base.Struct, kw_only=True):
    """Versions 0+."""

    topic_name: str = ""
    """string; versions 0+; topicName."""
    partitions: list[PartitionData] = []
    """[]PartitionData; versions 0+."""
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
class BeginQuorumEpochResponse(base.Message, kw_only=True):
    """Response, api key 53; versions 0-1; flexible 1+."""

    error_code: int = 0
    """int16; versions 0+."""
    topics: list[TopicData] = []
    """[]TopicData; versions 0+."""
    node_endpoints: base.Keyed[NodeEndpoint] = base.keyed()
    """[]NodeEndpoint; versions 1+; tag 0."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    PartitionData: ClassVar[type[PartitionData]] = PartitionData
    TopicData: ClassVar[type[TopicData]] = TopicData
    NodeEndpoint: ClassVar[type[NodeEndpoint]] = NodeEndpoint
    API_KEY: ClassVar[int | None] = 53
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 1)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(1, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "BeginQuorumEpochResponse", "apiKey": 53,
  "validVersions": "0-1", "flexibleVersions": "1+",
  "fields": [
    {"name": "ErrorCode", "type": "int16", "versions": "0+"},
    {"name": "Topics", "type": "[]TopicData", "versions": "0+", "fields": [
      {"name": "TopicName", "type": "string", "versions": "0+", "entityType": "topicName"},
      {"name": "Partitions", "type": "[]PartitionData", "versions": "0+", "fields": [
        {"name": "PartitionIndex", "type": "int32", "versions": "0+"},
        {"name": "ErrorCode", "type": "int16", "versions": "0+"},
        {"name": "LeaderId", "type": "int32", "versions": "0+", "entityType": "brokerId"},
        {"name": "LeaderEpoch", "type": "int32", "versions": "0+"}
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
