"""Generated from OffsetCommitResponse.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["OffsetCommitResponse", "OffsetCommitResponsePartition", "OffsetCommitResponseTopic"]


class OffsetCommitResponsePartition(base.Struct, kw_only=True):
    """Versions 0+."""

    partition_index: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class OffsetCommitResponseTopic(base.Struct, kw_only=True):
    """Versions 0+."""

    name: str = ""
    """string; versions 0-9; ignorable; topicName."""
    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 10+; ignorable."""
    partitions: list[OffsetCommitResponsePartition] = []
    """[]OffsetCommitResponsePartition; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class OffsetCommitResponse(base.Message, kw_only=True):
    """Response, api key 8; versions 0-10; flexible 8+."""

    throttle_time_ms: int = 0
    """int32; versions 3+; ignorable."""
    topics: list[OffsetCommitResponseTopic] = []
    """[]OffsetCommitResponseTopic; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    OffsetCommitResponsePartition: ClassVar[type[OffsetCommitResponsePartition]] = OffsetCommitResponsePartition
    OffsetCommitResponseTopic: ClassVar[type[OffsetCommitResponseTopic]] = OffsetCommitResponseTopic
    API_KEY: ClassVar[int | None] = 8
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 10)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(8, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "OffsetCommitResponse", "apiKey": 8,
  "validVersions": "0-10", "flexibleVersions": "8+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "3+", "ignorable": true},
    {"name": "Topics", "type": "[]OffsetCommitResponseTopic", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0-9", "ignorable": true, "entityType": "topicName"},
      {"name": "TopicId", "type": "uuid", "versions": "10+", "ignorable": true},
      {"name": "Partitions", "type": "[]OffsetCommitResponsePartition", "versions": "0+", "fields": [
        {"name": "PartitionIndex", "type": "int32", "versions": "0+"},
        {"name": "ErrorCode", "type": "int16", "versions": "0+"}
      ]}
    ]}
  ]
}
"""
