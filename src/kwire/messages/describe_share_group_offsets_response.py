"""Generated from DescribeShareGroupOffsetsResponse.json, Kafka 4.1.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = [
    "DescribeShareGroupOffsetsResponse",
    "DescribeShareGroupOffsetsResponseGroup",
    "DescribeShareGroupOffsetsResponsePartition",
    "DescribeShareGroupOffsetsResponseTopic",
]


class DescribeShareGroupOffsetsResponsePartition(base.Struct, kw_only=True):
    """Versions 0+."""

    partition_index: int = 0
    """int32; versions 0+."""
    start_offset: int = 0
    """int64; versions 0+."""
    leader_epoch: int = 0
    """int32; versions 0+."""
    lag: int = -1
    """int64; versions 1+; default -1; ignorable."""
    error_code: int = 0
    """int16; versions 0+."""
    error_message: str | None = None
    """string; versions 0+; nullable; default null."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class DescribeShareGroupOffsetsResponseTopic(base.Struct, kw_only=True):
    """Versions 0+."""

    topic_name: str = ""
    """string; versions 0+; topicName."""
    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 0+."""
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = []
    """[]DescribeShareGroupOffsetsResponsePartition; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class DescribeShareGroupOffsetsResponseGroup(base.Struct, kw_only=True):
    """Versions 0+."""

    group_id: str = ""
    """string; versions 0+; groupId."""
    topics: list[DescribeShareGroupOffsetsResponseTopic] = []
    """[]DescribeShareGroupOffsetsResponseTopic; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    error_message: str | None = None
    """string; versions 0+; nullable; default null."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class DescribeShareGroupOffsetsResponse(base.Message, kw_only=True):
    """Response, api key 90; versions 0-1; flexible 0+."""

    throttle_time_ms: int = 0
    """int32; versions 0+."""
    groups: list[DescribeShareGroupOffsetsResponseGroup] = []
    """[]DescribeShareGroupOffsetsResponseGroup; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    DescribeShareGroupOffsetsResponsePartition: ClassVar[type[DescribeShareGroupOffsetsResponsePartition]] = (
        DescribeShareGroupOffsetsResponsePartition
    )
    DescribeShareGroupOffsetsResponseTopic: ClassVar[type[DescribeShareGroupOffsetsResponseTopic]] = (
        DescribeShareGroupOffsetsResponseTopic
    )
    DescribeShareGroupOffsetsResponseGroup: ClassVar[type[DescribeShareGroupOffsetsResponseGroup]] = (
        DescribeShareGroupOffsetsResponseGroup
    )
    API_KEY: ClassVar[int | None] = 90
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 1)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "DescribeShareGroupOffsetsResponse", "apiKey": 90,
  "validVersions": "0-1", "flexibleVersions": "0+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+"},
    {"name": "Groups", "type": "[]DescribeShareGroupOffsetsResponseGroup", "versions": "0+", "fields": [
      {"name": "GroupId", "type": "string", "versions": "0+", "entityType": "groupId"},
      {"name": "Topics", "type": "[]DescribeShareGroupOffsetsResponseTopic", "versions": "0+", "fields": [
        {"name": "TopicName", "type": "string", "versions": "0+", "entityType": "topicName"},
        {"name": "TopicId", "type": "uuid", "versions": "0+"},
        {"name": "Partitions", "type": "[]DescribeShareGroupOffsetsResponsePartition", "versions": "0+", "fields": [
          {"name": "PartitionIndex", "type": "int32", "versions": "0+"},
          {"name": "StartOffset", "type": "int64", "versions": "0+"},
          {"name": "LeaderEpoch", "type": "int32", "versions": "0+"},
          {"name": "Lag", "type": "int64", "versions": "1+", "default": "-1", "ignorable": true},
          {"name": "ErrorCode", "type": "int16", "versions": "0+"},
          {"name": "ErrorMessage", "type": "string", "versions": "0+", "nullableVersions": "0+", "default": "null"}
        ]}
      ]},
      {"name": "ErrorCode", "type": "int16", "versions": "0+"},
      {"name": "ErrorMessage", "type": "string", "versions": "0+", "nullableVersions": "0+", "default": "null"}
    ]}
  ]
}
"""
