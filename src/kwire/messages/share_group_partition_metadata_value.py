"""Generated from ShareGroupPartitionMetadataValue.json, Kafka 3.9.1 to 4.0.2, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["PartitionMetadata", "ShareGroupPartitionMetadataValue", "TopicMetadata"]


class PartitionMetadata(base.Struct, kw_only=True):
    """Versions 0+."""

    partition: int = 0
    """int32; versions 0+."""
    racks: list[str] = []
    """[]string; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class TopicMetadata(base.Struct, kw_only=True):
    """Versions 0+."""

    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 0+."""
    topic_name: str = ""
    """string; versions 0+."""
    num_partitions: int = 0
    """int32; versions 0+."""
    partition_metadata: list[PartitionMetadata] = []
    """[]PartitionMetadata; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class ShareGroupPartitionMetadataValue(base.Message, kw_only=True):
    """Data; versions 0; flexible 0+."""

    topics: list[TopicMetadata] = []
    """[]TopicMetadata; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    PartitionMetadata: ClassVar[type[PartitionMetadata]] = PartitionMetadata
    TopicMetadata: ClassVar[type[TopicMetadata]] = TopicMetadata
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "data", "name": "ShareGroupPartitionMetadataValue",
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "Topics", "type": "[]TopicMetadata", "versions": "0+", "fields": [
      {"name": "TopicId", "type": "uuid", "versions": "0+"},
      {"name": "TopicName", "type": "string", "versions": "0+"},
      {"name": "NumPartitions", "type": "int32", "versions": "0+"},
      {"name": "PartitionMetadata", "type": "[]PartitionMetadata", "versions": "0+", "fields": [
        {"name": "Partition", "type": "int32", "versions": "0+"},
        {"name": "Racks", "type": "[]string", "versions": "0+"}
      ]}
    ]}
  ]
}
"""
