"""Generated from AlterShareGroupOffsetsResponse.json, Kafka 4.1.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = [
    "AlterShareGroupOffsetsResponse",
    "AlterShareGroupOffsetsResponsePartition",
    "AlterShareGroupOffsetsResponseTopic",
]


class AlterShareGroupOffsetsResponsePartition(base.Struct, kw_only=True):
    """Versions 0+."""

    partition_index: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    error_message: str | None = None
    """string; versions 0+; nullable; default null."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class AlterShareGroupOffsetsResponseTopic(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("topic_name",)

    topic_name: str = ""
    """string; versions 0+; map key; topicName."""
    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 0+."""
    partitions: list[AlterShareGroupOffsetsResponsePartition] = []
    """[]AlterShareGroupOffsetsResponsePartition; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("responses")
class AlterShareGroupOffsetsResponse(base.Message, kw_only=True):
    """Response, api key 91; versions 0; flexible 0+."""

    throttle_time_ms: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    error_message: str | None = None
    """string; versions 0+; nullable; default null."""
    responses: base.Keyed[AlterShareGroupOffsetsResponseTopic] = base.keyed()
    """[]AlterShareGroupOffsetsResponseTopic; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    AlterShareGroupOffsetsResponsePartition: ClassVar[type[AlterShareGroupOffsetsResponsePartition]] = (
        AlterShareGroupOffsetsResponsePartition
    )
    AlterShareGroupOffsetsResponseTopic: ClassVar[type[AlterShareGroupOffsetsResponseTopic]] = (
        AlterShareGroupOffsetsResponseTopic
    )
    API_KEY: ClassVar[int | None] = 91
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "AlterShareGroupOffsetsResponse", "apiKey": 91,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+"},
    {"name": "ErrorCode", "type": "int16", "versions": "0+"},
    {"name": "ErrorMessage", "type": "string", "versions": "0+", "nullableVersions": "0+", "default": "null"},
    {"name": "Responses", "type": "[]AlterShareGroupOffsetsResponseTopic", "versions": "0+", "fields": [
      {"name": "TopicName", "type": "string", "versions": "0+", "mapKey": true, "entityType": "topicName"},
      {"name": "TopicId", "type": "uuid", "versions": "0+"},
      {"name": "Partitions", "type": "[]AlterShareGroupOffsetsResponsePartition", "versions": "0+", "fields": [
        {"name": "PartitionIndex", "type": "int32", "versions": "0+"},
        {"name": "ErrorCode", "type": "int16", "versions": "0+"},
        {"name": "ErrorMessage", "type": "string", "versions": "0+", "nullableVersions": "0+", "default": "null"}
      ]}
    ]}
  ]
}
"""
