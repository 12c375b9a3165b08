"""Generated from DescribeShareGroupOffsetsRequest.json, Kafka 4.1.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = [
    "DescribeShareGroupOffsetsRequest",
    "DescribeShareGroupOffsetsRequestGroup",
    "DescribeShareGroupOffsetsRequestTopic",
]


class DescribeShareGroupOffsetsRequestTopic(base.Struct, kw_only=True):
    """Versions 0+."""

    topic_name: str = ""
    """string; versions 0+; topicName."""
    partitions: list[int] = []
    """[]int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class DescribeShareGroupOffsetsRequestGroup(base.Struct, kw_only=True):
    """Versions 0+."""

    group_id: str = ""
    """string; versions 0+; groupId."""
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = []
    """[]DescribeShareGroupOffsetsRequestTopic; versions 0+; nullable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class DescribeShareGroupOffsetsRequest(base.Message, kw_only=True):
    """Request, api key 90; versions 0-1; flexible 0+; listeners broker."""

    groups: list[DescribeShareGroupOffsetsRequestGroup] = []
    """[]DescribeShareGroupOffsetsRequestGroup; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    DescribeShareGroupOffsetsRequestTopic: ClassVar[type[DescribeShareGroupOffsetsRequestTopic]] = (
        DescribeShareGroupOffsetsRequestTopic
    )
    DescribeShareGroupOffsetsRequestGroup: ClassVar[type[DescribeShareGroupOffsetsRequestGroup]] = (
        DescribeShareGroupOffsetsRequestGroup
    )
    API_KEY: ClassVar[int | None] = 90
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 1)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "DescribeShareGroupOffsetsRequest", "apiKey": 90,
  "validVersions": "0-1", "flexibleVersions": "0+",
  "listeners": ["broker"],
  "fields": [
    {"name": "Groups", "type": "[]DescribeShareGroupOffsetsRequestGroup", "versions": "0+", "fields": [
      {"name": "GroupId", "type": "string", "versions": "0+", "entityType": "groupId"},
      {"name": "Topics", "type": "[]DescribeShareGroupOffsetsRequestTopic", "versions": "0+", "nullableVersions": "0+", "fields": [
        {"name": "TopicName", "type": "string", "versions": "0+", "entityType": "topicName"},
        {"name": "Partitions", "type": "[]int32", "versions": "0+"}
      ]}
    ]}
  ]
}
"""
