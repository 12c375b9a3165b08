"""Generated from BeginQuorumEpochRequest.json, Kafka 2.7.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["BeginQuorumEpochRequest", "LeaderEndpoint", "PartitionData", "TopicData"]


class PartitionData(base.Struct, kw_only=True):
    """Versions 0+."""

    partition_index: int = 0
    """int32; versions 0+."""
    voter_directory_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 1+; ignorable."""
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


class LeaderEndpoint(base.Struct, kw_only=True):
    """Versions 1+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("name",)

    name: str = ""
    """string; versions 1+; map key."""
    host: str = ""
    """string; versions 1+."""
    port: int = 0
    """uint16; versions 1+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("leader_endpoints")
class BeginQuorumEpochRequest(base.Message, kw_only=True):
    """Request, api key 53; versions 0-1; flexible 1+; listeners controller."""

    cluster_id: str | None = None
    """string; versions 0+; nullable; default null."""
    voter_id: int = -1
    """int32; versions 1+; default -1; ignorable; brokerId."""
    topics: list[TopicData] = []
    """[]TopicData; versions 0+."""
    leader_endpoints: base.Keyed[LeaderEndpoint] = base.keyed()
    """[]LeaderEndpoint; versions 1+; ignorable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    PartitionData: ClassVar[type[PartitionData]] = PartitionData
    TopicData: ClassVar[type[TopicData]] = TopicData
    LeaderEndpoint: ClassVar[type[LeaderEndpoint]] = LeaderEndpoint
    API_KEY: ClassVar[int | None] = 53
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 1)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(1, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "BeginQuorumEpochRequest", "apiKey": 53,
  "validVersions": "0-1", "flexibleVersions": "1+",
  "listeners": ["controller"],
  "fields": [
    {"name": "ClusterId", "type": "string", "versions": "0+", "nullableVersions": "0+", "default": "null"},
    {"name": "VoterId", "type": "int32", "versions": "1+", "default": "-1", "ignorable": true, "entityType": "brokerId"},
    {"name": "Topics", "type": "[]TopicData", "versions": "0+", "fields": [
      {"name": "TopicName", "type": "string", "versions": "0+", "entityType": "topicName"},
      {"name": "Partitions", "type": "[]PartitionData", "versions": "0+", "fields": [
        {"name": "PartitionIndex", "type": "int32", "versions": "0+"},
        {"name": "VoterDirectoryId", "type": "uuid", "versions": "1+", "ignorable": true},
        {"name": "LeaderId", "type": "int32", "versions": "0+", "entityType": "brokerId"},
        {"name": "LeaderEpoch", "type": "int32", "versions": "0+"}
      ]}
    ]},
    {"name": "LeaderEndpoints", "type": "[]LeaderEndpoint", "versions": "1+", "ignorable": true, "fields": [
      {"name": "Name", "type": "string", "versions": "1+", "mapKey": true},
      {"name": "Host", "type": "string", "versions": "1+"},
      {"name": "Port", "type": "uint16", "versions": "1+"}
    ]}
  ]
}
"""
