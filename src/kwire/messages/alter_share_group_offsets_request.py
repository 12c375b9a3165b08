"""Generated from AlterShareGroupOffsetsRequest.json, Kafka 4.1.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = [
    "AlterShareGroupOffsetsRequest",
    "AlterShareGroupOffsetsRequestPartition",
    "AlterShareGroupOffsetsRequestTopic",
]


class AlterShareGroupOffsetsRequestPartition(base.Struct, kw_only=True):
    """Versions 0+."""

    partition_index: int = 0
    """int32; versions 0+."""
    start_offset: int = 0
    """int64; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class AlterShareGroupOffsetsRequestTopic(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("topic_name",)

    topic_name: str = ""
    """string; versions 0+; map key; topicName."""
    partitions: list[AlterShareGroupOffsetsRequestPartition] = []
    """[]AlterShareGroupOffsetsRequestPartition; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("topics")
class AlterShareGroupOffsetsRequest(base.Message, kw_only=True):
    """Request, api key 91; versions 0; flexible 0+; listeners broker."""

    group_id: str = ""
    """string; versions 0+; groupId."""
    topics: base.Keyed[AlterShareGroupOffsetsRequestTopic] = base.keyed()
    """[]AlterShareGroupOffsetsRequestTopic; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    AlterShareGroupOffsetsRequestPartition: ClassVar[type[AlterShareGroupOffsetsRequestPartition]] = (
        AlterShareGroupOffsetsRequestPartition
    )
    AlterShareGroupOffsetsRequestTopic: ClassVar[type[AlterShareGroupOffsetsRequestTopic]] = (
        AlterShareGroupOffsetsRequestTopic
    )
    API_KEY: ClassVar[int | None] = 91
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "AlterShareGroupOffsetsRequest", "apiKey": 91,
  "validVersions": "0", "flexibleVersions": "0+",
  "listeners": ["broker"],
  "fields": [
    {"name": "GroupId", "type": "string", "versions": "0+", "entityType": "groupId"},
    {"name": "Topics", "type": "[]AlterShareGroupOffsetsRequestTopic", "versions": "0+", "fields": [
      {"name": "TopicName", "type": "string", "versions": "0+", "mapKey": true, "entityType": "topicName"},
      {"name": "Partitions", "type": "[]AlterShareGroupOffsetsRequestPartition", "versions": "0+", "fields": [
        {"name": "PartitionIndex", "type": "int32", "versions": "0+"},
        {"name": "StartOffset", "type": "int64", "versions": "0+"}
      ]}
    ]}
  ]
}
"""
