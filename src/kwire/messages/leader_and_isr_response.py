"""Generated from LeaderAndIsrResponse.json, Kafka 2.0.1 to 3.9.2, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["LeaderAndIsrPartitionError", "LeaderAndIsrResponse", "LeaderAndIsrTopicError"]


class LeaderAndIsrPartitionError(base.Struct, kw_only=True):
    """Common struct; versions 0+."""

    topic_name: str = ""
    """string; versions 0-4; ignorable; topicName."""
    partition_index: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class LeaderAndIsrTopicError(base.Struct, kw_only=True):
    """Versions 5+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("topic_id",)

    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 5+; map key."""
    partition_errors: list[LeaderAndIsrPartitionError] = []
    """[]LeaderAndIsrPartitionError; versions 5+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("topics")
class LeaderAndIsrResponse(base.Message, kw_only=True):
    """Response, api key 4; versions 0-7; flexible 4+."""

    error_code: int = 0
    """int16; versions 0+."""
    partition_errors: list[LeaderAndIsrPartitionError] = []
    """[]LeaderAndIsrPartitionError; versions 0-4."""
    topics: base.Keyed[LeaderAndIsrTopicError] = base.keyed()
    """[]LeaderAndIsrTopicError; versions 5+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    LeaderAndIsrPartitionError: ClassVar[type[LeaderAndIsrPartitionError]] = LeaderAndIsrPartitionError
    LeaderAndIsrTopicError: ClassVar[type[LeaderAndIsrTopicError]] = LeaderAndIsrTopicError
    API_KEY: ClassVar[int | None] = 4
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 7)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(4, 32767)
    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = (("partitions", "partition_errors", 0, 2),)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "LeaderAndIsrResponse", "apiKey": 4,
  "validVersions": "0-7", "flexibleVersions": "4+",
  "commonStructs": [
    {"name": "LeaderAndIsrPartitionError", "versions": "0+", "fields": [
      {"name": "TopicName", "type": "string", "versions": "0-4", "ignorable": true, "entityType": "topicName"},
      {"name": "PartitionIndex", "type": "int32", "versions": "0+"},
      {"name": "ErrorCode", "type": "int16", "versions": "0+"}
    ]}
  ],
  "fields": [
    {"name": "ErrorCode", "type": "int16", "versions": "0+"},
    {"name": "PartitionErrors", "type": "[]LeaderAndIsrPartitionError", "versions": "0-4"},
    {"name": "Topics", "type": "[]LeaderAndIsrTopicError", "versions": "5+", "fields": [
      {"name": "TopicId", "type": "uuid", "versions": "5+", "mapKey": true},
      {"name": "PartitionErrors", "type": "[]LeaderAndIsrPartitionError", "versions": "5+"}
    ]}
  ]
}
"""
