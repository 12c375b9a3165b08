"""Generated from AssignReplicasToDirsResponse.json, Kafka 3.7.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["AssignReplicasToDirsResponse", "DirectoryData", "PartitionData", "TopicData"]


class PartitionData(base.Struct, kw_only=True):
    """Versions 0+."""

    partition_index: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
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


class AssignReplicasToDirsResponse(base.Message, kw_only=True):
    """Response, api key 73; versions 0; flexible 0+."""

    throttle_time_ms: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
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
  "type": "response", "name": "AssignReplicasToDirsResponse", "apiKey": 73,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+"},
    {"name": "ErrorCode", "type": "int16", "versions": "0+"},
    {"name": "Directories", "type": "[]DirectoryData", "versions": "0+", "fields": [
      {"name": "Id", "type": "uuid", "versions": "0+"},
      {"name": "Topics", "type": "[]TopicData", "versions": "0+", "fields": [
        {"name": "TopicId", "type": "uuid", "versions": "0+"},
        {"name": "Partitions", "type": "[]PartitionData", "versions": "0+", "fields": [
          {"name": "PartitionIndex", "type": "int32", "versions": "0+"},
          {"name": "ErrorCode", "type": "int16", "versions": "0+"}
        ]}
      ]}
    ]}
  ]
}
"""
