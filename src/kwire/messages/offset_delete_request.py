"""Generated from OffsetDeleteRequest.json, Kafka 2.4.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["OffsetDeleteRequest", "OffsetDeleteRequestPartition", "OffsetDeleteRequestTopic"]


class OffsetDeleteRequestPartition(base.Struct, kw_only=True):
    """Versions 0+."""

    partition_index: int = 0
    """int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class OffsetDeleteRequestTopic(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("name",)

    name: str = ""
    """string; versions 0+; map key; topicName."""
    partitions: list[OffsetDeleteRequestPartition] = []
    """[]OffsetDeleteRequestPartition; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("topics")
class OffsetDeleteRequest(base.Message, kw_only=True):
    """Request, api key 47; versions 0; flexible none; listeners broker, zkBroker."""

    group_id: str = ""
    """string; versions 0+; groupId."""
    topics: base.Keyed[OffsetDeleteRequestTopic] = base.keyed()
    """[]OffsetDeleteRequestTopic; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    OffsetDeleteRequestPartition: ClassVar[type[OffsetDeleteRequestPartition]] = OffsetDeleteRequestPartition
    OffsetDeleteRequestTopic: ClassVar[type[OffsetDeleteRequestTopic]] = OffsetDeleteRequestTopic
    API_KEY: ClassVar[int | None] = 47
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, -1)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "OffsetDeleteRequest", "apiKey": 47,
  "validVersions": "0", "flexibleVersions": "none",
  "listeners": ["broker", "zkBroker"],
  "fields": [
    {"name": "GroupId", "type": "string", "versions": "0+", "entityType": "groupId"},
    {"name": "Topics", "type": "[]OffsetDeleteRequestTopic", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0+", "mapKey": true, "entityType": "topicName"},
      {"name": "Partitions", "type": "[]OffsetDeleteRequestPartition", "versions": "0+", "fields": [
        {"name": "PartitionIndex", "type": "int32", "versions": "0+"}
      ]}
    ]}
  ]
}
"""
