"""Generated from ShareGroupStatePartitionMetadataValue.json, Kafka 4.0.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["ShareGroupStatePartitionMetadataValue", "TopicInfo", "TopicPartitionsInfo"]


class TopicPartitionsInfo(base.Struct, kw_only=True):
    """Common struct; versions 0+."""

    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 0+."""
    topic_name: str = ""
    """string; versions 0+."""
    partitions: list[int] = []
    """[]int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class TopicInfo(base.Struct, kw_only=True):
    """Common struct; versions 0+."""

    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 0+."""
    topic_name: str = ""
    """string; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class ShareGroupStatePartitionMetadataValue(base.Message, kw_only=True):
    """Coordinator-value, record type 15; versions 0; flexible 0+."""

    initializing_topics: list[TopicPartitionsInfo] = []
    """[]TopicPartitionsInfo; versions 0+."""
    initialized_topics: list[TopicPartitionsInfo] = []
    """[]TopicPartitionsInfo; versions 0+."""
    deleting_topics: list[TopicInfo] = []
    """[]TopicInfo; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    TopicPartitionsInfo: ClassVar[type[TopicPartitionsInfo]] = TopicPartitionsInfo
    TopicInfo: ClassVar[type[TopicInfo]] = TopicInfo
    API_KEY: ClassVar[int | None] = 15
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "coordinator-value", "name": "ShareGroupStatePartitionMetadataValue", "apiKey": 15,
  "validVersions": "0", "flexibleVersions": "0+",
  "commonStructs": [
    {"name": "TopicPartitionsInfo", "versions": "0+", "fields": [
      {"name": "TopicId", "type": "uuid", "versions": "0+"},
      {"name": "TopicName", "type": "string", "versions": "0+"},
      {"name": "Partitions", "type": "[]int32", "versions": "0+"}
    ]},
    {"name": "TopicInfo", "versions": "0+", "fields": [
      {"name": "TopicId", "type": "uuid", "versions": "0+"},
      {"name": "TopicName", "type": "string", "versions": "0+"}
    ]}
  ],
  "fields": [
    {"name": "InitializingTopics", "type": "[]TopicPartitionsInfo", "versions": "0+"},
    {"name": "InitializedTopics", "type": "[]TopicPartitionsInfo", "versions": "0+"},
    {"name": "DeletingTopics", "type": "[]TopicInfo", "versions": "0+"}
  ]
}
"""
