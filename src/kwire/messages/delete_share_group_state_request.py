"""Generated from DeleteShareGroupStateRequest.json, Kafka 3.9.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["DeleteShareGroupStateRequest", "DeleteStateData", "PartitionData"]


class PartitionData(base.Struct, kw_only=True):
    """Versions 0+."""

    partition: int = 0
    """int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class DeleteStateData(base.Struct, kw_only=True):
    """Versions 0+."""

    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 0+."""
    partitions: list[PartitionData] = []
    """[]PartitionData; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class DeleteShareGroupStateRequest(base.Message, kw_only=True):
    """Request, api key 86; versions 0; flexible 0+; listeners broker."""

    group_id: str = ""
    """string; versions 0+."""
    topics: list[DeleteStateData] = []
    """[]DeleteStateData; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    PartitionData: ClassVar[type[PartitionData]] = PartitionData
    DeleteStateData: ClassVar[type[DeleteStateData]] = DeleteStateData
    API_KEY: ClassVar[int | None] = 86
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "DeleteShareGroupStateRequest", "apiKey": 86,
  "validVersions": "0", "flexibleVersions": "0+",
  "listeners": ["broker"],
  "fields": [
    {"name": "GroupId", "type": "string", "versions": "0+"},
    {"name": "Topics", "type": "[]DeleteStateData", "versions": "0+", "fields": [
      {"name": "TopicId", "type": "uuid", "versions": "0+"},
      {"name": "Partitions", "type": "[]PartitionData", "versions": "0+", "fields": [
        {"name": "Partition", "type": "int32", "versions": "0+"}
      ]}
    ]}
  ]
}
"""
