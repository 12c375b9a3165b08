"""Generated from AssignReplicasToDirsRequest.json, Kafka 3.7.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["AssignReplicasToDirsRequest", "DirectoryData", "PartitionData", "TopicData"]


class PartitionData(base.Struct, kw_only=True):
    """Versions 0+."""

    partition_index: int = 0
    """int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class TopicData(base.Struct, kw_only=True):
    """Versions 0+."""

    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 0+."""
    partitions: list[PartitionData] = []
    """[]PartitionData; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class DirectoryData(base.Struct, kw_only=True):
    """Versions 0+."""

    id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 0+."""
    topics: list[TopicData] = []
    """[]TopicData; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class AssignReplicasToDirsRequest(base.Message, kw_only=True):
    """Request, api key 73; versions 0; flexible 0+; listeners controller."""

    broker_id: int = 0
    """int32; versions 0+; brokerId."""
    broker_epoch: int = -1
    """int64; versions 0+; default -1."""
    directories: list[DirectoryData] = []
    """[]DirectoryData; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    PartitionData: ClassVar[type[PartitionData]] = PartitionData
    TopicData: ClassVar[type[TopicData]] = TopicData
    DirectoryData: ClassVar[type[DirectoryData]] = DirectoryData
    API_KEY: ClassVar[int | None] = 73
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "AssignReplicasToDirsRequest", "apiKey": 73,
  "validVersions": "0", "flexibleVersions": "0+",
  "listeners": ["controller"],
  "fields": [
    {"name": "BrokerId", "type": "int32", "versions": "0+", "entityType": "brokerId"},
    {"name": "BrokerEpoch", "type": "int64", "versions": "0+", "default": "-1"},
    {"name": "Directories", "type": "[]DirectoryData", "versions": "0+", "fields": [
      {"name": "Id", "type": "uuid", "versions": "0+"},
      {"name": "Topics", "type": "[]TopicData", "versions": "0+", "fields": [
        {"name": "TopicId", "type": "uuid", "versions": "0+"},
        {"name": "Partitions", "type": "[]PartitionData", "versions": "0+", "fields": [
          {"name": "PartitionIndex", "type": "int32", "versions": "0+"}
        ]}
      ]}
    ]}
  ]
}
"""
