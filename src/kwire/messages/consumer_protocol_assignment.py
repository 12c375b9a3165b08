"""Generated from ConsumerProtocolAssignment.json, Kafka 2.7.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["ConsumerProtocolAssignment", "TopicPartition"]


class TopicPartition(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("topic",)

    topic: str = ""
    """string; versions 0+; map key; topicName."""
    partitions: list[int] = []
    """[]int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("assigned_partitions")
class ConsumerProtocolAssignment(base.Message, kw_only=True):
    """Data; versions 0-3; flexible none."""

    assigned_partitions: base.Keyed[TopicPartition] = base.keyed()
    """[]TopicPartition; versions 0+."""
    user_data: bytes | None = None
    """bytes; versions 0+; nullable; default null."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    TopicPartition: ClassVar[type[TopicPartition]] = TopicPartition
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 3)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, -1)
    DEFINITION: ClassVar[str] = """\
{
  "type": "data", "name": "ConsumerProtocolAssignment",
  "validVersions": "0-3", "flexibleVersions": "none",
  "fields": [
    {"name": "AssignedPartitions", "type": "[]TopicPartition", "versions": "0+", "fields": [
      {"name": "Topic", "type": "string", "versions": "0+", "mapKey": true, "entityType": "topicName"},
      {"name": "Partitions", "type": "[]int32", "versions": "0+"}
    ]},
    {"name": "UserData", "type": "bytes", "versions": "0+", "nullableVersions": "0+", "default": "null", "zeroCopy": true}
  ]
}
"""
