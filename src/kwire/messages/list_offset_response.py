"""Generated from ListOffsetResponse.json, Kafka 2.0.1 to 2.7.2, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["ListOffsetPartitionResponse", "ListOffsetResponse", "ListOffsetTopicResponse"]


class ListOffsetPartitionResponse(base.Struct, kw_only=True):
    """Versions 0+."""

    partition_index: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    old_style_offsets: list[int] = []
    """[]int64; versions 0."""
    timestamp: int = -1
    """int64; versions 1+; default -1."""
    offset: int = -1
    """int64; versions 1+; default -1."""
    leader_epoch: int = -1
    """int32; versions 4+; default -1."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class ListOffsetTopicResponse(base.Struct, kw_only=True):
    """Versions 0+."""

    name: str = ""
    """string; versions 0+; topicName."""
    partitions: list[ListOffsetPartitionResponse] = []
    """[]ListOffsetPartitionResponse; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class ListOffsetResponse(base.Message, kw_only=True):
    """Response, api key 2; versions 0-5; flexible none."""

    throttle_time_ms: int = 0
    """int32; versions 2+; ignorable."""
    topics: list[ListOffsetTopicResponse] = []
    """[]ListOffsetTopicResponse; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    ListOffsetPartitionResponse: ClassVar[type[ListOffsetPartitionResponse]] = ListOffsetPartitionResponse
    ListOffsetTopicResponse: ClassVar[type[ListOffsetTopicResponse]] = ListOffsetTopicResponse
    API_KEY: ClassVar[int | None] = 2
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 5)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, -1)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "ListOffsetResponse", "apiKey": 2,
  "validVersions": "0-5", "flexibleVersions": "none",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "2+", "ignorable": true},
    {"name": "Topics", "type": "[]ListOffsetTopicResponse", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0+", "entityType": "topicName"},
      {"name": "Partitions", "type": "[]ListOffsetPartitionResponse", "versions": "0+", "fields": [
        {"name": "PartitionIndex", "type": "int32", "versions": "0+"},
        {"name": "ErrorCode", "type": "int16", "versions": "0+"},
        {"name": "OldStyleOffsets", "type": "[]int64", "versions": "0"},
        {"name": "Timestamp", "type": "int64", "versions": "1+", "default": "-1"},
        {"name": "Offset", "type": "int64", "versions": "1+", "default": "-1"},
        {"name": "LeaderEpoch", "type": "int32", "versions": "4+", "default": "-1"}
      ]}
    ]}
  ]
}
"""
