"""Generated from ConsumerProtocolSubscription.json, Kafka 2.7.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["ConsumerProtocolSubscription", "TopicPartition"]


class TopicPartition(base.Struct, kw_only=True):
    """Versions 1+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("topic",)

    topic: str = ""
    """string; versions 1+; map key; topicName."""
    partitions: list[int] = []
    """[]int32; versions 1+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("owned_partitions")
class ConsumerProtocolSubscription(base.Message, kw_only=True):
    """Data; versions 0-3; flexible none."""

    topics: list[str] = []
    """[]string; versions 0+."""
    user_data: bytes | None = None
    """bytes; versions 0+; nullable; default null."""
    owned_partitions: base.Keyed[TopicPartition] = base.keyed()
    """[]TopicPartition; versions 1+; ignorable."""
    generation_id: int = -1
    """int32; versions 2+; default -1; ignorable."""
    rack_id: str | None = None
    """string; versions 3+; nullable; default null; ignorable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    TopicPartition: ClassVar[type[TopicPartition]] = TopicPartition
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 3)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, -1)
    DEFINITION: ClassVar[str] = """\
{
  "type": "data", "name": "ConsumerProtocolSubscription",
  "validVersions": "0-3", "flexibleVersions": "none",
  "fields": [
    {"name": "Topics", "type": "[]string", "versions": "0+"},
    {"name": "UserData", "type": "bytes", "versions": "0+", "nullableVersions": "0+", "default": "null", "zeroCopy": true},
    {"name": "OwnedPartitions", "type": "[]TopicPartition", "versions": "1+", "ignorable": true, "fields": [
      {"name": "Topic", "type": "string", "versions": "1+", "mapKey": true, "entityType": "topicName"},
      {"name": "Partitions", "type": "[]int32", "versions": "1+"}
    ]},
    {"name": "GenerationId", "type": "int32", "versions": "2+", "default": "-1", "ignorable": true},
    {"name": "RackId", "type": "string", "versions": "3+", "nullableVersions": "3+", "default": "null", "ignorable": true}
  ]
}
"""
